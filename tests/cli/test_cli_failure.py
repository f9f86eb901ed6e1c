"""Whatever goes wrong: one line, the right exit code, and no cell of any table in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from certsynth import errors
from certsynth.algorithm import evaluate as evaluation
from certsynth.algorithm import release as releasing
from certsynth.cli import main
from certsynth.cli.failure import in_flags
from certsynth.cli.options import NO_LEDGER
from certsynth.cli.release import CHECK_NOTE
from certsynth.cli.words import downward, percent, promise, upward
from small import raising, without_progress

CANARY = "SECRET-7319"
RELEASE = ("release", "people.csv", "--schema", "schema.toml", "--epsilon", "1", "--out", "out")
PINNED = (*RELEASE, "--resolution", "4", "--mechanism", "identity")
EVALUATE = ("evaluate", "people.csv", "people.csv", "--schema", "schema.toml")


@pytest.mark.parametrize("error", [ValueError(CANARY), KeyError(CANARY), MemoryError(CANARY), AssertionError(CANARY)])
def test_an_unexpected_error_is_one_line_without_its_message(town, run, monkeypatch, error):
    monkeypatch.setattr(releasing, "release", raising(error))
    done = run(*RELEASE)
    assert done.error == (
        f"internal error of certsynth ({type(error).__name__}); nothing was written. "
        "Set CERTSYNTH_DEBUG=1 to see where, and report it."
    )


def test_a_refusal_of_the_system_is_told_without_the_file(town, run, monkeypatch):
    monkeypatch.setattr(releasing, "release", raising(OSError(28, "No space left on device", CANARY)))
    assert run(*RELEASE).error == "system error: No space left on device; nothing was written."


def test_debugging_shows_the_error(town, run, monkeypatch):
    monkeypatch.setattr(releasing, "release", raising(ValueError("inside")))
    monkeypatch.setenv("CERTSYNTH_DEBUG", "1")
    done = run(*RELEASE)
    assert isinstance(done.exception, ValueError)


def test_an_interrupt_is_one_line(town, run, monkeypatch):
    monkeypatch.setattr(releasing, "release", raising(KeyboardInterrupt()))
    done = run(*RELEASE)
    assert (done.code, done.out, done.err) == (130, "", "interrupted: nothing was written.\n")


def test_an_interrupt_while_printing_says_what_is_written(town, run, monkeypatch):
    monkeypatch.setattr("certsynth.cli.words.print_json", raising(KeyboardInterrupt()))
    done = run(*PINNED, "--json")
    assert (done.code, done.err) == (130, f"{NO_LEDGER}\n{CHECK_NOTE}\ninterrupted: out was written.\n")


def test_exit_codes_follow_the_kind_of_error(town, run, monkeypatch):
    for error, code in [
        (errors.CheckFailed("no"), 1),
        (errors.InputError("no"), 2),
        (errors.SolverFailed("no"), 2),
        (errors.UnsafeNoise("no"), 2),
    ]:
        monkeypatch.setattr(releasing, "release", raising(error))
        done = run(*RELEASE)
        assert (done.code, done.out, done.err) == (code, "", "error: no\n")


def test_a_message_never_gets_a_second_line(town, run):
    done = run("verify", "no\nsuch\x1b[31m\r\u2028folder")
    assert done.error == "no such?[31m  folder is not a release folder: there is no such folder."


@pytest.mark.parametrize("command", sorted(main.commands))
def test_every_command_refuses_unknown_options_in_one_line(run, command):
    assert run(command, "--nonsense").error.endswith(f"See certsynth {command} --help.")
    assert run(command, "-h").code == 0


def test_unknown_commands_and_none(run):
    assert run("relaese").error.lower().startswith("no such command 'relaese'.")
    assert run().out.startswith("Usage: certsynth")
    assert run("--version").out.startswith("certsynth, version ")


FAULTS = {
    "ragged": f"age,region,employed\n30,{CANARY},true\n{CANARY},1\n",
    "quote": f'age,region,employed\n30,"{CANARY}" x,true\n',
    "unclosed": f'age,region,employed\n30,"{CANARY},true\n',
    "no header": f"30,{CANARY},true\n31,hills,true\n",
    "missing column": f"age,employed\n{CANARY},true\n",
    "twins": f"age,age,region,employed\n{CANARY},1,2,3\n",
    "empty": "",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_broken_files_are_told_without_a_cell(town, run, fault):
    (town / "people.csv").write_text(FAULTS[fault])
    (town / "good.csv").write_text("age,region,employed\n30,hills,true\n")
    certify = ("certify", "people.csv", "good.csv", "--schema", "schema.toml", "--epsilon", 1)
    for command in (RELEASE, certify, ("evaluate", "good.csv", "people.csv", "--schema", "schema.toml")):
        assert CANARY not in run(*command).error
    assert CANARY not in run("schema", "people.csv", "--out", "draft.toml").err
    assert not (town / "out").exists()


def test_bytes_that_are_no_text_are_told_without_a_cell(town, run):
    (town / "people.csv").write_bytes(b"age,region,employed\n30," + CANARY.encode() + b"\xff,true\n")
    assert run(*RELEASE).error == (
        "data people.csv: column 'region' is not text in UTF-8. Save the file as UTF-8, or convert it: "
        "iconv -f WINDOWS-1252 -t UTF-8."
    )
    (town / "people.parquet").write_bytes(b"PAR1" + CANARY.encode() + b"PAR1")
    assert CANARY not in run("release", "people.parquet", *RELEASE[2:]).error


def test_a_table_in_place_of_a_schema_is_told_without_a_cell(town, run):
    (town / "people.csv").write_text(f"age,region,employed\n30,{CANARY},true\n{CANARY} = [{CANARY}]\n")
    assert CANARY not in run("release", "people.csv", "--schema", "people.csv", *RELEASE[4:]).error


WOVEN_TOWN = """
[[column]]
name = "age"
kind = "integer"
low = 0
high = 90

[[column]]
name = "region"
kind = "tree"
values = ["north/hills", "north/coast", "south"]
other = true

[[column]]
name = "employed"
kind = "metric"
values = ["true", "false", "unsure"]
distances = [[0, 2, 1], [2, 0, 1], [1, 1, 0]]
missing = true

[[rule]]
impossible = "age > 30 and region = 'other'"
"""


def test_cells_of_trees_and_metrics_and_of_rows_that_break_rules_are_in_no_output(town, run):
    (town / "schema.toml").write_text(WOVEN_TOWN)
    (town / "people.csv").write_text(f"age,region,employed\n33,{CANARY},true\n31,hills,{CANARY}\n" * 10)
    done = run(*PINNED)
    assert done.code == 0
    assert all(CANARY.encode() not in path.read_bytes() for path in (town / "out").iterdir())
    shown = done.out + done.err
    for command in (
        ("evaluate", "people.csv", "out/synthetic.csv", "--schema", "schema.toml"),
        ("certify", "people.csv", "copy.csv", "--schema", "schema.toml", "--epsilon", 1),
        ("verify", "out"),
    ):
        done = run(*command)
        assert done.code == 0, done.err
        shown += done.out + done.err
    assert CANARY not in shown


def test_cells_are_in_no_output_of_a_release(town, run):
    (town / "people.csv").write_text(f"age,region,employed\n30,{CANARY},true\n31,hills,{CANARY}\n" * 10)
    done = run(*PINNED)
    assert done.code == 0
    assert CANARY not in done.out + done.err
    assert all(CANARY.encode() not in path.read_bytes() for path in (town / "out").iterdir())


def test_a_vacuous_bound_is_called_so():
    assert "off by more than 0.9999." in promise(0.9999, confidence=0.95, columns="at most 2 columns")
    assert promise(1.0, confidence=0.95, columns="at most 2 columns").startswith(
        "The certificate is vacuous: the bound is 1"
    )


def test_printed_bounds_stay_true():
    assert [upward(x) for x in (0.0, 0.05, 0.01880001, 0.99995, 1.0)] == [
        "0.0000",
        "0.0500",
        "0.0189",
        "1.0000",
        "1.0000",
    ]
    assert [downward(x) for x in (0.0, 0.05, 0.01889999)] == ["0.0000", "0.0500", "0.0188"]
    assert [percent(x) for x in (0.95, 0.9, 0.999, 0.9999999)] == ["95 %", "90 %", "99.9 %", "99.99999 %"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("choose another `ledger`.", "choose another --ledger."),
        ("`certificate_share` is 1", "--certificate-share is 1"),
        ("name them in `subsets`", "name them in --workload"),
        ('choose `loss="path"`, or `epsilon=1`', "choose --loss path, or --epsilon 1"),
        ("say `dataset='my town'`", "say --dataset 'my town'"),
        ("give `key` to verify", "give --key to verify"),
        ("`memory` is Python's own", "`memory` is Python's own"),
        ("draft one with `certsynth schema DATA`", "draft one with `certsynth schema DATA`"),
        ("a column 'out' and a file `out.csv`", "a column 'out' and a file `out.csv`"),
    ],
)
def test_arguments_of_the_library_are_told_as_flags(text, told):
    with click.Context(main):
        assert in_flags(text) == told
    assert in_flags(text) == text  # the control: outside of the command line nothing is translated


# What only a process of its own shows.


def real(*arguments: str, cwd: Path, script: str | None = None) -> subprocess.CompletedProcess[str]:
    start = script or "from certsynth.cli import main; main()"
    environment = {key: value for key, value in os.environ.items() if key != "CERTSYNTH_DEBUG"}
    command = [sys.executable, "-c", start, *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False)


HEAVY = "cryptography difflib duckdb jinja2 joblib jsonschema narwhals numba numpy opendp pylmcf rich scipy"


def test_help_imports_nothing_heavy(tmp_path):
    """Of every command, in one process: what one of them imported would be seen after the next."""
    script = f"""
import sys
from certsynth.cli import main
for command in ["", *main.commands]:
    try:
        main([command, "--help"] if command else ["--help"])
    except SystemExit as end:
        assert not end.code, command
    heavy = set("{HEAVY}".split()) & set(sys.modules)
    assert not heavy, (command, heavy)
"""
    done = real(cwd=tmp_path, script=script)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_process_keeps_talk_and_results_apart(town):
    done = real(*PINNED, "--json", cwd=town)
    assert (done.returncode, without_progress(done.stderr)) == (0, f"{NO_LEDGER}\n{CHECK_NOTE}\n")
    assert json.loads(done.stdout)["out"] == "out"


@pytest.mark.slow
def test_every_process_keeps_talk_and_results_apart(town):
    assert real(*PINNED, "--json", cwd=town).returncode == 0
    again = real(*RELEASE, cwd=town)
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr == "error: out exists already; a release is never overwritten. Choose another --out.\n"
    checked = real("verify", "out", "--json", cwd=town)
    assert json.loads(checked.stdout)["ok"]
    evaluated = real("evaluate", "people.csv", "out/synthetic.csv", "--schema", "schema.toml", "--json", cwd=town)
    assert json.loads(evaluated.stdout)["subsets"]
    assert len(evaluated.stderr.splitlines()) == 1


def test_other_libraries_and_workers_write_to_nowhere(town):
    script = f"""
import os, subprocess
from certsynth.algorithm import evaluate as evaluation
from certsynth.cli import main

def noisy(*arguments, **options):
    os.write(1, b"{CANARY}")
    os.write(2, b"{CANARY}")
    subprocess.run(["sh", "-c", "echo {CANARY} >&2"], check=True)
    raise ValueError("{CANARY}")

evaluation.evaluate = noisy
main()
"""
    assert hasattr(evaluation, "evaluate")
    done = real(*EVALUATE, cwd=town, script=script)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: internal error of certsynth (ValueError)")
    assert CANARY not in done.stderr


def test_an_output_that_cannot_be_written_is_one_line(town):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", "from certsynth.cli import main; main()", "--help"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (2, "error: system error: No space left on device.\n")


def test_bars_are_drawn_on_a_terminal_only(town):
    pty = pytest.importorskip("pty")
    for quiet, drawn in (([], True), (["--quiet"], False)):
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-c", "from certsynth.cli import main; main()", *EVALUATE, *quiet],
            cwd=town,
            stdout=subprocess.DEVNULL,
            stderr=theirs,
            env=os.environ | {"TERM": "xterm"},
        )
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 4096):
                shown += piece
        except OSError:  # how Linux says that the other end is closed
            pass
        assert process.wait(60) == 0
        os.close(ours)
        assert (b"comparing the tables" in shown) is drawn
        assert b"150" not in shown  # how many rows there are is nobody's business


def test_options_of_the_same_name_mean_the_same():
    helps: dict[str, set[str | None]] = {}
    for command in main.commands.values():
        for option in command.params:
            if isinstance(option, click.Option) and option.name not in ("out", "rows"):
                helps.setdefault(str(option.name), set()).add(option.help)
    assert {name for name, texts in helps.items() if len(texts) > 1} == set()


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            "require = 'age >= 18 and job = true'",
            "rule 1, require, at character 15: no column is called 'job'; there are 'age', 'region', 'employed', and "
            "texts are written in quotes.",
        ),
        (
            "require = 'age > 50'\n[[rule]]\nrequire = 'age < 50'",
            "rules 1 and 2 contradict each other: no row was found that obeys them all. Change or remove one of them.",
        ),
        ("impossible = 'age >= 0'", "rule 1 can be obeyed by no row of this schema: change or remove it."),
    ],
)
def test_rules_that_cannot_be_are_told_before_the_table_is_opened(town, run, rules, message):
    with (town / "schema.toml").open("a", encoding="utf-8") as file:
        file.write(f"\n[[rule]]\n{rules}\n")
    (town / "people.csv").unlink()
    assert run(*RELEASE).error == message
    assert run("plan", "--schema", "schema.toml", "--rows", 100, "--epsilon", 1).error == message
    assert not (town / "out").exists()
