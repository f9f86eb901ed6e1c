"""One column as the nodes of a network axis: its line, its points off the line, and the inner nodes of its labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from certsynth.base.arrays import Ints
from certsynth.domain import Cells, Groups

MAX_ALL_PAIRS_NODES = 600
"""Most nodes of an axis for which arcs between all pairs are made, where that happens only once."""


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """A move along one axis, from any node of `froms` to any node of `tos`, at the cost `length`, which is at least
    their distance.
    """

    froms: Ints
    tos: Ints
    length: int


@dataclass(frozen=True, slots=True, eq=False)
class Axis:
    """The nodes of a column, with all lengths in multiples of 1/`unit`.

    First come the nodes of the line at `positions`, then the points off the line, then the inner nodes of the label
    metric. An `even` line has equally spaced nodes, also where no value falls. `codes` is the node of each cell.
    """

    cells: Cells
    unit: int
    positions: Ints
    codes: Ints
    even: bool

    @classmethod
    def of(cls, cells: Cells, unit: int, *, every_step: bool = False) -> Axis:
        """With `every_step`, steps of an even line are never merged, so that columns with equal steps keep them."""
        places = cells.places
        even = not isinstance(cells, Groups)
        if len(places) > 1 and even:
            spacing = 1 if every_step else int(np.gcd.reduce(np.diff(places)))
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
        """The largest gap between neighbours on the line."""
        return int(np.diff(self.positions).max()) if self.line > 1 else 0

    @property
    def diameter(self) -> int:
        return int(self.cells.diameter * self.unit)

    @property
    def weight(self) -> int:
        return int(self.cells.weight * self.unit)

    def distances(self) -> Ints:
        """Distances between all nodes."""
        metric, line, weight = self.cells.label_metric, self.line, self.weight
        far = np.full((self.size, self.size), weight, dtype=np.int64)
        np.fill_diagonal(far, 0)
        far[:line, :line] = np.abs(self.positions[:, None] - self.positions[None, :])
        if metric is not None:
            nodes = self.metric_nodes()
            far[np.ix_(nodes, nodes)] = metric.distances * (weight // metric.unit)
        return far

    def metric_nodes(self) -> Ints:
        """The nodes of the axis that are nodes of the label metric, in its order."""
        metric = self.cells.label_metric
        assert metric is not None
        inner = self.line + self.cells.off_line + np.arange(metric.inner)
        return np.concatenate([self.line + np.arange(metric.size), inner])

    def star(self) -> Move | None:
        """The move between any two points, if some point is isolated."""
        if not self.cells.isolated or self.cells.size < 2:
            return None
        points = np.arange(self.line + self.cells.off_line)
        return Move(points, points, self.weight)

    def metric_moves(self) -> Iterator[Move]:
        """Moves along the arcs of the label metric."""
        metric = self.cells.label_metric
        if metric is None:
            return
        nodes, scale = self.metric_nodes(), self.weight // metric.unit
        for froms, tos, length in metric.arcs():
            yield Move(nodes[froms], nodes[tos], length * scale)

    def free_moves(self, length: int, stride: int) -> tuple[Ints, Ints, Ints]:
        """Tails, heads and extra cost of the moves on this axis while another axis moves by `length`.

        All pairs, unless there are more than MAX_ALL_PAIRS_NODES nodes or a `stride` is given. Then pairs within
        `length`, which are free, and on a line the next node beyond at the extra cost, which makes longer paths exact.
        A stride above 1 leaves out some pairs on the line, but not the farthest.
        """
        distances = self.distances()
        take = distances <= length
        if not stride and self.size <= MAX_ALL_PAIRS_NODES:
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

    def lost_share(self, length: int, stride: int = 1) -> Fraction:
        """The largest share of a move by `length` on another axis that this axis cannot use on its way to a target.

        On an even line, or with arcs of equal length, all whole steps are used; otherwise all but one step.
        """
        steps, even = {self.step} - {0}, self.even
        if self.cells.label_metric is not None:
            steps |= {move.length for move in self.metric_moves()}
            even = len(steps) == 1
        if not steps or self.diameter <= length:
            return Fraction(0)
        step = max(steps)
        rest = length % step if even else min(length, step)
        if stride > 1:
            rest += stride * step // 2
        return Fraction(min(rest, length), length)
