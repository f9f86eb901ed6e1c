"""Derived columns: public functions of other columns, by a map of values or an expression, computed on written rows."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import numpy as np

from certsynth.base.arrays import Floats
from certsynth.domain import cleaning
from certsynth.domain.category import PATH_SEPARATOR, Category
from certsynth.domain.column import Column, Ordered
from certsynth.domain.condition import Condition, Linear, Rows, figures, written
from certsynth.domain.expression import BadExpression, list_names
from certsynth.domain.labels import check_text, file_next_to_schema, read_code_file
from certsynth.domain.meaning import Reader
from certsynth.domain.reading import PLAIN
from certsynth.errors import SchemaError, did_you_mean

MAX_MAPPED_VALUES = 100_000
"""Most values of a column of integers, dates or times that a map can list."""

MAX_FIGURE = 1e300
"""Largest absolute value that an expression may reach: sums of larger ones overflow."""

_FORMS = 'derived = { from = "industry", map = "groups.csv" } or derived = { expression = "hours * 52" }'


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivation:
    """One `derived` entry of a schema: `pairs` map the values of `source`, as texts, or there is an `expression`."""

    column: str
    source: str | None = None
    pairs: tuple[tuple[str, str], ...] = ()
    expression: str | None = None

    def entries(self) -> dict[str, Any]:
        """The entries of the `derived` table in the schema file."""
        return {"from": self.source, "map": dict(self.pairs)} if self.source else {"expression": self.expression}


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """A function of one column, by its figures in ascending order; `missing` is the result for a missing value."""

    source: str
    keys: Floats
    values: Floats
    missing: float

    def of(self, rows: Rows) -> Floats:
        given = rows[self.source]
        absent = np.isnan(given)
        place = np.searchsorted(self.keys, np.where(absent, self.keys[0], given))
        return np.where(absent, self.missing, self.values[place])


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """A derivation compiled for the columns of its schema. `sources` are the columns that it reads."""

    column: Column
    sources: tuple[str, ...]
    function: Lookup | Linear | Condition

    def of(self, rows: Rows) -> Floats:
        """The figures of the derived column: numbers are rounded and clipped to its range, as those of a table are."""
        if isinstance(self.function, Condition):
            truth = self.function.holds(rows)
            return np.where(truth == 0, np.nan, truth > 0)
        found = self.function.of(rows)
        if isinstance(self.function, Lookup):
            return found
        assert isinstance(self.column, Ordered)
        if self.column.has_gaps:
            return self.column.nearest(found)
        return np.clip(np.floor(found + 0.5) if self.column.whole else found, self.column.low, self.column.high)


def derive_columns(
    formulas: Sequence[Formula], columns: Sequence[Column], table: Mapping[str, cleaning.Raw]
) -> dict[str, np.ma.MaskedArray[Any, Any]]:
    """The derived columns of a written table, from its other columns."""
    derived = {formula.column.name for formula in formulas}
    used = {name for formula in formulas for name in formula.sources} - derived
    rows = {column.name: figures(column, table[column.name]) for column in columns if column.name in used}
    found = {}
    for formula in formulas:
        name = formula.column.name
        rows[name] = formula.of(rows)
        found[name] = written(formula.column, rows[name])
    return found


# ------------------------------------------------------------ reading


def read_derivation(entry: Any, column: str, folder: Path | None) -> Derivation:
    """Read the `derived` entry of a column. Values are checked by `read_formulas`, which knows all columns."""
    where = f"column {column!r}: derived"
    if not isinstance(entry, dict) or set(entry) not in ({"from", "map"}, {"expression"}):
        raise SchemaError(f"{where} has the entries from and map, or expression alone: write {_FORMS}.")
    if "expression" in entry:
        if not isinstance(entry["expression"], str):
            raise SchemaError(f"{where}: expression is a text; write it in quotes.")
        return Derivation(column=column, expression=entry["expression"])
    source = check_text(entry["from"], f"{where}: from")
    listed = entry["map"]
    if isinstance(listed, str):
        name = check_text(listed, f"{where}: map")
        path = file_next_to_schema(name, folder, f"{where}: map")
        pairs = _pairs_of_file(read_code_file(path, f"{where}: map"), source, column, where)
    elif isinstance(listed, dict):
        pairs = [(key, _as_text(value, where)) for key, value in listed.items()]
    else:
        raise SchemaError(f'{where}: map is a CSV file or a table of values, like {{ "a" = "x", "b" = "y" }}.')
    if not pairs:
        raise SchemaError(f"{where}: the map is empty; list every value of {source!r} with the value that it becomes.")
    return Derivation(column=column, source=source, pairs=tuple(pairs))


def _pairs_of_file(rows: Sequence[Sequence[str]], source: str, column: str, where: str) -> list[tuple[str, str]]:
    """The lines of a map file. A first line with the names of the two columns is a header."""
    if any(len(row) != 2 for row in rows):
        raise SchemaError(f"{where}: the map file has two columns, a value of {source!r} and the value it becomes.")
    pairs = [(key.strip(), value.strip()) for key, value in rows]
    pairs = pairs[1:] if pairs and pairs[0] == (source, column) else pairs
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise SchemaError(f"{where}: the map lists {key!r:.60} twice; remove one of the lines.")
        seen.add(key)
    return pairs


def _as_text(value: Any, where: str) -> str:
    """A value of an inline map as the text that a CSV file would hold."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)) and abs(value) <= MAX_FIGURE:
        return repr(value)
    if isinstance(value, datetime.date):
        return str(value)
    raise SchemaError(f"{where}: the values of a map are texts, numbers, dates, times, true or false.")


# ------------------------------------------------------------ compiling


def read_formulas(derivations: Sequence[Derivation], columns: Sequence[Column]) -> tuple[Formula, ...]:
    """Compile derivations for the columns of a schema, in an order in which they can be computed."""
    if not derivations:
        return ()
    known, reader = {column.name: column for column in columns}, Reader(columns)
    return _in_order([_read_formula(each, known, reader) for each in derivations])


def _read_formula(each: Derivation, known: Mapping[str, Column], reader: Reader) -> Formula:
    where, column = f"column {each.column!r}", known[each.column]
    if each.source is None:
        formula = _read_expression(each, column, reader, where)
    elif each.source not in known:
        raise SchemaError(
            f"{where} is derived from {each.source!r:.60}, which is not a column of the schema: name one that is."
            f"{did_you_mean(each.source, known)}"
        )
    else:
        formula = Formula(column, (each.source,), _read_map(each, known[each.source], column, where))
    if column.name in formula.sources:
        raise SchemaError(f"{where} is derived from itself: name another column.")
    absent = next((name for name in formula.sources if known[name].missing), None)
    if absent is not None and not column.missing and not _maps_missing(formula):
        remedy = ', or list the empty value "" in the map' if each.source else ""
        raise SchemaError(f"{where} is derived from {absent!r}, which may be missing: set missing = true{remedy}.")
    return formula


def _maps_missing(formula: Formula) -> bool:
    return isinstance(formula.function, Lookup) and not np.isnan(formula.function.missing)


def _read_expression(each: Derivation, column: Column, reader: Reader, where: str) -> Formula:
    assert each.expression is not None
    try:
        if isinstance(column, Category) and column.kind == "boolean":
            condition = reader.read(each.expression)
            return Formula(column, condition.columns, condition)
        total, clock = reader.read_sum(each.expression, column.clock if isinstance(column, Ordered) else None)
    except BadExpression as error:
        raise SchemaError(f"{where}, derived, expression, {error}") from None
    if not isinstance(column, Ordered) or column.kind == "ordinal" or clock is not column.clock:
        result, kinds = ("a number", "integer or number") if clock is None else (f"a {clock.word}", clock.kind)
        raise SchemaError(
            f"{where}: its expression gives {result}, for a column of kind {kinds}: change its kind, or write a map."
        )
    _check_reach(total, reader.columns, where)
    return Formula(column, tuple(total.weights), total)


def _check_reach(total: Linear, columns: Mapping[str, Column], where: str) -> None:
    """Refuse sums that may overflow for values inside the bounds of the columns."""
    ends = [columns[name] for name in total.weights]
    bounds = [max(abs(float(end.low)), abs(float(end.high))) for end in ends if isinstance(end, Ordered)]
    with np.errstate(over="ignore"):
        terms = np.abs(list(total.weights.values())) * np.array(bounds)
    if not terms.sum() + abs(total.constant) <= MAX_FIGURE:
        raise SchemaError(f"{where}: its expression can exceed 1e300; use smaller factors or narrower bounds.")


def _read_map(each: Derivation, source: Column, column: Column, where: str) -> Lookup:
    key_of, value_of = _figure_reader(source), _figure_reader(column)
    found: dict[float, float] = {}
    missing = np.nan
    for key, value in each.pairs:
        at, to = key_of(key), value_of(value)
        if at is None:
            raise SchemaError(
                f"{where}: its map lists {key!r:.60}, which is not a value of {source.name!r}: remove that line, or "
                f"add the value to {source.name!r}."
            )
        if to is None or (np.isnan(to) and not column.missing):
            remedy = "set missing = true" if to is not None else "correct the line, or let the column allow the value"
            raise SchemaError(
                f"{where}: its map sends {key!r:.60} to {value!r:.60}, which is not a value of the column: {remedy}."
            )
        if at in found or (np.isnan(at) and not np.isnan(missing)):
            raise SchemaError(f"{where}: its map lists {key!r:.60} twice; remove one of the lines.")
        if np.isnan(at):
            missing = to
        else:
            found[at] = to
    for at, label in _values(source, where):
        if at not in found:
            raise SchemaError(f"{where}: its map lacks the value {label!r:.60} of {source.name!r}: add a line for it.")
    keys = np.array(sorted(found))
    return Lookup(source.name, keys, np.array([found[key] for key in keys.tolist()]), missing)


def _figure_reader(column: Column) -> Callable[[str], float | None]:
    """A function from texts to the figures of a column: NaN for a missing value, None for what is not a value."""
    if isinstance(column, Category) and column.kind == "boolean":
        return lambda text: _read_truth(column, text) if text else np.nan
    if isinstance(column, Category) or (isinstance(column, Ordered) and column.kind == "ordinal"):
        index = {"": np.nan}
        if isinstance(column, Category):
            index |= {PATH_SEPARATOR.join(path): float(i) for i, path in enumerate(column.paths)}
        index |= {label: float(i) for i, label in enumerate(_labels(column))}
        return index.get
    assert isinstance(column, Ordered)
    return lambda text: _read_figure(column, text) if text else np.nan


def _read_truth(column: Category, text: str) -> float | None:
    """The figure of a usual word; None if the column's reading gives the word another meaning, or none."""
    usual, read = (reading.truths.get(text.strip().lower()) for reading in (PLAIN, column.reading))
    return float(usual) if usual is not None and usual == read else None


def _read_figure(column: Ordered, text: str) -> float | None:
    try:
        figure = float(text if column.clock is None else column.clock.read(text))
    except ValueError:
        return None
    fits = column.low <= figure <= column.high and (figure.is_integer() or not column.whole)
    if fits and column.has_gaps:
        fits = column.nearest(np.array([figure]))[0] == figure
    return figure if fits else None


def _values(column: Column, where: str) -> Iterator[tuple[float, str]]:
    """The figures of all values of a column that a map must list, with their texts."""
    if isinstance(column, Ordered) and column.kind != "ordinal":
        if column.kind == "number" or (column.last_index or 0) >= MAX_MAPPED_VALUES:
            raise SchemaError(
                f"{where} is derived by a map from {column.name!r}, which has too many values to list: write an "
                "expression."
            )
        for figure in column.figures_at(np.arange((column.last_index or 0) + 1)).astype(np.int64).tolist():
            yield float(figure), str(figure) if column.clock is None else column.clock.text(figure)
    else:
        yield from ((float(i), label) for i, label in enumerate(_labels(column)))


def _labels(column: Column) -> tuple[str, ...]:
    if isinstance(column, Category):
        return column.labels
    assert isinstance(column, Ordered)
    return column.values


def _in_order(formulas: Sequence[Formula]) -> tuple[Formula, ...]:
    """Each formula after those of the derived columns that it reads."""
    known = {formula.column.name: formula for formula in formulas}
    try:
        order = list(TopologicalSorter({name: formula.sources for name, formula in known.items()}).static_order())
    except CycleError as error:
        circle = list_names(name for name in known if name in error.args[1])
        raise SchemaError(
            f"the columns {circle} are derived from each other in a circle: remove the entry derived from one of them."
        ) from None
    return tuple(known[name] for name in order if name in known)
