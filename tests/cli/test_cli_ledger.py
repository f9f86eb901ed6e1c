"""certsynth ledger, and the commands that charge one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from certsynth import Ledger
from certsynth.cli.release import CHECK_NOTE
from certsynth.mechanisms import chain

RELEASE = ("release", "people.csv", "--schema", "schema.toml", "--resolution", 4, "--mechanism", "identity")
CERTIFY = ("certify", "people.csv", "copy.csv", "--schema", "schema.toml")
LEDGER = ("--ledger", "ledger")


def test_adds_up_over_commands_and_refuses_what_does_not_fit(town, run):
    first = run(*RELEASE, "--epsilon", "0.6", "--out", "first", *LEDGER, "--cap", 1)
    assert (first.code, first.err) == (0, f"{CHECK_NOTE}\n")
    assert "ledger: epsilon 0.6 of 1 spent on 'Register of a made-up town' so far (ledger)" in first.out
    told = run(*CERTIFY, "--epsilon", "0.3", *LEDGER, "--json")
    assert (told.code, told.err) == (0, "")
    assert (told.json["ledger"]["spent"], told.json["ledger"]["remaining"]) == (0.9, 0.1)
    for refused in (
        run(*RELEASE, "--epsilon", "0.2", "--out", "second", *LEDGER),
        run(*CERTIFY, "--epsilon", "0.100000000001", *LEDGER),
    ):
        assert (refused.code, refused.out) == (1, "")
        (line,) = refused.err.splitlines()
        assert "is more than is left, since 0.9 of 1 is spent." in line
    assert not (town / "second").exists()
    assert run(*CERTIFY, "--epsilon", "0.1", *LEDGER).code == 0
    words = run("ledger", "ledger").out
    for shown in ("spent  1", "left   0", "release first", "certify", "every line follows from the one before it"):
        assert shown in words


def test_prints_the_promised_keys_and_knows_its_releases(town, run):
    run(*RELEASE, "--epsilon", "0.6", "--out", "first", *LEDGER, "--cap", 1, "--dataset", "town")
    run(*RELEASE, "--epsilon", "0.6", "--out", "stray")
    told = run("ledger", "ledger", "--json", "--release", "first").json
    assert {"cap", "spent", "remaining", "entries"} <= set(told)
    assert (told["dataset"], told["cap"], told["spent"], told["remaining"]) == ("town", 1, 0.6, 0.4)
    certificate = json.loads((town / "first" / "certificate.json").read_text())
    assert certificate["ledger"] == told["entries"][0]["reservation"]
    assert json.loads((town / "stray" / "certificate.json").read_text())["ledger"] is None
    stray = run("ledger", "ledger", "--release", "first", "--release", "stray")
    assert (stray.code, stray.err) == (1, "error: stray was not charged to ledger: its checksums are not in it.\n")
    assert run("ledger", "ledger", "--release", "nowhere").error == (
        "nowhere is not a release folder: it has no readable checksums."
    )


BAD = [
    (("--cap", 2), "ledger has a cap of 1 since its first use, and it cannot become 2. Leave --cap out."),
    (("--dataset", "village"), "ledger is the ledger of the data set 'Register of a made-up town', not of 'village'"),
    (("--neighbours", "add-remove"), "ledger counts under replace-one neighbours"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=lambda x: str(x)[:20])
def test_refuses_other_terms_before_the_table_is_opened(town, run, options, message):
    run(*CERTIFY, "--epsilon", "0.1", *LEDGER, "--cap", 1)
    (town / "people.csv").unlink()
    assert run(*CERTIFY, "--epsilon", "0.1", *LEDGER, *options).error.startswith(message)
    assert run(*RELEASE, "--epsilon", "0.1", "--out", "out", *LEDGER, *options).error.startswith(message)
    assert Ledger.load(town / "ledger").spent * 10 == 1


def test_refuses_a_mix_of_currencies(town, run):
    run(*CERTIFY, "--rho", "0.1", "--ledger", "rho", "--cap", 1)
    run(*CERTIFY, "--epsilon", "0.1", "--delta", "1e-6", "--ledger", "epsilon", "--cap", 1)
    assert run(*CERTIFY, "--epsilon", "0.1", "--delta", "1e-6", "--ledger", "rho").error.startswith(
        "rho counts in rho, to which epsilon does not add: ask with --rho"
    )
    assert run(*CERTIFY, "--rho", "0.1", "--ledger", "epsilon").error.startswith("epsilon counts in epsilon")
    run(*CERTIFY, "--epsilon", "0.2", "--ledger", "epsilon")
    told = run("ledger", "epsilon", "--json").json
    assert (told["exact"]["spent"], told["exact"]["delta"]) == ("3/10", "1/1000000")
    assert "total delta  0.000001" in run("ledger", "epsilon").out


def test_mistakes_are_told_in_one_line(town, run):
    assert run("ledger", "nowhere").error == "nowhere cannot be opened (No such file or directory). Check the path."
    assert run("ledger", "people.csv").error == (
        "people.csv is not a ledger of certsynth; it is left as it is. Choose another file."
    )
    assert run(*CERTIFY, "--epsilon", 1, "--cap", 1).error.startswith("--cap and --dataset belong to a ledger")
    assert run(*CERTIFY, "--epsilon", 1, *LEDGER).error == (
        "ledger is a new ledger: say with --cap how much may ever be spent on the data set."
    )
    assert run(*CERTIFY, "--epsilon", 1, "--ledger", "no/ledger", "--cap", 1).error == (
        "no is not a folder; make it first, or choose another --ledger."
    )
    assert not (town / "ledger").exists()


def test_a_failure_before_any_noise_leaves_no_ledger(town, run):
    (town / "people.csv").write_text("age,region,employed\n1\n")
    for command in (CERTIFY, (*RELEASE, "--out", "out")):
        assert run(*command, "--epsilon", 1, *LEDGER, "--cap", 1).error.endswith("Nothing was spent.")
    assert not (town / "ledger").exists()


def test_a_changed_ledger_is_refused_everywhere(town, run):
    run(*CERTIFY, "--epsilon", "0.5", *LEDGER, "--cap", 1)
    changed = (town / "ledger").read_text().replace('"amount": "1/2"', '"amount": "1/9"')
    (town / "ledger").write_text(changed)
    for command in (("ledger", "ledger"), (*CERTIFY, "--epsilon", "0.1", *LEDGER)):
        done = run(*command)
        assert (done.code, done.out) == (1, "")
        assert "ledger has been changed: line 2 does not follow from the one before it." in done.err
    assert (town / "ledger").read_text() == changed


@pytest.mark.parametrize("time", [1, *(pytest.param(again, marks=pytest.mark.slow) for again in range(2, 11))])
def test_twenty_processes_that_race_are_granted_exactly_ten(town, time):
    """Whole commands, all at once, each of which may be the first to make the ledger."""
    command = [*CERTIFY, "--epsilon", "0.1", *LEDGER, "--cap", "1", "--json", "--quiet"]
    start = [sys.executable, Path(__file__).parent / "crowd.py", "20", "people.csv", "schema.toml", *map(str, command)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(start, cwd=town, env=environment, capture_output=True, text=True, check=True, timeout=500)
    outcomes = [
        ((town / f"{number}.out").read_text(), (town / f"{number}.err").read_text(), code)
        for number, code in enumerate(json.loads(done.stdout))
    ]
    granted = [json.loads(out) for out, _, code in outcomes if code == 0]
    refused = [err for _, err, code in outcomes if code == 1]
    assert (len(granted), len(refused)) == (10, 10), outcomes
    assert all("is more than is left, since 1 of 1 is spent." in err for err in refused)
    ledger = Ledger.load(Path(town) / "ledger")
    assert (ledger.spent, len(ledger.entries)) == (1, 10)
    assert all(entry.finished for entry in ledger.entries)
    assert len({entry.manifest for entry in ledger.entries}) > 1  # each has noise of its own


def test_on_windows_there_is_no_ledger_and_nothing_is_spent(town, run, monkeypatch):
    """Before the table is opened, where there is no ledger yet and where there is one."""
    assert run(*RELEASE, "--epsilon", 1, "--out", "out", *LEDGER, "--cap", 2).code == 0
    monkeypatch.setattr(chain, "fcntl", None)
    (town / "people.csv").unlink()
    said = (
        "there is no ledger on Windows, which lacks the file locks that it needs. Leave --ledger out and note by hand "
        "what you spend, or use Linux, macOS or WSL."
    )
    for ledger in ("ledger", "new"):
        assert run(*RELEASE, "--epsilon", 1, "--out", "other", "--ledger", ledger, "--cap", 2).error == said
        assert run(*CERTIFY, "--epsilon", 1, "--ledger", ledger, "--cap", 2).error == said
    assert run("ledger", "ledger").error == said
