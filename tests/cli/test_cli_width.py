"""Every command in terminals of 80 and 120 columns: no line is longer, no word or number is split, colour is right."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.cli.terminal import Screen, show

from certsynth import Release, Schema, certify
from certsynth.algorithm import certify as certifying
from certsynth.algorithm import plan as planning
from certsynth.algorithm import release as releasing
from certsynth.cli import layout, main
from certsynth.cli.layout import Styled, command, shorten, table, width, wrap, wrap_entry
from certsynth.planning.plan import Merged, Plan, Planned, Variation

WIDTHS = (80, 120)
UNLIMITED = 9_999

LONG = "fraction(employed = true and region = 'harbour') - fraction(employed = false and region = 'hills')"
SCHEMA = ("--schema", "schema.toml", "--quiet")

COMMANDS: dict[str, tuple[object, ...]] = {
    "plan": ("plan", *SCHEMA, "--rows", 20_000, "--epsilon", 1),
    "plan --verbose": ("plan", *SCHEMA, "--rows", 20_000, "--epsilon", 1, "--delta", "0.000001", "--verbose"),
    "release": ("release", "people.csv", *SCHEMA, "--epsilon", 2, "--out", "a-folder-with-a-rather-long-name/release"),
    "release --verbose": ("release", "people.csv", *SCHEMA, "--epsilon", 2, "--out", "out", "--verbose"),
    "verify": ("verify", "release", "--quiet"),
    "answer": ("answer", "release", LONG, "mean(age)", "median(age)", "--quiet"),
    "answer, one": ("answer", "release", LONG, "--quiet"),
    "answer, with errors": ("answer", "release", "mean(agee)", "mean(age)", "--quiet"),
    "answer, a table": ("answer", "release", "table(region, employed)", "mean(age) by region", "--quiet"),
    "certify": ("certify", "people.csv", "copy.csv", *SCHEMA, "--epsilon", 1, "--per-subset"),
    "evaluate": ("evaluate", "people.csv", "copy.csv", *SCHEMA),
    "ledger": ("ledger", "ledger.jsonl"),
    "report": ("report", "release", "--out", "a-rather-long-name-of-a-report-that-fills-a-line.html", "--quiet"),
    "schema": ("schema", "people.csv", "--out", "a-rather-long-name-of-a-draft.toml", "--quiet"),
    "check": ("check", "people.csv", "--schema", "strict.toml", "--quiet"),
    "an error": ("verify", "a-folder-that-is-not-there", "--quiet"),
    "a wrong option": ("release", "people.csv", *SCHEMA, "--epsilon", "much", "--out", "out", "--neighbours", "many"),
}


def made_up_plan() -> Plan:
    """A plan with everything that a plan can say."""

    def planned(mechanism: str, resolution: int, bound: float) -> Planned:
        figures = {"discretisation": 0.03125, "privatisation": 0.04815, "low": bound / 2, "high": 2 * bound}
        return Planned(
            mechanism, "0", resolution, predicted_bound=bound, rehearsals=8, seconds=12_345, memory_gb=1.25, **figures
        )

    candidates = tuple(
        planned(name, k, bound + 0.0001 * k)
        for name, bound in (("identity", 0.0268), ("haar-weighted", 0.0386), ("haar-noisy-total", 0.0577))
        for k in (4, 6, 8, 12, 16, 24, 32)
    )
    return Plan(
        rows=20_000,
        columns=3,
        sparsity=2,
        workload=None,
        confidence=0.95,
        privacy={"definition": "", "epsilon": "1", "delta": "0.000001", "rho": "0.024355970354"},
        neighbours="add-remove",
        certificate="direct",
        split=0.25,
        choice=candidates[1],
        candidates=candidates,
        variations=(Variation("half of epsilon", "adaptive", None, 0.0374), Variation("sparsity 3", "haar", 4, 0.0478)),
        merged=(Merged("region", 400, 12), Merged("a column with a long name", 12_345, 67)),
        certificate_share=0.09,
        statistics={"share_of_one_column": 0.0314, "share_of_two_columns": 0.0483, "moment": 0.013},
    )


@pytest.fixture(scope="module")
def certified(released: Path) -> Any:
    schema = Schema.load(released / "schema.toml")
    return certify(released / "people.csv", released / "copy.csv", schema, epsilon=1, per_subset=True)


@pytest.fixture
def place(released: Path, certified: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a release and what made it; commands run there, and those with noise find what was found before."""
    folder = shutil.copytree(released, tmp_path / "place")
    monkeypatch.chdir(folder)
    schema = Schema.load("schema.toml").to_toml()
    (folder / "strict.toml").write_text(
        schema.replace("high = 100", "high = 40").replace('"hills"', '"Hills"'), encoding="utf-8"
    )
    made = Release.load("release")
    arguments = ("certify", "people.csv", "copy.csv", "--schema", "schema.toml", "--epsilon", 0.1, "--quiet")
    with pytest.raises(SystemExit):
        main([*map(str, arguments), "--ledger", "ledger.jsonl", "--cap", "2", "--json"])
    monkeypatch.setattr(planning, "plan", lambda schema, **asked: made_up_plan())
    monkeypatch.setattr(releasing, "release", lambda table, schema, **asked: made)
    monkeypatch.setattr(certifying, "certify", lambda *tables, **asked: certified)
    return folder


def shown(columns: int, name: str) -> Screen:
    for made in ("a-rather-long-name-of-a-report-that-fills-a-line.html", "a-rather-long-name-of-a-draft.toml"):
        Path(made).unlink(missing_ok=True)
    return show(columns, *COMMANDS[name])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_fits_the_terminal_and_splits_no_word_and_no_number(place, name):
    whole = shown(UNLIMITED, name)
    for columns in WIDTHS:
        screen = shown(columns, name)
        assert screen.code == whole.code
        assert max(map(len, screen.lines)) <= columns
        stacked = {"between", "and", "the", "two", "ends", "error", "lies"}
        assert set(screen.words) <= set(whole.words) | (stacked if name.startswith("answer") else set())
        if name not in ("plan --verbose", "answer", "answer, with errors"):  # these leave out or stack
            assert screen.words == whole.words
        for line in screen.lines:
            assert not line.endswith("±"), "a sign and its number belong together"


DEEP = "a-folder-with-a-rather-long-name/" * 4 + "with-a-1234.5678-number"
"""A path that is longer than a line of any terminal in these tests."""

DEEP_COMMANDS: dict[str, tuple[object, ...]] = {
    "release": ("release", "people.csv", *SCHEMA, "--epsilon", 2, "--out", f"{DEEP}/out"),
    "verify": ("verify", f"{DEEP}/release", "--quiet"),
    "report": ("report", f"{DEEP}/release", "--quiet"),
    "schema": ("schema", "people.csv", "--out", f"{DEEP}/draft.toml", "--quiet"),
    "check": ("check", "people.csv", "--schema", f"{DEEP}/strict.toml", "--quiet"),
    "ledger": ("ledger", f"{DEEP}/ledger.jsonl"),
    "an error": ("verify", f"{DEEP}/no-release", "--quiet"),
}


@pytest.mark.parametrize("name", DEEP_COMMANDS)
def test_a_path_that_is_longer_than_a_line_stands_alone_and_in_one_piece(place, name):
    """The exception to the rule that no line is longer than the terminal: a path must be such that it can be copied."""
    shutil.copytree(place, Path(DEEP))
    for columns in WIDTHS:
        Path(DEEP, "draft.toml").unlink(missing_ok=True)
        screen = show(columns, *DEEP_COMMANDS[name])
        longer = [line for line in screen.lines if len(line) > columns]
        assert longer
        for line in longer:
            (*flag, path) = line.removesuffix(" \\").split()
            assert path.startswith(DEEP)
            assert len(flag) <= 1, "a flag of a command is on the line of its value"
            assert path[-1].isalnum() or path == f"{DEEP}/"
            assert flag or line.removesuffix(" \\").strip() == path


@pytest.mark.parametrize("name", [None, *main.commands])
def test_every_page_of_help_fits_the_terminal(name):
    for columns in WIDTHS:
        screen = show(columns, *([] if name is None else [name]), "--help")
        assert screen.code == 0
        assert max(map(len, screen.lines)) <= columns
        assert not any(re.search(r"\w-$", line) for line in screen.lines)


def test_colour_is_for_terminals_and_not_for_those_who_do_not_want_it(place, run, monkeypatch):
    plain = run(*COMMANDS["verify"])
    coloured = shown(80, "verify")
    assert "\x1b[" in coloured.out
    assert "\x1b[" in shown(80, "an error").err
    assert "\x1b[" not in plain.out
    assert "\x1b[" not in run(*COMMANDS["an error"]).err
    monkeypatch.setenv("NO_COLOR", "1")
    again = shown(80, "verify")
    assert "\x1b[" not in again.out
    assert again.lines == coloured.lines
    assert "\x1b[" not in shown(80, "an error").err


def test_a_pipe_has_a_width_of_its_own_and_errors_stay_on_one_line(place, run, monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    said = run(*COMMANDS["release"]).out
    assert 80 < max(map(len, said.splitlines())) <= layout.PIPE_WIDTH
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, run(*COMMANDS["verify"]).out.splitlines())) <= 60
    assert len(run(*COMMANDS["a wrong option"]).err.splitlines()) == 1


@pytest.mark.parametrize("stated", ["", "0", "-5", "many", "٣٣", "9" * 400])
def test_a_width_that_is_none_is_ignored(stated, monkeypatch):
    monkeypatch.setenv("COLUMNS", stated)
    assert width() == layout.PIPE_WIDTH


def test_a_very_narrow_terminal_is_treated_as_a_little_wider(monkeypatch):
    monkeypatch.setenv("COLUMNS", "3")
    assert width() == layout.MIN_WIDTH


def test_numbers_keep_their_signs_and_units():
    text = "shares within ± 1.1 points, with confidence 95 %, or 2.5 × 10⁻⁷, at ε = 1 and δ = 0.000001"
    for columns in range(20, 60):
        lines = wrap(text, columns=columns)
        assert max(map(len, lines)) <= columns
        assert " ".join(lines) == text
        for together in ("± 1.1", "95 %", "2.5 × 10⁻⁷", "ε = 1", "δ = 0.000001"):
            assert any(together in line for line in lines)


def test_items_of_a_list_are_indented_and_styles_are_kept():
    assert wrap("- one two three", columns=9) == ["- one two", "  three"]
    assert wrap("  one two three", columns=9) == ["  one two", "  three"]
    parts = wrap(Styled("FAILED  one two", length=6, fg="red"), columns=11)
    assert [isinstance(part, Styled) for part in parts] == [True, False]
    assert all(isinstance(part, Styled) for part in wrap(layout.strong("one two three"), columns=9))
    assert layout.indent(Styled("ok  one", length=2, fg="green"), 3).painted() == "\x1b[32m   ok\x1b[0m  one"


def test_a_command_can_be_pasted_from_several_lines():
    words = ["certsynth", "answer", "a folder", "mean(age)", "fraction(sex = 'f')", "--out", "x y", "it's $5"]
    assert command(words, columns=200) == [
        "next: certsynth answer 'a folder' 'mean(age)' \"fraction(sex = 'f')\" --out 'x y' 'it'\"'\"'s $5'"
    ]
    lines = command(words, before="  $ ", columns=40)
    assert all(line.endswith(" \\") for line in lines[:-1])
    assert max(map(len, lines)) <= 40
    assert any("--out 'x y'" in line for line in lines)


def test_tables_wrap_their_flexible_column_and_split_only_words_that_are_too_long():
    rows = [("columns", "bound"), ("a column × another column", "0.0241"), ("x" * 20 + "_of_1234567", "1.0000")]
    assert table(rows, text=1, columns=26) == [
        "  columns            bound",
        "  a column ×        0.0241",
        "  another column",
        f"  {'x' * 16}  1.0000",
        f"  {'x' * 4}_of_1234567",
    ]


def test_entries_of_a_schema_are_wrapped_where_toml_allows_it(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    line = '    values = ["north of here", "south of here", "east"]'
    parts = wrap_entry(line)
    assert parts == ['    values = ["north of here",', '      "south of here", "east"]']
    assert shorten("a word " * 10) == "a word a word a word a word a word a …"
