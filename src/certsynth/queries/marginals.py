"""The operator 𝕋: a table's marginals on chosen subsets of columns, as exact integer counts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from certsynth.base.arrays import Floats, Ints, read_only
from certsynth.domain import Cells, Schema
from certsynth.domain.cells import coarse_codes
from certsynth.queries.coding import Coded, Coder, in_cells
from certsynth.queries.counting import count_rows
from certsynth.queries.tally import Batch, zeros

Subset = tuple[int, ...]
"""Positions of columns in the schema, ascending."""


def all_subsets(schema: Schema, ways: int) -> tuple[Subset, ...]:
    """All subsets of `ways` columns."""
    return tuple(itertools.combinations(range(len(schema)), ways))


def maximal_subsets(subsets: Sequence[Subset]) -> tuple[Subset, ...]:
    """The subsets contained in no other one: their marginals determine those of all others.

    >>> maximal_subsets([(0, 1), (1,), (2,), (0, 1, 3)])
    ((2,), (0, 1, 3))
    """
    holders: dict[int, set[Subset]] = {}
    for subset in subsets:
        for column in subset:
            holders.setdefault(column, set()).add(subset)
    widest = max(map(len, subsets), default=0)
    return tuple(s for s in subsets if len(s) == widest or len(set.intersection(*(holders[c] for c in s))) == 1)


def subsets_within(subsets: Sequence[Subset], ways: int) -> tuple[Subset, ...]:
    """All subsets of `ways` columns that are contained in one of the given subsets.

    >>> subsets_within([(0, 1, 3), (1, 2)], 2)
    ((0, 1), (0, 3), (1, 2), (1, 3))
    """
    return tuple(sorted({part for subset in subsets for part in itertools.combinations(subset, ways)}))


@dataclass(frozen=True, slots=True, eq=False)
class Marginals:
    r"""A list of marginals to count, and the cells of each column.

    .. math:: \mathbb T\mu = (P^{S}_{\#}\mu)_{S}

    where S runs over `subsets`, of any sizes, and each marginal is a block of counts over the product of its columns'
    cells, the last column running fastest. The coefficients of a marginal are multiplied by its entry of `weights`
    (by default 1) before noise is added, so that twice the weight means half the noise.

    Paper: section 3 [query-operator], appendix C [projections]
    """

    cells: tuple[Cells, ...]
    subsets: tuple[Subset, ...]
    weights: tuple[int, ...] = ()

    @classmethod
    def even(cls, schema: Schema, subsets: Sequence[Subset], *, resolution: int) -> Marginals:
        """Marginals of these subsets in even cells, `resolution` to the unit length."""
        return cls(cells=tuple(column.cells(resolution) for column in schema), subsets=tuple(subsets))

    @classmethod
    def all_subsets(cls, schema: Schema, *, sparsity: int, resolution: int) -> Marginals:
        """Marginals of all subsets of `sparsity` columns in even cells, `resolution` to the unit length."""
        return cls.even(schema, all_subsets(schema, sparsity), resolution=resolution)

    def of(self, subset: Subset) -> tuple[Cells, ...]:
        return tuple(self.cells[j] for j in subset)

    def shape(self, subset: Subset) -> tuple[int, ...]:
        return tuple(self.cells[j].size for j in subset)

    def sizes(self) -> list[int]:
        """Number of cells of each block, as Python integers, since it may exceed 64 bits."""
        return [math.prod(self.shape(subset)) for subset in self.subsets]

    def find_holder(self, subset: Subset) -> int | None:
        """Position of the subset's own block, else of the first block that contains it; None if there is none."""
        if subset in self.subsets:
            return self.subsets.index(subset)
        wanted = frozenset(subset)
        return next((j for j, held in enumerate(self.subsets) if wanted.issubset(held)), None)

    def marginal_on(self, blocks: Sequence[Floats], subset: Subset) -> Floats | None:
        """The marginal on a subset: its holder's block, summed over all other columns. Leading axes are kept."""
        j = self.find_holder(subset)
        if j is None:
            return None
        lead, held = blocks[j].shape[:-1], self.subsets[j]
        outside = tuple(len(lead) + axis for axis, column in enumerate(held) if column not in subset)
        return blocks[j].reshape(*lead, *self.shape(held)).sum(axis=outside).reshape(*lead, -1)

    def weight(self, j: int) -> int:
        """The weight of the j-th marginal."""
        return self.weights[j] if self.weights else 1

    def indices(self, codes: Sequence[Ints], subset: Subset) -> Ints:
        """Index of each row in the block of a subset, given the rows' codes column by column."""
        index = codes[subset[0]]
        for j in subset[1:]:
            index = index * self.cells[j].size + codes[j]
        return index

    def add(self, blocks: Sequence[Ints], codes: np.ndarray | Sequence[np.ndarray]) -> None:
        """Add rows to the blocks of all subsets. Rows come as codes, one array for each column."""
        count_rows(blocks, np.asarray(codes), self.subsets, [cells.size for cells in self.cells])

    def count(self, batches: Iterable[Sequence[Ints]]) -> Counts:
        """Count rows that come as batches of codes."""
        blocks = [np.zeros(size, dtype=np.int64) for size in self.sizes()]
        rows = 0
        for codes in batches:
            rows += len(codes[0])
            self.add(blocks, codes)
        return Counts(marginals=self, blocks=tuple(map(read_only, blocks)), rows=rows)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Counts:
    """Exact counts of private rows. They never leave the process, and their repr shows nothing."""

    marginals: Marginals
    blocks: tuple[Ints, ...]
    rows: int

    def __repr__(self) -> str:
        return f"Counts(<private: {len(self.blocks)} marginals>)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("exact counts are private and cannot be pickled")

    def __iter__(self) -> Iterator[Ints]:
        return iter(self.blocks)

    def merged(self, marginals: Marginals) -> Counts:
        """Exact counts of the same single columns in the cells of `marginals`, which are unions of these cells."""
        blocks = []
        for (column,), block in zip(self.marginals.subsets, self.blocks, strict=True):
            cells = marginals.cells[column]
            merged = np.zeros(cells.size, dtype=np.int64)  # in integers: floats would round large counts
            np.add.at(merged, coarse_codes(self.marginals.cells[column], cells), block)
            blocks.append(read_only(merged))
        return Counts(marginals=marginals, blocks=tuple(blocks), rows=self.rows)

    def part(self, marginals: Marginals) -> Counts:
        """Exact counts of some of the subsets, in the same cells."""
        positions = [self.marginals.subsets.index(subset) for subset in marginals.subsets]
        return Counts(marginals=marginals, blocks=tuple(self.blocks[j] for j in positions), rows=self.rows)


@dataclass(frozen=True, slots=True, eq=False)
class CellCounts:
    """The tally of a table's marginals: one vector for each, and one for the number of rows."""

    schema: Schema
    marginals: Marginals

    def begin(self) -> Coded:
        cells = self.marginals.cells
        return Coded(zeros([*self.marginals.sizes(), 1]), Coder(tuple(self.schema), cells, in_cells, 0))

    def add(self, sums: Coded, batch: Batch) -> None:
        for codes, _ in sums.coder.code_in_chunks(batch, distances=False):
            self.marginals.add(sums.vectors[:-1], codes)
        sums.vectors[-1] += len(batch[0])

    def result(self, sums: Coded) -> Counts:
        *blocks, rows = sums.vectors
        return Counts(marginals=self.marginals, blocks=tuple(map(read_only, blocks)), rows=int(rows[0]))
