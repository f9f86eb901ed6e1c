"""certsynth release, with good input and bad."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import pytest

from certsynth.algorithm import release as releasing
from certsynth.algorithm.options import MECHANISMS
from certsynth.cli import main
from certsynth.cli.options import NO_LEDGER
from certsynth.cli.release import CHECK_NOTE, fit_lines
from certsynth.mechanisms import Neighbours
from certsynth.record.record import FitRecord, FunctionRecord, MisfitRecord

GOOD = ("release", "people.csv", "--schema", "schema.toml", "--epsilon", "1", "--out", "out")
PINNED = (*GOOD, "--resolution", "4", "--mechanism", "identity")


def test_writes_a_release_and_says_so_in_words(town, run):
    done = run(*PINNED, "--epsilon", 50)  # so large that the bound is always below 1
    assert (done.code, done.err) == (0, f"{NO_LEDGER}\n{CHECK_NOTE}\n")
    bound = json.loads((town / "out" / "certificate.json").read_text())["certificate"]["bound"]
    lines = done.out.splitlines()
    assert "out: 150 synthetic rows, 3 columns" in lines
    assert "privacy: epsilon 50 under replace-one neighbours; that the table has 150 rows is public" in lines
    pattern = r"With confidence 95 %, no statistic of at most 2 columns [^.]* is off by more than (0\.\d{4})\. For"
    (printed,) = re.findall(pattern, done.said)
    assert bound <= float(printed) <= min(1, bound + 1e-4)
    assert lines[-1] == "next: certsynth verify out"
    (fit,) = [line for line in lines if line.startswith("fit: ")]
    assert re.fullmatch(r"fit: rows are within \d+\.\d times the noise of all 3 tables; furthest: \w+ × \w+", fit)


def test_begins_with_what_it_means_and_names_the_file_to_open(town, run):
    done = run(*PINNED, "--epsilon", 50)
    margin = r"± [0-9.,]+"
    assert re.match(
        rf"Shares within {margin} points \(two columns {margin}\), mean age within {margin}; 95 % confidence; "
        rf"ε = 50, one row protected\. The file to open: out/report\.html shares of one column {margin} points ",
        done.said,
    )


def test_tells_more_if_asked_to(town, run):
    details = ("discretisation", "privatisation", "projection ", "age × region", "away from the noisy counts")
    brief, verbose = run(*PINNED), run(*PINNED, "--out", "again", "--verbose")
    assert "With --verbose: what the bound is made of" in brief.out
    assert "--verbose" not in verbose.out
    for word in details:
        assert word in verbose.said
    assert "What the bound is made of:" not in brief.out


def test_suggests_to_declare_a_column_that_looks_like_a_function():
    fit = FitRecord(
        1,
        (MisfitRecord(("code", "group"), 1.02),),
        (FunctionRecord("code", "group", 0.0), FunctionRecord("a", "b", 0.01)),
    )
    assert fit_lines(fit) == [
        "fit: rows are within 1.1 times the noise of the only table; furthest: code × group",
        "note: group looks like a function of code: declare it as derived in a further release, which spends again",
        "note: b looks like a function of a: declare it as derived in a further release, which spends again",
    ]
    assert fit_lines(None) == []


def test_prints_one_json_object_with_the_promised_keys(town, run):
    done = run(*PINNED, "--json")
    assert (done.code, done.err) == (0, f"{NO_LEDGER}\n{CHECK_NOTE}\n")
    result = done.json
    assert result["out"] == "out"
    assert (result["epsilon"], result["delta"], result["rho"]) == (1, None, None)
    certificate = result["certificate"]
    assert certificate == json.loads((town / "out" / "certificate.json").read_text())["certificate"]
    assert {"bound", "confidence", "kind", "terms", "subsets", "single_column_bound"} <= set(certificate)
    assert result["fit"] == json.loads((town / "out" / "certificate.json").read_text())["fit"]
    assert {tuple(subset["columns"]) for subset in certificate["subsets"]} == {
        ("age", "region"),
        ("age", "employed"),
        ("region", "employed"),
    }


def test_spends_delta_or_rho_and_says_so(town, run):
    done = run(*PINNED, "--delta", "1e-6")
    assert (done.code, done.err) == (0, f"{NO_LEDGER}\n{CHECK_NOTE}\n")
    assert (
        "privacy: epsilon 1, delta 0.000001 (rho 0.024355970354) under replace-one neighbours; "
        "that the table has 150 rows is public"
    ) in done.said
    assert "ε = 1, δ = 0.000001, one row protected." in done.said
    assert run("verify", "out").code == 0
    again = ("release", "people.csv", "--schema", "schema.toml", "--resolution", 4, "--mechanism", "identity")
    result = run(*again, "--rho", "0.02", "--out", "again", "--json").json
    assert (result["epsilon"], result["delta"], result["rho"]) == (0.899935267751, 1e-6, 0.02)


def test_passes_on_every_option(town, run, monkeypatch):
    asked: dict[str, object] = {}

    def spy(data: object, schema: object, **options: object) -> None:
        asked.update(options, data=data)
        raise releasing.InputError("seen")

    monkeypatch.setattr(releasing, "release", spy)
    options = {
        "delta": "1e-6",
        "rho": "0.1",
        "sparsity": 1,
        "resolution": 8,
        "mechanism": "haar",
        "target": "age",
        "projection": "public",
        "loss": "path",
        "public": Path("public.csv"),
        "rows": 70,
        "certificate_share": "0.1",
        "exceptions": 2,
        "confidence": "0.990",
        "neighbours": "add-remove",
        "person": "name",
        "rows_per_person": 3,
        "weigh": "persons",
        "missing_person": "separate",
        "preset": "paper",
        "columns": ["age", "a, b"],
        "candidates": 3,
        "ledger": Path("ledger"),
        "cap": "2",
        "dataset": "town",
        "seed": 5,
        "sign": Path("key.pem"),
    }
    typed = [
        text
        for name, value in options.items()
        for text in (f"--{name.replace('_', '-')}", 'age, "a, b"' if name == "columns" else value)
    ]
    assert run(*GOOD, *typed, "--measure-dropped").error == "seen"
    assert asked.pop("progress")
    assert asked.pop("measure_dropped") is True
    assert asked == options | {"data": Path("people.csv"), "epsilon": "1", "out": Path("out"), "subsets": None}


@pytest.mark.parametrize("name", ["release", "plan"])
def test_offers_what_the_library_knows(name):
    parameters = main.commands[name].params
    choices = {p.name: set(p.type.choices) for p in parameters if isinstance(p.type, click.Choice)}
    assert choices == {
        "mechanism": {"auto", *MECHANISMS},
        "projection": {"auto", "particles", "public", "full-grid", "drawn"},
        "loss": {"path", "transport"},
        "preset": {"paper"},
        "neighbours": {str(relation) for relation in Neighbours},
        "weigh": {"rows", "persons"},
        "missing_person": {"drop", "separate"},
    } | ({"engine": {"duckdb", "spark"}} if name == "release" else {})


@pytest.mark.parametrize("epsilon", ["abc", "0", "-1", "nan", "inf", "101", "", "1e999999", "True"])
def test_refuses_a_budget_that_is_none(town, run, epsilon):
    rule = "--epsilon must be a number above 0 and at most 100, for example 1 or 0.5"
    done = run("release", "people.csv", "--schema", "schema.toml", "--out", "out", "--epsilon", epsilon)
    assert done.error == f"{rule}; got {epsilon!r}."
    assert not (town / "out").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--sparsity", 4],
            "--sparsity can be 1 or 2 or 3, since the table has 3 columns; got 4. Add columns to the schema, or change "
            "--sparsity.",
        ),
        (["--resolution", 0], "--resolution must be auto or a whole number from 1 to 1024; got 0."),
        (["--resolution", "fine"], "--resolution must be auto or a whole number from 1 to 1024; got 'fine'."),
        (
            ["--columns", "age,agee"],
            "column 'agee' is not in the schema, which has: age, region, employed. Did you mean 'age'?",
        ),
        (
            ["--columns", "age,,region"],
            "invalid value for '--columns': give comma-separated column names, for example age,income. "
            "See certsynth release --help.",
        ),
        (["--confidence", "1"], "--confidence must be at least 0.5 and below 1, for example 0.95; got '1'."),
        (
            ["--certificate-share", "1"],
            "--certificate-share must be at least 0 and below 1, for example 0.05; got '1'.",
        ),
        (["--rows", 0], "--rows must be a whole number from 1 to 50,000,000; got 0."),
        (
            ["--projection", "public"],
            "the projection public needs public rows: give --public, or choose another --projection.",
        ),
        (["--public", "no.csv"], "public data no.csv: no such file. Check the path."),
        (
            ["--sparsity", "two"],
            "invalid value for '--sparsity': 'two' is not a valid integer. See certsynth release --help.",
        ),
    ],
)
def test_refuses_options_that_make_no_sense(town, run, options, message):
    assert run(*GOOD, *options).error == message
    assert not (town / "out").exists()


@pytest.mark.parametrize(
    ("budget", "message"),
    [
        ([], "give a privacy budget: --epsilon 1, or --epsilon 1 and --delta 1e-6, or --rho 0.02, for example."),
        (
            ["--delta", "1e-6"],
            "--delta needs --epsilon or --rho as well: --epsilon 1, or --epsilon 1 and --delta 1e-6, or --rho 0.02, "
            "for example.",
        ),
        (
            ["--epsilon", 1, "--delta", "1e-6", "--rho", "0.02"],
            "give at most two of --epsilon, --delta and --rho: any two of them determine the third.",
        ),
        (
            ["--epsilon", 1, "--delta", "1"],
            "--delta must be above 0 and at most 0.01, in at most 12 decimals, like 1e-6; got '1'.",
        ),
        (["--rho", "-1"], "--rho must be a number above 0 and at most 100, for example 1 or 0.5; got '-1'."),
    ],
)
def test_refuses_budgets_that_do_not_fit_together(town, run, budget, message):
    assert run("release", "people.csv", "--schema", "schema.toml", "--out", "out", *budget).error == message
    assert run("certify", "people.csv", "copy.csv", "--schema", "schema.toml", *budget).error == message
    assert not (town / "out").exists()


def test_refuses_files_that_are_not_there(town, run):
    epsilon_and_out = ("--epsilon", 1, "--out", "out")
    missing = run("release", "no.csv", "--schema", "schema.toml", *epsilon_and_out)
    assert missing.error == "data no.csv: no such file. Check the path."
    no_schema = run("release", "people.csv", "--schema", "no.toml", *epsilon_and_out)
    assert no_schema.error == (
        "schema no.toml: no such file. Check the path. A schema is a TOML file that you write; `certsynth schema DATA` "
        "drafts one."
    )
    assert run("release", "people.csv", *epsilon_and_out).error == (
        "missing option '--schema'. Draft one with `certsynth schema DATA`, then edit it. See certsynth release --help."
    )


def test_never_overwrites(town, run):
    (town / "out").mkdir()
    (town / "out" / "mine.txt").write_text("precious")
    assert run(*GOOD).error == "out exists already; a release is never overwritten. Choose another --out."
    assert [path.name for path in (town / "out").iterdir()] == ["mine.txt"]


def test_refuses_a_draft(town, run):
    assert run("schema", "people.csv", "--out", "draft.toml").code == 0
    done = run("release", "people.csv", "--schema", "draft.toml", "--epsilon", 1, "--out", "out")
    assert done.error == (
        "the schema is a draft made from rows: check every bound and label against public knowledge, then remove the "
        "line draft = true."
    )


def test_refuses_a_unit_that_is_still_a_question(town, run):
    draft = (town / "schema.toml").read_text().replace('unit = "', 'unit = "? ')
    (town / "open.toml").write_text(draft)
    for command in (["release", "people.csv", "--out", "out"], ["plan", "--rows", 150]):
        assert run(*command, "--schema", "open.toml", "--epsilon", 1).error == (
            "the unit of the schema is still a question: say what one row stands for, like "
            'unit = "one row is one person".'
        )
    assert not (town / "out").exists()


def test_the_note_on_check_is_the_same_for_every_table_and_quiet_silences_it(town, run):
    for i, region in enumerate(("hills", "nowhere")):
        (town / "people.csv").write_text("age,region,employed\n" + f"30,{region},true\n" * 5)
        for quiet in (False, True):
            done = run(
                *GOOD[:-1], f"out{i}{quiet}", "--resolution", "4", "--mechanism", "identity", *["--quiet"] * quiet
            )
            assert done.err == f"{NO_LEDGER}\n" + f"{CHECK_NOTE}\n" * (not quiet)


def test_names_a_column_that_the_table_lacks(town, run):
    (town / "people.csv").write_text("age,area,employed\n30,hills,true\n")
    assert run(*GOOD).error == (
        "data people.csv: no column 'region'; it has 'age', 'area', 'employed'. "
        "Correct the name in the schema or in the data."
    )


def test_names_the_line_of_a_ragged_file(town, run):
    (town / "people.csv").write_text("age,region,employed\n30,hills,true\n31,hills\n")
    assert run(*GOOD).error == (
        "data people.csv: line 3 has more or fewer fields than the header. "
        "Correct it; a field with a delimiter in it needs quotes."
    )


def test_a_table_of_no_rows_is_refused_before_anything_is_spent(town, run):
    (town / "people.csv").write_text("age,region,employed\n")
    assert run(*PINNED).error == "the table has no rows, so there is nothing to release."
    assert run(*PINNED, "--ledger", "l", "--cap", 1).error == (
        "the table has no rows, so there is nothing to release. Nothing was spent."
    )
    assert not (town / "out").exists()
    assert not (town / "l").exists()


@pytest.mark.parametrize(("rows", "neighbours"), [(1, "replace-one"), (1, "add-remove"), (0, "add-remove")])
def test_releases_tables_of_hardly_any_rows(town, run, rows, neighbours):
    (town / "people.csv").write_text("age,region,employed\n" + "30,hills,true\n" * rows)
    done = run(*PINNED, "--neighbours", neighbours, "--rows", 20, "--json")
    assert done.code == 0, done.err
    assert run("verify", "out", "--json").json["ok"]


@pytest.mark.parametrize("options", [["--resolution", 1], ["--columns", "age"], ["--columns", "region"]])
def test_releases_the_smallest_problems(town, run, options):
    done = run(*GOOD, *options, "--json")
    assert done.code == 0, done.err
    assert run("verify", "out").code == 0


def test_hides_the_number_of_rows_under_add_remove(town, run):
    done = run(*PINNED, "--neighbours", "add-remove", "--rows", 40)
    assert done.code == 0, done.err
    assert "how many rows the table has stays hidden" in done.out
    assert not re.search(r"(?<![\d.,])150(?!\d)", done.out)  # figures such as 0.4150 occur by chance


def test_a_derived_column_goes_from_a_csv_file_to_a_verified_release(town, run):
    """The map is read beside the schema; the release needs no file but its own."""
    header, *rows = (town / "people.csv").read_text().splitlines()
    place = header.split(",").index("employed")
    (town / "people.csv").write_text(
        "\n".join([f"{header},works", *(f"{row},{row.split(',')[place]}" for row in rows)])
    )
    works = '\n[[column]]\nname = "works"\nkind = "category"\nvalues = ["yes", "no"]\nmissing = true\n'
    works += 'derived = { from = "employed", map = "works.csv" }\n'
    (town / "schema.toml").write_text((town / "schema.toml").read_text() + works)
    (town / "works.csv").write_text("employed,works\ntrue,yes\nfalse,no\n")
    done = run(*PINNED)
    assert (done.code, done.err) == (0, f"{NO_LEDGER}\n{CHECK_NOTE}\n")
    assert "derived, not measured: works from employed" in done.out
    assert run(*GOOD[:-1], "other", "--columns", "age,works").error == (
        "'works' is derived from 'employed', which is left out: add 'employed' to --columns, or leave 'works' out."
    )
    (town / "works.csv").unlink()
    assert run("verify", "out").code == 0
    assert run("answer", "out", "fraction(works = 'yes')").code == 0
