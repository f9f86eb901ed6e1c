"""Whether a measurement has the cells that its record states: a check of `verify`."""

from __future__ import annotations

import numpy as np

from certsynth.domain import Cells, Column, Groups, Ordered, Schema
from certsynth.mechanisms import Measurement
from certsynth.queries.grouping import most_groups
from certsynth.record.record import LayerRecord


def has_stated_cells(made: Measurement, said: LayerRecord, schema: Schema) -> bool:
    """Whether a measurement has the cells that its record states."""
    cells, kind, most = made.marginals.cells, said.cells, said.resolution
    if said.columns_at_once != max(map(len, made.marginals.subsets)):
        return False
    if kind == "even":
        if most is None or made.values is not None:
            return False
        return all(_same(own, column.cells(most)) for own, column in zip(cells, schema, strict=True))
    groups = [c for c in cells if isinstance(c, Groups)]
    if len(groups) < len(cells):
        return False
    if kind == "points":
        return _has_values(made, schema, most) and all(
            _has_points(own, column, most) for own, column in zip(groups, schema, strict=True)
        )
    return (
        made.values is None
        and kind == "groups"
        and most is not None
        and all(
            len(own.starts) <= max(most_groups(column, line=most, labels=most), _min_groups(column))
            for own, column in zip(groups, schema, strict=True)
        )
    )


def _has_points(cells: Groups, column: Column, resolution: int | None) -> bool:
    """Whether cells are the finest that a release measures, at full detail or on a lattice."""
    return _same(cells, column.points()) if resolution is None else cells.size == cells.lattice.size


def _has_values(made: Measurement, schema: Schema, resolution: int | None) -> bool:
    """Whether single values are counted of just those columns whose points at full detail are runs of values."""
    subsets = made.marginals.subsets
    at_full_detail = resolution is None and max(map(len, subsets)) == 1
    wanted = tuple(s for s in subsets if at_full_detail and schema.columns[s[0]].values_below_points() is not None)
    return wanted == (() if made.values is None else made.values.marginals.subsets)


def _min_groups(column: Column) -> int:
    """The least number of groups on the line that the schema allows."""
    return 1 + len(column.cuts) if isinstance(column, Ordered) else 1


def _same(first: Cells, second: Cells) -> bool:
    """Whether two partitions of one column are equal."""
    if isinstance(first, Groups) and isinstance(second, Groups):
        parts = ("starts", "group_of_label", "representatives")
        same = all(np.array_equal(getattr(first, part), getattr(second, part)) for part in parts)
        return same and _same(first.lattice, second.lattice)
    return type(first) is type(second) and (first.steps, first.size) == (second.steps, second.size)
