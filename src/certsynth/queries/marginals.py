"""𝕋: a table's marginals on chosen subsets of columns, as exact integer counts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from certsynth.arrays import Ints, frozen
from certsynth.domain import Cells, Schema

Subset = tuple[int, ...]
"""Positions of columns in the schema, ascending."""


def all_subsets(schema: Schema, ways: int) -> tuple[Subset, ...]:
    """All subsets of so many columns."""
    return tuple(itertools.combinations(range(len(schema)), ways))


@dataclass(frozen=True, slots=True, eq=False)
class Marginals:
    r"""Which marginals are counted, and in which cells.

    .. math:: \mathbb T\mu = (P^{S}_{\#}\mu)_{S}

    where S runs over `subsets` and each marginal is a block of counts over the product of its columns' cells, the
    last column running fastest.

    Paper: section 3 [query-operator]
    """

    cells: tuple[Cells, ...]
    subsets: tuple[Subset, ...]

    @classmethod
    def all_subsets(cls, schema: Schema, *, sparsity: int, resolution: int) -> Marginals:
        """All subsets of `sparsity` columns, `resolution` cells to the unit length."""
        cells = tuple(column.cells(resolution) for column in schema)
        return cls(cells=cells, subsets=all_subsets(schema, sparsity))

    def of(self, subset: Subset) -> tuple[Cells, ...]:
        return tuple(self.cells[j] for j in subset)

    def shape(self, subset: Subset) -> tuple[int, ...]:
        return tuple(self.cells[j].size for j in subset)

    def sizes(self) -> list[int]:
        """Number of cells of each block, in Python's integers: it may be larger than any machine word."""
        return [math.prod(self.shape(subset)) for subset in self.subsets]

    def indices(self, codes: Sequence[Ints], subset: Subset) -> Ints:
        """Index in its block of each row, given the rows' codes column by column."""
        index = codes[subset[0]]
        for j in subset[1:]:
            index = index * self.cells[j].size + codes[j]
        return index

    def count(self, batches: Iterable[Sequence[Ints]]) -> Counts:
        """Count rows that come as batches of codes, one array for each column."""
        blocks = [np.zeros(size, dtype=np.int64) for size in self.sizes()]
        rows = 0
        for codes in batches:
            rows += len(codes[0])
            for block, subset in zip(blocks, self.subsets, strict=True):
                block += np.bincount(self.indices(codes, subset), minlength=len(block))
        return Counts(marginals=self, blocks=tuple(frozen(block) for block in blocks), rows=rows)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Counts:
    """Exact counts of private rows. They never leave the process, and do not show themselves."""

    marginals: Marginals
    blocks: tuple[Ints, ...]
    rows: int

    def __repr__(self) -> str:
        return f"Counts(<private: {len(self.blocks)} marginals>)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("exact counts are private and cannot be pickled")

    def __iter__(self) -> Iterator[Ints]:
        return iter(self.blocks)
