"""Releases with derived columns: they cost nothing, follow their sources, and are certified like all others."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from forging import copied

from certsynth import CertifiedSynthesizer, Release, Schema, certify, evaluate, plan, release
from certsynth.algorithm.request import measured_subsets
from certsynth.artefact.document import to_json
from certsynth.artefact.table import write_table
from certsynth.domain import Rule
from certsynth.errors import InputError
from small import DERIVED, NATIVE, FixedOutput, NoNoise, derived, emitted, native

QUICK: dict[str, Any] = {"epsilon": 3, "resolution": 3, "mechanism": "identity", "seed": 4}
NAMES = {"kind", "sum"}
WRONG = Schema.parse(DERIVED.to_toml().replace('x = "q", y = "p"', 'x = "p", y = "q"'))
"""The schema with the labels of its map swapped."""

KINDS: dict[str, dict[str, Any]] = {
    "pairs": {},
    "triples": {"sparsity": 3},
    "single columns": {"sparsity": 1},
    "hidden rows": {"neighbours": "add-remove", "rows": 150},
    "with δ": {"delta": "1e-6"},
    "candidates": {"candidates": 2},
    "public rows": {"public": native(50, seed=9)},
    "programs": {"projection": "full-grid"},
    "the paper with a direct certificate": {"preset": "paper", "mechanism": None, "certificate_share": "0.1"},
    "low-dimensional": {"mechanism": "low-dimensional", "resolution": None, "columns": ["kind", "c"]},
    "low-dimensional, hidden rows": {
        "mechanism": "low-dimensional-l1",
        "resolution": None,
        "columns": ["kind", "c"],
        "neighbours": "add-remove",
        "rows": 150,
    },
    "workload": {"subsets": [["sum", "c"], ["a", "b"], ["kind"]]},
    "workload without a measured pair": {"subsets": [["kind", "c"], ["kind", "a"]]},
    "one source": {"columns": ["kind", "c"]},
}


def follows(row: dict[str, Any]) -> bool:
    """Whether the derived values of a row are what the schema says, in plain Python."""
    fine = "kind" not in row or row["kind"] == {"x": "q", "y": "p"}[row["c"]]
    if "sum" in row:
        fine &= row["sum"] == (None if row["b"] is None else row["a"] + row["b"])
    return fine


def measured_names(made: Release) -> set[str]:
    """The columns in any measured table."""
    names = made.schema.measured.names
    return {names[j] for m in made.measurements for subset in m.marginals.subsets for j in subset}


def quick_half(kinds: Iterable[str]) -> list[Any]:
    """Every second kind; `make test-all` takes the others, too."""
    return [pytest.param(kind, marks=[pytest.mark.slow] if i % 2 else []) for i, kind in enumerate(kinds)]


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize("kind", quick_half(KINDS))
def test_a_release_obeys_and_verifies_and_measures_no_derived_column(kind: str, tmp_path: Path):
    release(derived(200), DERIVED, out=tmp_path / "out", **{**QUICK, **KINDS[kind]})
    made = Release.load(tmp_path / "out")
    checks = made.verify()
    assert all(check["ok"] for check in checks), checks
    assert all(map(follows, emitted(made).to_dicts()))
    assert not measured_names(made) & NAMES
    certificate = made.record.certificate
    assert certificate.kind == "direct"
    plugged = certificate.plug_in.tightest
    assert not plugged or not any(NAMES & set(subset.columns) for subset in plugged.subsets)
    covered = {name for subset in certificate.subsets for name in subset.columns}
    assert covered == set(made.schema.names)
    stated = json.loads((tmp_path / "out" / "certificate.json").read_text())["table"]["derived"]
    assert {each["column"]: each["sources"] for each in stated}["kind"] == ["c"]


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_derived_columns_cost_nothing_and_change_nothing(neighbours: str):
    """With the same outputs of mechanisms, the measured columns are those of a release without the derived ones."""
    asked: dict[str, Any] = {**QUICK, "neighbours": neighbours, "rows": 100}
    whole = release(derived(200), DERIVED, noise=FixedOutput(), **asked)
    part = release(native(200), NATIVE, noise=FixedOutput(), **asked)
    assert emitted(whole).select(NATIVE.names).equals(emitted(part))
    spent = [[(s.on, s.epsilon, s.scale) for s in made.record.privacy.spent] for made in (whole, part)]
    assert spent[0] == spent[1]
    assert whole.record.privacy.epsilon == part.record.privacy.epsilon
    assert whole.record.release.measured == part.record.release.measured


def test_a_pair_of_source_and_derived_column_is_as_good_as_the_source():
    data = derived(200)
    made = release(data, DERIVED, **QUICK)
    alone, pair = (evaluate(data, emitted(made), DERIVED, subsets=[names]) for names in (["c"], ["c", "kind"]))
    assert pair.upper == pytest.approx(alone.upper, abs=1e-9)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_a_wrong_map_is_seen_in_the_certificate(neighbours: str):
    """Seven of ten rows have the label y: of the pair of c and kind no row is where the private ones are."""
    asked: dict[str, Any] = {**QUICK, "neighbours": neighbours, "rows": 300, "noise": NoNoise()}
    right, wrong = (release(derived(300), schema, **asked).record.certificate for schema in (DERIVED, WRONG))
    assert right.direct is not None
    assert wrong.direct is not None
    assert right.direct.terms.measured_loss < 0.1
    assert wrong.direct.terms.measured_loss > 0.95
    assert right.plug_in == wrong.plug_in, "the plug-in certificate does not speak of derived columns"


def test_rows_that_break_an_expression_are_seen_in_the_certificate():
    data = derived(300).with_columns(sum=pl.lit(0))
    made = release(data, DERIVED, noise=NoNoise(), **QUICK)
    assert made.certificate.bound > 0.2


def test_rules_hold_before_columns_are_derived():
    ruled = replace(DERIVED, rules=(Rule(impossible="a > 3 and c = 'x'"),))
    made = release(derived(200), ruled, **QUICK)
    rows = emitted(made).to_dicts()
    assert not any(row["a"] > 3 and row["kind"] == "q" for row in rows)
    assert all(map(follows, rows))


def test_a_folder_with_other_derived_values_is_refused(tmp_path: Path):
    made = release(derived(100), DERIVED, out=tmp_path / "out", **QUICK)
    table = dict(made.table)
    table["kind"] = table["kind"][::-1].copy()
    write_table(table, parquet=tmp_path / "other.parquet", csv=tmp_path / "other.csv")
    forged = {
        "synthetic_parquet": (tmp_path / "other.parquet").read_bytes(),
        "synthetic_csv": (tmp_path / "other.csv").read_bytes(),
    }
    checks = {c["name"]: c for c in copied(made, tmp_path / "rows", **forged)}
    assert checks["rows"]["detail"] == "synthetic.parquet: column 'kind' is not derived as the schema says"
    checks = {c["name"]: c for c in copied(made, tmp_path / "map", schema_toml=WRONG.to_toml().encode())}
    assert not checks["rows"]["ok"]
    plain = Schema(columns=DERIVED.columns)
    with pytest.raises(InputError):  # its measurements lack two columns
        copied(made, tmp_path / "plain", schema_toml=plain.to_toml().encode())


def test_a_certificate_that_claims_more_columns_at_once_is_refused(tmp_path: Path):
    """Derived columns are in no measurement, so their subsets are checked against what was asked for."""
    made = release(derived(100), DERIVED, out=tmp_path / "out", **QUICK)
    document = made.document
    document["release"]["sparsity"] = 3
    bound = document["certificate"]["direct"]["bound"]
    triples = [list(names) for names in itertools.combinations(DERIVED.names, 3)]
    document["certificate"]["subsets"] = [{"columns": names, "bound": bound} for names in triples]
    checks = {c["name"]: c for c in copied(made, tmp_path / "copy", certificate_json=to_json(document))}
    assert checks["bound"]["ok"], "control: the bounds fit each other"
    assert checks["method"]["detail"] == "the subsets of columns are not those that were asked for"


@pytest.mark.parametrize("form", ["csv", "parquet", "lazy frame"])
def test_every_reader_counts_the_measured_columns(form: str, tmp_path: Path):
    data = derived(150)
    data.write_csv(tmp_path / "data.csv")
    data.write_parquet(tmp_path / "data.parquet")
    given = {"csv": tmp_path / "data.csv", "parquet": tmp_path / "data.parquet", "lazy frame": data.lazy()}[form]
    made = release(given, DERIVED, noise=NoNoise(), **QUICK)
    again = release(data, DERIVED, noise=NoNoise(), **QUICK)
    assert emitted(made).equals(emitted(again))
    assert made.certificate == again.certificate


def test_a_table_without_the_derived_column_is_refused():
    with pytest.raises(InputError, match="kind"):
        release(native(50), DERIVED, **QUICK)


# ---------------------------------------------------------------------------------------------------- what is asked for

REFUSED = {
    "no direct certificate": (
        {"certificate_share": 0},
        "column 'kind' is derived, and only the direct certificate covers derived columns: let `certificate_share` be "
        "above 0, or remove the entry derived from the schema.",
    ),
    "the paper": ({"preset": "paper", "mechanism": None}, "column 'kind' is derived, and only the direct certificate"),
    "columns": (
        {"columns": ["kind", "a"]},
        "'kind' is derived from 'c', which is left out: add 'c' to `columns`, or leave 'kind' out.",
    ),
    "workload": (
        {"subsets": [["sum", "a"], ["c"]]},
        "'sum' is derived from 'b', which is left out: add 'b' to a subset of the workload, or leave 'sum' out.",
    ),
    "columns and workload": (
        {"columns": ["kind", "a", "c"], "subsets": [["kind", "a"]]},
        "'kind' is derived from 'c', which is left out: add 'c' to a subset of the workload, or leave 'kind' out.",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses(case: str):
    asked, expected = REFUSED[case]
    with pytest.raises(InputError) as caught:
        release(Path("not-opened.csv"), DERIVED, **{**QUICK, **asked})
    assert str(caught.value).startswith(expected)


def test_a_workload_measures_the_columns_that_determine_it():
    assert measured_subsets(DERIVED, [["kind", "a"], ["a", "c"], ["kind", "c"], ["sum", "c"]]) == [
        ["a", "c"],
        ["c"],
        ["a", "b"],
        ["b", "c"],
    ]


def test_a_workload_with_too_many_sources_is_refused():
    wide = [f'[[column]]\nname = "x{i}"\nkind = "integer"\nlow = 0\nhigh = 1\n' for i in range(60)]
    total = '[[column]]\nname = "total"\nkind = "integer"\nlow = 0\nhigh = 60\n'
    total += f'derived = {{ expression = "{" + ".join(f"x{i}" for i in range(60))}" }}\n'
    with pytest.raises(InputError, match="depend on 60 others, too many to measure together: name fewer columns"):
        measured_subsets(Schema.parse("".join([*wide, total])), [["total", "x0", "x1"]])


def test_certify_and_evaluate_need_no_sources():
    data = derived(100)
    found = certify(data, derived(100), DERIVED, epsilon=3, columns=["kind", "a"], noise=NoNoise())
    assert found.bound < 0.1
    assert evaluate(data, data, DERIVED, columns=["kind", "a"]).upper == 0


@pytest.mark.parametrize("mechanism", ["low-dimensional", pytest.param("identity", marks=pytest.mark.slow)])
def test_a_plan_is_of_all_columns(mechanism: str):
    asked: dict[str, Any] = {"rows": 200, "epsilon": 3, "mechanism": mechanism}
    found = plan(DERIVED, columns=["kind", "c"], **asked)
    assert (found.columns, found.sparsity, found.workload) == (2, 2, None)
    part = plan(NATIVE, columns=["c"], **asked)
    assert found.choice.predicted_bound == part.choice.predicted_bound, "nothing more is measured"
    assert found.choice.seconds >= part.choice.seconds
    if mechanism == "identity":  # the other takes no workload
        named = plan(DERIVED, subsets=[["kind"], ["c"]], **asked)
        assert (named.columns, named.workload) == (2, [["kind"], ["c"]])


def test_samples_have_derived_columns_and_a_bound_that_covers_them():
    synthesizer = CertifiedSynthesizer(DERIVED, public=native(50, seed=9), **QUICK).fit(derived(200))
    assert all(map(follows, synthesizer.sample(frame="polars").to_dicts()))
    made = synthesizer.sample(80, seed=1, frame="polars")
    assert all(map(follows, made.table.to_dicts()))
    assert list(made.table.columns) == list(DERIVED.names)
    assert made.best is made.through_release
    assert not any(NAMES & set(columns) for columns, _ in made.certificate.subsets)
    assert made.bound >= synthesizer.certificate_.bound


def test_answers_about_derived_columns_use_the_bound_that_covers_them():
    made = release(derived(300), DERIVED, **{**QUICK, "epsilon": 50})
    found = made.answer("fraction(kind = 'p')")
    true = derived(300)["kind"].eq("p").mean()
    assert found.low <= true <= found.high


def test_the_report_and_the_descriptions_say_what_is_derived(tmp_path: Path):
    release(derived(100), DERIVED, out=tmp_path / "out", **QUICK)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "kind from c; sum from a and b" in page
    assert "The plug-in certificate covers measured columns only" in page
    assert "derived from a and b" in (tmp_path / "out" / "croissant.json").read_text()
