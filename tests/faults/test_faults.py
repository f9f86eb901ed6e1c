"""Whatever breaks, at whatever step: a release is whole or absent, and no noise is drawn that was not paid for."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from certsynth import Ledger, Release, Schema, demo
from certsynth.errors import InputError

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "src" / "certsynth"
COLUMNS = ("sex", "employed")
EPSILON = Fraction(1, 2)
COMMON = ("--schema", "schema.toml", "--epsilon", "0.5", "--ledger", "ledger", "--quiet")
RELEASE = ("release", "people.csv", "--out", "out", "--cap", 1, "--resolution", 2, "--mechanism", "identity", *COMMON)
CERTIFY = ("certify", "people.csv", "copy.csv", "--cap", 1, *COMMON)
KEY = ("--sign", "key.pem")
LIMITS = [0, 100, 700, 2_000, 5_000, 20_000, 60_000, 400_000]
"""The most bytes that a file may have: between those of the files of a release."""

VISIBLE = {
    "people.csv",
    "copy.csv",
    "schema.toml",
    "key.pem",
    "ledger",
    "out",
    "again",
    "events.txt",
    "out.txt",
    "err.txt",
}


@dataclass(frozen=True)
class Outcome:
    """What a broken command left behind."""

    folder: Path
    code: int

    @property
    def events(self) -> list[str]:
        return (self.folder / "events.txt").read_text().split()

    @property
    def said(self) -> str:
        return (self.folder / "err.txt").read_text()

    @property
    def spent(self) -> Fraction:
        try:
            return Ledger.load(self.folder / "ledger").spent
        except InputError:  # it was not made yet, or is still empty
            return Fraction(0)

    @property
    def released(self) -> bool:
        return (self.folder / "out").exists()


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A private table, its schema and a key to sign with."""
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    folder = tmp_path_factory.mktemp("town")
    table = demo.people(60)
    for name in ("people.csv", "copy.csv"):
        demo.write_csv({column: table[column] for column in COLUMNS}, folder / name)
    (folder / "schema.toml").write_text(Schema.parse(demo.SCHEMA).select(COLUMNS).to_toml(), encoding="utf-8")
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    (folder / "key.pem").write_bytes(pem)
    return folder


@dataclass(frozen=True)
class Town:
    """The folder, and a process that runs commands in copies of it: it imports and compiles once for all of them."""

    folder: Path
    runner: subprocess.Popen[str]

    def codes(self, here: Path, cases: list[dict[str, Any]]) -> list[int]:
        """Run the cases, one after the other, and tell their exit codes."""
        (here / "cases.json").write_text(json.dumps(cases, default=str))
        assert self.runner.stdin
        assert self.runner.stdout
        self.runner.stdin.write(f"{here / 'cases.json'}\n")
        self.runner.stdin.flush()
        codes: list[int] = json.loads(self.runner.stdout.readline())
        return codes


@pytest.fixture(scope="module")
def town(people: Path) -> Iterator[Town]:
    command = [sys.executable, HERE / "breaking.py", people]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as runner:
        yield Town(people, runner)
        assert runner.stdin
        runner.stdin.close()
        assert runner.wait(60) == 0


def broken(town: Town, here: Path, cases: list[dict[str, Any]]) -> list[Outcome]:
    """Run the cases, each in a copy of the town."""
    for number, case in enumerate(cases):
        case["folder"] = str(shutil.copytree(town.folder, here / str(number)))
    codes = town.codes(here, cases)
    return [Outcome(Path(case["folder"]), code) for case, code in zip(cases, codes, strict=True)]


def check_trust(outcome: Outcome) -> None:
    """The promises that hold whatever happened, and that life goes on."""
    names = {path.name for path in outcome.folder.iterdir()}
    assert {name for name in names if not name.startswith(".")} <= VISIBLE
    assert outcome.spent in (0, EPSILON)
    if "certsynth.noise.draw" in outcome.events:
        assert outcome.spent == EPSILON
    if outcome.released:
        assert outcome.spent == EPSILON
        checks = Release.load(outcome.folder / "out").verify()
        assert all(check["ok"] for check in checks), checks
    assert "Traceback" not in outcome.said
    assert "SECRET" not in outcome.said


def check_message(outcome: Outcome) -> None:
    """Whoever still can speak says in one line what is written and what became of the budget, and it is true."""
    (line,) = outcome.said.splitlines()
    assert line.startswith(("error: ", "interrupted: "))
    if outcome.released:
        assert re.search(r"out (is|was) written", line), line
    else:
        assert re.search(r"nothing was written|was not written|nothing was noted in it", line), line
    if "Nothing was spent." in line:
        assert outcome.spent == 0
    else:
        assert "In ledger epsilon 0.5 stays spent; nothing is refunded." in line
        reserving = {
            "certsynth.ledger.open",
            "certsynth.ledger.begin",
            "certsynth.ledger.reserve",
            "certsynth.ledger.sync",
        }
        assert outcome.spent == EPSILON or outcome.events[-1] in reserving  # an interrupt right then counts as spent


def steps(town: Town, here: Path, command: tuple[object, ...]) -> list[str]:
    """The steps of an undisturbed run, which is what it should be."""
    here.mkdir()
    (outcome,) = broken(town, here, [{"command": command}])
    assert outcome.code == 0, outcome.said
    check_trust(outcome)
    assert outcome.spent == EPSILON
    return outcome.events


COMMANDS = pytest.mark.parametrize("command", [(*RELEASE, *KEY), CERTIFY], ids=["release", "certify"])


@pytest.mark.quick_cases(1)
@COMMANDS
@pytest.mark.parametrize("action", ["kill", pytest.param("interrupt", marks=pytest.mark.slow)])
def test_breaks_at_every_step(town, tmp_path, command, action):
    check_steps(town, tmp_path, command, action, start=1, stride=1)


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(("start", "action"), list(enumerate(["terminate", "full disk", "no memory", "bug"], start=1)))
def test_breaks_in_other_ways_at_some_step_each(town, tmp_path, action, start):
    check_steps(town, tmp_path, (*RELEASE, *KEY), action, start=start, stride=4)


@pytest.mark.slow
@COMMANDS
@pytest.mark.parametrize("action", ["terminate", "full disk", "no memory", "bug"])
def test_breaks_in_other_ways_at_every_step(town, tmp_path, command, action):
    check_steps(town, tmp_path, command, action, start=1, stride=1)


def check_steps(town: Town, here: Path, command: tuple[object, ...], action: str, *, start: int, stride: int) -> None:
    """Break the command at step `start`, at the one `stride` later, and so on, and look at what is left each time."""
    announced = steps(town, here / "whole", command)
    places = range(start, len(announced) + 1, stride)
    outcomes = broken(town, here, [{"command": command, "at": at, "action": action} for at in places])
    drawn = announced.index("certsynth.noise.draw")
    for at, outcome in zip(places, outcomes, strict=True):
        assert outcome.events[:at] == announced[:at]
        assert outcome.code == {"kill": -9, "interrupt": 130, "terminate": 130}.get(action, 2), outcome.said
        check_trust(outcome)
        if action != "kill":
            check_message(outcome)
            assert not list(outcome.folder.glob(".*.partial"))  # cleaned up
        if at > drawn + 1:
            assert outcome.spent == EPSILON
    if stride == 1:  # broken before it was there, and after
        assert {outcome.spent for outcome in outcomes} == {0, EPSILON}
        assert {outcome.released for outcome in outcomes} == ({False} if command is CERTIFY else {False, True})


@pytest.mark.quick_cases(2)
@COMMANDS
def test_a_disk_that_is_full_at_any_size(town, tmp_path, command):
    outcomes = broken(town, tmp_path, [{"command": command, "limit": limit} for limit in LIMITS])
    for outcome in outcomes:
        check_trust(outcome)
        assert not list(outcome.folder.glob(".*.partial"))
        assert outcome.code in (0, 2, 120)  # 120: what it says goes to files as well, and does not fit
    assert not outcomes[0].released
    assert outcomes[-1].released == (command is not CERTIFY)
    assert outcomes[-1].code == 0


@pytest.mark.slow
def test_life_goes_on_after_a_crash(town, tmp_path):
    """After a kill at each step another release fits as long as there is room for it, and then none."""
    announced = steps(town, tmp_path / "whole", RELEASE)
    cases = [{"command": RELEASE, "at": at, "action": "kill"} for at in range(2, len(announced) + 1, 5)]
    outcomes = broken(town, tmp_path, cases)
    again = [tuple("again" if part == "out" else part for part in RELEASE)] * 2
    for outcome in outcomes:
        before = outcome.spent
        codes = town.codes(tmp_path, [{"command": command, "folder": str(outcome.folder)} for command in again])
        assert codes[0] == 0, outcome.said
        assert Ledger.load(outcome.folder / "ledger").spent == before + EPSILON
        assert codes[1] == 2  # it exists already
        assert all(check["ok"] for check in Release.load(outcome.folder / "again").verify())


@pytest.mark.parametrize("kills", [60, pytest.param(600, marks=pytest.mark.slow)])
def test_kills_at_random_while_many_race(tmp_path, kills):
    """Processes that reserve, draw and commit as fast as they can, killed at random and replaced; ledger after ledger.

    What a process notes in a file of its own after `reserve` returned stands for the noise that it draws then.
    """
    subprocess.run([sys.executable, HERE / "racing.py", tmp_path, str(kills)], capture_output=True, check=True)
    lines = [line for path in (tmp_path / "drawn").iterdir() for line in path.read_text().splitlines(keepends=True)]
    drawn = {line.rstrip() for line in lines if line.endswith("\n")}
    ledgers = [Ledger.load(path) for path in sorted(tmp_path.glob("*.ledger"), key=lambda path: int(path.stem))]
    reserved = {entry.reservation for ledger in ledgers for entry in ledger.entries}
    finished = {entry.reservation for ledger in ledgers for entry in ledger.entries if entry.finished}
    assert all(ledger.spent <= ledger.cap for ledger in ledgers)
    assert all(ledger.spent == ledger.cap for ledger in ledgers[:-1])
    assert len(ledgers) > 1  # some were used up
    assert finished <= drawn <= reserved
    assert len(finished) < len(reserved)  # some were killed in between: what they had reserved stays spent


def test_every_step_that_is_announced_is_tried(town, tmp_path):
    """Steps in the source and steps that runs announce are the same."""
    found = set()
    for path in SOURCES.rglob("*.py"):
        found |= set(re.findall(r'sys\.audit\(\s*"(certsynth\.[a-z.]+)"', path.read_text(encoding="utf-8")))
    seen = {*steps(town, tmp_path / "r", (*RELEASE, *KEY)), *steps(town, tmp_path / "c", CERTIFY)}
    assert found == seen
    assert len(found) >= 12
