"""certsynth plan: a prediction in words and as JSON, without a table."""

from __future__ import annotations

import dataclasses
import shlex

import pytest

from certsynth import Schema, plan
from certsynth.algorithm import plan as planning
from certsynth.cli.chart import HEIGHT_LINES, chart
from certsynth.cli.plan import LINE_WIDTH, duration, lines
from certsynth.errors import InputError
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


def test_says_first_what_to_expect():
    first, *rest = lines(made_up())
    assert first == ("release would use identity at resolution 12; single columns get 37.5 % of the budget for counts")
    with_share = " ".join(lines(made_up(certificate_share=0.1)))
    assert "get 37.5 % of the budget for counts; the certificate gets 10 % of the whole budget Expect" in with_share
    said = " ".join(rest)
    assert said.startswith(
        "Expect a bound of about 0.0084, between 0.0041 and 0.0167 for nine of ten tables, for statistics of at most 2 "
        "columns, at confidence 95 %. This is a prediction from 5 made-up tables and not a promise: the release gets a "
        "certificate of its own. It would take about 5 seconds and 0.4 GB of memory, on two cores. "
        "privacy: epsilon 1 under replace-one neighbours; planning spends nothing"
    )


def test_compares_what_is_around_the_best_of_each_mechanism():
    said = lines(made_up())
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


def test_draws_bounds_by_resolution():
    said = lines(made_up())
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
    assert said[said.index("What would change:") + 1 :] == [
        "  as planned      identity at resolution 12  0.0084",
        "  twice the rows  identity at resolution 16  0.0066",
        "  sparsity 1      haar at full detail        0.0010",
    ]


def test_stays_within_a_hundred_columns():
    slow = planned("haar-noisy-total", 1024, 1.0, seconds=12_345.0, memory_gb=123.4)
    told = {"definition": "", "epsilon": "0.899935267751", "delta": "0.000000088253", "rho": "0.024355970354"}
    for found in (made_up(), made_up(slow), made_up(neighbours="add-remove", privacy=told)):
        assert max(map(len, lines(found))) <= LINE_WIDTH


def test_a_plan_of_one_candidate_has_no_chart():
    said = "\n".join(lines(made_up(planned("identity", None, 0.02), split=None)))
    assert said.startswith("release would use identity at full detail\n")
    assert [line.split()[:3] for line in said.splitlines() if "→ id" in line] == [["→", "identity", "full"]]
    assert "logarithmic" not in said
    assert "more, which" not in said
    assert "prediction from a model and not a promise" in said.replace("\n", " ")


def test_a_bound_of_one_is_called_nothing():
    said = " ".join(lines(made_up(planned("identity", 4, 1.0))))
    assert "Expect a vacuous certificate: a bound of 1. More rows, fewer columns" in said


def test_says_what_a_hidden_number_of_rows_means():
    said = " ".join(lines(made_up(neighbours="add-remove")))
    assert "chooses by a noisy count, which costs a fiftieth of the budget. Plan with a public estimate." in said


def test_says_how_the_plug_in_certificate_adds_up():
    assert "the error of fitting rows" in " ".join(lines(made_up(certificate="plug-in")))


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
    first, *_, last = done.out.splitlines()
    assert first.startswith("release would use ")
    for word in ("Expect a ", "quad-tree", "haar-noisy-total", "twice the rows", "half of epsilon", "sparsity 1"):
        assert word in done.out
    assert last == (
        "next: certsynth release DATA --schema schema.toml --epsilon 1 --columns age,employed --out release"
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
    assert told.out.splitlines()[-1] == (
        "next: certsynth release DATA --schema schema.toml --epsilon 1 --delta 1e-6 --resolution 4 "
        "--mechanism identity --out release"
    )
    again = run("plan", "--schema", "schema.toml", "--rows", 300, "--rho", "0.02", "--columns", "age", "--json")
    assert (again.json["privacy"]["rho"], again.json["privacy"]["delta"]) == ("0.02", "0.000001")


def test_the_next_command_can_be_typed(town, run, monkeypatch):
    monkeypatch.setattr(planning, "plan", lambda schema, **asked: made_up())
    (town / "a schema.toml").write_bytes((town / "schema.toml").read_bytes())
    typed = ["--schema", "a schema.toml", "--epsilon", "1", "--columns", 'age, "a, b"', "--preset", "paper"]
    done = run("plan", "--rows", 9, "--quiet", *typed)
    start, _, command = done.out.splitlines()[-1].partition(": ")
    assert start == "next"
    assert shlex.split(command) == [
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
