"""One column as nodes of a network: its line, its points apart, and what lies between the labels of its metric."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from certsynth.base.arrays import Ints
from certsynth.domain import Cells, Groups

MOST_IN_PAIRS = 600
"""Nodes of an axis up to which all pairs of them get an arc, where that happens once."""


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """Any of `froms` may become any of `tos` at the cost `length`: nodes of one axis, none further apart in a column's
    own metric.
    """

    froms: Ints
    tos: Ints
    length: int


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """A column's nodes, with all lengths in whole units.

    `positions` are those of the line: every step of it, whether some value falls there or not, unless it is uneven.
    After them come points apart, and inner nodes of the metric. `codes` tells the node of each cell.
    """

    cells: Cells
    unit: int
    positions: Ints
    codes: Ints
    even: bool

    @classmethod
    def of(cls, cells: Cells, unit: int, *, holes: bool = False) -> Axis:
        """`holes`: every step of the line is a node, so that columns that share a step still do."""
        places = cells.places
        even = not isinstance(cells, Groups)
        if len(places) > 1 and even:
            spacing = 1 if holes else int(np.gcd.reduce(np.diff(places)))
            positions = np.arange(cells.span // spacing + 1) * (spacing * unit // cells.steps)
            on_line = (places - places[0]) // spacing
        else:
            positions = (places - places[:1]) * (unit // cells.steps) if len(places) else places
            on_line = np.arange(len(places))
        codes = np.concatenate([on_line, len(positions) + np.arange(cells.off_line)])
        return cls(cells=cells, unit=unit, positions=positions, codes=codes, even=even)

    @property
    def line(self) -> int:
        return len(self.positions)

    @property
    def size(self) -> int:
        inner = 0 if self.cells.label_metric is None else self.cells.label_metric.inner
        return self.line + self.cells.off_line + inner

    @property
    def step(self) -> int:
        """The largest gap on the line."""
        return int(np.diff(self.positions).max()) if self.line > 1 else 0

    @property
    def diameter(self) -> int:
        return int(self.cells.diameter * self.unit)

    @property
    def weight(self) -> int:
        return int(self.cells.weight * self.unit)

    def distances(self) -> Ints:
        """Between all nodes."""
        metric, line, weight = self.cells.label_metric, self.line, self.weight
        far = np.full((self.size, self.size), weight, dtype=np.int64)
        np.fill_diagonal(far, 0)
        far[:line, :line] = np.abs(self.positions[:, None] - self.positions[None, :])
        if metric is not None:
            nodes = self.web_nodes()
            far[np.ix_(nodes, nodes)] = metric.distances * (weight // metric.unit)
        return far

    def web_nodes(self) -> Ints:
        """Where the nodes of the metric are on the axis."""
        metric = self.cells.label_metric
        assert metric is not None
        inner = self.line + self.cells.off_line + np.arange(metric.inner)
        return np.concatenate([self.line + np.arange(metric.size), inner])

    def star(self) -> Move | None:
        """Between any two points, where some are apart from all others."""
        if not self.cells.isolated or self.cells.size < 2:
            return None
        points = np.arange(self.line + self.cells.off_line)
        return Move(points, points, self.weight)

    def web_moves(self) -> Iterator[Move]:
        metric = self.cells.label_metric
        if metric is None:
            return
        nodes, scale = self.web_nodes(), self.weight // metric.unit
        for froms, tos, length in metric.arcs():
            yield Move(nodes[froms], nodes[tos], length * scale)

    def free(self, length: int, stride: int) -> tuple[Ints, Ints, Ints]:
        """Nodes that can be exchanged for each other while another axis moves by `length`, and what that adds.

        All pairs, unless there are very many or a `stride` is given. Then those within `length`, for nothing; and on a
        line the next ones beyond, for the rest of the way, which makes longer ways exact. On the line a stride above 1
        leaves out some, but not the farthest.
        """
        distances = self.distances()
        take = distances <= length
        if not stride and self.size <= MOST_IN_PAIRS:
            take[:] = True
        elif self.line:
            inside, rows = take[: self.line, : self.line], np.arange(self.line)
            first, last = np.argmax(inside, axis=1), self.line - 1 - np.argmax(inside[:, ::-1], axis=1)
            if stride > 1:
                inside &= np.abs(rows[:, None] - rows[None, :]) % stride == 0
                inside[rows, last] = inside[rows, first] = True
            inside[rows, np.minimum(last + 1, self.line - 1)] = inside[rows, np.maximum(first - 1, 0)] = True
        tails, heads = np.nonzero(take)
        return tails, heads, np.maximum(distances[tails, heads] - length, 0)

    def lost(self, length: int, stride: int = 1) -> Fraction:
        """Of a move by `length` on another axis, the share that this one cannot use at worst, walking towards a goal.

        On an even line, or a metric of equal arcs, whole steps fit in; else all but a step do.
        """
        steps, even = {self.step} - {0}, self.even
        if self.cells.label_metric is not None:
            steps |= {move.length for move in self.web_moves()}
            even = len(steps) == 1
        if not steps or self.diameter <= length:
            return Fraction(0)
        step = max(steps)
        rest = length % step if even else min(length, step)
        if stride > 1:
            rest += stride * step // 2
        return Fraction(min(rest, length), length)
