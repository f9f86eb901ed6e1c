"""Figures that the documents quote, on real survey tables from the folder CERTSYNTH_DATA, where there is one.

Noise comes from a seed: no figure is missed by chance.
"""

from __future__ import annotations

import os
from pathlib import Path

import duckdb
import numpy as np
import pytest

from certsynth import Release, Schema, certify, evaluate, release
from certsynth.domain import Category, Ordered
from certsynth.domain.derivation import Derivation
from small import SeededNoise

DATA = Path(os.environ.get("CERTSYNTH_DATA", Path(__file__).parents[1] / "../shared/data"))
CALIFORNIA, ALABAMA = DATA / "acs_income_ca2018.parquet", DATA / "acs_income_al2018.parquet"
SCHEMA = Schema(
    tuple(
        Ordered(name=name, low=low, high=high)
        for name, low, high in (
            ("AGEP", 17, 99),
            ("SCHL", 1, 24),
            ("OCCP", 10, 9920),
            ("POBP", 1, 554),
            ("WKHP", 1, 99),
        )
    )
)

pytestmark = pytest.mark.skipif(
    not CALIFORNIA.exists(), reason="the survey tables are not in the folder that CERTSYNTH_DATA names"
)


@pytest.fixture(scope="module")
def paper(tmp_path_factory) -> Path:
    """The paper's algorithm on California with 4,000 public rows of Alabama."""
    here = tmp_path_factory.mktemp("survey")
    sample = "SELECT * FROM read_parquet($from) USING SAMPLE reservoir(4000 ROWS) REPEATABLE (1)"
    public = here / "public.parquet"
    duckdb.execute(f"COPY ({sample}) TO $to (FORMAT parquet)", {"from": str(ALABAMA), "to": str(public)})
    release(
        CALIFORNIA,
        SCHEMA,
        epsilon=1,
        resolution=16,
        preset="paper",
        public=public,
        out=here / "out",
        noise=SeededNoise(),
    )
    return here / "out"


def test_the_papers_algorithm_gives_the_papers_certificates(paper):

    plug_in = Release.load(paper).certificate.details["plug_in"]
    assert 0.065 < plug_in["transport"]["bound"] < 0.095
    assert 0.13 < plug_in["path"]["bound"] < 0.19
    true = evaluate(CALIFORNIA, paper / "synthetic.parquet", SCHEMA)
    assert 0.02 < true.value < 0.045
    assert true.upper < plug_in["transport"]["bound"] < plug_in["path"]["bound"]
    assert true.upper - true.lower <= 0.006


@pytest.mark.slow
def test_means_have_error_bars_of_about_half_a_percent_of_the_range(tmp_path):
    """The bound for single columns varies from release to release, with the noise that it is measured with."""
    asked = {"confidence": "0.999999", "resolution": 16, "mechanism": "identity"}
    made = release(CALIFORNIA, SCHEMA, epsilon=1, noise=SeededNoise(), **asked)
    raw = duckdb.execute("SELECT * FROM read_parquet($from)", {"from": str(CALIFORNIA)}).fetchnumpy()
    usual = made.document["certificate"]["single_column"]["terms"]
    for column in SCHEMA:
        true, reach = float(np.mean(column.clean(raw[column.name]))) + column.low, column.high - column.low
        found = made.answer(f"mean({column.name})")
        assert found.low <= true <= found.high
        assert found.high - found.low <= 2 * made.certificate.single_column_bound * reach * 1.000001
        assert abs(found.estimate - true) <= 0.006 * reach
    assert usual["slack"] < 0.03


@pytest.mark.slow
def test_the_error_bars_of_means_are_within_one_percent_of_the_range():
    """At the default confidence; about 0.6 % on average."""
    halves = []
    for seed in range(5):
        made = release(CALIFORNIA, SCHEMA, epsilon=1, seed=seed, noise=SeededNoise(seed))
        for column in SCHEMA:
            found = made.answer(f"mean({column.name})")
            halves.append((found.high - found.low) / 2 / (column.high - column.low))
    assert max(halves) < 0.012
    assert sum(halves) / len(halves) < 0.009


@pytest.mark.slow
def test_a_finer_lattice_halves_the_gap():
    coarse, fine = (evaluate(CALIFORNIA, ALABAMA, SCHEMA, lattice=lattice) for lattice in (256, 512))
    assert coarse.upper - coarse.lower <= 0.006
    assert fine.upper - fine.lower <= 0.003


@pytest.mark.slow
def test_certify_comes_within_two_per_cent_of_the_truth():
    true = evaluate(CALIFORNIA, ALABAMA, SCHEMA)
    made = certify(CALIFORNIA, ALABAMA, SCHEMA, epsilon="0.1", noise=SeededNoise())
    assert made.bound == pytest.approx(true.upper, rel=0.02)
    assert made.lower == pytest.approx(true.lower, rel=0.02)


@pytest.mark.slow
def test_the_bound_of_a_release_is_close_to_its_true_loss(tmp_path):
    """At most 5/(n·ε_s) above the true upper value, on average over five releases."""
    gaps = []
    for run in range(5):
        out = tmp_path / str(run)
        made = release(CALIFORNIA, SCHEMA, epsilon=1, resolution=8, out=out, noise=SeededNoise(run))
        true = evaluate(CALIFORNIA, tmp_path / str(run) / "synthetic.parquet", SCHEMA)
        gaps.append(made.certificate.bound - true.upper)
    assert sum(gaps) / len(gaps) <= 5 / (78_266 * 0.025)


ADULT = DATA / "adult.parquet"


@pytest.mark.slow
@pytest.mark.skipif(not ADULT.exists(), reason="adult.parquet is not in the folder that CERTSYNTH_DATA names")
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_a_derived_column_of_adult_is_free_and_a_wrong_map_is_seen(neighbours, tmp_path):
    """The number of an education level follows from its label, which is added to the table by its code."""
    table = tmp_path / "adult.parquet"
    query = """SELECT *, 'e' || "education-num" AS education FROM read_parquet($from) USING SAMPLE reservoir(20000 ROWS)
        REPEATABLE (1)"""
    duckdb.execute(f"COPY ({query}) TO $to (FORMAT parquet)", {"from": str(ADULT), "to": str(table)})
    number = Ordered(name="education-num", low=0, high=15)
    labels = tuple(f"e{i}" for i in range(16))
    others = (
        Category(name="education", values=labels),
        Category(name="occupation", values=tuple(map(str, range(15)))),
        Category(name="marital-status", values=tuple(map(str, range(7)))),
    )
    asked = {
        "epsilon": 1,
        "neighbours": neighbours,
        "rows": 20_000,
        "seed": 2,
        "resolution": 16,
        "mechanism": "identity",
    }

    def derived(order):
        pairs = tuple(zip(labels, map(str, order), strict=True))
        each = Derivation(column="education-num", source="education", pairs=pairs)
        return Schema((*others, number), derivations=(each,))

    right = release(table, derived(range(16)), noise=SeededNoise(), **asked)
    without = release(table, Schema(others), noise=SeededNoise(), **asked)
    wrong = release(table, derived(range(15, -1, -1)), noise=SeededNoise(), **asked)
    for name in ("education", "occupation", "marital-status"):
        assert right.table[name].tolist() == without.table[name].tolist(), "nothing is spent on the derived column"
    assert [step.scale for step in right.record.privacy.spent[:-2]] == [
        step.scale for step in without.record.privacy.spent[:-2]
    ]
    alone, pair = (
        evaluate(table, right.to_polars(), right.schema, subsets=[names])
        for names in (["education"], ["education", "education-num"])
    )
    assert pair.upper == pytest.approx(alone.upper, abs=1e-9)
    assert right.certificate.bound == pytest.approx(without.certificate.bound, abs=0.01)
    assert wrong.certificate.bound > 0.25 > 2 * right.certificate.bound
