r"""Grids for rows on a set of unknown dimension: one grid for each dimension that the set may have.

For rows that fill S of m cells of half width w = 1/2k, the expected loss is about

.. math:: 0.8\,w + \frac{b}{n}\,S\,\Bigl(1 + \ln\frac mS\Bigr)\Bigl(w + 0.3\,\frac{\ln(m/S)}{\ln m}\Bigr)

inside cells and by noise of scale b: the largest noise among m cells is subtracted from each of the S counts, and that
mass goes to cells anywhere. The last factor is the distance it moves: to a neighbour if all cells are occupied, and
farther the less of the space is filled (docs/explanation/low-dimensional.md gives the data this was fitted to). A set
of dimension s′ fills about k^s′ cells or a multiple of that, and `grids_by_dimension` has the best k for each. The
paper minimises a bound of the same form, with 64 for the last factor.

These formulas only predict which grid is best: privacy and certificates do not depend on them.

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
"""Mean loss of rows inside a cell, as a share of the worst; and mean distance from noise to the rows if these fill a
negligible part of the space, in unit lengths."""

NEGLIGIBLE_LOSS_SHARE = 0.2
"""Share of the expected loss of rows that fill all dimensions which is treated as none: numbers of occupied cells with
a smaller loss need not be distinguished, which lowers the sensitivity of the choice."""

SCORE_UNITS_PER_ROW = 2**10
"""Units per row of the integer scores that the private choice compares."""

WINDING_FACTORS = (1, 4)
"""Multiples of k^s′ cells that a set of dimension s′ may fill: a winding curve is longer than its diameter."""

MAX_RESOLUTION = 1024
"""Cells to the unit length, at most."""

PAPER_NOISE_FACTOR = 64
"""Constant factor of the noise term in the paper's bound."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid of all columns with `resolution` cells to the unit length, `cells` in all.

    It is the best if the rows lie on a set of this `dimension` that fills `windings` · resolution^dimension cells.
    `widest` is the largest loss inside a cell, `rows` the number of rows and `scale` that of the noise. Numbers of
    occupied cells up to `least` are not distinguished.
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
        """Approximate number of cells that a set of the grid's dimension fills."""
        return max(1, min(self.windings * self.resolution**self.dimension, self.cells, max(self.rows, 1)))

    def expected(self, occupied: int) -> float:
        """The expected loss if this many cells are occupied."""
        return min(1.0, MEAN_CELL_LOSS * self.widest + self._misplaced(occupied) / max(self.rows, 1))

    def score(self, occupied: int) -> int:
        """The expected loss in units of 1/SCORE_UNITS_PER_ROW rows, for the private choice."""
        found = self.rows * MEAN_CELL_LOSS * self.widest + self._misplaced(max(occupied, self.least))
        return round(SCORE_UNITS_PER_ROW * found)

    @property
    def sensitivity(self) -> int:
        r"""The largest change of the score when one more, or one fewer, cell is occupied.

        .. math:: g'(S) = b\,\bigl(wx + a\,(x^2 - x - 1)\bigr), \quad x = \ln\frac mS, \quad a = \frac{0.3}{\ln m}

        is convex in x, at least −5ab/4, and largest at S = `least` or at S = m. max(S, `least`) changes by no more than
        S does, and rounding adds 1.
        """
        if self.cells == 1:
            return 1
        x, far = math.log(self.cells / self.least), EMPTY_SPACE_DISTANCE / math.log(self.cells)
        slope = max(self.widest * x + far * (x * x - x - 1), 1.25 * far)
        return math.ceil(SCORE_UNITS_PER_ROW * self.scale * slope * (1 + 1e-9)) + 1

    def max_occupied_costing(self, loss: float) -> int:
        """The largest number of occupied cells at which noise costs at most `loss`; at least 1."""
        low, high = 1, max(1, min(self.cells, self.rows))
        while low < high:
            middle = (low + high + 1) // 2
            if self._misplaced(middle) <= loss * self.rows:
                low = middle
            else:
                high = middle - 1
        return low

    def _misplaced(self, occupied: int) -> float:
        """Rows moved by noise × the distance they are moved."""
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
    """The design that measures this grid, with the loss to expect if the rows have its dimension."""
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
    """The best grid for each dimension from 0 (the finest grid) to the number of columns.

    Of several grids of one resolution only that of the largest dimension is kept. `rows` must be public. A given
    `resolution` leaves only that grid.
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
    """The paper's grids, by the inverse of its printed formula, since grids must become finer with more rows.

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
    """The last grid of each resolution, in order of dimension."""
    return tuple(sorted({grid.resolution: grid for grid in found}.values(), key=lambda g: (g.dimension, -g.resolution)))


def _resolutions() -> list[int]:
    """All resolutions up to 32, then steps of at most a tenth up to MAX_RESOLUTION."""
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
