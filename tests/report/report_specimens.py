"""Releases to report on, written by hand: every kind of column, and documents as `certsynth.pipeline` makes them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from certsynth.domain import Category, Column, Ordered, Schema

Json = dict[str, Any]

EVERY_KIND = Schema(
    name="A survey",
    unit="one row is one household",
    columns=(
        Ordered(name="age", kind="integer", low=18, high=100),
        Ordered(name="income", kind="number", low=0.0, high=150_000.0, missing=True),
        Ordered(name="moved in", kind="date", low=7305, high=19722),
        Ordered(name="school", kind="ordinal", low=0, high=2, values=("low", "middle", "high"), missing=True),
        Ordered(name="grade", kind="ordinal", low=0, high=19, values=tuple(f"grade {i}" for i in range(20))),
        Category(name="region", values=("north", "south"), other=True),
        Category(name="job", values=tuple(f"job {i}" for i in range(30)), missing=True),
        Category(name="owner", kind="boolean", values=("false", "true"), missing=True),
    ),
)


def table(schema: Schema, rows: int = 400, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {column.name: column.decode(_codes(column, rng, rows)) for column in schema}


def _codes(column: Column, rng: np.random.Generator, rows: int) -> np.ndarray:
    if isinstance(column, Category):
        return rng.integers(0, len(column.labels) + column.missing, rows)
    assert isinstance(column, Ordered)
    codes = rng.integers(0, 257, rows) / 256
    codes = np.floor(codes * column.reach) if column.whole else codes
    codes[rng.random(rows) < (0.1 if column.missing else 0.0)] = np.nan
    return codes


def document(
    schema: Schema,
    *,
    sparsity: int = 2,
    direct: float | None = 0.024989011,
    single: float | None = 0.0181,
    neighbours: str = "replace-one",
    real_rows: int | None = 12_345,
    rows: int = 400,
    worth_optimising: bool = False,
    subsets: Sequence[Sequence[str]] | None = None,
    seed: int = 0,
) -> Json:
    """certificate.json of a made-up release. Plug-in terms are random; without `direct` the plug-in bounds decide."""
    rng = np.random.default_rng(seed)
    names = [list(s) for s in subsets or itertools.combinations(schema.names, sparsity)]
    larger = {"transport": 1, "path": 3}
    plug_in = {proxy: _plug_in(names, rng, larger[proxy], worth_optimising) for proxy in larger}
    best = plug_in["transport"]
    bound = min(best["bound"], direct or 1.0)
    spent = [("noisy marginals", "19/20" if direct else "1")]
    spent += [("loss of the rows", "1/25"), ("loss of single columns", "1/100")] if direct else []
    whole = _direct(direct, 0.964, "0.04") if direct else None
    return {
        "format": "certsynth-certificate/1",
        "certsynth": "0.1.0",
        "table": {"name": schema.name, "unit": schema.unit, "columns": list(schema.names)},
        "privacy": {
            "definition": "pure epsilon-differential privacy",
            "epsilon": "1",
            "neighbours": neighbours,
            "rows": real_rows if neighbours == "replace-one" else None,
            "spent": [{"on": what, "epsilon": epsilon} for what, epsilon in spent],
        },
        "release": {
            "sparsity": sparsity,
            "resolution": 8,
            "mechanism": "identity",
            "order": "snake",
            "projection": "drawn",
            "loss": "transport",
            "detail": "spread",
            "candidates": 1,
            "preset": None,
            "rows": rows,
        },
        "certificate": {
            "bound": bound,
            "confidence": 0.95,
            "kind": "direct" if direct else "plug-in",
            "terms": whole["terms"] if whole else best["terms"],
            "single_column_bound": min(bound, single or 1.0),
            "subsets": [{"columns": s["columns"], "bound": min(s["bound"], direct or 1.0)} for s in best["subsets"]],
            "direct": whole,
            "single_column": _direct(single, 0.991, "0.01") if direct and single else None,
            "plug_in": plug_in,
        },
    }


def _direct(bound: float, confidence: float, epsilon: str) -> Json:
    terms = {"measured_loss": 0.75 * bound, "slack": 0.25 * bound}
    return {"bound": bound, "confidence": confidence, "epsilon": epsilon, "terms": terms}


def _plug_in(names: list[list[str]], rng: np.random.Generator, larger: int, worth: bool) -> Json:
    subsets = []
    for columns in names:
        terms = {
            "discretisation": 0.0625,
            "privatisation": larger * float(rng.uniform(0.02, 0.04)),
            "projection": larger * float(rng.uniform(0.03, 0.06)),
        }
        subsets.append({"columns": columns, "bound": min(1.0, sum(terms.values())), "terms": terms})
    worst = max(subsets, key=lambda s: s["bound"])
    return {
        "bound": worst["bound"],
        "confidence": 0.995,
        "terms": worst["terms"],
        "subsets": subsets,
        "diagnostic": {
            "fit": 0.0312 if worth else 0.0123,
            "noise_mean": 0.0185,
            "noise_low": 0.0151,
            "noise_high": 0.0246,
            "worth_optimising": worth,
        },
    }


def wide(columns: int) -> Schema:
    """Many columns of several kinds, with long names."""
    kinds: list[Column] = []
    for i in range(columns):
        name = f"a rather long name for column {i}"
        kinds.append(
            [
                Ordered(name=name, kind="integer", low=0, high=9999),
                Ordered(name=name, kind="number", low=-1.0, high=1.0, missing=True),
                Ordered(name=name, kind="date", low=0, high=20_000),
                Category(name=name, values=tuple(f"a rather long label {j}" for j in range(40)), missing=True),
            ][i % 4]
        )
    return Schema(columns=tuple(kinds), name="A wide table")
