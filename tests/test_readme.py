"""What the README tells people to type works, in the order in which it tells it; `test_site.py` has the other pages."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from certsynth import Ledger, Schema, demo
from certsynth.cli import main

ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
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
    assert (folder / "release" / "report.html").read_bytes() == (folder / "report.html").read_bytes()


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
    assert len(done.stdout.splitlines()) == 6


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


def test_its_schema_is_one():
    schema = Schema.parse(blocks("README.md", "toml")[0])
    kinds = {getattr(column, "kind", None) for column in schema}
    assert kinds == {"integer", "number", "date", "ordinal", "category", "boolean"}
