"""What rules leave possible: rows that obey all of them, found from the schema alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from certsynth.base.arrays import Floats, Ints
from certsynth.domain.column import Category, Column, Ordered
from certsynth.domain.condition import Rows, figures
from certsynth.domain.rules import Constraint
from certsynth.domain.schema import Schema
from certsynth.errors import SchemaError

MOST_STEPS = 10_000
FEW_STEPS = 500
"""Values that are tried before rules count as contradictory, and while it is found out which of them are at fault."""

MOST_COMPARISONS = 500_000
"""The same, times the comparisons in the rules: many long rules get fewer steps, but two for each column at least."""

MOST_BORDERS = 500

_MOST_LABELS = 2_000
_MOST_BLAMED, _MOST_NAMED = 50, 8
_GRID = 256  # steps of a number that are tried beside a border, where the next float would be lost in a sum


@dataclass(frozen=True, slots=True)
class Part:
    """Columns that rules tie together, with these rules. What a row holds in one part is no matter to another."""

    columns: tuple[Column, ...]
    constraints: tuple[Constraint, ...]

    def about(self, column: Column) -> Part:
        """The same columns, with those rules that look at one of them."""
        return Part(self.columns, tuple(each for each in self.constraints if column.name in each.columns))

    def violations(self, rows: Rows) -> Ints:
        """How many rules each row violates. Rows may lack columns."""
        size = max(len(values) for values in rows.values())
        count = np.zeros(size, dtype=np.int64)
        for constraint in self.constraints:
            count += constraint.violated(rows)
        return count


def parts(schema: Schema) -> list[Part]:
    """All rules, in the smallest parts that have no column in common."""
    groups: list[tuple[set[str], list[Constraint]]] = []
    for constraint in schema.constraints:
        names, members = set(constraint.columns), [constraint]
        apart = []
        for group in groups:
            if group[0] & names:
                names, members = group[0] | names, group[1] + members
            else:
                apart.append(group)
        groups = [*apart, (names, members)]
    return [
        Part(tuple(c for c in schema if c.name in names), tuple(sorted(members, key=lambda each: each.number)))
        for names, members in groups
    ]


def ends(column: Column) -> tuple[float, float]:
    """The least and the largest figure of a column."""
    if isinstance(column, Category):
        return 0.0, float(len(column.labels) - 1)
    assert isinstance(column, Ordered)
    return float(column.low), float(column.high)


def near_borders(constraints: Sequence[Constraint], column: Column, rows: Rows) -> Iterator[Floats]:
    """Figures of a column at which rules begin or cease to hold, given the other columns, and the figures beside.

    At most `MOST_BORDERS` borders, and those that are the same for all rows once.
    """
    low, high = ends(column)
    for border in islice(_borders(constraints, column.name, rows), MOST_BORDERS):
        middle = np.clip(np.where(np.isfinite(border), border, low), low, high)
        if isinstance(column, Ordered) and not column.whole:
            step = (high - low) / _GRID
            near = [middle, np.nextafter(middle, low), np.nextafter(middle, high), middle - step, middle + step]
        else:
            near = [np.floor(middle), np.ceil(middle) - 1, np.floor(middle) + 1]
        for figure in near:
            yield np.clip(figure, low, high)


def _borders(constraints: Sequence[Constraint], name: str, rows: Rows) -> Iterator[Floats]:
    seen: set[float] = set()
    for constraint in constraints:
        for atom in constraint.violation.atoms():
            for border in atom.borders(name, rows) if name in atom.names else ():
                if border.size > 1 or float(border.item()) not in seen:
                    yield border
                if border.size == 1:
                    seen.add(float(border.item()))


def possible_row(part: Part, *, steps: int = MOST_STEPS) -> dict[str, float] | None:
    """Figures for the columns of a part with which no rule is violated; None if none are found.

    Columns get values one after the other, and a rule prunes as soon as it is known to be violated. Tried are the
    borders of rules, the ends of a column, what a release would write, and, at last, a missing value.
    """
    columns = _in_order(part)
    values = [_values(column) for column in columns]
    row: dict[str, Floats] = {}
    choices = [_fitting(part, columns[0], values[0], row)]
    comparisons = sum(1 for constraint in part.constraints for _ in constraint.violation.atoms())
    for _ in range(min(steps, max(MOST_COMPARISONS // comparisons, 2 * len(columns)))):
        value = next(choices[-1], None)
        if value is None:  # nothing is left for this column: the one before has to change
            choices.pop()
            if not choices:
                return None
            del row[columns[len(choices) - 1].name]
            continue
        row[columns[len(row)].name] = np.array([value])
        if len(row) == len(columns):
            return {name: float(figure[0]) for name, figure in row.items()}
        choices.append(_fitting(part, columns[len(row)], values[len(row)], row))
    return None


def check_rules(schema: Schema) -> None:
    """Refuse rules that no row can obey, from the schema alone."""
    for part in parts(schema):
        if possible_row(part) is None:
            numbers = [str(constraint.number) for constraint in _at_fault(part)]
            if len(numbers) == 1:
                raise SchemaError(f"rule {numbers[0]} can be obeyed by no row of this schema: change or remove it.")
            named = ", ".join(numbers[:-1][:_MOST_NAMED]) + (", …" if len(numbers) > _MOST_NAMED + 1 else "")
            raise SchemaError(
                f"rules {named} and {numbers[-1]} contradict each other: no row was found that obeys them all. "
                "Change or remove one of them."
            )


def _fitting(part: Part, column: Column, values: Floats, row: Rows) -> Iterator[float]:
    """Values of a column that violate no rule, as far as is known beside the columns that have a value."""
    about = part.about(column)
    borders = [np.atleast_1d(border) for border in near_borders(about.constraints, column, row)]
    tried = np.concatenate([*borders, ends(column), values])
    fits = about.violations({**row, column.name: tried}) == 0
    return iter(dict.fromkeys(tried[fits].tolist()))


def _values(column: Column) -> Floats:
    """What a release would write of a column, a missing value last."""
    if isinstance(column, Category):
        labels = np.arange(float(min(len(column.labels), _MOST_LABELS)))
        return np.append(labels, np.nan) if column.missing else labels
    return figures(column, column.decode(column.on_lattice(column.detail())))


def _at_fault(part: Part) -> Sequence[Constraint]:
    """Fewer rules that cannot be obeyed together: each is left out if the others suffice."""
    blamed = list(part.constraints)
    for constraint in part.constraints if len(blamed) <= _MOST_BLAMED else ():
        others = [each for each in blamed if each is not constraint]
        names = {name for each in others for name in each.columns}
        less = Part(tuple(c for c in part.columns if c.name in names), tuple(others))
        if others and possible_row(less, steps=FEW_STEPS) is None:
            blamed = others
    return blamed


def _in_order(part: Part) -> list[Column]:
    """Columns so that rules become known early: next come those of the rule that lacks fewest."""
    order: dict[str, None] = {}
    waiting = list(part.constraints)
    while waiting:
        nearest = min(waiting, key=lambda constraint: sum(name not in order for name in constraint.columns))
        order.update(dict.fromkeys(nearest.columns))
        waiting.remove(nearest)
    known = {column.name: column for column in part.columns}
    return [known[name] for name in order]
