"""The view has every number of the release, in words that are true."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from report_specimens import EVERY_KIND, RHO, WOVEN, document, record, render_report, spent_on, table, view, wide
from scipy.optimize import linprog

import certsynth
from certsynth.artefact.datapackage import describe_package
from certsynth.artefact.steps import (
    DROPPED_ROWS,
    ERRORS_OF_ROWS,
    MEAN_DISPLACEMENT,
    PAIR_SCORES,
    RESOLUTION_CHOICE,
    ROW_COUNT,
    measurement_name,
)
from certsynth.domain import Category, Ordered, Schema
from certsynth.domain.rules import Rule
from certsynth.report import charts, numerals, words
from certsynth.report.columns import column_view
from certsynth.report.verifiable import CHECKS
from certsynth.report.view import MAX_DRAWN_COLUMNS, MAX_LISTED_SUBSETS


def seen(schema: Schema = EVERY_KIND, **choices: Any) -> dict[str, Any]:
    return view(document(schema, **choices), schema, table(schema))


def column_of(page: dict[str, Any], name: str) -> dict[str, Any]:
    return next(c for c in page["columns"]["drawn"] if c["name"] == name)


def number(text: str) -> Decimal:
    return Decimal(text.replace(",", "").replace("−", "-"))


def test_is_plain_data() -> None:
    page = seen()
    assert json.loads(json.dumps(page, allow_nan=False)) == page


def test_the_promise_is_that_of_the_document() -> None:
    certificate = document(EVERY_KIND)["certificate"]
    promise = seen()["promise"]
    for key in ("bound", "confidence", "kind", "single_column_bound"):
        assert promise[key] == certificate[key]
    assert promise["confidence_text"] == "95%"
    for text in ("95%", "2 columns", promise["bound_text"], "1-Lipschitz"):
        assert text in promise["statement"]


@pytest.mark.parametrize("bound", [0.02498901, 0.02499, 0.024990000001, 1e-9, 0.99999, 1.0, 1 / 3])
def test_bounds_are_never_rounded_down_nor_far_up(bound: float) -> None:
    text = numerals.upward(bound)
    if "×" in text:
        digits, power = text.split(" × 10")
        shown = Decimal(digits) * Decimal(10) ** int(power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")))
    else:
        shown = number(text)
    assert Decimal(repr(bound)) <= shown <= Decimal(repr(bound)) * Decimal("1.001")


@pytest.mark.parametrize("confidence", [0.95, 0.9, 0.964, 0.999999, 0.12345])
def test_confidence_is_never_rounded_up(confidence: float) -> None:
    assert Decimal(numerals.confidence(confidence).rstrip("%")) <= Decimal(repr(confidence)) * 100


def test_every_subset_is_there_largest_first() -> None:
    certificate = document(EVERY_KIND)["certificate"]
    rows = seen()["subsets"]["rows"]
    plug = {tuple(s["columns"]): s for s in certificate["plug_in"]["transport"]["subsets"]}
    assert len(rows) == len(certificate["subsets"]) == 28
    stated = {tuple(s["columns"]): s["bound"] for s in certificate["subsets"]}
    assert {tuple(r["columns"]): r["bound"] for r in rows} == stated
    for row in rows:
        own = plug[tuple(row["columns"])]
        assert row["plug_in"] == own["bound"]
        assert [term["value"] for term in row["terms"]] == list(own["terms"].values())
    assert [r["plug_in"] for r in rows] == sorted((r["plug_in"] for r in rows), reverse=True)


def test_a_map_shows_certified_bounds_from_0_where_they_differ() -> None:
    uniform, own = seen()["subsets"], seen(direct=None)["subsets"]
    assert uniform["map"] is None
    assert uniform["introduction"] == "One certified bound, 0.02499, covers all 28 pairs of columns."
    cells = own["map"]["cells"]
    assert len(cells) == 28
    largest = max(cell["value"] for cell in cells)
    for cell in cells:
        assert cell["level"] == min(5, int(6 * cell["value"] / largest))
    assert {tuple(cell["places"]): cell["value"] for cell in cells} == {
        tuple(row["places"]): row["bound"] for row in own["rows"]
    }


def test_no_map_without_pairs_or_differences() -> None:
    for choices in ({"sparsity": 3}, {"sparsity": 1}, {"sparsity": 3, "direct": None}, {"sparsity": 1, "direct": None}):
        assert seen(**choices)["subsets"]["map"] is None


def test_a_pair_with_a_derived_column_has_no_plug_in_bound() -> None:
    """It is not shown as one of 1, nor listed before those that have one."""
    stated = document(EVERY_KIND)
    for proxy in stated["certificate"]["plug_in"].values():
        proxy["subsets"] = [each for each in proxy["subsets"] if "age" not in each["columns"]]
    rows = view(stated, EVERY_KIND, table(EVERY_KIND))["subsets"]["rows"]
    derived = [row for row in rows if "age" in row["columns"]]
    assert len(derived) == 7
    assert rows[-7:] == derived
    assert all(row["plug_in"] is None and row["plug_in_text"] == "–" for row in derived)


def test_terms_of_every_certificate_are_there() -> None:
    certificate = document(EVERY_KIND)["certificate"]
    sources = {"direct": certificate["direct"], "single_column": certificate["single_column"], **certificate["plug_in"]}
    shown = {c["key"]: c for c in seen()["certificates"]}
    assert set(shown) == set(sources)
    for key, source in sources.items():
        assert shown[key]["bound"] == source["bound"]
        assert shown[key]["confidence"] == source["confidence"]
        assert {t["name"].replace(" ", "_"): t["value"] for t in shown[key]["terms"]} == source["terms"]
    assert [key for key, c in shown.items() if c["decides"]] == ["direct"]


def test_a_release_without_direct_certificate_says_so() -> None:
    page = seen(direct=None)
    assert [c["key"] for c in page["certificates"]] == ["transport", "path"]
    assert [c["key"] for c in page["certificates"] if c["decides"]] == ["transport"]
    assert "no direct one" in page["certificates_text"]


def test_spent_parts_and_their_shares() -> None:
    privacy = seen()["privacy"]
    assert [p["amount"] for p in privacy["spent"]] == ["0.92", "0.08"]
    assert [p["share"] for p in privacy["spent"]] == ["92.0%", "8.0%"]
    assert "odds" in privacy["meaning"][0]
    assert "2.719" in privacy["meaning"][0]  # e, rounded up


def test_concentrated_privacy_is_told_as_it_is_stated() -> None:
    stated, privacy = document(EVERY_KIND, concentrated=True)["privacy"], seen(concentrated=True)["privacy"]
    assert {key: privacy[key] for key in ("epsilon", "delta", "rho")} == {
        "epsilon": "1",
        "delta": "0.000001",
        "rho": RHO,
    }
    for text in ("zero-concentrated", f"ρ = {RHO}", "ε = 1 ", "δ = 0.000001", "(ε, δ)"):
        assert text in privacy["statement"]
    assert (privacy["sign"], privacy["total"]) == ("ρ", RHO)
    parts = [Fraction(part["rho"]) for part in stated["spent"]]
    assert sum(parts) == Fraction(RHO)
    factors = [Fraction(p["amount"]) / part for p, part in zip(privacy["spent"], parts, strict=True)]
    assert all(1 <= factor < Fraction(1001, 1000) for factor in factors)
    assert "rounded up" in privacy["caption"]
    assert "rounded" not in seen()["privacy"]["caption"]
    assert [p["share"] for p in privacy["spent"]] == ["92.0%", "8.0%"]


def test_what_delta_leaves_open_is_said() -> None:
    likely, left_open = seen(concentrated=True)["privacy"]["meaning"]
    assert "2.719 times" in likely  # e, rounded up
    assert "apart from a chance of δ" in likely
    assert "1 in 1,000,000" in left_open
    stated = document(EVERY_KIND, concentrated=True)
    stated["privacy"]["delta"] = "0.003"
    assert "1 in 333," in view(stated, EVERY_KIND, table(EVERY_KIND))["privacy"]["meaning"][1]


@pytest.mark.parametrize("concentrated", [False, True])
def test_the_data_package_names_what_was_spent(concentrated: bool) -> None:
    stated = document(EVERY_KIND, concentrated=concentrated)
    said = describe_package(EVERY_KIND, record(stated), parquet="a", csv="b")["description"]
    assert "(epsilon 1" in said
    assert ("delta 0.000001" in said) == (f"rho {RHO}" in said) == concentrated
    assert ("None" in said) is False


def test_a_growth_is_a_setting_where_weights_grow() -> None:
    stated = document(EVERY_KIND)
    for growth in ("0", "0.25"):
        stated["release"]["growth"] = growth
        made = {m["what"]: m["value"] for m in view(stated, EVERY_KIND, table(EVERY_KIND))["made_with"]}
        assert [value for what, value in made.items() if what.startswith("growth")] == [growth] * (growth != "0")


def test_what_is_spent_on_something_new_is_still_shown() -> None:
    stated = document(EVERY_KIND)
    stated["privacy"]["spent"].append(spent_on("choosing among 4 tables", epsilon="1/3"))
    shown = view(stated, EVERY_KIND, table(EVERY_KIND))["privacy"]["spent"][-1]
    assert (shown["on"], shown["amount"]) == ("choosing among 4 tables", "0.3334")


def test_the_fit_names_the_furthest_tables_and_likely_functions() -> None:
    stated = document(EVERY_KIND)
    assert view(stated, EVERY_KIND, table(EVERY_KIND))["fit"] is None
    furthest = [{"columns": ["a\u202eb", "c"], "misfit": 1.2345}, {"columns": ["c", "d", "e"], "misfit": 0.5}]
    functions = [{"source": "code\n", "derived": "group", "share": 0.01}]
    stated["fit"] = {"tables": 1_200, "furthest": furthest, "functions": functions}
    fit = view(stated, EVERY_KIND, table(EVERY_KIND))["fit"]
    assert fit == {
        "sentence": "The rows are within 1.3 times the noise of all 1,200 tables; furthest: a\ufffdb × c.",
        "furthest": [{"columns": "a\ufffdb × c", "misfit": "1.235"}, {"columns": "c × d × e", "misfit": "0.5000"}],
        "functions": [
            "group looks like a function of code\ufffd: declare it as derived in a further release, which spends again."
        ],
    }
    page = render_report(stated, EVERY_KIND, table(EVERY_KIND))
    assert fit["sentence"] in page
    assert fit["functions"][0] in page


@pytest.mark.parametrize(("worth", "words"), [(False, "would not help"), (True, "could give a better table")])
def test_the_diagnostic_is_in_words(worth: bool, words: str) -> None:
    diagnostic = seen(worth_optimising=worth)["diagnostic"]
    assert words in diagnostic["verdict"]
    assert [r["noise_high"] for r in diagnostic["rows"]] == ["0.02460", "0.02460"]


def test_limits_are_said_out_loud() -> None:
    said = {limit["what"]: limit["text"] for limit in seen()["limits"]}
    assert "one row is one household" in said["A row is not a person"]
    assert "replacing one row" in said["Neighbours"]
    assert "12,345" in said["What n is"]
    assert "averages" in said["Averages only"]
    assert "moved to its ends" in said["Rows as the schema reads them"]
    assert "not covered" in said["Timing is out of scope"]


def test_hidden_rows_are_named_as_hidden() -> None:
    page = seen(neighbours="add-remove", real_rows=12_345)
    assert "12,345" not in json.dumps(page)
    assert "not published" in page["privacy"]["rows_text"]
    assert "twice the ε" in {limit["what"]: limit["text"] for limit in page["limits"]}["Neighbours"]


def without_statistics(schema: Schema = EVERY_KIND) -> dict[str, Any]:
    """The view of a release whose certificate bounds distances only."""
    stated = document(schema)
    del stated["certificate"]["statistics"]
    return view(stated, schema, table(schema))


def test_own_units() -> None:
    page = without_statistics()
    bound = document(EVERY_KIND)["certificate"]["single_column_bound"]
    assert column_of(page, "age")["facts"][0]["plus_minus"] == pytest.approx(82 * bound)
    assert column_of(page, "moved in")["facts"][0]["plus_minus"] == pytest.approx((19722 - 7305) * bound)
    assert column_of(page, "moved in")["facts"][0]["plus_minus_text"].endswith("days")
    assert column_of(page, "grade")["facts"][0]["plus_minus"] == pytest.approx(19 * bound)
    assert column_of(page, "region")["facts"][0]["plus_minus"] == bound
    assert any("a range of 82" in sentence for sentence in page["promise"]["in_plain_words"])


def test_of_light_columns_and_near_labels_less_is_promised() -> None:
    """A row counts as moved by no more than the weight, and a label by no more than how far the next one is."""
    page = without_statistics(WOVEN)
    bound = document(WOVEN)["certificate"]["single_column_bound"]
    own = {
        name: [fact["plus_minus"] for fact in column_of(page, name)["facts"]] for name in ("rooms", "trade", "place")
    }
    assert own["rooms"][1] == pytest.approx(4 * bound)  # a share that is missing, at weight 1/4
    present = 1 - np.ma.count_masked(table(WOVEN)["rooms"]) / 400
    assert own["rooms"][0] == pytest.approx(20 * 4 * bound / (present - 4 * bound))
    assert own["trade"] == pytest.approx([6 * bound, 2 * bound])  # labels of the tree are 1/3 of the longest way apart
    assert own["place"] == pytest.approx([bound / 0.8])


def test_bounds_on_shares_are_stated_first_and_used() -> None:
    page, before = seen(), without_statistics()
    shares = page["promise"]["shares"]
    assert before["promise"]["shares"] is None
    assert "one column is right within ± 1.3 percentage points, of two columns within ± 2" in shares["sentence"]
    assert "within ± 0.87% of its range" in shares["others"]
    assert shares["number"] == "± 1.3"
    for name in ("region", "job", "owner"):
        assert column_of(page, name)["facts"][0]["plus_minus"] == 0.0123
    for name in ("age", "income", "moved in", "school", "grade"):
        now, then = (column_of(each, name) for each in (page, before))
        assert now["facts"][0]["plus_minus"] < 0.5 * then["facts"][0]["plus_minus"]
        if "band" in now["spread"]:
            pairs = zip(now["spread"]["band"]["steps"], then["spread"]["band"]["steps"], strict=True)
            assert all(a["least"] >= b["least"] and a["largest"] <= b["largest"] for a, b in pairs)
            widths = [step["largest"] - step["least"] for step in now["spread"]["band"]["steps"]]
            assert max(widths) < 2 * 0.0123 + 0.05  # a step may cover several values


def test_bounds_of_1_on_shares_say_nothing() -> None:
    stated = document(EVERY_KIND)
    stated["certificate"]["statistics"] = dict.fromkeys(stated["certificate"]["statistics"], 1.0)
    page, before = view(stated, EVERY_KIND, table(EVERY_KIND)), without_statistics()
    assert "says nothing" in page["promise"]["shares"]["sentence"]
    assert page["promise"]["shares"]["number"] is None
    assert page["promise"]["shares"]["figures"] == []
    for now, then in zip(page["columns"]["drawn"], before["columns"]["drawn"], strict=True):
        if now["spread"]["form"] == "bars":
            assert now["spread"]["bars"] == then["spread"]["bars"]


def test_the_data_package_lists_the_labels_of_every_kind() -> None:
    said = describe_package(WOVEN, record(document(WOVEN)), parquet="a", csv="b")["resources"][0]["schema"]["fields"]
    fields = {field["name"]: field for field in said}
    assert fields["trade"]["type"] == fields["place"]["type"] == "string"
    assert fields["trade"]["constraints"] == {"required": False, "enum": ["a", "b", "c", "d", "other"]}
    assert fields["place"]["constraints"] == {"required": True, "enum": ["here", "there"]}
    assert fields["rooms"]["constraints"] == {"required": False, "minimum": 0, "maximum": 20}


def test_means_and_shares_are_those_of_the_table() -> None:
    rows = table(EVERY_KIND)
    page = seen()
    assert column_of(page, "age")["facts"][0]["value"] == numerals.figure(rows["age"].mean())
    assert column_of(page, "income")["facts"][0]["value"] == numerals.figure(rows["income"].mean())
    assert column_of(page, "owner")["facts"][0]["value"] == numerals.share(int(rows["owner"].filled(False).sum()), 400)
    missing = int(np.ma.count_masked(rows["income"]))
    assert column_of(page, "income")["spread"]["missing"]["count"] == missing > 0


@pytest.mark.parametrize(
    ("schema", "name"), [(schema, name) for schema in (EVERY_KIND, WOVEN) for name in schema.names]
)
def test_pictures_hold_every_row_once(schema: Schema, name: str) -> None:
    spread = column_of(seen(schema), name)["spread"]
    marks = spread["bars"] if spread["form"] == "bars" else spread["bins"]
    apart = spread["missing"]["count"] if "missing" in spread else 0
    assert sum(mark["count"] for mark in marks) + apart == 400
    if spread["form"] == "histogram":
        assert spread["bins"][0]["from"] == 0
        assert spread["bins"][-1]["to"] == 1
        assert all(a["to"] == b["from"] for a, b in zip(spread["bins"], spread["bins"][1:], strict=False))


def test_a_column_takes_the_smallest_bound_that_covers_it() -> None:
    stated = document(EVERY_KIND, sparsity=1)
    stated["certificate"]["subsets"][0]["bound"] = 0.004
    page = view(stated, EVERY_KIND, table(EVERY_KIND))
    assert column_of(page, "age")["bound"] == 0.004
    assert column_of(page, "income")["bound"] == stated["certificate"]["single_column_bound"]


def test_of_columns_outside_the_subsets_nothing_is_promised() -> None:
    page = seen(subsets=[["age", "income"], ["age", "region"]])
    assert column_of(page, "grade")["bound"] == 1.0
    assert "one of the named subsets" in page["promise"]["statement"]


def test_a_vacuous_bound_says_nothing() -> None:
    stated = document(EVERY_KIND)
    stated["certificate"] |= {"bound": 1.0, "single_column_bound": 1.0}
    assert "says nothing" in view(stated, EVERY_KIND, table(EVERY_KIND))["promise"]["in_plain_words"][0]


def test_the_mean_of_present_values_is_covered() -> None:
    """Against tables at a known distance: |difference of means| is at most what is printed, and comes near it."""
    rng = np.random.default_rng(3)
    column = Ordered(name="x", kind="integer", low=0, high=10, missing=True)
    places = np.append(np.arange(11.0), np.nan)
    tightest = 0.0
    for _ in range(25):
        theirs = rng.multinomial(60, rng.dirichlet(np.full(12, 0.4)))
        ours = theirs.copy()
        for _ in range(rng.integers(1, 6)):  # a few rows elsewhere
            a, b = rng.choice(np.flatnonzero(ours)), rng.integers(12)
            ours[a] -= 1
            ours[b] += 1
        if not ours[:11].sum() or not theirs[:11].sum():
            continue
        rows = np.repeat(places, theirs)
        values = np.ma.masked_array(np.nan_to_num(rows).astype(int), mask=np.isnan(rows))
        fact = column_view(column, values, _distance(ours, theirs))["facts"][0]
        means = [(c[:11] @ places[:11]) / c[:11].sum() for c in (ours, theirs)]
        gap = abs(means[0] - means[1])
        assert gap <= fact["plus_minus"] + 1e-9
        tightest = max(tightest, gap / fact["plus_minus"] if fact["plus_minus"] else 0.0)
    assert tightest > 0.8


def _distance(first: np.ndarray, second: np.ndarray) -> float:
    """W1 on ten steps of 1/10 and a missing value, as the linear program of transport."""
    cost = np.ones((12, 12))
    cost[:11, :11] = np.abs(np.subtract.outer(np.arange(11), np.arange(11))) / 10
    cost[11, 11] = 0
    marginals = np.vstack([np.kron(np.eye(12), np.ones(12)), np.kron(np.ones(12), np.eye(12))])
    answer = linprog(cost.ravel(), A_eq=marginals, b_eq=np.concatenate([first, second]))
    return float(answer.fun) / first.sum()


def test_the_last_bits_of_numbers_do_not_matter() -> None:
    """A release that is loaded has been cleaned and decoded once more than when it was saved."""
    column = Ordered(name="x", kind="number", low=0.1, high=7.3)
    lattice = column.decode(np.repeat(np.arange(257) / 256, 3))
    shaken = np.ma.masked_array(np.clip(np.nextafter(lattice.data, 9.0), 0.1, 7.3), mask=lattice.mask)
    assert not np.array_equal(lattice, shaken)
    first, second = column_view(column, lattice, 0.1), column_view(column, shaken, 0.1)
    assert [b["count"] for b in first["spread"]["bins"]] == [b["count"] for b in second["spread"]["bins"]]
    assert first["facts"] == second["facts"]
    assert first["numbers"] == second["numbers"]
    assert first["spread"]["band"] == second["spread"]["band"]


@pytest.mark.parametrize(
    "column",
    [
        Ordered(name="x", kind="integer", low=0, high=1),
        Ordered(name="x", kind="integer", low=-(2**40), high=0),
        Ordered(name="x", kind="number", low=-1e300, high=1e300),
        Ordered(name="x", kind="number", low=0.0, high=1e-9, missing=True),
        Ordered(name="x", kind="date", low=0, high=1),
        Ordered(name="x", kind="date", low=0, high=100),
        Ordered(name="x", kind="date", low=-719_162, high=2_932_896),
        *(Ordered(name="x", kind="datetime", low=-7, high=high) for high in (0, 50, 9_000, 10**5, 10**7, 10**9)),
        Ordered(name="x", kind="datetime", low=-62_135_596_800, high=253_402_300_799, missing=True),
        Ordered(name="x", kind="ordinal", low=0, high=0, values=("only",)),
        Category(name="x", values=("only",)),
        Category(name="x", values=("", "a"), missing=True),
    ],
)
def test_odd_columns_have_a_picture(column: Ordered | Category) -> None:
    schema = Schema(columns=(column,))
    spread = column_of(seen(schema, sparsity=1), "x")["spread"]
    assert len(spread.get("bins", spread.get("bars"))) <= 42


def test_a_column_of_missing_values_only() -> None:
    column = Ordered(name="x", kind="number", low=0.0, high=1.0, missing=True)
    shown = column_view(column, np.ma.masked_all(5), 0.1)
    assert shown["facts"][0]["value"] == "no value is present"
    assert shown["spread"]["missing"]["share"] == 1


def test_numbers_off_the_lattice_do_not_hang_on_last_bits_either() -> None:
    """Places are rounded to a grid, and how far rows were moved to it is rounded as well."""
    column = Ordered(name="x", kind="number", low=0.1, high=7.3)
    values = column.decode(np.random.default_rng(4).random(5000))
    shaken = np.ma.masked_array(np.clip(np.nextafter(values.data, 9.0), 0.1, 7.3), mask=values.mask)
    first, second = column_view(column, values, 0.1), column_view(column, shaken, 0.1)
    assert first["numbers"]["moved"] > 0
    assert first["numbers"] == second["numbers"]


@pytest.mark.parametrize(("entry", "said"), [(None, "not charged to a ledger"), ("ab12" * 16, "entry ab12ab12ab12…")])
def test_the_ledger_is_named(entry: str | None, said: str) -> None:
    stated = document(EVERY_KIND) | {"ledger": entry}
    assert said in view(stated, EVERY_KIND, table(EVERY_KIND))["privacy"]["ledger_text"]


def test_rules_weights_trees_and_workloads_are_said() -> None:
    assert seen()["rules"] == ""
    ruled = replace(EVERY_KIND, rules=(Rule(impossible='age < 20 and school = "high"'),))
    assert "one rule" in view(document(ruled), ruled, table(ruled))["rules"]
    scaled = seen(WOVEN)["promise"]["scaled"]
    for name in ("“rooms” to 0.25", "Codes of “trade”", "Labels of “place”"):
        assert name in scaled
    named = seen(subsets=[["age", "income"], ["age", "region"]])
    assert "one of the named subsets" in named["promise"]["statement"]
    assert any("workload" in made["what"] for made in named["made_with"])


def test_what_can_and_cannot_be_verified_is_what_verify_says(tmp_path: Path) -> None:
    small = Schema(columns=(Ordered(name="x", kind="integer", low=0, high=3), Category(name="y", values=("a", "b"))))
    rows = pl.DataFrame({"x": [0, 1, 2, 3] * 10, "y": ["a", "b"] * 20})
    made = certsynth.release(rows, small, epsilon=1, resolution=2, mechanism="identity", seed=1)
    made.save(tmp_path / "release")
    loaded = certsynth.Release.load(tmp_path / "release")
    checks = loaded.verify()
    assert all(check["ok"] for check in checks), [check for check in checks if not check["ok"]]
    assert [check["name"] for check in checks] == list(CHECKS)
    said = view(loaded.document, loaded.schema, loaded.table)["verify"]
    assert said["cannot"] == [each for each in loaded.cannot_verify() if not each.startswith("who made it")]
    assert len(said["can"]) == len(checks)
    assert "--key" in str(said["commands"])
    assert said["answer"] == 'certsynth answer DIR "mean(x)"'


@pytest.mark.slow
def test_wide_tables_are_cut_and_say_so() -> None:
    page = seen(wide(MAX_DRAWN_COLUMNS + 5))
    assert len(page["columns"]["drawn"]) == MAX_DRAWN_COLUMNS
    assert len(page["columns"]["listed"]) == 5
    assert len(page["subsets"]["rows"]) == MAX_LISTED_SUBSETS
    assert "2,080" in page["subsets"]["caption"]


def test_every_part_of_the_budget_is_told_in_words():
    """But for the choice among tables, whose name says it and has a number in it."""
    measured = {measurement_name(ways, sparsity) for sparsity in (1, 2, 3) for ways in range(1, sparsity + 1)}
    assert set(words.SPENT) == measured | {
        ROW_COUNT,
        RESOLUTION_CHOICE,
        PAIR_SCORES,
        MEAN_DISPLACEMENT,
        ERRORS_OF_ROWS,
        DROPPED_ROWS,
    }


def test_parts_of_the_budget_can_be_told_apart():
    parts = [{"amount": "0.1", "part": 0.1} for _ in range(charts.BUDGET_ROLES)]
    pieces = charts.budget({"sign": "ε", "spent": parts})
    assert len({piece["role"] for piece in pieces}) == charts.BUDGET_ROLES
    style = (Path(charts.__file__).parent / "style.css").read_text(encoding="utf-8")
    fills = {line.split("{")[1] for line in style.splitlines() if re.match(r"(\.rows, )?\.part\d", line)}
    assert len(fills) == charts.BUDGET_ROLES
