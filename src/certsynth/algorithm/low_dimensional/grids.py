r"""Grids for rows that lie on a set of unknown dimension: one for each dimension that the set may have.

Rows that fill S of m cells whose half width is w = 1/2k lose about

.. math:: 0.8\,w + \frac{b}{n}\,S\,\Bigl(1 + \ln\frac mS\Bigr)\Bigl(w + 0.3\,\frac{\ln(m/S)}{\ln m}\Bigr)

inside of their cells and to noise of scale b: the largest noise among m cells is taken off each of S, and put into
cells anywhere. The last factor is how far that is: next door where all cells hold rows, and the further the less of the
space they fill (docs/explanation/low-dimensional.md says what this was fitted to). A set of dimension s′ fills about
k^s′ cells, or some times as many, and the best k for it is what `grids` has. The paper minimises a bound of the same
form, with 64 for the last factor.

Nothing here is more than a guess of what is best: privacy and certificates do not depend on it.

Paper: Theorem 3 [low-dimensional]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from certsynth.algorithm.layers import LayerSpec
from certsynth.algorithm.settings import Settings
from certsynth.algorithm.task import Task
from certsynth.domain import Schema
from certsynth.domain.column import discretisation
from certsynth.mechanisms import Sensitivity, strategy_named
from certsynth.mechanisms.samplers import calibrated_scale
from certsynth.mechanisms.sparse import LowDimensional
from certsynth.planning.choice import FIRST_SPLIT, Design
from certsynth.queries.occupied import MAX_GRID_CELLS, grid_cells

MEAN_CELL_LOSS, EMPTY_SPACE_DISTANCE = 0.8, 0.3
"""Of what a cell may lose at worst, what rows lose on average; and how far noise is from rows that fill nothing."""

NEGLIGIBLE_LOSS_SHARE = 0.2
"""Of the loss of rows that fill all dimensions, what is not worth telling apart from none: so few occupied cells need
not be counted exactly, and the choice can do with less noise."""

SCORE_UNITS_PER_ROW = 2**10
"""Scores are in rows, rounded to multiples of 1/FINENESS."""

WINDING_FACTORS = (1, 4)
"""A set of dimension s′ may fill so many times k^s′ cells: a curve that winds is longer than its diameter."""

MAX_RESOLUTION = 1024
PAPER_NOISE_FACTOR = 64
"""Of the paper's bound."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid of all columns with `resolution` cells to the unit length, `cells` in all: best if rows lie on a set of
    the given `dimension` that fills `windings` times resolution^dimension of them.

    `widest` is what a cell loses at worst. `rows` is the number of rows and `scale` that of
    the noise. Up to `least` occupied cells are not told apart.
    """

    dimension: int
    resolution: int
    cells: int
    widest: float
    rows: int
    scale: float
    windings: int = 1
    least: int = 1

    @property
    def occupied(self) -> int:
        """Cells that a set of the grid's dimension fills, about."""
        return max(1, min(self.windings * self.resolution**self.dimension, self.cells, max(self.rows, 1)))

    def expected(self, occupied: int) -> float:
        """The loss to expect where so many cells hold rows."""
        return min(1.0, MEAN_CELL_LOSS * self.widest + self._misplaced(occupied) / max(self.rows, 1))

    def score(self, occupied: int) -> int:
        """The same in rows, as a whole number: what the private choice compares."""
        found = self.rows * MEAN_CELL_LOSS * self.widest + self._misplaced(max(occupied, self.least))
        return round(SCORE_UNITS_PER_ROW * found)

    @property
    def sensitivity(self) -> int:
        r"""The most that the score changes when one cell more, or less, holds rows.

        .. math:: g'(S) = b\,\bigl(wx + a\,(x^2 - x - 1)\bigr), \quad x = \ln\frac mS, \quad a = \frac{0.3}{\ln m}

        is convex in x, at least −5a/4 times b, and largest at the least S that is told apart or at S = m. Taking the
        larger of S and that least changes by no more than S, and rounding adds 1.
        """
        if self.cells == 1:
            return 1
        x, far = math.log(self.cells / self.least), EMPTY_SPACE_DISTANCE / math.log(self.cells)
        slope = max(self.widest * x + far * (x * x - x - 1), 1.25 * far)
        return math.ceil(SCORE_UNITS_PER_ROW * self.scale * slope * (1 + 1e-9)) + 1

    def max_occupied_costing(self, loss: float) -> int:
        """The most occupied cells of which noise costs no more than `loss`, or one."""
        low, high = 1, max(1, min(self.cells, self.rows))
        while low < high:
            middle = (low + high + 1) // 2
            if self._misplaced(middle) <= loss * self.rows:
                low = middle
            else:
                high = middle - 1
        return low

    def _misplaced(self, occupied: int) -> float:
        """Rows moved by noise, times how far."""
        if self.cells == 1:
            return 0.0
        filled = min(max(occupied, 1), self.cells)
        empty = math.log(self.cells / filled)
        return self.scale * filled * (1 + empty) * (self.widest + EMPTY_SPACE_DISTANCE * empty / math.log(self.cells))

    def paper_score(self, occupied: float, epsilon: float) -> float:
        """The paper's bound, from a noisy number of occupied cells.

        Paper: Eq. (43) [optimal-dimension]
        """
        noise = PAPER_NOISE_FACTOR * math.log(self.cells + 1) / (max(self.rows, 1) * epsilon)
        return 1 / (2 * self.resolution) + noise * occupied


def possible_grids(task: Task) -> tuple[Grid, ...]:
    """The grids that a release chooses from, finest first. `rows` must be public."""
    strategy, budget = strategy_of(task.settings), task.settings.measurement_budget
    scale = calibrated_scale(Sensitivity(2, 2), budget)  # a count and the number of rows, or two counts
    if strategy.signed and task.settings.resolution is None:
        return paper_grids(task.schema, rows=task.rows, scale=scale, epsilon=float(budget.amount))
    return grids_by_dimension(task.schema, rows=task.rows, scale=scale, resolution=task.settings.resolution)


def design_of(settings: Settings, grid: Grid) -> Design:
    """A grid as what would be measured, with what to expect of rows of its dimension."""
    layer = LayerSpec(
        subsets=settings.subsets,
        cells="even",
        resolution=grid.resolution,
        strategy=strategy_of(settings),
        budget=settings.measurement_budget,
    )
    expected = grid.expected(grid.occupied)
    return Design((layer,), FIRST_SPLIT, grid.widest, max(0.0, expected - MEAN_CELL_LOSS * grid.widest), expected)


def strategy_of(settings: Settings) -> LowDimensional:
    assert settings.mechanism is not None
    strategy = strategy_named(settings.mechanism, neighbours=settings.neighbours)
    assert isinstance(strategy, LowDimensional)
    return strategy


def grids_by_dimension(schema: Schema, *, rows: int, scale: float, resolution: int | None = None) -> tuple[Grid, ...]:
    """Grids for each dimension from 0, which has the finest, to the number of columns; of those of one resolution the
    one of the largest dimension.

    `rows` must be public. With a `resolution`, that alone.
    """
    columns = len(schema)
    if resolution is not None:
        return (_grid(schema, columns, resolution, rows, scale),)
    bare = [_grid(schema, columns, k, rows, scale) for k in _resolutions() if grid_cells(schema, k) < MAX_GRID_CELLS]
    found = []
    for dimension in range(columns + 1):
        for windings in WINDING_FACTORS if 0 < dimension < columns else (1,):
            each = [replace(grid, dimension=dimension, windings=windings) for grid in bare]
            found.append(min(each, key=lambda grid: (grid.expected(grid.occupied), grid.resolution)))
    worst = found[-1].expected(found[-1].occupied)
    return tuple(
        replace(grid, least=grid.max_occupied_costing(NEGLIGIBLE_LOSS_SHARE * worst)) for grid in _distinct(found)
    )


def paper_grids(schema: Schema, *, rows: int, scale: float, epsilon: float) -> tuple[Grid, ...]:
    """The paper's: the inverse of its printed formula, since grids must become finer with more rows.

    Paper: Eq. (39) [dimension-resolution]
    """
    columns = len(schema)
    signal = max(rows * epsilon, math.e)
    ideal = signal / (columns**2 * math.log(signal))
    found = []
    for dimension in range(columns + 1):
        k = max(1, min(MAX_RESOLUTION, round(max(ideal, 1) ** (1 / (dimension + 1)))))
        while grid_cells(schema, k) >= MAX_GRID_CELLS:
            k -= 1
        found.append(_grid(schema, dimension, k, rows, scale))
    return _distinct(found)


def _distinct(found: Sequence[Grid]) -> tuple[Grid, ...]:
    """Of each resolution the last, in the order of dimensions."""
    return tuple(sorted({grid.resolution: grid for grid in found}.values(), key=lambda g: (g.dimension, -g.resolution)))


def _resolutions() -> list[int]:
    """All up to 32, then some, each at most a tenth finer than the one before."""
    found = list(range(1, 33))
    while found[-1] < MAX_RESOLUTION:
        found.append(min(MAX_RESOLUTION, found[-1] * 11 // 10))
    return found


def _grid(schema: Schema, dimension: int, resolution: int, rows: int, scale: float) -> Grid:
    widest = max(discretisation(column, column.cells(resolution)) for column in schema)
    return Grid(
        dimension=dimension,
        resolution=resolution,
        cells=grid_cells(schema, resolution),
        widest=float(widest),
        rows=rows,
        scale=scale,
    )
