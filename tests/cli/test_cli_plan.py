"""certsynth plan: a prediction in words and as JSON, without a table."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path

import pytest

from certsynth import Schema, plan
from certsynth.algorithm import plan as planning
from certsynth.cli.chart import HEIGHT_LINES, chart
from certsynth.cli.layout import wrap
from certsynth.cli.plan import duration
from certsynth.cli.plan import lines as plan_lines
from certsynth.domain import Category, Ordered
from certsynth.errors import InputError
from certsynth.planning.contributions import Contribution
from certsynth.planning.plan import Plan, Planned, Variation

GOOD = ("plan", "--schema", "schema.toml", "--rows", "300", "--epsilon", "1")
PINNED = (*GOOD, "--mechanism", "identity", "--resolution", "4")


def planned(mechanism: str, resolution: int | None, bound: float, **other: object) -> Planned:
    known = {"growth": "0", "discretisation": 0.03125, "privatisation": 0.00601, "rehearsals": 0, "seconds": 4.9}
    known |= {"low": bound / 2, "high": min(1, 2 * bound), "memory_gb": 0.39}
    return Planned(mechanism=mechanism, resolution=resolution, predicted_bound=bound, **(known | other))


def made_up(best: Planned | None = None, **other: object) -> Plan:
    """A plan that compared three mechanisms at six resolutions."""
    resolutions = (4, 6, 8, 12, 16, 24)
    bounds = (0.012, 0.0095, 0.0085, 0.00831, 0.0087, 0.01)
    candidates = [planned("identity", k, bound, rehearsals=5) for k, bound in zip(resolutions, bounds, strict=True)]
    candidates += [planned("haar", k, 1.2 * bound) for k, bound in zip(resolutions, bounds, strict=True)]
    paper = "haar-noisy-total"
    candidates += [planned(paper, k, 1.5 * b, eligible=False) for k, b in zip(resolutions, bounds, strict=True)]
    known = {
        "rows": 78_266,
        "columns": 5,
        "sparsity": 2,
        "workload": None,
        "confidence": 0.95,
        "privacy": {"definition": "pure", "epsilon": "1", "delta": None, "rho": None},
        "neighbours": "replace-one",
        "certificate": "direct",
        "split": 0.375,
        "choice": best or candidates[3],
        "candidates": (best,) if best else tuple(sorted(candidates, key=lambda c: c.mechanism)),
        "variations": (
            Variation("twice the rows", "identity", 16, 0.0066),
            Variation("sparsity 1", "haar", None, 0.001),
        ),
        "merged": (),
        "certificate_share": 0.0,
    }
    return Plan(**(known | other))


SURVEY = Schema(
    columns=(
        Ordered(name="age", kind="integer", low=18, high=100),
        Ordered(name="income", kind="number", low=0.0, high=200_000.0),
        Category(name="region", values=("north", "south")),
    )
)
STATISTICS = {"share_of_one_column": 0.0071, "share_of_two_columns": 0.0123, "group_total": 0.01, "moment": 0.004}


def lines(found: Plan, *, verbose: bool = False) -> list[str]:
    return plan_lines(found, SURVEY, verbose=verbose)


def test_says_first_what_to_expect_in_the_columns_own_units():
    first, second, *_ = lines(made_up(statistics=STATISTICS))
    assert first == (
        "Expect about: shares within ± 0.71 points (two columns ± 1.3), mean age within ± 0.33, mean income within "
        "± 800; 95 % confidence; ε = 1, one row protected."
    )
    assert second == (
        "This is a prediction from 5 made-up tables and not a promise: the release gets a certificate of its own."
    )
    by_distance, *_ = lines(made_up())
    assert by_distance.startswith("Expect about: shares of labels within ± 0.84 points, mean age within ± 0.69, mean")


def test_says_last_how_the_release_would_be_made():
    said = lines(made_up())
    start = said.index(
        "release would use identity at resolution 12; single columns get 37.5 % of the budget for counts"
    )
    assert said[start + 1 :] == [
        "Expect a bound of about 0.0084, between 0.0041 and 0.0167 for nine of ten tables, for statistics of at most 2 "
        "columns, at confidence 95 %.",
        "It would take about 5 seconds and 0.4 GB of memory, on two cores.",
        "privacy: epsilon 1 under replace-one neighbours; planning spends nothing",
        "With --verbose: the mechanisms and resolutions that were compared.",
    ]
    with_share = " ".join(lines(made_up(certificate_share=0.1)))
    assert "get 37.5 % of the budget for counts; the certificate gets 10 % of the whole budget Expect" in with_share


def test_compares_what_is_around_the_best_of_each_mechanism():
    said = lines(made_up(), verbose=True)
    start = said.index("What was compared, for 78,266 rows and 5 columns:") + 1
    head, *rows, more = said[start : start + 11]
    assert head.split() == [
        "mechanism",
        "resolution",
        "discretisation",
        "privatisation",
        "bound",
        "range",
        "secs",
        "GB",
    ]
    assert [row.split()[:-1] for row in rows[:2]] == [
        ["identity", "8", "0.0313", "0.0061", "0.0085", "0.0042–0.0170", "5"],
        ["→", "identity", "12", "0.0313", "0.0061", "0.0084", "0.0041–0.0167", "5"],
    ]
    assert [tuple(row[4:].split()[:2]) for row in rows] == [
        (name, k) for name in ("identity", "haar", "haar-noisy-total") for k in ("8", "12", "16")
    ]
    assert [row[2] for row in rows] == [" ", "→", " ", " ", " ", " ", "°", "°", "°"]
    assert more == "  … and 9 more, which --json has"
    assert "° is the paper's mechanism, shown for comparison and not chosen." in " ".join(said)
    assert "What was compared" not in " ".join(lines(made_up()))


def test_a_narrow_terminal_gets_no_range_time_and_memory(monkeypatch):
    monkeypatch.setenv("COLUMNS", "99")
    said = lines(made_up(), verbose=True)
    head = said[said.index("What was compared, for 78,266 rows and 5 columns:") + 1]
    assert head.split() == ["mechanism", "resolution", "discretisation", "privatisation", "bound"]


def test_draws_bounds_by_resolution():
    said = lines(made_up(), verbose=True)
    start = said.index("Predicted bound by resolution, on a logarithmic scale:") + 1
    drawn = said[start : start + HEIGHT_LINES + 3]
    assert drawn[-1].split() == ["●", "identity", "○", "haar", "△", "haar-noisy-total"]
    assert drawn[-2].split() == ["4", "6", "8", "12", "16", "24"]
    assert "".join(drawn[:-3]).count("●") == 6
    bottom = drawn[HEIGHT_LINES - 1]
    assert bottom.startswith("  0.0084 │")
    assert bottom.index("●", bottom.index("●") + 1) == drawn[-2].index("12")  # the second lowest is at 8


def test_says_what_would_change():
    said = lines(made_up())
    start = said.index("What would change:") + 1
    assert said[start : start + 4] == [
        "                  bound   errors",
        "  as planned      0.0084  × 1",
        "  twice the rows  0.0066  × 0.79",
        "  sparsity 1      0.0010  × 0.12",
    ]
    said = lines(made_up(), verbose=True)
    start = said.index("What would change:") + 1
    assert [line.partition("×")[2].split(maxsplit=1) for line in said[start + 1 : start + 4]] == [
        ["1", "identity at resolution 12"],
        ["0.79", "identity at resolution 16"],
        ["0.12", "haar at full detail"],
    ]


@pytest.mark.parametrize("columns", [80, 100, 120])
def test_fits_the_terminal(columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    slow = planned("haar-noisy-total", 1024, 1.0, seconds=12_345.0, memory_gb=123.4)
    adaptive = planned("adaptive", None, 0.1)
    told = {"definition": "", "epsilon": "0.899935267751", "delta": "0.000000088253", "rho": "0.024355970354"}
    for found in (made_up(), made_up(slow), made_up(adaptive), made_up(neighbours="add-remove", privacy=told)):
        shown = [part for line in lines(found, verbose=True) for part in wrap(line)]
        assert max(map(len, shown)) <= columns


def test_a_plan_of_one_candidate_has_no_chart():
    said = "\n".join(lines(made_up(planned("identity", None, 0.02), split=None), verbose=True))
    assert "\nrelease would use identity at full detail\n" in said
    assert [line.split()[:3] for line in said.splitlines() if "→ id" in line] == [["→", "identity", "full"]]
    assert "logarithmic" not in said
    assert "more, which" not in said
    assert "prediction from a model and not a promise" in said


def test_a_bound_of_one_is_called_nothing():
    first, *_ = lines(made_up(planned("identity", 4, 1.0)))
    assert first.startswith("Expect a vacuous certificate: a bound of 1. More rows, fewer columns")


def test_says_what_a_hidden_number_of_rows_means():
    said = " ".join(lines(made_up(neighbours="add-remove")))
    assert "chooses by a noisy count, which costs a fiftieth of the budget. Plan with a public estimate." in said


def test_says_how_the_plug_in_certificate_adds_up():
    assert "the error of fitting rows" in " ".join(lines(made_up(certificate="plug-in"), verbose=True))


def test_charts_have_no_marks_for_nothing():
    assert chart({"a": {4: 0.5}}) == []
    assert chart({"a": {4: 1.0, 8: 1.0}}) == []
    assert chart({"a": {4: 0.0, 8: 0.1}, "b": {}}) == []


def test_small_differences_look_small():
    drawn = chart({"a": {4: 0.5, 8: 0.501}})
    assert drawn[HEIGHT_LINES - 1].count("●") == 2


def test_times_have_the_unit_that_suits_them():
    assert [duration(x) for x in (0.0, 99, 100, 5999, 6000)] == [
        "1 second",
        "99 seconds",
        "2 minutes",
        "100 minutes",
        "2 hours",
    ]


def test_plans_without_a_table(town, run):
    (town / "people.csv").unlink()
    done = run(*GOOD, "--columns", "age,employed", "--quiet")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Expect ")
    for word in ("release would use ", "Expect a bound of", "twice the rows", "half of epsilon", "sparsity 1"):
        assert word in done.out
    assert "haar" not in done.out
    verbose = run(*GOOD, "--columns", "age,employed", "--quiet", "--verbose")
    for word in ("quad-tree", "haar-noisy-total"):
        assert word in verbose.out
    for each in (done, verbose):
        assert each.said.endswith(
            " next: certsynth release DATA --schema schema.toml --epsilon 1 --columns age,employed --out release"
        )


def test_prints_the_library_s_plan_as_one_json_object(town, run):
    done = run(*PINNED, "--json")
    assert (done.code, done.err) == (0, "")
    result = done.json
    assert {"mechanism", "resolution", "predicted_bound"} <= set(result["choice"])
    assert (result["choice"]["mechanism"], result["choice"]["resolution"]) == ("identity", 4)
    assert result["choice"] in result["candidates"]
    schema = Schema.load("schema.toml")
    assert Plan.from_json(result) == plan(schema, rows=300, epsilon="1", mechanism="identity", resolution=4)


def test_plans_with_delta_or_rho(town, run):
    told = run(*PINNED, "--delta", "1e-6")
    assert "privacy: epsilon 1, delta 0.000001 (rho 0.024355970354) under replace-one neighbours" in told.out
    assert told.said.endswith(
        "next: certsynth release DATA --schema schema.toml --epsilon 1 --delta 1e-6 --resolution 4 "
        "--mechanism identity --out release"
    )
    again = run("plan", "--schema", "schema.toml", "--rows", 300, "--rho", "0.02", "--columns", "age", "--json")
    assert (again.json["privacy"]["rho"], again.json["privacy"]["delta"]) == ("0.02", "0.000001")


def test_the_next_command_can_be_typed(town, run, monkeypatch):
    monkeypatch.setattr(planning, "plan", lambda schema, **asked: made_up())
    schema = (town / "schema.toml").read_text(encoding="utf-8")
    (town / "a schema.toml").write_text(f'{schema}\n[[column]]\nname = "a, b"\nkind = "boolean"\n', encoding="utf-8")
    typed = ["--schema", "a schema.toml", "--epsilon", "1", "--columns", 'age, "a, b"', "--preset", "paper"]
    done = run("plan", "--rows", 9, "--quiet", *typed)
    command = done.out.partition("\nnext: ")[2]
    assert [word for word in shlex.split(command) if word != "\n"] == [
        *("certsynth", "release", "DATA", "--schema", "a schema.toml", "--epsilon", "1"),
        *("--columns", 'age,"a, b"', "--preset", "paper", "--out", "release"),
    ]


def test_passes_on_every_option(town, run, monkeypatch):
    asked: dict[str, object] = {}

    def spy(schema: object, **options: object) -> None:
        asked.update(options)
        raise InputError("seen")

    monkeypatch.setattr(planning, "plan", spy)
    options = {
        "rows": 70,
        "persons": 7,
        "epsilon": "2",
        "delta": "1e-6",
        "rho": "0.1",
        "sparsity": 1,
        "resolution": 8,
        "mechanism": "quad-tree",
        "target": "sex",
        "projection": "drawn",
        "loss": "path",
        "certificate_share": "0.1",
        "exceptions": 2,
        "confidence": "0.990",
        "neighbours": "add-remove",
        "person": "name",
        "rows_per_person": 3,
        "weigh": "persons",
        "missing_person": "separate",
        "preset": "paper",
        "columns": ["age"],
    }
    typed = [
        text
        for name, value in options.items()
        for text in (f"--{name.replace('_', '-')}", "age" if name == "columns" else value)
    ]
    assert run("plan", "--schema", "schema.toml", *typed, "--measure-dropped").error == "seen"
    assert asked.pop("progress")
    assert asked.pop("measure_dropped") is True
    assert asked == options | {"subsets": None}


NO_NUMBER = (
    "invalid value for '--rows': give the number of rows of the table, like 10000; no table is read. "
    "See certsynth plan --help."
)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--rows", 0], "--rows must be the number of private rows, from 1 to 50,000,000; got 0."),
        (["--rows", -4], "--rows must be the number of private rows, from 1 to 50,000,000; got -4."),
        (["--rows", 10**9], "--rows must be the number of private rows, from 1 to 50,000,000; got 1000000000."),
        (["--rows", "many"], NO_NUMBER),
        (["--rows", "people.csv"], NO_NUMBER),
        (["--rows", "1e5"], NO_NUMBER),
        (["--rows", ""], NO_NUMBER),
        (["--rows", "9" * 5000], NO_NUMBER),
        (
            ["--delta", "0.5"],
            "--delta must be above 0 and at most 0.01, in at most 12 decimals, like 1e-6; got '0.5'.",
        ),
        (["--delta", "0"], "--delta must be above 0 and at most 0.01, in at most 12 decimals, like 1e-6; got '0'."),
        (
            ["--delta", "1e-6", "--rho", "0.02"],
            "give at most two of --epsilon, --delta and --rho: any two of them determine the third.",
        ),
        (["--rho", "nan"], "--rho must be a number above 0 and at most 100, for example 1 or 0.5; got 'nan'."),
        (["--epsilon", "no"], "--epsilon must be a number above 0 and at most 100, for example 1 or 0.5; got 'no'."),
        (
            ["--mechanism", "magic"],
            "invalid value for '--mechanism': 'magic' is not one of 'auto', 'identity', 'haar', 'haar-hilbert', "
            "'haar-weighted', 'quad-tree', 'haar-tour', 'haar-noisy-total', "
            "'low-dimensional', 'adaptive', 'low-dimensional-l1'. See certsynth plan --help.",
        ),
        (["--resolution", "fine"], "--resolution must be auto or a whole number from 1 to 1024; got 'fine'."),
        (["--confidence", "1"], "--confidence must be at least 0.5 and below 1, for example 0.95; got '1'."),
        (
            ["--columns", "agee"],
            "column 'agee' is not in the schema, which has: age, region, employed. Did you mean 'age'?",
        ),
        (
            ["--schema", "no.toml"],
            "schema no.toml: no such file. Check the path. A schema is a TOML file that you write; `certsynth schema "
            "DATA` drafts one.",
        ),
    ],
)
def test_refuses_what_makes_no_sense(town, run, options, message):
    assert run(*GOOD, *options).error == message


def test_refuses_a_sparsity_above_the_number_of_columns(town, run):
    assert run(*GOOD, "--sparsity", 4).error.endswith(
        "since the table has 3 columns; got 4. Add columns to the schema, or change --sparsity."
    )


def test_wants_rows_and_a_budget(town, run):
    assert run("plan", "--schema", "schema.toml", "--epsilon", 1).error == (
        "missing option '--rows'. See certsynth plan --help."
    )
    assert run("plan", "--schema", "schema.toml", "--rows", 100).error == (
        "give a privacy budget: --epsilon 1, or --epsilon 1 and --delta 1e-6, or --rho 0.02, for example."
    )
    assert run("plan", "--schema", "schema.toml", "--rows", 100, "--delta", "1e-6").error.startswith(
        "--delta needs --epsilon or --rho as well"
    )


def test_refuses_a_draft(town, run):
    assert run("schema", "people.csv", "--out", "draft.toml").code == 0
    assert run(*GOOD, "--schema", "draft.toml").error.startswith("the schema is a draft made from rows")


def test_made_up_plans_have_what_plans_have():
    assert Plan.from_json(made_up().to_json()) == made_up()
    assert dataclasses.asdict(made_up()) == made_up().to_json()


def test_says_what_rows_of_a_person_cost():
    compared = [
        Contribution(k, weigh, kept_rows=1_000 * k, predicted_bound=0.01 * (k if weigh == "rows" else 1))
        for k in (1, 4, 20)
        for weigh in (("rows", "persons") if k < 20 else ("rows",))
    ]
    persons = {"person": "id", "rows_per_person": 4}
    text = lines(made_up(persons=persons, contributions=tuple(compared), rows=4_000), verbose=True)
    at = text.index("What rows of a person cost:")
    assert [line.split() for line in text[at + 2 : at + 5]] == [
        ["1", "1,000", "0.0100", "0.0100"],
        ["→", "4", "4,000", "0.0400", "0.0100"],
        ["20", "20,000", "0.2000", "–"],
    ]
    said = " ".join(text)
    assert "how many rows does nearly every person have?" in said
    assert "What was compared, for 4,000 rows, at most 4 of each person and 5 columns:" in text
    assert "privacy: epsilon 1 for all rows of a person, under replace-one neighbours" in said
    assert "a person who is replaced may have another number of rows" in said
    alike = " ".join(lines(made_up(persons=persons | {"weigh": "persons"}), verbose=True))
    assert "78,266 persons who count 1 each" in alike
    assert "note: a person who is replaced" not in alike
    assert "With --persons, a public estimate" in alike


def test_the_number_of_persons_is_not_passed_on(town, run):
    text = Path("schema.toml").read_text(encoding="utf-8")
    entries = '[table]\nperson = "id"\nrows_per_person = 2'
    Path("visits.toml").write_text(text.replace("[table]", entries, 1), encoding="utf-8")
    asked = [each.replace("schema.toml", "visits.toml") for each in PINNED]
    shown = run(*asked, "--persons", "200", "--certificate-share", "0").out
    assert "What rows of a person cost:" in shown
    assert "--persons" not in shown.splitlines()[-1]
    assert "--persons is larger than --rows" in run(*asked, "--persons", "301").error
