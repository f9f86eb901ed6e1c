"""Any words behind any command: an answer, or one line with exit code 2. No traceback, and nothing is waited for.

The work itself is cut off where rows are first counted: what arguments mean is decided before that.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from fuzzing import LENGTHS, hunt
from hypothesis import strategies as st

from certsynth.algorithm import certify as certification
from certsynth.algorithm import evaluate as evaluation
from certsynth.algorithm import release as releasing
from certsynth.cli import main
from certsynth.errors import InputError
from certsynth.planning import plan
from certsynth.sources import sql
from small import NATIVE, without_progress

NUMBERS = [
    "0",
    "-1",
    "1",
    "2",
    "0.5",
    "nan",
    "inf",
    "-inf",
    "1e400",
    "1e-400",
    "True",
    "abc",
    "1/0",
    "1/3",
    "",
    " ",
    "0x10",
]
NUMBERS += [
    "9" * 50,
    "9" * 5_000,
    "1_000",
    "１",
    "1e6",
    "--",
    "-",
    "=1+1",
    "1,2",
    "100",
    "100.0000001",
    "\ud800",
    "auto",
]
FILES = [
    "people.csv",
    "schema.toml",
    "workload.toml",
    "missing",
    ".",
    "..",
    "/",
    "",
    "/dev/null",
    "/dev/zero",
    "pipe",
    "pipe.csv",
]
FILES += [
    "pipe.parquet",
    "dangling.csv",
    "circle.csv",
    "two\nlines.csv",
    "x" * 300,
    "x" * 5_000,
    "~",
    "folder",
    "empty.csv",
]
FILES += ["people.csv/x", "secret.csv", "-", "a\udc80b.csv", "*.csv", "release"]
NAMES = ["a", "a,b", "b,c", "z", "", ",", '"', '"a,', "a,a", "a,,b", "\n", "x" * 2_000]


class Stopped(InputError):
    """In place of the work."""


def stop(*arguments: object, **options: object) -> Any:
    raise Stopped("the work would begin here.")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, a schema, a workload, and much that is none of these."""
    here = tmp_path_factory.mktemp("arguments")
    (here / "people.csv").write_text("a,b,c\n1,2,x\n3,,y\n")
    (here / "secret.csv").write_text("a,b,c\n1,2,x\n3\n")
    (here / "schema.toml").write_text(NATIVE.to_toml())
    (here / "workload.toml").write_text('subsets = [["a", "b"]]')
    (here / "empty.csv").touch()
    (here / "folder").mkdir()
    for name in ("pipe", "pipe.csv", "pipe.parquet"):
        os.mkfifo(here / name)
    (here / "dangling.csv").symlink_to(here / "nowhere")
    (here / "circle.csv").symlink_to(here / "circle.csv")
    (here / "two\nlines.csv").write_text("a,b,c\n1,2,x\n")
    return here


@pytest.fixture(autouse=True)
def _no_work(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setattr(releasing, "run", stop)
    monkeypatch.setattr(certification, "direct_bounds", stop)
    monkeypatch.setattr(evaluation, "compare_tables", stop)
    monkeypatch.setattr(plan, "choose", stop)
    monkeypatch.setattr(sql, "spark_table", stop)  # it would take half a minute to start


def value_of(parameter: click.Parameter) -> st.SearchStrategy[str]:
    if isinstance(parameter.type, click.Path):
        return st.sampled_from(FILES)
    if isinstance(parameter.type, click.Choice):
        return st.sampled_from([*parameter.type.choices, "", "none", "AUTO"])
    if parameter.name == "columns":
        return st.sampled_from(NAMES)
    if parameter.name == "attach":
        return st.sampled_from(FILES).map(lambda file: f"a={file}")
    return st.sampled_from(NUMBERS) | st.text(st.characters(exclude_characters="\0"), max_size=5)


GOOD = {
    "data": "people.csv",
    "private": "people.csv",
    "synthetic": "people.csv",
    "schema_file": "schema.toml",
    "epsilon": "1",
}
GOOD |= {"rows": "10", "out": "new", "folder": "folder"}


@st.composite
def arguments(draw: st.DrawFn, command: click.Command) -> list[str]:
    """What the command needs, mostly good, and a few of its options with any values."""
    words: list[str] = []
    for parameter in command.params:
        needed = parameter.required or parameter.name in GOOD
        if not needed and draw(st.integers(0, 4)):
            continue
        value = GOOD.get(str(parameter.name))
        if value is None or draw(st.integers(0, 4)) == 0:
            value = draw(value_of(parameter))
        if isinstance(parameter, click.Argument):
            words.append(value)
        elif getattr(parameter, "is_flag", False):
            words.append(parameter.opts[0])
        else:
            words += [parameter.opts[0], value]
    return words


def check_command(command: str, words: list[str], place: Path) -> int:
    before = {path.name for path in place.iterdir()}
    done = CliRunner().invoke(main, [command, *words])
    assert "Traceback" not in done.output
    assert "internal error" not in done.stderr, done.stderr
    assert done.exit_code in (0, 1, 2), done.output
    if done.exit_code == 2:
        errors = [line for line in without_progress(done.stderr).splitlines() if not line.startswith("note: ")]
        assert len(errors) == 1
        assert errors[0].startswith("error: ")
        assert done.stdout == ""
    for path in place.iterdir():
        if path.name not in before:
            path.unlink()
    return done.exit_code


@LENGTHS
@pytest.mark.parametrize("command", [name for name in main.commands if name != "demo"])
def test_any_words_are_understood_or_refused_in_one_line(command, place, times):
    codes = []

    def check(words: list[str]) -> None:
        codes.append(check_command(command, words, place))

    hunt(check, examples=50, times=times, words=arguments(main.commands[command]))
    assert 2 in codes


@pytest.mark.parametrize(
    "words", [["--rows", "0"], ["--rows", "x"], ["--out", "folder"], ["--out", "missing/x"], ["--out", ""]]
)
def test_the_demo_refuses_in_one_line(place, words):
    assert check_command("demo", words, place) == 2


@pytest.mark.parametrize(
    "file", ["pipe", "pipe.csv", "pipe.parquet", "/dev/zero", "/dev/null", "dangling.csv", "circle.csv", "."]
)
def test_what_is_no_file_is_waited_for_nowhere(place, file):
    """In each place where a command takes a file."""
    tried = 0
    for name, command in main.commands.items():
        for chosen in [
            p for p in command.params if isinstance(p.type, click.Path) and (name, p.name) != ("demo", "out")
        ]:
            words: list[str] = []
            for parameter in command.params:
                value = file if parameter is chosen else GOOD.get(str(parameter.name))
                if value is not None:
                    words += [value] if isinstance(parameter, click.Argument) else [parameter.opts[0], value]
            check_command(name, words, place)
            tried += 1
    assert tried >= 15
