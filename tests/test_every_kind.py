"""Whole releases of a table with every kind of column, weights and a rule, whatever is asked for."""

from __future__ import annotations

import datetime as dt
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

from certsynth import Release, Schema, certify, evaluate, release
from certsynth.algorithm import settings
from certsynth.artefact.table import cleaned_table, decoded_table
from certsynth.domain import Category, Column, Ordered
from certsynth.domain.schema import describe
from certsynth.errors import SchemaError
from certsynth.mechanisms import Neighbours
from certsynth.mechanisms.registry import TABLE_STRATEGIES
from small import EVERY_KIND, SURE, SeededNoise, emitted, workers

pytestmark = pytest.mark.quick_cases(4)

FEW = ["income", "job", "colour"]
SOME = ["age", "hired", *FEW]

PRIVATE = workers(600)
TYPES = {"integer": "BIGINT", "number": "DOUBLE", "date": "DATE", "datetime": "TIMESTAMP", "boolean": "BOOLEAN"}

RING = {"subsets": [list(pair) for pair in itertools.pairwise([*EVERY_KIND.names, EVERY_KIND.names[0]])]}
"""Every column beside two others."""

EVERY_COLUMN: dict[str, dict[str, Any]] = {
    "by default": {},
    "tour": {"mechanism": "haar-tour", **RING},
    "quad tree": {"mechanism": "quad-tree", **RING},
    "single columns": {"sparsity": 1, "mechanism": "identity"},
    "delta": {"delta": "1e-6", "mechanism": "identity", **RING},
    "hidden rows": {"neighbours": "add-remove", "rows": 300, "mechanism": "identity", "epsilon": 40, **RING},
    "workload": {
        "subsets": [["age", "hired"], ["job", "colour", "member"], ["region"], ["income", "job"], ["grade"], ["shift"]],
        "mechanism": "identity",
    },
}
"""Releases of all columns; the rule is about two of them."""

FEW_COLUMNS: dict[str, dict[str, Any]] = {
    "no direct certificate": {"certificate_share": 0, "epsilon": 100, "confidence": "0.999"},
    "the paper": {"preset": "paper", "epsilon": 100, "confidence": "0.999"},
    "drawn points": {"projection": "drawn"},
    "full grid": {"projection": "full-grid", "resolution": 2},
    "triples": {"sparsity": 3},
    "low-dimensional": {"mechanism": "low-dimensional", "resolution": 9},
    "low-dimensional, the paper's, hidden rows": {
        "mechanism": "low-dimensional-l1",
        "neighbours": "add-remove",
        "rows": 300,
        "resolution": None,
        "confidence": SURE,  # the grid is chosen at random, whatever the seed of the noise
    },
    "triples, hidden rows": {"sparsity": 3, "neighbours": "add-remove", "rows": 300, "mechanism": "haar-tour"},
}
VARIANTS = EVERY_COLUMN | {name: {"columns": FEW} | asked for name, asked in FEW_COLUMNS.items()}
SWEPT = [
    pytest.param(
        {"mechanism": mechanism, "neighbours": neighbours, "projection": projection, "rows": 200, "columns": SOME}
        | budget
        | share,
        id=f"{mechanism}, {neighbours}, {projection}, {budget}, {share}",
        marks=pytest.mark.slow,
    )
    for mechanism in TABLE_STRATEGIES
    for neighbours in Neighbours
    for projection in ("particles", "drawn")
    for budget in ({"epsilon": 100}, {"rho": 100})
    for share in ({}, {"certificate_share": 0, "confidence": "0.998"})
]


@pytest.fixture(scope="module", params=[*(pytest.param(asked, id=name) for name, asked in VARIANTS.items()), *SWEPT])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Release]:
    """A release in its folder, with noise from a seed, so that no certificate fails by chance.

    On all columns the plug-in certificate, which is slow, gets too few draws, also where it is verified.
    """
    asked = {"resolution": 3, "confidence": "0.9999", "seed": 5, "noise": SeededNoise()} | request.param
    asked |= {} if "rho" in asked else {"epsilon": asked.get("epsilon", 8)}
    with pytest.MonkeyPatch.context() as patch:
        if "columns" not in asked:
            patch.setattr(settings, "MAX_DRAWS", 200)
        yield release(PRIVATE, EVERY_KIND, out=tmp_path_factory.mktemp("every") / "out", **asked)


def scope(made: Release) -> dict[str, Any]:
    """What the certificate of a release is about, as `evaluate` and `certify` are told."""
    how = made.document["release"]
    return {"sparsity": how["sparsity"]} if how["workload"] is None else {"subsets": how["workload"]}


def allowed(column: Column, value: Any) -> bool:
    """Whether the schema has the value, said once more in plain Python."""
    if value is None:
        return column.missing
    if isinstance(column, Category):
        return value in ((False, True) if column.kind == "boolean" else column.labels)
    assert isinstance(column, Ordered)
    if column.kind == "ordinal":
        return value in column.values
    if column.kind == "date":
        return dt.date(2000, 1, 1) <= value <= dt.date(2019, 12, 31)
    if column.kind == "datetime":
        inside = dt.datetime(2019, 12, 30, 22) <= value <= dt.datetime(2020, 1, 5, 21, 45)
        return inside and value.minute % 15 == 0 == value.second
    return bool(column.low <= value <= column.high)


def test_rows_are_allowed_and_the_same_wherever_they_are_read(made: Release) -> None:
    assert made.folder is not None
    rows = emitted(made)
    assert rows.height == made.document["release"]["rows"]
    for column in made.schema:
        assert all(allowed(column, value) for value in rows[column.name]), column.name
    if {"age", "hired"} <= set(rows.columns):
        assert rows.filter((pl.col("age") < 16) & pl.col("hired").is_not_null()).is_empty()
    parquet, csv = (str(made.folder / f"synthetic.{kind}") for kind in ("parquet", "csv"))
    assert pl.read_parquet(parquet).equals(rows)
    relation = duckdb.read_parquet(parquet)
    kinds = [describe(column)["kind"] for column in made.schema]
    assert relation.types == [TYPES.get(kind, "VARCHAR") for kind in kinds]
    assert relation.fetchall() == rows.rows()
    assert (
        duckdb.read_csv(csv, dtype=dict(zip(relation.columns, relation.types, strict=True))).fetchall() == rows.rows()
    )


def test_what_is_certified_is_what_is_read(made: Release) -> None:
    assert made.folder is not None
    again = Release.load(made.folder)
    checks = again.verify()
    assert all(check["ok"] for check in checks), checks
    written = decoded_table(made.schema, made.rows)
    for column, mine, read, twice in zip(
        made.schema, made.rows, again.rows, cleaned_table(made.schema, written), strict=True
    ):
        assert np.array_equal(mine, read, equal_nan=column.missing and isinstance(column, Ordered)), column.name
        np.testing.assert_allclose(twice, mine, atol=1e-15 if describe(column)["kind"] == "number" else 0)


def test_certificates_hold(made: Release) -> None:
    rows, about = emitted(made), scope(made)
    true = evaluate(PRIVATE, rows, made.schema, **about)
    certificate = made.certificate
    assert true.lower <= certificate.bound
    for truth, (columns, bound) in zip(true.subsets, certificate.subsets, strict=True):
        assert truth.columns == columns
        assert truth.lower <= bound
    told = certify(PRIVATE, rows, made.schema, epsilon=8, confidence=SURE, **about)
    assert told.lower <= true.upper
    assert told.bound >= true.lower
    for column in made.schema:
        real, synthetic = (frame[column.name].null_count() / frame.height for frame in (PRIVATE, rows))
        if column.missing:
            assert abs(real - synthetic) <= certificate.single_column_bound / column.weight
            assert abs(real - synthetic) <= told.single_column_bound / column.weight


def test_bounds_say_something(made: Release) -> None:
    """Control: what holds of any table would hold here, too."""
    assert made.certificate.bound < 1


@pytest.mark.parametrize("label", ["=1+1", "@sum", "+a", "-a", "\x07"])
def test_no_label_of_a_tree_or_a_matrix_is_a_formula(label: str, tmp_path: Path) -> None:
    """What a spreadsheet would run is refused wherever it could be written: alone, as a last code, in a file."""
    (tmp_path / "matrix.csv").write_text(f",a,{label}\na,0,1\n{label},1,0\n")
    written = json.dumps(label)
    for entries in (
        f'kind = "tree"\nvalues = ["a", {written}]',
        f'kind = "tree"\nvalues = ["a", {json.dumps("a/" + label)}]',
        f'kind = "metric"\nvalues = ["a", {written}]\ndistances = [[0, 1], [1, 0]]',
        'kind = "metric"\nmatrix = "matrix.csv"',
    ):
        with pytest.raises(SchemaError, match=r"formula|control character"):
            Schema.parse(f'[[column]]\nname = "x"\n{entries}\n', folder=tmp_path)
