"""Counts on fine lattices and nets with the distances rows were moved: the data that true losses are computed from."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from certsynth.base.arrays import read_only
from certsynth.domain import Ordered, Schema
from certsynth.errors import InputError
from certsynth.queries.coding import MOVE_UNITS as MOVE_UNITS
from certsynth.queries.coding import Coded, Coder, on_lattice
from certsynth.queries.coding import move_units as move_units
from certsynth.queries.counting import sum_largest_moves as moved_units
from certsynth.queries.marginals import Counts, Marginals, Subset, all_subsets
from certsynth.queries.net import LEVEL_SLACK, MAX_SCANNED_ROWS, Net, nodes_per_net
from certsynth.queries.tally import Batch, tally_batches, zeros

DEFAULT_STEPS = {1: 1280, 2: 256, 3: 32}
"""Default lattice steps to the unit length, by the number of columns of the widest table. For single columns it is five
times `DETAIL_STEPS`, an odd multiple, so that every measured cell consists of whole cells of the lattice."""

LISTED_STEPS, MAX_LISTED_COLUMNS = 512, 2
"""Lattice steps of a column whose values are counted and written one by one, although it has more than DEFAULT_STEPS[2]
of them, in losses of two columns, if there are at most MAX_LISTED_COLUMNS such columns. Private and synthetic rows are
then together as far from the lattice as private rows alone are from one of half as many steps."""

PLACING_PHASE = "placing rows on the lattice"
"""Name of the phase in which rows are counted on the lattice, for progress reports."""

LATTICE_COLUMNS = 3
"""Columns up to which tables are compared on a lattice; wider ones are compared on nets."""


def finer_columns(schema: Schema) -> frozenset[str]:
    """The columns with LISTED_STEPS in losses of two columns: none if there are many, as flows would take too long."""
    listed = [column.name for column in schema if isinstance(column, Ordered) and column.listed_steps is not None]
    return frozenset(listed if len(listed) <= MAX_LISTED_COLUMNS else ())


@dataclass(frozen=True, slots=True, eq=False)
class LatticeQuery:
    """Marginals on the columns' own lattices, fixed by the schema alone, or on nets for more than three columns.

    Lattices of one or two columns consist of the native values if there are at most `steps` of them to the unit length;
    three columns share one step, since the network of three unequal steps is not exact. A few columns of very many
    values have LISTED_STEPS. `with_nets` takes the nodes of nets from public rows. This is a tally of rows.
    """

    schema: Schema
    marginals: Marginals
    nets: tuple[Net, ...] = ()
    lattice_columns: int = LATTICE_COLUMNS

    @classmethod
    def of(
        cls,
        schema: Schema,
        subsets: Sequence[Subset],
        *,
        steps: int | None = None,
        lattice_columns: int = LATTICE_COLUMNS,
    ) -> LatticeQuery:
        """`lattice_columns`: number of columns, at most three, up to which a table has a lattice."""
        columns = max([len(subset) for subset in subsets if len(subset) <= lattice_columns], default=1)
        finer = finer_columns(schema) if steps is None and columns == 2 else frozenset()
        steps = DEFAULT_STEPS[columns] if steps is None else steps
        if not 1 <= steps <= 4096:
            raise InputError(f"the lattice must have between 1 and 4096 steps; got {steps}.")
        cells = tuple(
            column.lattice(LISTED_STEPS if column.name in finer else steps, native=columns <= 2) for column in schema
        )
        marginals = Marginals(cells=cells, subsets=tuple(subsets))
        return cls(schema=schema, marginals=marginals, lattice_columns=lattice_columns)

    @classmethod
    def all_subsets(cls, schema: Schema, *, sparsity: int, steps: int | None = None) -> LatticeQuery:
        return cls.of(schema, all_subsets(schema, sparsity), steps=steps)

    @property
    def on_lattices(self) -> Marginals:
        """The marginals that are counted on lattices."""
        narrow = tuple(subset for subset in self.marginals.subsets if len(subset) <= self.lattice_columns)
        return Marginals(cells=self.marginals.cells, subsets=narrow)

    @property
    def wide(self) -> tuple[Subset, ...]:
        """The subsets that are counted on nets."""
        return tuple(subset for subset in self.marginals.subsets if len(subset) > self.lattice_columns)

    def with_nets(self, *tables: Iterable[Sequence[np.ndarray]], most: int | None = None) -> LatticeQuery:
        """The same query with nets on cleaned rows of some tables, which must be public if the result gets noise."""
        wide = self.wide
        if not wide:
            return self
        seen: list[Sequence[np.ndarray]] = []
        for table in tables:
            room = MAX_SCANNED_ROWS // len(tables)
            for batch in table:
                seen.append([values[:room] for values in batch])
                room -= len(seen[-1][0])
                if room <= 0:
                    break
        clean = [np.concatenate(values) for values in zip(*seen, strict=True)] if seen else []
        if not clean or not len(clean[0]):
            raise InputError("the synthetic table has no rows: there is nothing to compare.")
        most = nodes_per_net(len(wide)) if most is None else most
        return dataclasses.replace(self, nets=tuple(Net.of(self.schema, subset, clean, most=most) for subset in wide))

    def nets_by_subset(self) -> list[Net | None]:
        """For each subset its net, or None if it has a lattice."""
        nets = iter(self.nets)
        return [next(nets) if len(subset) > self.lattice_columns else None for subset in self.marginals.subsets]

    def counts_like(self, other: LatticeQuery) -> bool:
        """Whether both count the same subsets on the same lattices."""
        ours, theirs = self.marginals, other.marginals
        return ours.subsets == theirs.subsets and all(
            a.steps == b.steps and np.array_equal(a.places, b.places)
            for a, b in zip(ours.cells, theirs.cells, strict=True)
        )

    def count(self, batches: Iterable[Batch]) -> LatticeCounts:
        """Count cleaned rows that come in batches."""
        return tally_batches(batches, self)

    def begin(self) -> Coded:
        """A vector of counts for each subset, one of the summed moves of all subsets, and the number of rows."""
        if len(self.nets) < len(self.wide):
            raise ValueError("more than three columns are counted on nets: call with_nets first")
        blocks = zip(self.marginals.sizes(), self.nets_by_subset(), strict=True)
        sizes = [size if net is None else net.size for size, net in blocks]
        coder = Coder(tuple(self.schema), self.marginals.cells, on_lattice, self.farthest())
        return Coded(zeros([*sizes, len(sizes), 1]), coder)

    def add(self, sums: Coded, batch: Batch) -> None:
        *blocks, moved, rows = sums.vectors
        rows += len(batch[0])
        grounds = self.nets_by_subset()
        for j, (net, block) in enumerate(zip(grounds, blocks, strict=True)):
            if net is not None:
                where, far = net.attach(batch)
                block += np.bincount(where, minlength=len(block))
                moved[j] += far.sum()
        placed = [j for j, net in enumerate(grounds) if net is None]
        on_lattices = self.on_lattices
        for codes, units in sums.coder.code_in_chunks(batch) if placed else ():
            on_lattices.add([blocks[j] for j in placed], codes)
            moved[placed] += moved_units(units, on_lattices.subsets)

    def mean_moved(self, table: Batch) -> Fraction:
        """How far cleaned rows are from where they are counted, on average, in the subset where that is most."""
        grounds, on_lattices = self.nets_by_subset(), self.on_lattices
        sums = np.zeros(len(on_lattices.subsets), np.int64)
        coder = Coder(tuple(self.schema), self.marginals.cells, on_lattice, self.farthest())
        for _, units in coder.code_in_chunks(table) if len(sums) else ():
            sums += moved_units(units, on_lattices.subsets)
        nets = [int(net.attach(table)[1].sum()) for net in grounds if net is not None]
        return Fraction(max([*sums.tolist(), *nets]), MOVE_UNITS * len(table[0]))

    def result(self, sums: Coded) -> LatticeCounts:
        *blocks, moved, rows = sums.vectors
        counts = Counts(marginals=self.marginals, blocks=tuple(map(read_only, blocks)), rows=int(rows[0]))
        return LatticeCounts(counts=counts, moved=tuple(moved.tolist()))

    def farthest(self) -> int:
        """The largest possible distance of a row to its lattice point, in units, rounded up."""
        away = max(c.covering_radius(g) for c, g in zip(self.schema, self.marginals.cells, strict=True))
        return math.ceil(away * MOVE_UNITS)

    def slack(self) -> int:
        """Excess over the unit length by which one row can change a loss, in units: fixed by the schema."""
        return max(self.farthest() if self.on_lattices.subsets else 0, LEVEL_SLACK if self.wide else 0)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LatticeCounts:
    """Counts of one table, and for each subset the summed distances of rows to their points, in units."""

    counts: Counts
    moved: tuple[int, ...]

    def __repr__(self) -> str:
        return f"LatticeCounts(<private: {len(self.moved)} marginals>)"

    @property
    def rows(self) -> int:
        return self.counts.rows
