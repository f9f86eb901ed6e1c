"""Divide the budget among pairs of columns: which are measured, in how many cells, and with how much noise.

The expected losses are a model; docs/explanation/adaptive.md has its reasons and figures. Whatever it chooses, privacy
and the certificate hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import lambertw

from certsynth.algorithm.layers import MAX_TABLE_WEIGHT
from certsynth.base.arrays import Floats, Ints
from certsynth.domain import Cells
from certsynth.queries.marginals import Subset

CELL_LOSS_FACTOR = 1.0
"""Expected loss inside cells, as a multiple of the dependence divided by the number of groups of a line."""

HIDDEN_FACTOR = 1.6
"""Estimated dependence inside groups of labels, as a multiple of D·(1 − D), where D is that between groups."""

UNREAD_LOSS_FACTOR = 0.75
"""Expected loss of rows whose labels have too few of them, as a multiple of the dependence."""

MAX_TABLE_CELLS = 200_000
"""Cells of a table of two columns, at most."""

LOSS_POWER, GAUSSIAN_LOSS_POWER = 3, 2
"""Losses enter the objective with this power in ε and in ρ, so that large ones count most."""

WEIGHT_POWER, GAUSSIAN_WEIGHT_POWER = 3 / 4, 1 / 2
"""Tables get weights that grow with this power of their expected loss in ε and in ρ. For p the power of losses it is
p/(p + 1) in ε, where a weight costs budget in proportion, and p/(p + 2) in ρ, where it costs its square: this minimises
the sum of powers of losses that fall in proportion to the weight."""

PREFERENCE = 3.0
"""Factor on the weight of pairs that are always measured."""

NOISE_LEVELS = 16
NUMBERS_PER_DOUBLING = 4
"""Noise levels at which the loss of each table is computed, and the numbers of tables that are tried per doubling."""


@dataclass(frozen=True, slots=True)
class CellSize:
    """The most groups along a line, and the most groups of labels."""

    line: int
    labels: int


@dataclass(frozen=True, slots=True)
class MeasuredPair:
    """A pair of columns that will be measured: the size of its cells, and its weight."""

    subset: Subset
    size: CellSize
    weight: int


@dataclass(frozen=True, slots=True, eq=False)
class _Spread:
    """How the rows of one column are spread: over `labels`, or along a line of some `steps`.

    `merged` is the share of the rows whose label is not the commonest one of its group. A column has `many` labels if
    they are merged in cells of another size.
    """

    labels: Floats
    steps: int
    weight: float
    merged: float
    many: bool

    @classmethod
    def of(cls, cells: Cells, counts: Floats, merged: float, *, few: int) -> _Spread:
        if len(cells.places):
            return cls(np.array([counts.sum()]), cells.size, float(cells.weight), merged, many=False)
        return cls(counts, 1, float(cells.weight), merged, many=len(counts) > few)

    @property
    def places(self) -> float:
        """The number of cells among which noise does not average out."""
        return len(self.labels) * math.sqrt(self.steps)

    def unread(self, levels: Floats, places: float) -> Floats:
        """The share of the rows that noise hides, for each of its levels, in a table with so many places to each label.

        If the rows of a label are in one place, noise in the others is told from them only above a threshold: there it
        adds up to as many rows as the threshold takes away. Labels of fewer rows are not read at all.
        """
        thresholds = levels / math.sqrt(2) * lambertw(places / 2).real
        rows = self.labels[self.labels > 0]
        found: Floats = np.minimum(rows, thresholds[:, None]).sum(axis=1) / rows.sum()
        return found


def _noise_loss(first: _Spread, second: _Spread, levels: Floats, rows: float, factor: float) -> Floats:
    """The expected loss by noise of a pair, for each level of the noise on a cell.

    Along a line, noise of neighbouring cells averages out; between labels it does not. A label of few rows cannot be
    wrong by many more than these, since the counts of single columns are known better.
    """
    counts = np.outer(first.labels, second.labels).ravel() / rows
    errors = levels[:, None] * math.sqrt(first.steps * second.steps)
    worst = max(first.weight, second.weight)
    found: Floats = factor * worst * (errors * counts / (errors + counts)).sum(axis=1) / rows
    return found


@dataclass(frozen=True, slots=True, eq=False)
class ColumnCells:
    """The groups of a column, with the expected counts of rows in them; `merged` is that of `_Spread`."""

    cells: Cells
    counts: Floats
    merged: float


@dataclass(frozen=True, slots=True, eq=False)
class LossModel:
    """Expected losses of all pairs: by size of cells, noise level, and pair.

    `dependence` is that of scores, and `merged` the part of the loss that stays in cells of that size whatever the
    noise.
    """

    dependence: Floats
    sizes: tuple[CellSize, ...]
    levels: Floats  # standard deviations of the noise on a cell, ascending
    noise: Floats  # (sizes, levels, pairs)
    merged: Floats  # (sizes, pairs)

    @classmethod
    def of(
        cls,
        pairs: Sequence[Subset],
        dependence: Floats,
        columns: Mapping[CellSize, Sequence[ColumnCells]],
        levels: Floats,
        *,
        noise_loss_factor: float,
    ) -> LossModel:
        """`columns` are the groups of each column in each size, with the counts of rows that are expected in them.

        The expected loss by noise is `noise_loss_factor` times the noise's standard deviation summed over cells, and
        what labels lose that have too few rows, where many are not merged.
        """
        noise = np.empty((len(columns), len(levels), len(pairs)))
        merged = np.empty((len(columns), len(pairs)))
        few = min(size.labels for size in columns)
        for s, own in enumerate(columns.values()):
            spreads = [_Spread.of(column.cells, column.counts, column.merged, few=few) for column in own]
            rows = own[0].counts.sum()
            for p, pair in enumerate(pairs):
                first, second = (spreads[j] for j in pair)
                hidden = HIDDEN_FACTOR * dependence[p] * (1 - dependence[p])
                noise[s, :, p] = _noise_loss(first, second, levels, rows, noise_loss_factor)
                merged[s, p] = hidden * max(first.merged, second.merged)
                unread = [a.unread(levels, b.places) for a, b in ((first, second), (second, first)) if a.many]
                if unread:
                    noise[s, :, p] += UNREAD_LOSS_FACTOR * (dependence[p] + hidden) * np.maximum.reduce(unread)
                if math.prod(own[j].cells.size for j in pair) > MAX_TABLE_CELLS:
                    merged[s, p] = math.inf
        return cls(dependence, tuple(columns), levels, noise, merged)

    @property
    def left_out(self) -> Floats:
        """The expected loss of each pair if it is not measured. Scores see nothing inside groups of labels."""
        found: Floats = self.dependence + self.merged[-1]
        return found

    def losses(self, deviations: Floats, pairs: Ints) -> tuple[Floats, Ints]:
        """The expected loss of each of these pairs at its noise level, with the best size of cells, whose index comes
        second.
        """
        found = np.array(
            [
                [np.interp(d, self.levels, self.noise[s, :, p]) for d, p in zip(deviations, pairs, strict=True)]
                for s in range(len(self.sizes))
            ]
        )
        found += CELL_LOSS_FACTOR * self.dependence[pairs] / np.array([size.line for size in self.sizes])[:, None]
        found += self.merged[:, pairs]
        best = found.argmin(axis=0)
        return found[best, np.arange(len(pairs))], best


def noise_levels(least: float, tables: int, *, gaussian: bool) -> Floats:
    """Noise levels for 1 to `tables` tables of any weight, where a single one has noise `least`."""
    most = least * (math.sqrt(tables) if gaussian else tables) * MAX_TABLE_WEIGHT
    return np.geomspace(least, most, NOISE_LEVELS)


def allocate(
    pairs: Sequence[Subset], model: LossModel, *, gaussian: bool, always: Callable[[Subset], bool]
) -> list[MeasuredPair]:
    """Choose the pairs to measure so that the sum of powers of expected losses is least.

    Pairs are ordered by their dependence relative to the cost of measuring them, after those that are measured
    `always`, and the best number of them is sought. At least one is measured.
    """
    count, least = len(pairs), float(model.levels[0])
    middle = np.full(count, least * (math.sqrt(count / 3) if gaussian else count / 3))
    costs = np.maximum(model.losses(middle, np.arange(count))[0], 1e-12)
    loss_power = GAUSSIAN_LOSS_POWER if gaussian else LOSS_POWER
    weight_power = GAUSSIAN_WEIGHT_POWER if gaussian else WEIGHT_POWER
    unmeasured = model.left_out**loss_power
    merit = unmeasured / costs**weight_power
    first = np.array([always(pair) for pair in pairs], bool)
    order = np.lexsort((-merit, ~first))
    left_out = np.append(np.cumsum(unmeasured[order][::-1])[::-1], 0.0)
    best: tuple[float, list[MeasuredPair]] | None = None
    for number in _numbers(max(1, int(first.sum())), count):
        chosen = order[:number]
        share = costs[chosen] ** weight_power * np.where(first[chosen], PREFERENCE, 1.0)
        weights = np.maximum(np.rint(MAX_TABLE_WEIGHT * share / share.max()), 1)
        norm = math.sqrt(float((weights**2).sum())) if gaussian else float(weights.sum())
        losses, sizes = model.losses(least * norm / weights, chosen)
        objective = float((losses**loss_power).sum() + left_out[number])
        if best is None or objective < best[0]:
            found = zip(chosen.tolist(), sizes.tolist(), weights.tolist(), strict=True)
            best = objective, [MeasuredPair(pairs[p], model.sizes[s], int(w)) for p, s, w in found]
    assert best is not None
    return sorted(best[1], key=lambda pair: pair.subset)


def _numbers(least: int, most: int) -> list[int]:
    """Numbers of tables to try, from `least` to `most`."""
    steps = math.ceil(NUMBERS_PER_DOUBLING * math.log2(max(most / least, 1)))
    return sorted({min(most, round(least * 2 ** (step / NUMBERS_PER_DOUBLING))) for step in range(steps + 1)} | {most})
