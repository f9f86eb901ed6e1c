"""No cell in anything that leaves: every command, every way to fail, all that was printed, logged or left behind.

Failures are put in where other libraries touch rows; what they say quotes a cell, as theirs do.
"""

from __future__ import annotations

import base64
import logging
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from click.testing import CliRunner

from certsynth import certify, check, cli, evaluate, release
from certsynth.artefact import table as written_table
from certsynth.errors import CertsynthError
from certsynth.planning.cache import CACHE_VARIABLE
from certsynth.sources import draft, duck, frames, reading, summary
from certsynth.sources.files import CsvFile
from certsynth.transport import flow
from small import NATIVE, native, raising, without_progress

CANARY = "canary-c0ffee"
SEEN_AS = [
    CANARY.encode(),
    CANARY.encode("utf-16-le"),
    CANARY.encode("utf-32-le"),
    CANARY[::-1].encode(),
    CANARY.upper().encode(),
    CANARY.encode().hex().encode(),
    *(base64.b64encode(b" " * shift + CANARY.encode())[4:-4] for shift in range(3)),
]
"""The canary in the forms in which texts travel; of base64 the part that does not depend on what stands around it."""

SHARED = ("--schema", "schema.toml")
PINNED = ("--resolution", "2", "--mechanism", "identity", "--rows", "20")
COMMANDS: dict[str, tuple[str, ...]] = {
    "schema": ("schema", "DATA", "--out", "draft.toml"),
    "check": ("check", "DATA", *SHARED),
    "check, JSON": ("check", "DATA", *SHARED, "--json"),
    "release": ("release", "DATA", *SHARED, "--epsilon", "2", "--out", "out", *PINNED),
    "release, rho": ("release", "DATA", *SHARED, "--rho", "0.5", "--out", "out", *PINNED, "--neighbours", "add-remove"),
    "release, public rows": (
        "release",
        "good.csv",
        *SHARED,
        "--epsilon",
        "2",
        "--out",
        "out",
        *PINNED,
        "--public",
        "DATA",
    ),
    "certify": ("certify", "DATA", "good.csv", *SHARED, "--epsilon", "1"),
    "certify, synthetic": ("certify", "good.csv", "DATA", *SHARED, "--epsilon", "1", "--per-subset"),
    "evaluate": ("evaluate", "DATA", "good.csv", *SHARED),
    "evaluate, synthetic": ("evaluate", "good.csv", "DATA", *SHARED),
}
"""Every command that reads rows; DATA stands for the table with the canary in it."""

NO_ROWS = {"plan", "verify", "report", "demo", "ledger", "answer"}
"""Commands that are given no rows of anybody."""


class Panic(BaseException):
    """As polars has it: no `Exception`."""


BROKEN_TEXTS = {
    "ragged": f"a,b,c\n1,2,x\n3,{CANARY}\n",
    "quote": f'a,b,c\n1,2,"{CANARY}" x\n',
    "unclosed": f'a,b,c\n1,2,"{CANARY}\n',
    "no header": f"{CANARY},1,2\n3,4,y\n",
    "no header, all texts": f"{CANARY},left,right\nx,y,z\n",
    "no header, a text twice": f"{CANARY},{CANARY},right\nx,y,z\n",
    "long field": f"a,b,c\n1,2,{CANARY}{'z' * 140_000}\n",
    "far down": "a,b,c\n" + "1,2,x\n" * 3_000 + f"{CANARY}\n",
}
BYTES = {
    "not UTF-8": b"a,b,c\n1,2," + CANARY.encode() + b"\xff\n",
    "UTF-16": f"a,b,c\n1,2,{CANARY}\n".encode("utf-16"),
}


def scan(folder: Path, *texts: str) -> None:
    """No form of the canary in what was shown, nor in any file that is left except the tables themselves."""
    for form in SEEN_AS:
        for text in texts:
            assert form not in text.encode(errors="surrogateescape"), (form, text)
        for path in folder.rglob("*"):
            if path.is_file() and path.parent.name != "tables":
                assert form not in path.read_bytes(), (form, path)
                assert form.decode("latin-1") not in path.name


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own for everything that a process may leave behind, and tables in a folder inside of it."""
    (tmp_path / "temporary").mkdir()
    (tmp_path / "tables").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.delenv("CERTSYNTH_DEBUG", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text(NATIVE.to_toml())
    (tmp_path / "good.csv").write_text("a,b,c\n" + "1,2,x\n3,,y\n" * 20)
    spoiled = native(60).with_columns(pl.Series("c", ["x", CANARY, "y"] * 20), pl.Series("d", [CANARY] * 60))
    spoiled.write_csv(tmp_path / "tables" / "people.csv")
    spoiled.write_parquet(tmp_path / "tables" / "people.parquet")
    return tmp_path


def run(here: Path, caplog: pytest.LogCaptureFixture, command: str, data: str) -> tuple[int, str]:
    """Run a command; scan all that it said, logged, warned of and left; its exit code and what it said on stderr."""
    arguments = [f"tables/{data}" if word == "DATA" else word for word in COMMANDS[command]]
    with warnings.catch_warnings(record=True) as warned, caplog.at_level(logging.DEBUG):
        warnings.simplefilter("always")
        done = CliRunner().invoke(cli.main, arguments)
    said = [str(warning.message) for warning in warned]
    drafted = here / "draft.toml"
    printed = [done.stderr, caplog.text, *said]
    if drafted.exists():  # a draft shows labels and the first line, and says so: that is what it is for
        assert "NOT private" in done.stderr
        drafted.unlink()
    else:
        printed.append(done.stdout)
    scan(here, *printed)
    assert "Traceback" not in done.output
    return done.exit_code, without_progress(done.stderr)


def test_the_table_of_commands_is_whole() -> None:
    assert {name.split(",")[0] for name in COMMANDS} | NO_ROWS == set(cli.main.commands)


@pytest.mark.quick_cases(8)
@pytest.mark.parametrize("data", ["people.csv", "people.parquet"])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_cell_where_nothing_fails(here, caplog, command, data):
    code, _ = run(here, caplog, command, data)
    assert code == (1 if command.startswith("check") else 0)  # the canary is no label of the schema


@pytest.mark.parametrize("fault", [*BROKEN_TEXTS, *BYTES])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_cell_of_a_broken_file(here, caplog, command, fault):
    content = BROKEN_TEXTS[fault].encode() if fault in BROKEN_TEXTS else BYTES[fault]
    (here / "tables" / "people.csv").write_bytes(content)
    code, said = run(here, caplog, command, "people.csv")
    assert code == 2 or (command == "schema" and fault.startswith("no header"))
    assert len(said.splitlines()) == 1
    assert not (here / "out").exists()


FAILURES: dict[str, tuple[str, Any, str, set[str]]] = {
    # what: (which table, where, the attribute, commands that do not come there)
    "DuckDB while fetching": ("people.parquet", duck, "connection", set()),
    "a reader of CSV": ("people.csv", CsvFile, "_lines", set()),
    "an array of objects": ("people.csv", reading, "objects", set()),
    "a draft": ("people.csv", summary, "as_labels", set(COMMANDS) - {"schema"}),
    "counting": ("people.csv", np, "bincount", {"schema"}),
    "a solver": ("people.csv", flow, "potential_value", {"schema", "check"}),
    "writing the table": ("people.csv", written_table, "_connection", {"schema", "check", "certify", "evaluate"}),
}
ERRORS: dict[str, Callable[[], BaseException]] = {
    "ValueError": lambda: ValueError(CANARY),
    "KeyError": lambda: KeyError(CANARY),
    "DuckDB's": lambda: duckdb.ConversionException(f"Could not convert string '{CANARY}' to INT32"),
    "UnicodeDecodeError": lambda: UnicodeDecodeError("utf-8", CANARY.encode(), 0, 1, CANARY),
    "OSError": lambda: OSError(28, "No space left on device", CANARY),
    "MemoryError": lambda: MemoryError(CANARY),
    "a dead worker": lambda: joblib.externals.loky.process_executor.TerminatedWorkerError(CANARY),
    "chained": lambda: _chained(),
    "KeyboardInterrupt": lambda: KeyboardInterrupt(CANARY),
}


def _chained() -> Exception:
    try:
        try:
            raise KeyError(CANARY)
        except KeyError as inner:
            raise RuntimeError(CANARY) from inner
    except RuntimeError as outer:
        return outer


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("where", FAILURES)
def test_no_cell_of_what_another_library_says(here, caplog, monkeypatch, where, error):
    data, module, name, elsewhere = FAILURES[where]
    if not hasattr(module, name):
        pytest.fail(f"{module} has no {name}: the failure must be put in elsewhere")
    commands = [command for command in COMMANDS if command not in elsewhere and command.split(",")[0] not in elsewhere]
    monkeypatch.setattr(module, name, raising(ERRORS[error]()))
    failed = 0
    for command in commands:
        code, said = run(here, caplog, command, data)
        misfit = code == 1 and command.startswith("check") and not said
        failed += code != 0 and not misfit
        if code and not misfit:
            assert code == (130 if error == "KeyboardInterrupt" else 2), said
            assert len(said.splitlines()) == 1
            assert not (here / "out").exists()
    assert failed, "the failure was never met"


# ------------------------------------------------------------ from Python


def shown(error: BaseException) -> str:
    return f"{error}{error!r}{''.join(traceback.format_exception(error))}"


def spoiled(kind: str) -> Any:
    frame = {"a": [1, 2], "b": [1, None], "c": [CANARY, "x"]}
    return pd.DataFrame(frame) if kind == "pandas" else pl.DataFrame(frame)


CALLS: dict[str, Callable[[Any], Any]] = {
    "release": lambda data: release(data, NATIVE, epsilon=1, resolution=2, mechanism="identity", rows=5),
    "certify": lambda data: certify(data, spoiled("polars"), NATIVE, epsilon=1),
    "evaluate": lambda data: evaluate(data, spoiled("polars"), NATIVE),
    "check": lambda data: check(data, NATIVE),
    "draft": draft.draft_schema,
}


@pytest.mark.parametrize("error", [ValueError(CANARY), pl.exceptions.ComputeError(CANARY), Panic(CANARY), _chained()])
@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize("call", CALLS)
def test_no_cell_of_what_a_frame_says(monkeypatch, call, kind, error):
    data = spoiled(kind)
    monkeypatch.setattr(frames, "_raw", raising(error))
    with pytest.raises(CertsynthError) as caught:
        CALLS[call](data)
    assert CANARY not in shown(caught.value)
    assert CANARY in shown(error)  # the scan would see it


@pytest.mark.parametrize("call", CALLS)
def test_no_cell_of_what_a_query_says(call):
    lazy = pl.LazyFrame({"a": [1], "b": [1], "c": [CANARY]}).with_columns(pl.col("c").str.to_integer().alias("c"))
    relation = duckdb.sql(f"SELECT 1 AS a, 2 AS b, '{CANARY}'::INT AS c")
    for data in (lazy, relation):
        with pytest.raises(CertsynthError) as caught:
            CALLS[call](data)
        assert CANARY not in shown(caught.value)


def test_an_interrupt_goes_through(monkeypatch):
    monkeypatch.setattr(frames, "_raw", raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        CALLS["release"](spoiled("pandas"))


@pytest.mark.parametrize("form", SEEN_AS, ids=str)
def test_the_scan_sees_every_form(tmp_path, form):
    (tmp_path / "left").write_bytes(b"before" + form + b"after")
    with pytest.raises(AssertionError):
        scan(tmp_path)
    with pytest.raises(AssertionError):
        scan(tmp_path / "none", form.decode("latin-1"))
