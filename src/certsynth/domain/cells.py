"""Cells: a column cut into finitely many points, the metric space that counting and transport work on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from certsynth.base.arrays import Ints, read_only
from certsynth.domain.label_metric import LabelMetric

UNIT_WEIGHT = Fraction(1)
"""The default weight of a column: its diameter is then at most 1."""


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    r"""Points on a line, and `off_line` points that are not on it.

    The point with code c < `len(places)` sits at `places[c]` steps of length 1/`steps` on the line. Every later code is
    a point off the line, at distance `weight` from all others (a category, a missing value). So

    .. math:: d(a, b) = |places_a - places_b| / steps, \quad\text{or } weight \text{ if either is off the line}

    If there is a `label_metric`, it gives the distances among its labels, which are the first points off the line, as
    fractions of `weight`.

    `places` lists only the steps that some value of the column can fall on: any other holds no row of any table, so it
    needs neither a counter nor noise.

    >>> few = Cells(places=np.array([0, 3]), steps=4, off_line=1)
    >>> few.size, few.distance(np.array([0, 0, 2]), np.array([1, 2, 2])).tolist()
    (3, [0.75, 1.0, 0.0])
    """

    places: Ints
    steps: int
    off_line: int
    weight: Fraction = UNIT_WEIGHT
    label_metric: LabelMetric | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "places", read_only(np.asarray(self.places, dtype=np.int64)))
        if self.size < 1:
            raise ValueError("a column needs at least one cell")
        if self.label_metric is not None and (len(self.places) or self.label_metric.size > self.off_line):
            raise ValueError("a label metric needs a column without a line, and a point for each label")

    @property
    def size(self) -> int:
        return len(self.places) + self.off_line

    @property
    def span(self) -> int:
        """Length of the line in steps."""
        return int(self.places[-1] - self.places[0]) if len(self.places) else 0

    @property
    def isolated(self) -> int:
        """Number of points at distance `weight` from all others: those off the line and in no label metric."""
        return self.off_line - (self.label_metric.size if self.label_metric is not None else 0)

    @property
    def diameter(self) -> Fraction:
        length = Fraction(self.span, self.steps)
        if self.isolated and self.size > 1:
            return max(self.weight, length)
        return self.weight * self.label_metric.diameter if self.label_metric is not None else length

    @property
    def denominator(self) -> int:
        """A common denominator of all distances: each is a multiple of one over it."""
        unit = self.label_metric.unit if self.label_metric is not None else 1
        line = self.steps if len(self.places) else 1
        return math.lcm(line, (self.weight / unit).denominator, self.weight.denominator)

    def distance(self, first: Ints, second: Ints) -> np.ndarray:
        """Distances between points given by their codes, elementwise."""
        first, second = np.broadcast_arrays(first, second)
        far = np.where(first != second, float(self.weight), 0.0)
        line = len(self.places)
        if line:
            a, b = np.minimum(first, line - 1), np.minimum(second, line - 1)
            along = np.abs(self.places[a] - self.places[b]) / self.steps
            return np.where((first >= line) | (second >= line), far, along)
        metric = self.label_metric
        if metric is not None:
            last = metric.size - 1
            inside = metric.distances[np.minimum(first, last), np.minimum(second, last)] / metric.unit
            return np.where((first > last) | (second > last), far, float(self.weight) * inside)
        return far


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Groups(Cells):
    """Groups of lattice points: runs of neighbours on the line, and arbitrary groups of points off the line.

    `starts` holds the lattice code of the first point of each run; the run sits half-way between its first and its last
    point. For each point off the line `group_of_label` is the index of its group, counted among the groups off the
    line; `representatives` is the point at which each of these groups sits.
    """

    lattice: Cells
    starts: Ints
    group_of_label: Ints
    representatives: Ints

    @classmethod
    def of(
        cls,
        lattice: Cells,
        starts: Ints | None,
        group_of_label: Ints | None = None,
        representatives: Ints | None = None,
    ) -> Groups:
        """Groups of `lattice`; where an argument is None, every point is a group of its own.

        >>> groups = Groups.of(Cells(places=np.arange(5), steps=4, off_line=1), np.array([0, 1, 4]))
        >>> groups.places / groups.steps, groups.code(np.arange(6)).tolist()
        (array([0. , 0.5, 1. ]), [0, 1, 1, 1, 2, 3])
        """
        line, alone = len(lattice.places), np.arange(lattice.off_line)
        starts = np.arange(line) if starts is None else np.asarray(starts, dtype=np.int64)
        if line and (not len(starts) or starts[0] != 0 or starts[-1] >= line or (np.diff(starts) <= 0).any()):
            raise ValueError("groups must begin at the first point, each after the one before")
        if not line and len(starts):
            raise ValueError("there are no points on the line to group")
        group_of_label = alone if group_of_label is None else np.asarray(group_of_label, dtype=np.int64)
        representatives = alone if representatives is None else np.asarray(representatives, dtype=np.int64)
        metric = _merged_metric(lattice, group_of_label, representatives)
        return cls(
            places=lattice.places[starts] + lattice.places[_run_ends(starts, line) - 1],
            steps=2 * lattice.steps,
            off_line=len(representatives),
            weight=lattice.weight,
            label_metric=metric,
            lattice=lattice,
            starts=read_only(starts),
            group_of_label=read_only(group_of_label),
            representatives=read_only(representatives),
        )

    def code(self, points: Ints) -> Ints:
        """The group of each lattice point, given by its code."""
        line = len(self.lattice.places)
        on_line = np.searchsorted(self.starts, points, side="right") - 1
        if not self.lattice.off_line:
            return np.asarray(on_line)
        off_line = self.group_of_label[np.maximum(points - line, 0)] + len(self.starts)
        return np.where(points < line, on_line, off_line)

    def middles(self) -> Ints:
        """For each group a lattice point in it, at or next to where the group sits."""
        line = len(self.lattice.places)
        last = _run_ends(self.starts, line) - 1
        return np.concatenate([(self.starts + last) // 2, line + self.representatives])

    @property
    def radius(self) -> Fraction:
        """The largest distance of a lattice point from where its group sits."""
        last = _run_ends(self.starts, len(self.lattice.places)) - 1
        widths = self.lattice.places[last] - self.lattice.places[self.starts]
        line = Fraction(int(widths.max(initial=0)), self.steps)
        points = np.arange(self.lattice.off_line)
        merged = points != self.representatives[self.group_of_label]
        if not merged.any():
            return line
        metric = self.lattice.label_metric
        if metric is None:
            return max(line, self.weight)
        away = metric.distances[points[merged], self.representatives[self.group_of_label[merged]]].max()
        return max(line, self.weight * Fraction(int(away), metric.unit))


def _run_ends(starts: Ints, line: int) -> Ints:
    """One past the last point of each run, on a line of `line` points."""
    return np.append(starts[1:], line)[: len(starts)]


def _merged_metric(lattice: Cells, group_of_label: Ints, representatives: Ints) -> LabelMetric | None:
    """The label metric of the representatives, if `lattice` has one. Refuse groups that are not a partition."""
    own = np.arange(len(representatives))
    if (
        group_of_label.shape != (lattice.off_line,)
        or (representatives < 0).any()
        or not np.array_equal(group_of_label[representatives], own)
    ):
        raise ValueError("every group of points off the line must contain its representative")
    if not ((group_of_label >= 0) & (group_of_label < len(representatives))).all():
        raise ValueError("every point off the line must be in a group")
    metric = lattice.label_metric
    if metric is None:
        return None
    merged = int(np.searchsorted(representatives >= metric.size, True))
    isolated = np.arange(metric.size, lattice.off_line)
    if (group_of_label[: metric.size] >= merged).any() or not np.array_equal(representatives[merged:], isolated):
        raise ValueError("points outside the label metric must stay alone, after its groups")
    return metric.take(representatives[:merged])


def coarse_codes(fine: Cells, coarse: Cells) -> Ints:
    """For each fine cell the code of the coarse cell that contains it; both are groups of one lattice, or the same.

    >>> lattice = Cells(places=np.arange(4), steps=3, off_line=1)
    >>> coarse_codes(Groups.of(lattice, np.arange(4)), Groups.of(lattice, np.array([0, 2]))).tolist()
    [0, 0, 1, 1, 2]
    """
    if fine is coarse:
        return np.arange(fine.size)
    if not isinstance(fine, Groups) or not isinstance(coarse, Groups) or fine.lattice.size != coarse.lattice.size:
        raise ValueError("the cells are not groups of one lattice")
    return coarse.code(np.concatenate([fine.starts, len(fine.lattice.places) + fine.representatives]))


def has_runs_of(cells: Cells, values: Groups) -> bool:
    """Whether cells are runs of these values, so that a value is in one of them."""
    return isinstance(cells, Groups) and cells.lattice.steps == values.lattice.steps
