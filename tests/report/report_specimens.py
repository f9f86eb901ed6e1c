"""Releases to report on, written by hand: every kind of column, and documents as a release makes them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from certsynth.certificate.coverage import STATISTICS, statistic_names
from certsynth.domain import Category, Column, Ordered, Schema
from certsynth.domain.labels import tree_column
from certsynth.mechanisms.guarantee import decimal_text
from certsynth.record.form import from_json
from certsynth.record.record import Record
from certsynth.report import render_report as render_record
from certsynth.report.view import view as report_view

Json = dict[str, Any]

RHO = "0.024355970354"
"""ρ that is (1, 10^-6)-differential privacy."""

SHARE = Fraction(2, 25)
"""Share of the budget for the direct certificate."""

DEFINITIONS = {False: "pure epsilon-differential privacy", True: "zero-concentrated differential privacy"}

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


DISTANCES = ((Fraction(0), Fraction(7)), (Fraction(7), Fraction(0)))

WOVEN = Schema(
    name="Trades",
    columns=(
        Ordered(name="rooms", kind="integer", low=0, high=20, missing=True, weight=Fraction(1, 4)),
        replace(tree_column("trade", ["a", "a/b", "a/c", "d"], missing=True, other=True), weight=Fraction(1, 2)),
        Category(name="place", kind="metric", values=("here", "there"), distances=DISTANCES, weight=Fraction(4, 5)),
    ),
)
"""Weights, a tree and a metric."""


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
    concentrated: bool = False,
    compared: Sequence[Json] | None = None,
    subsets: Sequence[Sequence[str]] | None = None,
    seed: int = 0,
) -> Json:
    """certificate.json of a made-up release. Plug-in terms are random; without `direct` the plug-in bounds decide.

    `concentrated`: privacy is counted in ρ, and told as (ε, δ).
    """
    rng = np.random.default_rng(seed)
    names = [list(s) for s in subsets or itertools.combinations(schema.names, sparsity)]
    larger = {"transport": 1, "path": 3}
    plug_in = {proxy: _plug_in(names, rng, larger[proxy], worth_optimising) for proxy in larger}
    best = plug_in["transport"]
    bound = min(best["bound"], direct or 1.0)
    shares = [("noisy marginals", 1 - SHARE if direct else Fraction(1))]
    shares += [("errors of the rows", SHARE)] if direct else []
    unit, amount = ("rho", Fraction(RHO)) if concentrated else ("epsilon", Fraction(1))
    spent = {unit: decimal_text(amount * SHARE)}
    whole = _direct(direct, spent) if direct else None
    one = _direct(single, spent) if direct and single else None
    return {
        "format": "certsynth-certificate/3",
        "certsynth": "0.1.0",
        "table": {"name": schema.name, "unit": schema.unit, "columns": list(schema.names)},
        "privacy": {
            "definition": DEFINITIONS[concentrated],
            "epsilon": "1",
            "delta": "0.000001" if concentrated else None,
            "rho": RHO if concentrated else None,
            "neighbours": neighbours,
            "rows": real_rows if neighbours == "replace-one" else None,
            "spent": [spent_on(what, **{unit: str(amount * share)}) for what, share in shares],
        },
        "asked": {
            "epsilon": None if concentrated else "1",
            "delta": None,
            "rho": str(amount) if concentrated else None,
            "sparsity": None if subsets else sparsity,
            "resolution": None,
            "mechanism": None,
            "projection": "auto",
            "loss": None,
            "rows": rows,
            "neighbours": neighbours,
            "preset": None,
            "candidates": 1,
            "certificate_share": str(SHARE) if direct else "0",
            "confidence": "19/20",
            "public": False,
        },
        "release": {
            "sparsity": sparsity,
            "workload": names if subsets else None,
            "resolution": 8,
            "dimension": None,
            "mechanism": "identity",
            "growth": "0",
            "order": "snake",
            "path_length": 8.0,
            "measured": [{"columns_at_once": sparsity, "cells": "even", "resolution": 8}],
            "projection": "drawn",
            "loss": "transport",
            "detail": "spread",
            "candidates": 1,
            "preset": None,
            "rows": rows,
        },
        "compared": candidates() if compared is None else list(compared),
        "certificate": {
            "bound": bound,
            "confidence": 0.95,
            "kind": "direct" if direct else "plug-in",
            "terms": whole["terms"] if whole else best["terms"],
            "single_column_bound": min(bound, single or 1.0),
            "subsets": [{"columns": s["columns"], "bound": min(s["bound"], direct or 1.0)} for s in best["subsets"]],
            "direct": whole,
            "single_column": one,
            "plug_in": plug_in,
            "no_plug_in": None,
            **({"statistics": statistics(schema, names)} if direct else {}),
        },
        "recompute": {
            "plug_in_failure_probability": "1/200",
            "draws": 200,
            "seed": "0" * 32,
            "hub": None,
            "end": "1/2",
        },
        "ledger": None,
    }


def spent_on(what: str, **amount: str) -> Json:
    """A part of the budget, of which nothing is known but the amount."""
    return {"on": what, **amount, "sensitivity": None, "scale": None, "values": None, "worth": None}


def record(stated: Json) -> Record:
    return from_json(Record, stated)


def view(stated: Json, schema: Schema, rows: Mapping[str, Any]) -> Json:
    """What the report says of a certificate.json."""
    return report_view(record(stated), schema, rows)


def render_report(stated: Json, schema: Schema, rows: Mapping[str, Any]) -> str:
    """The report of a certificate.json."""
    return render_record(record(stated), schema, rows)


def candidates(
    mechanisms: Sequence[str] = ("identity", "haar", "quad-tree"),
    resolutions: Sequence[int | None] = (4, 6, 8, 12, 16),
    best: tuple[str, int | None] = ("identity", 8),
) -> list[Json]:
    """What a release was chosen from, in no order: cells lose less as there are more, and noise more."""
    return [
        candidate(mechanism, k, (i + 1) * (0.3 / (k or 64) + 0.0051 * (k or 1)), chosen=(mechanism, k) == best)
        for k in resolutions
        for i, mechanism in enumerate(mechanisms)
    ]


def candidate(mechanism: str, resolution: int | None, loss: float, *, chosen: bool = False) -> Json:
    return {
        "mechanism": mechanism,
        "resolution": resolution,
        "discretisation": 0.5 / resolution if resolution else 0.0,
        "privatisation": 0.4 * loss,
        "predicted_loss": loss,
        "rehearsals": 3 if chosen else 0,
        "chosen": chosen,
    }


def _direct(bound: float, spent: Json) -> Json:
    terms = {"measured_loss": 0.75 * bound, "slack": 0.25 * bound}
    return {"bound": bound, "confidence": 0.955, **spent, "terms": terms}


def statistics(schema: Schema, subsets: Sequence[Sequence[str]]) -> Json:
    """Bounds on shares, group totals and moments, of those that the columns of the subsets have."""
    figures = dict(zip(STATISTICS[:4], (0.0123, 0.0191, 0.0087, 0.0065), strict=True))  # no column has bands
    found = statistic_names(schema, [tuple(sorted(map(schema.names.index, subset))) for subset in subsets])
    return {name: figures[name] if name in found else None for name in figures}


def _plug_in(names: list[list[str]], rng: np.random.Generator, larger: int, worth: bool) -> Json:
    subsets: list[Json] = []
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
