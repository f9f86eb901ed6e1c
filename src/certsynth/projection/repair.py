"""Repair rows that violate the rules of a schema, with as small a change as possible.

Only synthetic rows and public knowledge are used. Rows that obey the rules change only if they exchange values with
rows that do not (docs/how-to/rules.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from certsynth.base.arrays import Floats, Ints
from certsynth.domain import Column, Ordered, Schema
from certsynth.domain.condition import figures, written
from certsynth.domain.possible import RuleComponent, figure_range, near_borders, possible_row, rule_components
from certsynth.errors import SolverFailed

MAX_EXCHANGE_PASSES = 8
TRIES_PER_WIDTH = 3
MAX_LEFT_SHARE = 0.95
EXCHANGE_WIDTHS = tuple(2.0**-k for k in range(8, -1, -1))
"""Values are exchanged with rows whose value is at most a width away (in units of the column's range), for increasing
widths and TRIES_PER_WIDTH random partners at each. Passes over all widths end after MAX_EXCHANGE_PASSES, or when one
leaves more than MAX_LEFT_SHARE of the violating rows."""

MAX_POOL_ROWS = 200_000
DONORS_PER_ROW = 24
"""Rows that the partners of one pass are drawn from, at most; and rows tried as a model for each remaining row."""

CHUNK_ROWS = 100_000
"""Remaining rows that are replaced at once, which bounds memory."""

Table = Mapping[str, np.ma.MaskedArray[Any, Any]]
Rows = dict[str, Floats]


def repair_rows(schema: Schema, table: Table, rng: np.random.Generator) -> Table:
    """Return written rows that violate no rule; `table` itself if there is nothing to repair.

    First, rows exchange values of one column, which preserves the distribution of every column. Each remaining row is
    replaced by the nearest of: itself with one value moved to the border of a rule, another row, a row made from the
    schema.
    """
    changed: dict[str, np.ma.MaskedArray[Any, Any]] = {}
    for part in rule_components(schema):
        rows = {column.name: figures(column, table[column.name]) for column in part.columns}
        violations = part.violations(rows)
        if not violations.any():
            continue
        before = {name: values.copy() for name, values in rows.items()}
        _exchange(part, rows, violations, rng)
        _replace(part, rows, violations, rng)
        if part.violations(rows).any():
            raise SolverFailed("rows that obey the rules could not be made: simplify the rules.")
        for column in part.columns:
            if not np.array_equal(rows[column.name], before[column.name], equal_nan=True):
                changed[column.name] = written(column, rows[column.name])
    return {name: changed.get(name, values) for name, values in table.items()} if changed else table


# ------------------------------------------------------------ exchange


def _exchange(part: RuleComponent, rows: Rows, violations: Ints, rng: np.random.Generator) -> None:
    """Swap values of one column between two rows wherever this reduces the number of rules they violate."""
    about = {column.name: part.about(column) for column in part.columns}
    for _ in range(MAX_EXCHANGE_PASSES):
        left = np.count_nonzero(violations)
        pool = rng.choice(len(violations), min(len(violations), MAX_POOL_ROWS), replace=False, shuffle=False)
        sorted_pools = {}
        for column in part.columns:
            along = _unit_position(column, rows[column.name][pool])
            order = np.argsort(along, kind="stable")
            sorted_pools[column.name] = along[order], pool[order]
        for width in EXCHANGE_WIDTHS:
            for column in part.columns:
                if width < 1 and not isinstance(column, Ordered):
                    continue  # labels are equally far from each other
                for _ in range(TRIES_PER_WIDTH):
                    broken = np.flatnonzero(violations)
                    if not len(broken):
                        return
                    partners = _draw_partners(column, rows[column.name][broken], width, *sorted_pools[column.name], rng)
                    _swap(about[column.name], column, rows, violations, broken, partners)
        if np.count_nonzero(violations) > MAX_LEFT_SHARE * left:
            return


def _draw_partners(
    column: Column, values: Floats, width: float, along: Floats, pool: Ints, rng: np.random.Generator
) -> Ints:
    """For each value, draw a row whose value is at most `width` away."""
    if width >= 1:
        return pool[rng.integers(len(pool), size=len(values))]
    here = _unit_position(column, values)
    first = np.searchsorted(along, here - width, side="left")
    last = np.searchsorted(along, here + width, side="right")
    last = np.maximum(last, first + 1)
    return pool[np.minimum(rng.integers(first, last), len(pool) - 1)]


def _swap(about: RuleComponent, column: Column, rows: Rows, violations: Ints, broken: Ints, partners: Ints) -> None:
    """Swap the column's values of each pair that gains by it; each row takes part in at most one swap."""
    here = about.violations({name: values[broken] for name, values in rows.items()}) > 0
    broken, partners = broken[here], partners[here]  # other rows cannot gain from this column
    both = np.concatenate([broken, partners])
    pairs = {name: values[both] for name, values in rows.items()}
    before = about.violations(pairs)
    pairs[column.name] = rows[column.name][np.concatenate([partners, broken])]
    change = about.violations(pairs) - before
    gains = np.flatnonzero(change[: len(broken)] + change[len(broken) :] < 0)
    _, first_use = np.unique(np.column_stack([broken[gains], partners[gains]]), return_index=True)
    uses = np.bincount(first_use // 2, minlength=len(gains))
    gains = gains[uses == 2]
    one, other = broken[gains], partners[gains]
    values = rows[column.name]
    values[one], values[other] = values[other], values[one]
    violations[one] += change[gains]
    violations[other] += change[gains + len(broken)]


# ------------------------------------------------------------ replace


class _Nearest:
    """For each row of `own`, the nearest row offered so far."""

    def __init__(self, part: RuleComponent, own: Rows, first: Rows) -> None:
        self.rows = first
        self.distance = _row_distance(part, own, first)

    def offer(self, rows: Rows, distance: Floats, fits: NDArray[np.bool_]) -> None:
        nearer = fits & (distance < self.distance)
        self.distance[nearer] = distance[nearer]
        for name, values in self.rows.items():
            values[nearer] = rows[name][nearer]


def _replace(part: RuleComponent, rows: Rows, violations: Ints, rng: np.random.Generator) -> None:
    """Replace each row that still violates a rule by the nearest of the rows that are offered."""
    left = np.flatnonzero(violations)
    if not len(left):
        return
    found = possible_row(part)
    if found is None:
        raise SolverFailed("no row obeys the rules: simplify them.")
    models = np.flatnonzero(violations == 0)
    for chunk in np.split(left, np.arange(CHUNK_ROWS, len(left), CHUNK_ROWS)):
        own = {name: values[chunk] for name, values in rows.items()}
        nearest = _Nearest(part, own, {name: np.full(len(chunk), found[name]) for name in own})
        for column in part.columns:
            _offer_moves(part, column, own, violations[chunk], nearest)
        for _ in range(DONORS_PER_ROW if len(models) else 0):
            chosen = models[rng.integers(len(models), size=len(chunk))]
            model = {name: values[chosen] for name, values in rows.items()}
            nearest.offer(model, _row_distance(part, own, model), np.ones(len(chunk), dtype=bool))
        best = nearest.rows
        for column in part.columns:  # keep values that need not change
            kept = part.about(column).violations({**best, column.name: own[column.name]}) == 0
            best[column.name] = np.where(kept, own[column.name], best[column.name])
        for name, values in best.items():
            rows[name][chunk] = values


def _offer_moves(part: RuleComponent, column: Column, own: Rows, violations: Ints, nearest: _Nearest) -> None:
    """Offer rows with another value in one column: at the border of a violated rule, at an end, or missing."""
    about = part.about(column)
    here = own[column.name]
    elsewhere = violations - about.violations(own)
    broken = [constraint for constraint in about.constraints if constraint.violated(own).any()]
    absent = [np.nan] if column.missing else []
    for move in [*near_borders(broken, column, own), *map(np.asarray, [*figure_range(column), *absent])]:
        moved = {**own, column.name: np.broadcast_to(move, len(here))}
        fits = about.violations(moved) + elsewhere == 0
        nearest.offer(moved, _column_distance(column, here, moved[column.name]), fits)


def _row_distance(part: RuleComponent, first: Rows, second: Rows) -> Floats:
    """Distances of rows: the sum over columns of the distances of their values."""
    return np.sum(
        [_column_distance(column, first[column.name], second[column.name]) for column in part.columns], axis=0
    )


def _column_distance(column: Column, first: Floats, second: Floats) -> Floats:
    """Distances of values in the column's own metric."""
    if not isinstance(column, Ordered):
        cells = column.lattice(1)
        labels = [np.where(np.isnan(x), cells.size - 1, x).astype(np.int64) for x in (first, second)]
        return np.asarray(cells.distance(*labels))
    away = np.abs(_unit_position(column, first) - _unit_position(column, second))
    distances = np.where(np.isnan(first) & np.isnan(second), 0.0, np.where(np.isnan(away), 1.0, away))
    return np.asarray(float(column.weight) * distances)


def _unit_position(column: Column, values: Floats) -> Floats:
    """Positions of values on the column's range, scaled to length 1."""
    low, high = figure_range(column)
    return (values - low) / ((high - low) or 1.0)
