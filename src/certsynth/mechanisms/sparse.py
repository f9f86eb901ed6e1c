r"""Step 2 on a grid of all columns: noise on all cells, of which only those with large noisy counts are kept.

The grid may have 10^15 cells. The result is a function of the noisy counts of all of them,

.. math:: \{(z, \tilde v_z) : \tilde v_z > c\}, \quad
    c = \max\Bigl\{c_j : c_j = 0 \text{ or } \sum_z (\tilde v_z - c_j)^+ \ge n\Bigr\}

with public thresholds c_0 > c_1 > …, so it is as private as they are. Noise of empty cells is drawn only above the
threshold, from its conditional law (`rare.py`).

Paper: Theorem 4 [low-dimensional-general]
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from certsynth.base.arrays import Floats, Ints, read_only
from certsynth.mechanisms.guarantee import Budget, Guarantee, Neighbours, Sensitivity, Unit
from certsynth.mechanisms.identity import Identity
from certsynth.mechanisms.measure import Measurement, measure, sensitivity
from certsynth.mechanisms.rare import Tail
from certsynth.mechanisms.samplers import ExactNoise, Noise
from certsynth.mechanisms.strategy import Product, size_of
from certsynth.queries.occupied import OccupiedCells

MAX_CELLS_IN_FULL, MAX_COLUMNS_IN_FULL = 2_000, 3
"""Cells and columns up to which all cells are kept: then the law of their error is known, and the plug-in certificate
applies."""

FIRST_EXPECTED_CELLS = 256
"""Expected number of empty cells whose noise is above the first threshold."""

EXPECTED_CELLS_FACTOR = 4
"""Factor by which that expected number grows from one threshold to the next."""


@dataclass(frozen=True, slots=True)
class LowDimensional(Identity):
    """Noise on every cell of one grid of all columns; the number of rows, if hidden, is measured separately.

    `signed`: keep negative counts like positive ones, as in the paper.
    """

    signed: bool = False

    @property
    def name(self) -> str:  # type: ignore[override]
        return "low-dimensional-l1" if self.signed else "low-dimensional"

    @property
    def measures_total(self) -> bool:
        return False

    def total(self, coefficients: Floats) -> Floats:
        raise ValueError("the number of rows is not among these coefficients")

    def sensitivity(self, product: Product) -> Sensitivity:
        """One count changes by 1, or two under replace-one; a single cell is known from the number of rows."""
        moves = 0 if size_of(product) == 1 else 1 if self.neighbours is Neighbours.ADD_REMOVE else 2
        return Sensitivity(moves, moves)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SparseMeasurement(Measurement):
    """The cells at `places`, whose noisy count (its absolute value, if signed) is above `above`; no others are known.

    `coefficients` holds their counts. The error of the other cells depends on the rows, so its law is unknown.
    """

    places: Ints
    above: int


def is_kept_in_full(cells: int, columns: int) -> bool:
    """Whether all cells of a grid are kept, as they are if there is only one."""
    return cells == 1 or (cells <= MAX_CELLS_IN_FULL and columns <= MAX_COLUMNS_IN_FULL)


def measure_sparse(
    counts: OccupiedCells, strategy: LowDimensional, *, budget: Budget, noise: Noise | None = None
) -> Measurement:
    """Measure a grid at the cost of `budget`: keep all cells if they are few, else those with large noisy counts."""
    if budget.unit is not Unit.EPSILON:
        raise ValueError("noise that is drawn only where it is large is Laplace noise")
    if is_kept_in_full(counts.size, len(counts.marginals.cells)):
        return measure(counts.to_counts(), strategy, budget=budget, noise=noise)
    noise = noise or ExactNoise()
    hidden = strategy.neighbours is Neighbours.ADD_REMOVE
    exact = np.append(counts.counts, counts.rows) if hidden else counts.counts
    noised = noise.add(exact, sensitivity=sensitivity(counts.marginals, strategy), budget=budget)
    values, total = (noised.values[:-1], int(noised.values[-1])) if hidden else (noised.values, counts.rows)
    places, values, above = _select_large_cells(
        counts, values, mass=max(total, 1), scale=noised.scale, noise=noise, signed=strategy.signed
    )
    return SparseMeasurement(
        marginals=counts.marginals,
        strategy=strategy,
        coefficients=(read_only(values),),
        total=total,
        scale=noised.scale,
        cost=Guarantee(spent=noised.spent, neighbours=strategy.neighbours),
        releasable=noise.releasable,
        places=read_only(places),
        above=above,
    )


def thresholds(cells: int, scale: float) -> Iterator[int]:
    """Decreasing public thresholds, the last of which is 0.

    About FIRST_EXPECTED_CELLS of the cells have noise above the first, and EXPECTED_CELLS_FACTOR times as many above
    each of the next.
    """
    step = max(1, round(scale * math.log(EXPECTED_CELLS_FACTOR)))
    above = max(0, math.ceil(scale * math.log(max(cells, 1) / FIRST_EXPECTED_CELLS)))
    while above:
        yield above
        above = max(0, above - step)
    yield 0


def _select_large_cells(
    counts: OccupiedCells, values: Ints, *, mass: int, scale: float, noise: Noise, signed: bool
) -> tuple[Ints, Ints, int]:
    """Positions and noisy counts of all cells above the first threshold at which their excess reaches `mass`.

    `values` are the noisy counts of occupied cells. The noise of an empty cell that was not above a threshold is drawn
    again for the next one, conditioned on that.
    """
    places, before = counts.places, None
    for above in thresholds(counts.size, scale):
        found, drawn = noise.rare(counts.size, Tail(scale, above, before, signed))
        fresh = ~np.isin(found, places)  # the noise of other cells is known already
        places, values = np.append(places, found[fresh]), np.append(values, drawn[fresh])
        sizes = np.abs(values) if signed else values
        before = above
        if np.maximum(sizes - above, 0).sum() >= mass:
            break
    keep = np.flatnonzero(sizes > above)
    order = keep[np.argsort(places[keep])]  # sorted, since the order would reveal which were occupied
    return places[order], values[order], above
