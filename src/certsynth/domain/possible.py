"""Satisfiability of rules: a search, from the schema alone, for a row that obeys all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from certsynth.base.arrays import Floats, Ints
from certsynth.domain.category import Category
from certsynth.domain.column import Column, Ordered
from certsynth.domain.condition import Rows, figures
from certsynth.domain.rules import Constraint
from certsynth.domain.schema import Schema
from certsynth.errors import SchemaError

MAX_SEARCH_STEPS = 10_000
MAX_BLAME_STEPS = 500
"""Steps of the search after which rules count as contradictory, and of each search for those to blame."""

MAX_COMPARISONS = 500_000
"""Most steps × comparisons in the rules: with many long rules there are fewer steps, but at least two per column."""

MAX_BORDERS = 500
"""Most borders of rules that are tried for one column."""

_MAX_LABELS_TRIED = 2_000
_MAX_RULES_BLAMED, _MAX_RULES_NAMED = 50, 8
"""Most rules among which those to blame are looked for, and most that a message names."""

_BORDER_STEPS = 256
"""Steps from low to high: numbers one step from a border are tried, too, since the next float may vanish in a sum."""


@dataclass(frozen=True, slots=True)
class RuleComponent:
    """Columns that rules connect, with these rules. Components share no column, so each is solved by itself."""

    columns: tuple[Column, ...]
    constraints: tuple[Constraint, ...]

    def about(self, column: Column) -> RuleComponent:
        """The component with only the rules that mention `column`."""
        return RuleComponent(self.columns, tuple(each for each in self.constraints if column.name in each.columns))

    def violations(self, rows: Rows) -> Ints:
        """The number of rules that each row is known to violate. Rows may lack columns."""
        size = max(len(values) for values in rows.values())
        count = np.zeros(size, dtype=np.int64)
        for constraint in self.constraints:
            count += constraint.violated(rows)
        return count


def rule_components(schema: Schema) -> list[RuleComponent]:
    """The connected components of the rules: the finest split such that no column is in two."""
    groups: list[tuple[set[str], list[Constraint]]] = []
    for constraint in schema.constraints:
        names, members = set(constraint.columns), [constraint]
        disjoint = []
        for group in groups:
            if group[0] & names:
                names, members = group[0] | names, group[1] + members
            else:
                disjoint.append(group)
        groups = [*disjoint, (names, members)]
    return [
        RuleComponent(tuple(c for c in schema if c.name in names), tuple(sorted(members, key=lambda each: each.number)))
        for names, members in groups
    ]


def figure_range(column: Column) -> tuple[float, float]:
    """The smallest and the largest figure of a column."""
    if isinstance(column, Category):
        return 0.0, float(len(column.labels) - 1)
    assert isinstance(column, Ordered)
    return float(column.low), float(column.high)


def near_borders(constraints: Sequence[Constraint], column: Column, rows: Rows) -> Iterator[Floats]:
    """Figures of a column at and next to which a rule's truth may change, given the other columns.

    At most `MAX_BORDERS` borders; one that is the same for all rows is yielded once.
    """
    low, high = figure_range(column)
    for border in islice(_borders(constraints, column.name, rows), MAX_BORDERS):
        middle = np.clip(np.where(np.isfinite(border), border, low), low, high)
        if isinstance(column, Ordered) and column.has_gaps:
            yield from near_values(column, middle)
            continue
        if isinstance(column, Ordered) and not column.whole:
            step = (high - low) / _BORDER_STEPS
            near = [middle, np.nextafter(middle, low), np.nextafter(middle, high), middle - step, middle + step]
        else:
            near = [np.floor(middle), np.ceil(middle) - 1, np.floor(middle) + 1]
        for figure in near:
            yield np.clip(figure, low, high)


def near_values(column: Ordered, figures: Floats) -> Iterator[Floats]:
    """The value of the column nearest to each figure, and its neighbours."""
    last = column.last_index
    assert last is not None
    nearest = column.index(column.clean_figures(figures.ravel())).reshape(figures.shape)
    for index in (nearest, nearest - 1, nearest + 1):
        yield column.figures_at(np.clip(index, 0, last))


def _borders(constraints: Sequence[Constraint], name: str, rows: Rows) -> Iterator[Floats]:
    seen: set[float] = set()
    for constraint in constraints:
        for atom in constraint.violation.atoms():
            for border in atom.borders(name, rows) if name in atom.names else ():
                if border.size > 1 or float(border.item()) not in seen:
                    yield border
                if border.size == 1:
                    seen.add(float(border.item()))


def possible_row(part: RuleComponent, *, steps: int = MAX_SEARCH_STEPS) -> dict[str, float] | None:
    """A row of figures that violates no rule of a component; None if none is found.

    Backtracking: columns get values one after the other, and a value is skipped as soon as a rule is known to be
    violated. Candidates are the borders of rules, the ends of the range, the values that a release would write and,
    last, a missing value.
    """
    columns = _search_order(part)
    values = [_candidate_values(column) for column in columns]
    row: dict[str, Floats] = {}
    choices = [_consistent_values(part, columns[0], values[0], row)]
    comparisons = sum(1 for constraint in part.constraints for _ in constraint.violation.atoms())
    for _ in range(min(steps, max(MAX_COMPARISONS // comparisons, 2 * len(columns)))):
        value = next(choices[-1], None)
        if value is None:  # backtrack: no value is left for this column
            choices.pop()
            if not choices:
                return None
            del row[columns[len(choices) - 1].name]
            continue
        row[columns[len(row)].name] = np.array([value])
        if len(row) == len(columns):
            return {name: float(figure[0]) for name, figure in row.items()}
        choices.append(_consistent_values(part, columns[len(row)], values[len(row)], row))
    return None


def check_rules(schema: Schema) -> None:
    """Refuse rules that no row can obey. Reads the schema alone."""
    for part in rule_components(schema):
        if possible_row(part) is None:
            numbers = [str(constraint.number) for constraint in _conflicting_rules(part)]
            if len(numbers) == 1:
                raise SchemaError(f"rule {numbers[0]} can be obeyed by no row of this schema: change or remove it.")
            named = ", ".join(numbers[:-1][:_MAX_RULES_NAMED]) + (", …" if len(numbers) > _MAX_RULES_NAMED + 1 else "")
            raise SchemaError(
                f"rules {named} and {numbers[-1]} contradict each other: no row was found that obeys them all. "
                "Change or remove one of them."
            )


def _consistent_values(part: RuleComponent, column: Column, values: Floats, row: Rows) -> Iterator[float]:
    """Candidate values of a column that violate no rule, given the columns that already have a value."""
    about = part.about(column)
    borders = [np.atleast_1d(border) for border in near_borders(about.constraints, column, row)]
    tried = np.concatenate([*borders, figure_range(column), values])
    fits = about.violations({**row, column.name: tried}) == 0
    return iter(dict.fromkeys(tried[fits].tolist()))


def _candidate_values(column: Column) -> Floats:
    """The values of a column that a release would write, a missing value last."""
    if isinstance(column, Category):
        labels = np.arange(float(min(len(column.labels), _MAX_LABELS_TRIED)))
        return np.append(labels, np.nan) if column.missing else labels
    return figures(column, column.decode(column.on_lattice(column.detail())))


def _conflicting_rules(part: RuleComponent) -> Sequence[Constraint]:
    """A smaller set of rules that cannot be obeyed together: a rule is dropped if the others still conflict."""
    blamed = list(part.constraints)
    for constraint in part.constraints if len(blamed) <= _MAX_RULES_BLAMED else ():
        others = [each for each in blamed if each is not constraint]
        names = {name for each in others for name in each.columns}
        smaller = RuleComponent(tuple(c for c in part.columns if c.name in names), tuple(others))
        if others and possible_row(smaller, steps=MAX_BLAME_STEPS) is None:
            blamed = others
    return blamed


def _search_order(part: RuleComponent) -> list[Column]:
    """Columns in an order that decides rules early: next come those of the rule that lacks the fewest."""
    order: dict[str, None] = {}
    waiting = list(part.constraints)
    while waiting:
        nearest = min(waiting, key=lambda constraint: sum(name not in order for name in constraint.columns))
        order.update(dict.fromkeys(nearest.columns))
        waiting.remove(nearest)
    known = {column.name: column for column in part.columns}
    return [known[name] for name in order]
