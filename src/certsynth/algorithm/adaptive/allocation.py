"""Divide the budget among pairs of columns: which are measured, in how many cells, and with how much noise.

The expected losses are a model; docs/explanation/adaptive.md has its reasons and figures. Whatever it chooses, privacy
and the certificate hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from certsynth.algorithm.layers import MAX_TABLE_WEIGHT
from certsynth.base.arrays import Floats, Ints
from certsynth.domain import Cells
from certsynth.queries.marginals import Subset

CELL_LOSS_FACTOR = 1.0
"""Expected loss inside cells, as a multiple of the dependence divided by the number of groups of a line."""

LOSS_POWER, GAUSSIAN_LOSS_POWER = 3, 2
"""Losses enter the objective with this power in ε and in ρ, so that large ones count most."""

WEIGHT_POWER, GAUSSIAN_WEIGHT_POWER = 3 / 4, 1 / 2
"""Tables get weights that grow with this power of their expected loss in ε and in ρ. For p the power of losses it is
p/(p + 1) in ε, where a weight costs budget in proportion, and p/(p + 2) in ρ, where it costs its square: this minimises
the sum of powers of losses that fall in proportion to the weight."""

PREFERENCE = 2.0
"""Factor on the weight of pairs that are always measured."""

NOISE_LEVELS = 16
SIZES_PER_DOUBLING = 4
"""Noise levels at which the loss of each table is computed, and the numbers of tables that are tried per doubling."""


@dataclass(frozen=True, slots=True)
class MeasuredPair:
    """A pair of columns that will be measured: its groups to a line, and its weight."""

    subset: Subset
    resolution: int
    weight: int


@dataclass(frozen=True, slots=True, eq=False)
class _Spread:
    """How the rows of one column are spread: over `labels`, or along a line of some `steps`."""

    labels: Floats
    steps: int
    weight: float

    @classmethod
    def of(cls, cells: Cells, counts: Floats) -> _Spread:
        if len(cells.places):
            return cls(np.array([counts.sum()]), cells.size, float(cells.weight))
        return cls(counts, 1, float(cells.weight))


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
class LossModel:
    """Expected losses of all pairs: by number of groups to a line, noise level, and pair.

    `dependence` is the loss of a pair that is not measured.
    """

    dependence: Floats
    resolutions: tuple[int, ...]
    levels: Floats  # standard deviations of the noise on a cell, ascending
    noise: Floats  # (resolutions, levels, pairs)

    @classmethod
    def of(
        cls,
        pairs: Sequence[Subset],
        dependence: Floats,
        cells: Mapping[int, Sequence[Cells]],
        expected: Mapping[int, Sequence[Floats]],
        levels: Floats,
        *,
        noise_loss_factor: float,
    ) -> LossModel:
        """`cells` are the groups of each column at each resolution, and `expected` the counts of rows in them.

        The expected loss by noise is `noise_loss_factor` times the noise's standard deviation summed over cells.
        """
        noise = np.empty((len(cells), len(levels), len(pairs)))
        for r, (resolution, counts) in enumerate(expected.items()):
            columns = [_Spread.of(own, known) for own, known in zip(cells[resolution], counts, strict=True)]
            rows = counts[0].sum()
            for p, (first, second) in enumerate(pairs):
                noise[r, :, p] = _noise_loss(columns[first], columns[second], levels, rows, noise_loss_factor)
        return cls(dependence, tuple(expected), levels, noise)

    def losses(self, deviations: Floats, pairs: Ints) -> tuple[Floats, Ints]:
        """The expected loss of each of these pairs at its noise level, with the best resolution, whose index comes
        second.
        """
        found = np.array(
            [
                [np.interp(d, self.levels, self.noise[r, :, p]) for d, p in zip(deviations, pairs, strict=True)]
                for r in range(len(self.resolutions))
            ]
        )
        found += CELL_LOSS_FACTOR * self.dependence[pairs] / np.array(self.resolutions)[:, None]
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
    merit = model.dependence**loss_power / costs**weight_power
    first = np.array([always(pair) for pair in pairs], bool)
    order = np.lexsort((-merit, ~first))
    left_out = np.append(np.cumsum((model.dependence**loss_power)[order][::-1])[::-1], 0.0)
    best: tuple[float, list[MeasuredPair]] | None = None
    for size in _sizes(max(1, int(first.sum())), count):
        chosen = order[:size]
        share = costs[chosen] ** weight_power * np.where(first[chosen], PREFERENCE, 1.0)
        weights = np.maximum(np.rint(MAX_TABLE_WEIGHT * share / share.max()), 1)
        norm = math.sqrt(float((weights**2).sum())) if gaussian else float(weights.sum())
        losses, resolutions = model.losses(least * norm / weights, chosen)
        objective = float((losses**loss_power).sum() + left_out[size])
        if best is None or objective < best[0]:
            found = zip(chosen.tolist(), resolutions.tolist(), weights.tolist(), strict=True)
            best = objective, [MeasuredPair(pairs[p], model.resolutions[r], int(w)) for p, r, w in found]
    assert best is not None
    return sorted(best[1], key=lambda pair: pair.subset)


def _sizes(least: int, most: int) -> list[int]:
    """Numbers of tables to try, from `least` to `most`."""
    steps = math.ceil(SIZES_PER_DOUBLING * math.log2(max(most / least, 1)))
    return sorted({min(most, round(least * 2 ** (step / SIZES_PER_DOUBLING))) for step in range(steps + 1)} | {most})
