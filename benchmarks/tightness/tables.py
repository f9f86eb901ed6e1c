"""The tables of this benchmark: those of `many`, each with the column that models predict.

Of a table with such a target four fifths of the rows are released (36,000 of Adult), and models are tested on the
others. Without one all rows are released.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from many.tables import TABLES as MANY_TABLES
from many.tables import Rows, Table, draw_rows

RELEASED_SHARE = 0.8
TARGETS = {
    "california-5": None,
    "california-11": "PINCP_gt50k",
    "adult": "income>50K",
    "diamonds": "price",
    "electricity": "class",
    "fire": "ALS Unit",
    "loans-47": None,
}
"""The tables in the order of the page, with the targets of models."""


def _with_target(table: Table, target: str | None) -> Table:
    return table if target is None else replace(table, target=target, rows=_split(table.rows))


def _split(rows: Callable[[], Rows]) -> Callable[[], Rows]:
    """The same rows, of which a fifth is held out."""

    def load() -> Rows:
        found = rows()
        return (
            found
            if found.held_out is not None
            else draw_rows(found.training, int(RELEASED_SHARE * len(found.training)))
        )

    return load


TABLES = {key: _with_target(MANY_TABLES[key], target) for key, target in TARGETS.items()}
