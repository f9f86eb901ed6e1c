"""A small town, its schema, a release of it, and a way to run commands."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from certsynth import demo
from certsynth.cli import main
from certsynth.domain import Schema
from small import without_progress

COLUMNS = ("age", "region", "employed")


@dataclass(frozen=True)
class Outcome:
    """What a command did: its exit code, and what it wrote where. Lines of progress are not part of `err`."""

    code: int
    out: str
    err: str
    exception: BaseException | None

    @property
    def json(self) -> Any:
        return json.loads(self.out, parse_constant=_no_constant)

    @property
    def said(self) -> str:
        """The output as one line: what it says, wherever lines end."""
        return " ".join(self.out.replace(" \\\n", " ").split())

    @property
    def error(self) -> str:
        """The one line of a mistake."""
        assert self.code == 2
        assert self.out == ""
        (line,) = self.err.splitlines()
        assert line.startswith("error: ")
        return line.removeprefix("error: ")


def _no_constant(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


@pytest.fixture
def run() -> Callable[..., Outcome]:
    def run(*arguments: object) -> Outcome:
        done = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert "Traceback" not in done.output
        unexpected = None if isinstance(done.exception, SystemExit) else done.exception
        return Outcome(done.exit_code, done.stdout, without_progress(done.stderr), unexpected)

    return run


def write_town(folder: Path, rows: int) -> None:
    table = demo.people(rows)
    demo.write_csv({name: table[name] for name in COLUMNS}, folder / "people.csv")
    shutil.copy(folder / "people.csv", folder / "copy.csv")
    schema = Schema.parse(demo.SCHEMA).select(COLUMNS)
    (folder / "schema.toml").write_text(schema.to_toml(), encoding="utf-8")


@pytest.fixture
def town(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with people.csv, a copy of it, and schema.toml; commands run inside of it."""
    write_town(tmp_path, 150)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A town with a release: not to be changed."""
    folder = tmp_path_factory.mktemp("released")
    write_town(folder, 150)
    arguments = ["release", "people.csv", "--schema", "schema.toml", "--epsilon", "2", "--out", "release"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = CliRunner().invoke(main, [*arguments, "--resolution", "4", "--mechanism", "identity", "--quiet"])
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def folder(released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the release; the private rows are not there. Commands run beside it."""
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(released / "release", tmp_path / "release")
