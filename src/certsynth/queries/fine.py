"""Counts on fine lattices, with how far rows were moved to get there: what true losses are computed from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from certsynth.arrays import Floats, Ints
from certsynth.domain import Schema
from certsynth.errors import InputError
from certsynth.queries.marginals import Counts, Marginals, Subset, all_subsets

MOVE_UNITS = 2**20
"""Distances of rows to the lattice are summed as whole multiples of 1/MOVE_UNITS, each rounded up."""

STEPS = {1: 1024, 2: 256, 3: 32}
"""Default steps to the unit length, by the number of columns that are looked at together; beyond three, 8."""


@dataclass(frozen=True, slots=True, eq=False)
class FineMarginals:
    """Marginals on the columns' own lattices, fixed by the schema alone.

    One or two columns have their native values where these are at most `steps` apart; three share one step, since the
    network of three unequal steps is not exact.
    """

    schema: Schema
    marginals: Marginals

    @classmethod
    def of(cls, schema: Schema, subsets: Sequence[Subset], *, steps: int | None = None) -> FineMarginals:
        columns = max(map(len, subsets))
        steps = STEPS.get(columns, 8) if steps is None else steps
        if not 1 <= steps <= 4096:
            raise InputError(f"the lattice must have between 1 and 4096 steps; got {steps}.")
        cells = tuple(column.lattice(steps, native=columns <= 2) for column in schema)
        return cls(schema=schema, marginals=Marginals(cells=cells, subsets=tuple(subsets)))

    @classmethod
    def all_subsets(cls, schema: Schema, *, sparsity: int, steps: int | None = None) -> FineMarginals:
        return cls.of(schema, all_subsets(schema, sparsity), steps=steps)

    def count(self, batches: Iterable[Sequence[np.ndarray]]) -> FineCounts:
        """Count cleaned rows that come in batches."""
        moved = [0] * len(self.marginals.subsets)
        farthest = self.farthest()

        def codes() -> Iterable[list[Ints]]:
            for batch in batches:
                placed = [c.to_lattice(x, g) for c, x, g in zip(self.schema, batch, self.marginals.cells, strict=True)]
                units = [move_units(away, farthest) for _, away in placed]
                for j, subset in enumerate(self.marginals.subsets):
                    moved[j] += int(np.max([units[c] for c in subset], axis=0).sum())
                yield [code for code, _ in placed]

        counts = self.marginals.count(codes())
        return FineCounts(counts=counts, moved=tuple(moved))

    def farthest(self) -> int:
        """How far a row can be from its lattice point at most, in units."""
        away = max(c.farthest(g) for c, g in zip(self.schema, self.marginals.cells, strict=True))
        return math.ceil(away * MOVE_UNITS)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FineCounts:
    """Lattice counts of one table, and for each subset the summed distances of rows to their points, in units."""

    counts: Counts
    moved: tuple[int, ...]

    def __repr__(self) -> str:
        return f"FineCounts(<private: {len(self.moved)} marginals>)"

    @property
    def rows(self) -> int:
        return self.counts.rows


def move_units(away: Floats, farthest: int) -> Ints:
    """Distances rounded up, by more than floats can have lost, and never above what the schema allows."""
    up = np.ceil(away * MOVE_UNITS + 2.0**-20 * (away > 0))
    return np.minimum(up.astype(np.int64), farthest)
