"""Releases with columns that are compared by ratios: their values, what is certified, and what is said about them."""

from __future__ import annotations

import functools
import json
from typing import Any

import numpy as np
import polars as pl
import pytest

from certsynth import Release, Schema, certify, evaluate, release
from certsynth.domain import Ordered
from certsynth.report.view import view
from small import SeededNoise, emitted

SCHEMA = Schema.parse(
    """
[[column]]
name = "income"
kind = "integer"
low = -10000
high = 1000000
scale = "log"
special = [0]
bands = [12345, 50000]

[[column]]
name = "size"
kind = "number"
low = 0.05
high = 500
scale = "log"
missing = true
weight = 0.5

[[column]]
name = "sex"
kind = "category"
values = ["f", "m"]

[[rule]]
impossible = "income > 50000 and size < 0.1"
"""
)
ROWS = 1500
ASKED: dict[str, Any] = {"epsilon": 20, "resolution": 8, "mechanism": "identity", "seed": 3, "confidence": "0.9999"}


def skewed(rows: int, *, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    income = np.where(rng.random(rows) < 0.2, 0, np.exp(rng.normal(10, 1, rows)).round())
    income = np.where(rng.random(rows) < 0.1, 50_000, np.where(rng.random(rows) < 0.02, -777, income))
    size: list[float | None] = np.exp(rng.normal(1, 1, rows)).tolist()
    sex = rng.choice(["f", "m"], rows)
    frame = pl.DataFrame({"income": income.astype(int), "size": size, "sex": sex})
    return frame.with_columns(pl.when(pl.col("income") % 10 == 3).then(None).otherwise(pl.col("size")).alias("size"))


PRIVATE = skewed(ROWS)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Release:
    return release(PRIVATE, SCHEMA, out=tmp_path_factory.mktemp("ratios") / "out", noise=SeededNoise(), **ASKED)


def test_rows_hold_values_of_the_column_and_the_release_is_verified(made: Release) -> None:
    rows = emitted(made)
    for name in ("income", "size"):
        column = made.schema.columns[made.schema.names.index(name)]
        assert isinstance(column, Ordered)
        assert set(rows[name].drop_nulls().to_list()) <= set(column.grid)
    assert rows["income"].dtype == pl.Int64
    assert rows.filter((pl.col("income") > 50_000) & (pl.col("size") < 0.1)).is_empty()
    assert all(check["ok"] for check in made.verify())
    assert made.folder is not None
    assert Release.load(made.folder).schema == SCHEMA


def test_other_tables_are_rounded_to_the_same_values(made: Release) -> None:
    altered = emitted(made).with_columns(pl.lit(50_001).alias("income"))
    same = evaluate(PRIVATE, altered, schema=SCHEMA)
    rounded = evaluate(PRIVATE, altered.with_columns(pl.lit(50_000).alias("income")), schema=SCHEMA)
    assert same == rounded


def test_the_true_loss_is_below_the_bound(made: Release) -> None:
    found = evaluate(PRIVATE, emitted(made), schema=SCHEMA)
    assert found.lower <= made.document["certificate"]["bound"]
    judged = certify(PRIVATE, emitted(made), schema=SCHEMA, epsilon=20, confidence="0.9999", noise=SeededNoise())
    assert found.lower <= judged.bound


@pytest.mark.parametrize(
    ("query", "true"),
    [
        ("fraction(income = 0)", lambda rows: (rows["income"] == 0).mean()),
        ("fraction(income < 0)", lambda rows: (rows["income"] < 0).mean()),
        ("fraction(income = 50000)", lambda rows: (rows["income"] == 50_000).mean()),
        ("fraction(income >= 12345)", lambda rows: (rows["income"] >= 12_345).mean()),
        ("fraction(income > 7 and sex = 'f')", lambda rows: ((rows["income"] > 7) & (rows["sex"] == "f")).mean()),
        ("mean(income)", lambda rows: rows["income"].mean()),
        ("mean(size)", lambda rows: rows["size"].mean()),
        ("sum(size)", lambda rows: rows["size"].sum()),
        ("sd(income)", lambda rows: rows["income"].std(ddof=0)),
        ("variance(size)", lambda rows: rows["size"].var(ddof=0)),
        ("median(size)", lambda rows: rows["size"].drop_nulls().quantile(0.5, "lower")),
        ("quantile(income, 0.9)", lambda rows: rows["income"].quantile(0.9, "lower")),
        ("mean(income | sex = 'm')", lambda rows: rows.filter(pl.col("sex") == "m")["income"].mean()),
        ("median(income | size > 2)", lambda rows: rows.filter(pl.col("size") > 2)["income"].quantile(0.5, "lower")),
    ],
)  # fmt: skip
def test_answers_hold_for_the_rounded_rows(made: Release, query: str, true: Any) -> None:
    rounded = {c.name: c.decode(c.clean(PRIVATE[c.name].to_numpy())).tolist() for c in SCHEMA}
    value, found = float(true(pl.DataFrame(rounded))), made.answer(query)
    assert found.low <= value * (1 + 1e-12)
    assert value * (1 - 1e-12) <= found.high
    assert found.low <= found.estimate <= found.high
    alone = made.answer(query, alone=True)
    assert alone.low <= alone.estimate <= alone.high


def test_the_release_says_what_is_compared_by_ratios(made: Release) -> None:
    assert made.document["table"]["by_ratios"] == ["income", "size"]
    shown = view(made.record, made.schema, made.table)
    assert "neighbouring ones of the" in shown["by_ratios"]
    assert "For income, size, compared by ratios" in shown["promise"]["shares"]["others"]
    assert "not about the values" in shown["promise"]["scaled"]
    assert made.folder is not None
    assert "compared by ratios" in (made.folder / "report.html").read_text(encoding="utf-8")
    assert "compared by ratios" in json.dumps(json.loads((made.folder / "croissant.json").read_text(encoding="utf-8")))
    income, size, sex = shown["columns"]["drawn"]
    assert income["kind"] == "whole number compared by ratios"
    assert sex["kind"] == "category"
    ticks = [tick["label"] for tick in income["spread"]["ticks"]]
    assert ticks[0] == "−10,000"
    assert ticks[-1] == "1,000,000"
    assert len(ticks) > 3
    mark, answered = income["spread"]["mean"], made.answer("mean(income)")
    assert 0 <= mark["from"] <= mark["at"] <= mark["to"] <= 1
    assert float(income["facts"][0]["plus_minus"]) >= answered.high - answered.estimate - 1
    assert size["facts"][0]["what"] == "mean, of values present"
    assert [numbers.get("ranks") for numbers in shown["calculator"]["columns"]] == [True, True, None]


def test_other_releases_say_nothing_of_it() -> None:
    removed = ('scale = "log"\n', "special = [0]\n", "bands = [12345, 50000]\n")
    text = functools.reduce(lambda text, entry: text.replace(entry, ""), removed, SCHEMA.to_toml())
    made = release(PRIVATE, Schema.parse(text), noise=SeededNoise(), **ASKED)
    assert "by_ratios" not in made.document["table"]
    assert view(made.record, made.schema, made.table)["by_ratios"] == ""
