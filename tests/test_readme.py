"""The README is short, answers the first questions, and its commands work; `test_site.py` has the other pages."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest
from click.testing import CliRunner

from certsynth import Ledger, Schema, demo
from certsynth.cli import main

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
MAX_BYTES = 9_000
"""What a person reads before trying it: about three screens of text and a picture."""
QUICK = ("age", "sex", "region", "employed")  # columns with few values, so that nothing takes long


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return [code for found, code in _BLOCK.findall(text) if found == language]


def edited(schema: Path) -> None:
    """What a person does with a draft: public knowledge in place of the rows' own, columns left out, no draft."""
    schema.write_text(Schema.parse(demo.SCHEMA).select(QUICK).to_toml(), encoding="utf-8")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    town = demo.people(300)
    demo.write_csv(town, tmp_path / "people.csv")
    demo.write_csv(demo.shuffled(town), tmp_path / "other.csv")
    return tmp_path


def run_line(line: str, folder: Path) -> None:
    command = shlex.split(line, comments=True)
    if not command or command[0] in ("make", "."):
        return
    assert command[0] == "certsynth", f"what is {line!r}?"
    done = CliRunner().invoke(main, command[1:])
    assert done.exit_code == 0, (line, done.stderr)
    if command[1] == "schema":
        assert Schema.load(folder / "schema.toml").draft
        edited(folder / "schema.toml")


def test_its_commands_run_one_after_the_other(folder):
    for block in blocks("README.md", "sh"):
        for line in block.splitlines():
            run_line(line, folder)
    assert (folder / "release" / "report.html").is_file()
    assert Ledger.load(folder / "people.ledger").spent == Decimal("1.5")


def test_its_python_runs(folder):
    edited(folder / "schema.toml")
    (code,) = blocks("README.md", "python")
    environment = os.environ | {"PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "mean(age) = " in done.stdout
    assert done.stdout.splitlines()[-1] == "2", "what is left of the cap"


def test_the_notebook_page_runs_from_top_to_bottom(folder):
    edited(folder / "schema.toml")
    code = "\n".join(blocks("docs/how-to/frames.md", "python"))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "refit=True" in done.stdout
    assert Ledger.load(folder / "people.ledger").spent == 2


def test_its_columns_are_columns():
    (schema,) = blocks("README.md", "toml")
    assert Schema.parse(schema).names == ("age",)


def test_it_is_short_and_has_one_picture():
    text = (ROOT / "README.md").read_bytes()
    assert len(text) <= MAX_BYTES
    assert text.count(b"![") == 1


@pytest.mark.parametrize(
    ("heading", "words"),
    [
        ("What is protected, and which ε to take", ("**One row**", "**Start with ε = 1**", "docs/how-to/choose.md")),
        ("How to get your data in", ("Excel", "docs/reference/schema.md", "Run `check` before each release")),
        ("What is promised, and what is not", ("**Where it is weak**", "docs/explanation/limits.md")),
        ("How to check a release", ("`certsynth verify release`", "docs/how-to/verify.md")),
    ],
)
def test_the_first_questions_of_a_reader_have_their_own_place(heading, words):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    assert [word for word in words if word not in section] == []
