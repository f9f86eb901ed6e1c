"""Commands on tables that share nothing but their length, or not even that: with the noisy integers held fixed, what
is printed, logged and written is the same to the last byte (P4). Whatever differed would have come from the rows."""

from __future__ import annotations

import itertools
import logging
import warnings
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from certsynth.cli import main, progress
from certsynth.mechanisms.measure import measure
from certsynth.mechanisms.scalars import measure_scalars
from certsynth.mechanisms.spending import Spending
from certsynth.planning.cache import CACHE_VARIABLE
from small import FixedOutput, NoNoise

ROWS = 40
HEADER = "age,region,employed\n"
CALM = ["30,hills,true\n"] * ROWS
TABLES: dict[str, list[str]] = {
    "one": CALM,
    "a neighbour": [*CALM[:-1], "89,CANARY-91,\n"],
    "nothing in common": ["77,coast,false\n", "CANARY-91,unheard of,CANARY-91\n"] * (ROWS // 2),
}
LENGTHS = {"a row less": CALM[:-1], "a row more": [*CALM, "1,coast,false\n"]}
"""Neighbours where a row may be added or removed. Tables of other lengths are no neighbours, but look the same, too."""

PUBLIC = HEADER + "30,hills,true\n50,coast,false\n" * 10
COMMANDS: dict[str, tuple[str, ...]] = {
    "release": ("release", "people.csv", "--out", "out", "--seed", "3", "--rows", "30", "--resolution", "4"),
    "release, json": ("release", "people.csv", "--out", "out", "--seed", "3", "--rows", "30", "--json"),
    "release, plug-in": (
        "release",
        "people.csv",
        "--out",
        "out",
        "--seed",
        "3",
        "--rows",
        "30",
        "--certificate-share",
        "0",
    ),
    "release, adaptive": (
        *("release", "people.csv", "--out", "out", "--seed", "3", "--rows", "30"),
        *("--mechanism", "adaptive"),
    ),
    "certify": ("certify", "people.csv", "public.csv"),
    "certify, json": ("certify", "people.csv", "public.csv", "--per-subset", "--json"),
}
PINNED = ("--mechanism", "identity")


class Passing(FixedOutput):
    """Lets a release be written, so that its bytes can be compared."""

    releasable = True


class Bare(NoNoise):
    """Lets the rows through: the control, whose outcomes must differ."""

    releasable = True


def outcome(
    folder: Path,
    command: str,
    budget: tuple[str, ...],
    neighbours: str,
    rows: list[str],
    noise: Any,
    *,
    header: str = HEADER,
) -> Any:
    """Everything that can be seen of a command: exit code, both streams, log, warnings, and all files."""
    folder.mkdir()
    (folder / "people.csv").write_text(header + "".join(rows))
    (folder / "public.csv").write_text(PUBLIC)
    arguments = [*COMMANDS[command], *budget, "--schema", "../schema.toml", "--neighbours", neighbours]
    if command.startswith("release") and "--mechanism" not in arguments:
        arguments += PINNED
    records: list[str] = []

    class Listening(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(f"{record.name} {record.levelname} {record.getMessage()}")

    listening = Listening()
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        patch.chdir(folder)
        patch.setenv(CACHE_VARIABLE, "off")
        patch.setenv("TMPDIR", str(folder))
        patch.setattr(progress, "BEAT_SECONDS", 86_400)  # lines of progress are compared, too, but not the time
        for function in (measure, measure_scalars, Spending.__init__):  # where noise is made for a release
            patch.setitem(function.__globals__, "ExactNoise", lambda: noise)
        logging.getLogger().addHandler(listening)
        before = logging.getLogger().level
        logging.getLogger().setLevel(logging.DEBUG)
        try:
            done = CliRunner().invoke(main, arguments)
        finally:
            logging.getLogger().setLevel(before)
            logging.getLogger().removeHandler(listening)
    assert done.exit_code == 0, done.output
    (folder / "people.csv").unlink()
    files = {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    return done.stdout, done.stderr, records, [str(each.message) for each in warned], files


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize(
    "command", [name if "," not in name else pytest.param(name, marks=pytest.mark.slow) for name in COMMANDS]
)
@pytest.mark.parametrize("budget", [("--epsilon", "2"), ("--rho", "0.5")], ids=["epsilon", "rho"])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_a_command_shows_nothing_but_the_noisy_integers(released, tmp_path, command, budget, neighbours):
    (tmp_path / "schema.toml").write_bytes((released / "schema.toml").read_bytes())
    tables = TABLES | (LENGTHS if neighbours == "add-remove" else {})
    seen = {
        name: outcome(tmp_path / name.replace(" ", "-"), command, budget, neighbours, rows, Passing())
        for name, rows in tables.items()
    }
    for name, shown in seen.items():
        assert shown == seen["one"], name
        assert "CANARY-91" not in str(shown)
    much = (budget[0], "100")  # or the control's bounds are 1, whatever the rows are
    first, other = (
        outcome(tmp_path / f"control-{name[0]}", command, much, neighbours, TABLES[name], Bare())
        for name in ("one", "nothing in common")
    )
    assert first[0] != other[0] or "adaptive" in command  # which fits both tables equally well: see the files
    if command.startswith("release"):
        same = {name for name, content in first[4].items() if other[4][name] == content}
        assert same <= {"public.csv", "out/schema.toml", "out/datapackage.json"}
        assert len(first[4]) >= 10


# ------------------------------------------------------------ persons


OF_PERSONS = "age,who,region,employed\n"
PERSONS = 20
PAIRS = [f"30,{who},hills,true\n" for who in range(PERSONS) for _ in range(2)]
TABLES_OF_PERSONS: dict[str, list[str]] = {
    "one": PAIRS,
    "a neighbour": [*PAIRS[2:], *["89,CANARY-91,unheard of,\n"] * 9],
    "nothing in common": [
        f"{who + j},CANARY-91 {who},coast,false\n" for who in range(PERSONS) for j in range(1 + 2 * who)
    ],
    "other rows without a person": [*PAIRS, *["1,,coast,false\n"] * 5],
}
NUMBERS_OF_PERSONS = {
    "a person less": PAIRS[2:],
    "a person more": [*PAIRS, "1,CANARY-91,coast,false\n"],
    "one person": ["1,CANARY-91,coast,false\n"] * 50,
}
"""Tables that look the same where the number of persons is hidden."""

UNITS = {
    "one row": "rows_per_person = 1",
    "three rows": "rows_per_person = 3",
    "each counts 1": 'rows_per_person = 3\nweigh = "persons"',
}


def person_cases() -> list[Any]:
    found = []
    for j, (command, unit, neighbours) in enumerate(itertools.product(COMMANDS, UNITS, ("replace-one", "add-remove"))):
        budget = [("--epsilon", "2"), ("--rho", "0.5")][j % 2]
        quick = command in ("release", "certify") and unit != "one row"
        found.append(pytest.param(command, unit, neighbours, budget, marks=() if quick else pytest.mark.slow))
    return found


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize(("command", "unit", "neighbours", "budget"), person_cases())
def test_a_command_shows_nothing_of_persons_but_the_noisy_integers(
    released, tmp_path, command, unit, neighbours, budget
):
    """Neither who they are, nor how many rows each has, nor their number, where that is hidden."""
    plain = (released / "schema.toml").read_text()
    (tmp_path / "schema.toml").write_text(plain.replace("[table]", f'[table]\nperson = "who"\n{UNITS[unit]}'))
    hidden = neighbours == "add-remove" or unit == "three rows"
    tables = TABLES_OF_PERSONS | (NUMBERS_OF_PERSONS if hidden else {})
    asked = {"command": command, "neighbours": neighbours, "header": OF_PERSONS}
    seen = {
        name: outcome(tmp_path / name.replace(" ", "-"), budget=budget, rows=rows, noise=Passing(), **asked)
        for name, rows in tables.items()
    }
    for name, shown in seen.items():
        assert shown == seen["one"], name
        assert "CANARY-91" not in str(shown)
    much = (budget[0], "100")
    first, other = (
        outcome(tmp_path / f"control-{name[0]}", budget=much, rows=tables[name], noise=Bare(), **asked)
        for name in ("one", "nothing in common")
    )
    assert first[0] != other[0] or "adaptive" in command
