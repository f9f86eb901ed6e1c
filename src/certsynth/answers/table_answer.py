"""A table of shares: an answer for every cell of a crosstab or a histogram."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from certsynth.answers.answer import Answer, percent
from certsynth.base import html, text

Labels = tuple[str | None, ...]
"""The label of a cell in each column; None is the missing value."""

FIGURES = ("share", "low", "high")
MISSING = "missing"
_MAX_SHOWN_CHARACTERS = 60
_MAX_SHOWN_DECIMALS = 4


@dataclass(frozen=True, slots=True)
class TableAnswer:
    """`rows` holds the labels of each cell, one for each of `columns` and None for the missing value, and the answer:
    the share of rows in that cell.
    Together the cells hold all rows, or all rows of the group. All intervals hold simultaneously, with the
    `confidence` of the certificate.

    The query of a cell's answer asks for that cell only. Intervals that are `alone` are valid for this table only, not
    together with other answers.
    """

    query: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Labels, Answer], ...]
    confidence: float
    how: str
    bound: float
    alone: bool = False

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        """The table as aligned text, intervals rounded outward."""
        head = (*map(_shown, self.columns), *FIGURES)
        return "\n".join(
            [f"{self.query}: {self._promise()}", *text.table([head, *self._texts()], text=len(self.columns))]
        )

    def _repr_html_(self) -> str:
        head = [*map(_shown, self.columns), *FIGURES]
        return html.block(
            html.paragraph(self.query, strong=True), html.table(head, self._texts()), html.paragraph(self._promise())
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "query": self.query,
            "columns": list(self.columns),
            "cells": [
                {
                    "labels": list(labels),
                    "estimate": cell.estimate,
                    "low": cell.low,
                    "high": cell.high,
                    "says_nothing": cell.says_nothing or None,
                }
                for labels, cell in self.rows
            ],
            "confidence": self.confidence,
            "unit": "share",
            "how": self.how,
            "bound": self.bound,
            "alone": self.alone,
        }

    def to_dict(self) -> dict[str, list[Any]]:
        """The table as columns, for `pandas.DataFrame` or `polars.DataFrame`: the labels under the names of their
        columns, and `share`, `low` and `high`. A column with one of these three names gets an underscore."""
        named = [name + "_" * (name in FIGURES) for name in self.columns]
        found: dict[str, list[Any]] = {name: [labels[j] for labels, _ in self.rows] for j, name in enumerate(named)}
        cells = [cell for _, cell in self.rows]
        values = ([cell.estimate for cell in cells], [cell.low for cell in cells], [cell.high for cell in cells])
        return found | dict(zip(FIGURES, values, strict=True))

    def _promise(self) -> str:
        said = f"with confidence {percent(self.confidence)}, every true share lies between low and high, all at once"
        said += "; valid for this table alone." if self.alone else "."
        silent = [cell.says_nothing for _, cell in self.rows if cell.says_nothing]
        if not silent:
            return said
        cells = "a cell" if len(silent) == 1 else f"{len(silent):,} cells"
        return f"{said} The certificate says nothing about {cells}: {silent[0]}."

    def _texts(self) -> list[tuple[str, ...]]:
        """Labels and figures, all with the same digits; dashes where nothing is known."""
        widths = [cell.last_digit for _, cell in self.rows if cell.low != cell.high]
        digits = max(min(widths, default=Decimal(1)), Decimal(1).scaleb(-_MAX_SHOWN_DECIMALS))
        shown = [(labels, cell, *cell.shown_with(digits)) for labels, cell in self.rows]
        return [
            (*map(_shown, labels), share, *(("–", "–") if cell.says_nothing else (low, high)))
            for labels, cell, share, low, high in shown
        ]


def _shown(label: str | None) -> str:
    """A label on one line of a terminal."""
    if label is None:
        return MISSING
    plain = label if label.isprintable() else repr(label)
    return plain if len(plain) <= _MAX_SHOWN_CHARACTERS else plain[: _MAX_SHOWN_CHARACTERS - 1] + "…"
