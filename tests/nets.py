"""Schemas and exact distances for tests of nets: more than three columns of every kind."""

from __future__ import annotations

import numpy as np
import ot  # type: ignore[import-untyped]
import pytest

from certsynth.domain import Category, Schema
from certsynth.transport import Network, flow

TINY = Schema.parse(
    """
[[column]]
name = "size"
kind = "integer"
low = 0
high = 5

[[column]]
name = "light"
kind = "integer"
low = 0
high = 1
missing = true
weight = 0.3

[[column]]
name = "kind"
kind = "category"
values = ["x", "y"]
weight = 0.75

[[column]]
name = "code"
kind = "tree"
values = ["a", "a/b"]
other = true
"""
)
"""Four columns, 108 different rows."""


def true_distances(schema: Schema, first: list[np.ndarray], second: list[np.ndarray]) -> np.ndarray:
    """The maximum metric between all cleaned rows of two tables, written out from the definition."""
    far = []
    for column, x, y in zip(schema, first, second, strict=True):
        a, b = np.broadcast_arrays(x[:, None], y[None, :])
        weight = float(column.weight)
        if isinstance(column, Category):
            far.append(column.lattice(1).distance(a, b))
        else:
            gap = np.abs(a - b) / column.reach * weight
            absent = np.isnan(a) | np.isnan(b)
            far.append(np.where(absent, np.where(np.isnan(a) & np.isnan(b), 0.0, weight), gap))
    return np.maximum.reduce(far)


def true_loss(schema: Schema, first: list[np.ndarray], second: list[np.ndarray]) -> float:
    """W1 between two tables of cleaned rows."""
    shares = [np.full(len(table[0]), 1 / len(table[0])) for table in (first, second)]
    return float(ot.emd2(*shares, true_distances(schema, first, second), numItermax=10**7))


def stop_solvers_early(patch: pytest.MonkeyPatch) -> None:
    """Every solver of flows gives the flow without its proof."""
    honest = flow.solve

    def early(network: Network, supply: np.ndarray, **_: object) -> tuple[np.ndarray, np.ndarray]:
        found, potentials = honest(network, supply)
        return found, np.zeros_like(potentials)

    for name in ("solve_priced", "solve_until", "solve", "solve_fallback"):
        patch.setattr(flow, name, early)
