"""A table of answers: one for every cell of a crosstab or a histogram, or for every group of rows."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from certsynth.answers.answer import Answer, Unanswered, percent, plain
from certsynth.base import html, text

Labels = tuple[str | None, ...]
"""The label of a cell in each column; None is the missing value."""

ENDS = ("low", "high")
MISSING = "missing"
_MAX_SHOWN_CHARACTERS = 60
_MAX_SHOWN_DECIMALS = 4


@dataclass(frozen=True, slots=True)
class TableAnswer:
    """`rows` holds the labels of each cell or group, one for each of `columns` and None for the missing value, and its
    answer. All intervals hold simultaneously, with the `confidence` of the certificate.

    The cells of `table(…)` and `histogram(…)` hold all rows, or all rows of the group, and their answers are shares.
    The answers of `mean(…) by …` are those of `mean(… | …)` for each group; that of a group without synthetic rows is
    `Unanswered`, and its `error` says so.

    The query of a row's answer asks for that row only. Intervals that are `alone` are valid for this table only, not
    together with other answers. `figure` is the heading of the estimates. `about` says which private rows are meant, if
    these are not all.
    """

    query: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Labels, Answer | Unanswered], ...]
    confidence: float
    how: str
    bound: float
    alone: bool = False
    unit: str = "share"
    figure: str = "share"
    about: str = ""

    @property
    def error(self) -> str:
        """Empty: there is an answer. That of a query without one says why."""
        return ""

    def __len__(self) -> int:
        return len(self.rows)

    def __str__(self) -> str:
        """The table as aligned text, intervals rounded outward."""
        return "\n".join([f"{self.query}: {self._promise()}", *text.table(self.texts(), text=len(self.columns))])

    def texts(self) -> list[tuple[str, ...]]:
        """The head and the rows of the table as texts: labels, and figures rounded outward."""
        return [(*map(_shown, self.columns), self.figure, *ENDS), *self._texts()]

    def _repr_html_(self) -> str:
        head, *rows = self.texts()
        return html.block(
            html.paragraph(self.query, strong=True), html.table(list(head), rows), html.paragraph(self._promise())
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "query": self.query,
            "columns": list(self.columns),
            "cells": [
                {
                    "labels": list(labels),
                    "estimate": plain(cell.estimate),
                    "low": plain(cell.low),
                    "high": plain(cell.high),
                    "says_nothing": cell.says_nothing or None,
                }
                for labels, cell in self.rows
            ],
            "confidence": self.confidence,
            "unit": self.unit,
            "how": self.how,
            "bound": self.bound,
            "alone": self.alone,
            **({"about": self.about} if self.about else {}),
        }

    def to_dict(self) -> dict[str, list[Any]]:
        """The table as columns, for `pandas.DataFrame` or `polars.DataFrame`: the labels under the names of their
        columns, `share` (of groups `estimate`), `low` and `high`. A column with one of these names gets an underscore.
        Figures of a group without an answer are None."""
        figures = (self.figure, *ENDS)
        named = [name + "_" * (name in figures) for name in self.columns]
        found: dict[str, list[Any]] = {name: [labels[j] for labels, _ in self.rows] for j, name in enumerate(named)}
        cells = [cell for _, cell in self.rows]
        values = ([cell.estimate for cell in cells], [cell.low for cell in cells], [cell.high for cell in cells])
        return found | dict(zip(figures, values, strict=True))

    def _promise(self) -> str:
        what, part = ("share", "cell") if self.figure == "share" else ("value", "group")
        said = f"with confidence {percent(self.confidence)}, every true {what} lies between low and high, all at once"
        said += ("; valid for this table alone" if self.alone else "") + (f", of {self.about}." if self.about else ".")
        silent = [cell.says_nothing for _, cell in self.rows if cell.says_nothing]
        if not silent:
            return said
        parts = f"a {part}" if len(silent) == 1 else f"{len(silent):,} {part}s"
        return f"{said} The certificate says nothing about {parts}: {silent[0].rstrip('.')}."

    def _texts(self) -> list[tuple[str, ...]]:
        """Labels and figures, all with the same digits; dashes where nothing is known."""
        digits = self._digits()
        texts = []
        for labels, cell in self.rows:
            estimate, *ends = ("–", "–", "–") if isinstance(cell, Unanswered) else cell.shown_with(digits)
            texts.append((*map(_shown, labels), estimate, *(("–", "–") if cell.says_nothing else ends)))
        return texts

    def _digits(self) -> Decimal:
        """The last digit to show: that of the narrowest interval, within limits."""
        known = [cell for _, cell in self.rows if isinstance(cell, Answer) and cell.low != cell.high]
        widths = [cell.last_digit for cell in known if not cell.says_nothing] or [cell.last_digit for cell in known]
        least = Decimal(1).scaleb(-_MAX_SHOWN_DECIMALS)
        if self.figure != "share":
            least = max(widths, default=Decimal(1)).scaleb(-2)
        return max(min(widths, default=Decimal(1)), least)


def _shown(label: str | None) -> str:
    """A label on one line of a terminal."""
    if label is None:
        return MISSING
    plain = label if label.isprintable() else repr(label)
    return plain if len(plain) <= _MAX_SHOWN_CHARACTERS else plain[: _MAX_SHOWN_CHARACTERS - 1] + "…"
