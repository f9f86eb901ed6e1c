"""Supports, the points that may carry weight: all cells, public rows, or draws from the noisy one-way marginals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from certsynth.base.arrays import Floats, Ints
from certsynth.errors import TooLarge
from certsynth.projection.target import Target, as_probabilities
from certsynth.queries.marginals import Marginals

MAX_FULL_GRID_CELLS = 20_000
"""Cells of the full grid beyond which its linear program takes minutes rather than seconds on two cores."""

MAX_SUPPORT_POINTS = 4_000
"""Points in a drawn support or a sample of public rows, at most: the paper's number."""


def full_grid(marginals: Marginals) -> Ints:
    """Every cell of the whole table: T_k.

    Paper: Eq. (12) [step-3]
    """
    check_full_grid(marginals)
    return np.array(list(itertools.product(*(range(c.size) for c in marginals.cells))), dtype=np.int64)


def check_full_grid(marginals: Marginals) -> None:
    """Refuse a full grid that has too many cells, and say how many."""
    cells = math.prod(c.size for c in marginals.cells)
    if cells > MAX_FULL_GRID_CELLS:
        raise TooLarge(
            f"the full grid has {cells:,} cells, more than {MAX_FULL_GRID_CELLS:,}: lower the resolution, name fewer "
            "columns, or choose another projection."
        )


def fits_full_grid(marginals: Marginals) -> bool:
    return math.prod(c.size for c in marginals.cells) <= MAX_FULL_GRID_CELLS


def public_support(codes: Sequence[Ints], rng: np.random.Generator, *, most: int = MAX_SUPPORT_POINTS) -> Ints:
    """Distinct cells of the public rows, or of `most` of them, chosen at random.

    Paper: Eq. (16) [public-support]
    """
    rows = np.column_stack(codes)
    if len(rows) > most:
        rows = rows[rng.choice(len(rows), most, replace=False)]
    return np.unique(rows, axis=0)


def drawn_support(target: Target, rng: np.random.Generator, *, count: int = MAX_SUPPORT_POINTS) -> Ints:
    """Points drawn from the product of the noisy one-way marginals: the support if there are no public rows."""
    columns = [
        rng.choice(len(share), count, p=share)
        for share in (one_way_marginal(target, j) for j in range(len(target.marginals.cells)))
    ]
    return np.unique(np.column_stack(columns), axis=0)


def one_way_marginal(target: Target, column: int) -> Floats:
    """The column's distribution: the mean over all measured marginals that contain it, clipped at 0."""
    size = target.marginals.cells[column].size
    shares = [
        block.reshape(target.marginals.shape(subset)).sum(axis=tuple(a for a, j in enumerate(subset) if j != column))
        for subset, block in zip(target.marginals.subsets, target.blocks, strict=True)
        if column in subset
    ]
    return as_probabilities(np.mean(shares, axis=0) if shares else np.full(size, np.nan), size)
