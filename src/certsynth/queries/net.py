"""Nets: points of a public table that represent the whole space where a lattice of all columns would not fit.

The nodes depend on the synthetic table and the schema alone. A private row is counted at the nearest node, or at the
hub if none is near; docs/explanation/proofs/nets.md proves that this is private, and bounds the error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from certsynth.base.arrays import Ints, read_only
from certsynth.domain import Schema
from certsynth.domain.ruler import UNITS_PER_LENGTH, Ruler

MAX_NODES = 10_000
MAX_TOTAL_NODES = 100_000
MIN_NODES = 1_000
"""Nodes of one net, at most; of all nets together, as long as each has MIN_NODES; and of one net, at least.
benchmarks/nets.py measures how the bound depends on them."""

MAX_SCANNED_ROWS = 1_000_000
"""The first rows of the public tables, this many in all, are those that nodes are chosen from."""

DISTANCE_LEVELS = 16
"""Levels of distance, from 0 to that of the hub, by which rows at one node are counted separately."""

LEVEL_SLACK = UNITS_PER_LENGTH // (2 * DISTANCE_LEVELS) + 1
"""Excess over the unit length by which one row can change a loss over a net, in units of 1/UNITS_PER_LENGTH: the
width of a level."""

_SEED = 20_240_229
"""Seed of the choice of nodes, fixed so that the same table has the same net."""


@dataclass(frozen=True, slots=True, eq=False)
class Net:
    """Nodes for one subset of columns, sorted by their `leading` coordinate.

    Counts have an entry for each node and level, and a last one for the hub, which is at distance
    `Ruler.half_diameter` from every point.
    """

    subset: tuple[int, ...]
    ruler: Ruler
    nodes: Ints
    leading: int

    @classmethod
    def of(cls, schema: Schema, subset: Sequence[int], clean: Sequence[np.ndarray], *, most: int = MAX_NODES) -> Net:
        """A net on at most `most` of the distinct points of public rows.

        Points with more than an equal share of the rows come first, then others at random.
        """
        columns = tuple(schema)
        ruler = Ruler.of([columns[j] for j in subset])
        points, counts = _distinct(ruler.place([clean[j] for j in subset])[0])
        if len(points) > most:
            lots = np.random.default_rng(_SEED).permutation(len(points))
            light = counts * most <= counts.sum()
            points = points[np.lexsort((lots, light))[:most]]
        leading = ruler.sort_column(points)
        if leading >= 0:
            points = points[np.argsort(points[:, leading], kind="stable")]
        return cls(tuple(subset), ruler, read_only(points), leading)

    @property
    def size(self) -> int:
        """Number of entries of the counts."""
        return len(self.nodes) * DISTANCE_LEVELS + 1

    def attach(self, clean: Sequence[np.ndarray]) -> tuple[Ints, Ints]:
        """Index in the counts of each cleaned row, and how far it is moved, in units, rounded up.

        Both depend on the row and the net alone, not on other rows or batches.
        """
        points, off = self.ruler.place([clean[j] for j in self.subset])
        node, far = self.ruler.nearest(points, self.nodes, self.leading)
        half = self.ruler.half_diameter
        far = np.minimum(far + off, half)
        level = far * DISTANCE_LEVELS // half
        at_hub = (node < 0) | (level >= DISTANCE_LEVELS)
        return np.where(at_hub, self.size - 1, node * DISTANCE_LEVELS + level), np.where(at_hub, half, far)

    def hub_distances(self) -> Ints:
        """For each level, the distance still to go to the hub: that of a node minus the move, rounded down."""
        half = self.ruler.half_diameter
        return half - np.arange(DISTANCE_LEVELS) * half // DISTANCE_LEVELS


def nodes_per_net(subsets: int) -> int:
    """The most nodes that each net may have, given the number of nets."""
    return max(MIN_NODES, min(MAX_NODES, MAX_TOTAL_NODES // max(subsets, 1)))


def _distinct(points: Ints) -> tuple[Ints, Ints]:
    """Distinct rows in lexicographic order, and how often each occurs."""
    ordered = points[np.lexsort(points.T[::-1])]
    new = np.append(True, (np.diff(ordered, axis=0) != 0).any(axis=1))
    return np.ascontiguousarray(ordered[new]), np.diff(np.append(np.flatnonzero(new), len(ordered)))
