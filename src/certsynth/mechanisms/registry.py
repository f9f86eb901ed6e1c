"""Strategies by name."""

from __future__ import annotations

from fractions import Fraction

from certsynth.algorithm.options import AUTO_MECHANISMS
from certsynth.errors import InputError
from certsynth.mechanisms.guarantee import Neighbours
from certsynth.mechanisms.haar import Haar
from certsynth.mechanisms.identity import Identity
from certsynth.mechanisms.quad_tree import QuadTree
from certsynth.mechanisms.sparse import LowDimensional
from certsynth.mechanisms.strategy import Strategy

GRID_STRATEGIES = ("low-dimensional", "low-dimensional-l1")
"""Strategies for one grid of all columns; the second is the paper's."""

TABLE_STRATEGIES = (*AUTO_MECHANISMS, "haar-tour", "haar-noisy-total")
"""Strategies for tables of some columns."""

WEIGHT_GROWTHS = {
    "haar-weighted": tuple(Fraction(i, 8) for i in range(1, 6)),
    "quad-tree": tuple(Fraction(i, 4) for i in range(9)),
}
"""By strategy with levels, the exponents g that the plan chooses from: weights grow by 2^g from level to level."""


def strategy_named(name: str, *, neighbours: Neighbours, growth: Fraction | None = None) -> Strategy:
    """The strategy of the given name. By default `growth` is the optimum in theory for two columns.

    The error of a square of side 2^-l moves over that length, and there are 4^l squares: at a given sum of weights, the
    sum of 2^l / w_l over levels is least for w_l that grow as 2^(l/2). Two levels of a binary tree make one of squares.
    """
    if name == "identity":
        return Identity(neighbours)
    if name == "haar":
        return Haar(neighbours)
    if name == "haar-hilbert":
        return Haar(neighbours, path="hilbert")
    if name == "haar-tour":
        return Haar(neighbours, path="tour")
    if name == "haar-weighted":
        return Haar(neighbours, growth=Fraction(1, 4) if growth is None else growth, path="hilbert")
    if name == "quad-tree":
        return QuadTree(neighbours, growth=Fraction(1, 2) if growth is None else growth)
    if name == "haar-noisy-total":
        return Haar(neighbours, noisy_total=True)
    if name in GRID_STRATEGIES:
        return LowDimensional(neighbours, signed=name == GRID_STRATEGIES[1])
    raise InputError(
        f"there is no mechanism {name!r:.40}; choose one of: {', '.join((*TABLE_STRATEGIES, *GRID_STRATEGIES))}."
    )
