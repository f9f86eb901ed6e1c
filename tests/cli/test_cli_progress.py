"""Progress on stderr: bars for people, whose estimates are worth showing, and lines for logs."""

from __future__ import annotations

import inspect
import io
import json
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import rich.console
import rich.progress
from click.testing import CliRunner

from certsynth.base.progress import ROWS_REPORTED, number_stages, silent, with_progress
from certsynth.cli import main, progress
from certsynth.cli.progress import Lines, bars
from certsynth.planning.cache import CACHE_VARIABLE


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The bars that are drawn."""
    made: list[Any] = []

    class Watched(rich.progress.Progress):
        def __init__(self, *columns: Any, **options: Any) -> None:
            super().__init__(*columns, **options, auto_refresh=False)
            made.append(self)

    monkeypatch.setattr(rich.progress, "Progress", Watched)
    return made


@pytest.fixture
def no_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    """No beat unless a test makes one."""
    monkeypatch.setattr(progress, "print_every_beat", lambda lines, ended: None)


def test_quiet_shows_nothing_anywhere(drawn: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr("sys.stderr", stream)
        with bars(quiet=True) as report:
            assert report is silent
        assert stream.getvalue() == ""
    monkeypatch.setattr("sys.stderr", None)
    with bars() as report:
        assert report is silent
    assert drawn == []


@pytest.mark.usefixtures("no_beats")
def test_a_line_is_printed_at_once_when_a_stage_begins_and_not_for_its_phases(
    drawn: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = number_stages("choosing", "fitting rows")
    with bars() as report:
        report("opening", 0, None)
        report("opening", 1, 2)
        assert capsys.readouterr().err == "progress: opening\n"
        for done in range(100):
            report(first, 0, None)
            report("rehearsing", done, 100)
            report("opening", done, 100)
        assert capsys.readouterr().err == "progress: 1 of 2: choosing\n"
        report(second, 0, None)
        assert capsys.readouterr().err == "progress: 2 of 2: fitting rows\n"
    assert drawn == []


def test_a_beat_names_the_stage_its_phase_the_share_done_and_tens_of_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    (stage,) = number_stages("certifying")
    lines = Lines()
    lines.beat()
    lines("placing", 70_000, 300_000)
    lines.beat()
    lines(stage, 0, None)
    lines.beat()
    lines("comparing", 3, 8)
    lines.beat()
    lines("solving", 0, None)
    lines.beat()
    lines("certifying", 1, 2)
    lines.beat()
    assert [line.removeprefix("progress: ") for line in capsys.readouterr().err.splitlines()] == [
        "starting, 10 s so far",
        "placing",
        "placing, 23 %, 20 s so far",
        "1 of 1: certifying",
        "1 of 1: certifying, 30 s so far",
        "1 of 1: certifying: comparing, 37 %, 40 s so far",
        "1 of 1: certifying: solving, 50 s so far",
        "1 of 1: certifying, 50 %, 60 s so far",
    ]


def test_lines_keep_coming_while_a_computation_reports_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(progress, "BEAT_SECONDS", 0.001)
    with bars() as report:
        report("computing", 0, None)
        while stream.getvalue().count("so far") < 3:  # a computation that takes until there are three lines
            time.sleep(0.001)
    before = stream.getvalue()
    assert "progress: computing" in before.splitlines()
    assert "\r" not in before
    assert not any(thread.name == progress.BEAT_THREAD for thread in threading.enumerate())


def test_beats_end_with_an_operation_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", io.StringIO())
    with pytest.raises(KeyboardInterrupt), bars():
        raise KeyboardInterrupt
    assert not any(thread.name == progress.BEAT_THREAD for thread in threading.enumerate())


@pytest.mark.parametrize("error", [OSError(28, "no space"), BrokenPipeError(), ValueError("closed")])
def test_a_log_that_cannot_be_written_does_not_end_the_work(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    stream = io.StringIO()
    monkeypatch.setattr(stream, "write", fail)
    monkeypatch.setattr("sys.stderr", stream)
    lines = Lines()
    lines("computing", 0, None)
    lines.beat()


def test_beats_do_not_show_how_many_rows_are_read_where_that_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many beats, whatever the number of rows: the lines are the same. Where it is public they are not."""

    def written(rows: int, *, hidden: bool) -> str:
        stream = io.StringIO()
        monkeypatch.setattr("sys.stderr", stream)
        lines = Lines()
        batches = ([np.zeros(ROWS_REPORTED)] for _ in range(rows // ROWS_REPORTED))
        for i, _ in enumerate(with_progress(batches, "counting", rows, hidden=hidden, progress=lines)):
            if i in (0, 1):
                lines.beat()
        return stream.getvalue()

    few, many = 2 * ROWS_REPORTED, 9 * ROWS_REPORTED
    assert written(few, hidden=True) == written(many, hidden=True)
    assert written(few, hidden=False) != written(many, hidden=False)


def test_a_bar_names_the_stage(drawn: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", Terminal())
    with bars() as report:
        report(number_stages("choosing", "fitting rows")[1], 0, None)
        assert [each.description for each in drawn[0].tasks] == ["2 of 2: fitting rows"]
        report("fitting", 1, 2)
        assert [each.description for each in drawn[0].tasks] == ["2 of 2: fitting rows"]
        assert drawn[0].tasks[0].percentage == 50
        report("repairing", 1, 2)
        assert [each.description for each in drawn[0].tasks] == ["2 of 2: fitting rows · repairing"]


def test_one_slow_pair_of_columns_does_not_upset_the_estimate(
    drawn: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr("sys.stderr", Terminal())
    monkeypatch.setattr(rich.console, "monotonic", lambda: clock[0])
    with bars() as report:
        report("comparing", 0, 100)
        for done in range(1, 51):
            clock[0] += 1
            report("comparing", done, 100)
        clock[0] += 50
        report("comparing", 51, 100)
        (task,) = drawn[0].tasks
        # 51 in 100 seconds: the other 49 take as long on average, though the last one took fifty times as long.
        assert task.time_remaining == pytest.approx(49 * 100 / 51, rel=0.1)
        report("solving", 0, None)
        assert [each.description for each in drawn[0].tasks] == ["solving"]


COMMANDS: dict[str, tuple[str, list[str]]] = {
    "schema": ("schema people.csv --out draft.toml", ["drafting a schema"]),
    "plan": (
        "plan --schema schema.toml --rows 150 --columns employed --epsilon 1 --mechanism identity --resolution 4",
        ["1 of 3: choosing a mechanism", "2 of 3: predicting its bound", "3 of 3: trying other settings"],
    ),
    "release": (
        "release people.csv --schema schema.toml --epsilon 2 --mechanism identity --resolution 4 --out made",
        [
            "1 of 6: counting rows",
            "2 of 6: choosing what to measure",
            "3 of 6: measuring",
            "4 of 6: fitting rows",
            "5 of 6: certifying the rows",
            "6 of 6: writing the release",
        ],
    ),
    "verify": (
        "verify release",
        [
            "reading the release",
            "1 of 4: checking the files",
            "2 of 4: checking the method",
            "3 of 4: recomputing the certificate",
            "4 of 4: checking the report",
        ],
    ),
    "answer": ("answer release mean(age) median(age)", ["reading the release", "answering"]),
    "report": ("report release --out page.html", ["writing the report"]),
    "certify": (
        "certify people.csv release/synthetic.csv --schema schema.toml --epsilon 1",
        ["placing rows on the lattice", "comparing shares, group totals and moments", "comparing the tables"],
    ),
    "evaluate": (
        "evaluate people.csv release/synthetic.csv --schema schema.toml",
        ["placing rows on the lattice", "comparing the tables"],
    ),
}
AT_ONCE = {"ledger"}
"""Commands that take no time."""


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_what_it_does_outside_a_terminal_unless_quiet(
    name: str, released: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(released, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "plans"))
    monkeypatch.setattr(progress, "BEAT_SECONDS", 86_400)
    typed, expected = COMMANDS[name]
    for flags in ([], ["--quiet"]):
        with joblib.parallel_config(n_jobs=1):  # processes would take longer to start
            done = CliRunner().invoke(main, [*typed.split(), "--json", *flags])
        assert done.exit_code == 0, done.output
        json.loads(done.stdout)
        lines = [line for line in done.stderr.splitlines() if line.startswith(progress.PREFIX)]
        assert [line.removeprefix(progress.PREFIX) for line in lines] == ([] if flags else expected)
        assert "\r" not in done.stderr
        for made in ("draft.toml", "page.html"):
            Path(made).unlink(missing_ok=True)
        shutil.rmtree("made", ignore_errors=True)


def test_every_command_that_takes_time_shows_progress_and_can_be_quiet() -> None:
    for name, command in main.commands.items():
        if name not in AT_ONCE:
            assert "--quiet" in {flag for parameter in command.params for flag in parameter.opts}, name
            assert "bars(" in inspect.getsource(inspect.getmodule(command.callback)), name  # type: ignore[arg-type]
