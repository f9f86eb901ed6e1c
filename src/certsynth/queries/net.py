"""Nets: points of a public table that stand for the whole space, where a lattice of all columns would not fit.

The nodes are taken from the synthetic table and the schema alone. A private row is counted at the nearest node, or at
the hub if none is near; docs/explanation/proofs/nets.md says why that is private, and what it costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from certsynth.base.arrays import Ints, frozen
from certsynth.domain import Schema
from certsynth.domain.ruler import UNITS, Ruler

MAX_NODES = 10_000
MAX_TOTAL_NODES = 100_000
MIN_NODES = 1_000
"""Nodes of one net, of all together, and of one however many there are. benchmarks/nets.py measures what they gain."""

MAX_SCANNED_ROWS = 1_000_000
"""Rows of the public tables that nodes are chosen from: the first ones."""

DISTANCE_LEVELS = 16
"""Rows at one node are counted by how far they are from it, in so many levels up to the hub."""

LEVEL_SLACK = UNITS // (2 * DISTANCE_LEVELS) + 1
"""By how much more than the unit length one row can change a loss over a net, in units: the width of a level."""

_SEED = 20_240_229
"""Which points are nodes is drawn with this: the same table has the same net."""


@dataclass(frozen=True, slots=True, eq=False)
class Net:
    """Nodes for one subset of columns, sorted by the `leading` one.

    Counts on it have an entry for each node and level, and a last one for the hub, which is at `Ruler.half` from every
    point there is.
    """

    subset: tuple[int, ...]
    ruler: Ruler
    nodes: Ints
    leading: int

    @classmethod
    def of(cls, schema: Schema, subset: Sequence[int], clean: Sequence[np.ndarray], *, most: int = MAX_NODES) -> Net:
        """A net on at most so many of the distinct points of public rows.

        First come those that hold more than an even share of the rows, then others as they are drawn.
        """
        columns = tuple(schema)
        ruler = Ruler.of([columns[j] for j in subset])
        points, counts = _distinct(ruler.place([clean[j] for j in subset])[0])
        if len(points) > most:
            lots = np.random.default_rng(_SEED).permutation(len(points))
            light = counts * most <= counts.sum()
            points = points[np.lexsort((lots, light))[:most]]
        leading = ruler.leading(points)
        if leading >= 0:
            points = points[np.argsort(points[:, leading], kind="stable")]
        return cls(tuple(subset), ruler, frozen(points), leading)

    @property
    def size(self) -> int:
        """Entries of counts."""
        return len(self.nodes) * DISTANCE_LEVELS + 1

    def attach(self, clean: Sequence[np.ndarray]) -> tuple[Ints, Ints]:
        """Where in the counts cleaned rows of all columns go, and how far they are moved, rounded up, in units.

        Both depend on the row and the net only: not on other rows, or on how rows come in batches.
        """
        points, off = self.ruler.place([clean[j] for j in self.subset])
        node, far = self.ruler.nearest(points, self.nodes, self.leading)
        half = self.ruler.half
        far = np.minimum(far + off, half)
        level = far * DISTANCE_LEVELS // half
        at_hub = (node < 0) | (level >= DISTANCE_LEVELS)
        return np.where(at_hub, self.size - 1, node * DISTANCE_LEVELS + level), np.where(at_hub, half, far)

    def hub_distances(self) -> Ints:
        """For each level, how far the hub still is: what a row was moved counts, rounded down to its level."""
        half = self.ruler.half
        return half - np.arange(DISTANCE_LEVELS) * half // DISTANCE_LEVELS


def nodes_per_net(subsets: int) -> int:
    """How many nodes each of so many nets may have."""
    return max(MIN_NODES, min(MAX_NODES, MAX_TOTAL_NODES // max(subsets, 1)))


def _distinct(points: Ints) -> tuple[Ints, Ints]:
    """Distinct rows in order, and how often each occurs."""
    ordered = points[np.lexsort(points.T[::-1])]
    new = np.append(True, (np.diff(ordered, axis=0) != 0).any(axis=1))
    return np.ascontiguousarray(ordered[new]), np.diff(np.append(np.flatnonzero(new), len(ordered)))
