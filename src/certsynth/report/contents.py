"""What the folder of a release contains: its first rows, its files, and how to cite it.

The size of the rows is estimated from the rows, and not read from the folder: another tool may write the same rows in
other bytes, and the same release gives the same page.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from certsynth.domain import Category, Column, Ordered, Schema
from certsynth.record.record import Record
from certsynth.report import numerals

SAMPLE_ROWS, SAMPLE_COLUMNS = 8, 12
"""Rows and columns of the table that the page shows."""

MEASURED_ROWS = 1_000
"""Rows from which the size of the CSV file is estimated."""

CSV = "synthetic.csv"
FILES = {
    CSV: "the synthetic rows, for any program",
    "synthetic.parquet": "the same rows with types, compressed, for data tools",
    "certificate.json": "all bounds with all digits, the budget and the settings",
    "measurements.npz": "the noisy counts, from which the plug-in certificate can be recomputed",
    "schema.toml": "the columns, as the data owner described them",
    "datapackage.json": "a description for tools that read data packages",
    "croissant.json": "a description for search engines and machine learning tools",
    "report.html": "this page",
    "SHA256SUMS": "checksums of the files",
}

_CELL_CHARACTERS = 40

Json = dict[str, Any]


def contents_view(record: Record, schema: Schema, table: Mapping[str, Any]) -> Json:
    """Return the first rows, the files, and a citation."""
    shown = list(schema)[:SAMPLE_COLUMNS]
    columns = [_first_values(column, table[column.name]) for column in shown]
    rows = [list(row) for row in zip(*columns, strict=True)]
    size = f" (about {_rough_size(_csv_bytes(schema, table))})"
    return {
        "columns": [{"name": numerals.text(c.title, most=_CELL_CHARACTERS), "number": _is_number(c)} for c in shown],
        "rows": rows,
        "caption": _sample_caption(len(rows), len(table[schema.names[0]]), len(schema)),
        "files": [{"name": name, "what": what + size * (name == CSV)} for name, what in FILES.items()],
        "citation": citation(record, schema),
    }


def publication_text(schema: Schema) -> str:
    """Say who published the release and when, as the schema states it; empty if it does not.

    >>> from certsynth.domain.naming import Publication
    >>> column = Category(name="x", values=("a",))
    >>> publication_text(Schema(columns=(column,), publication=Publication("The office")))
    'Published by The office.'
    """
    stated = schema.publication
    by = f" by {numerals.text(stated.publisher, most=200)}" if stated.publisher else ""
    on = f" on {stated.published.isoformat()}" if stated.published else ""
    return f"Published{by}{on}." if by or on else ""


def citation(record: Record, schema: Schema) -> str:
    """A reference to the release, with what the schema says of its publication."""
    stated = schema.publication
    by = f"{numerals.text(stated.publisher, most=200)}" if stated.publisher else ""
    year = f"({stated.published.year})" if stated.published else ""
    head = f"{by} {year}".strip()
    rows = f"{numerals.count(record.release.rows)} synthetic rows with a certificate"
    terms = f"ε = {numerals.text(record.privacy.epsilon)}, bound {numerals.upward(record.certificate.bound)}"
    return (
        f"{head}{'. ' if head else ''}{numerals.text(schema.name, most=200)}: {rows} ({terms} at "
        f"{numerals.confidence(record.certificate.confidence)} confidence). Made with certsynth "
        f"{numerals.text(record.certsynth)}."
    )


def _first_values(column: Column, values: np.ma.MaskedArray[Any, Any]) -> list[str]:
    return [_text(column, value) for value in np.ma.asarray(values)[:SAMPLE_ROWS].tolist()]


def _text(column: Column, value: Any) -> str:
    if value is None:
        return "missing"
    if isinstance(column, Category) or not _is_number(column):
        label = str(value).lower() if isinstance(value, bool) else str(value)
        return numerals.text(column.naming.of_labels([label])[0], most=_CELL_CHARACTERS)
    return numerals.plain(int(value) if float(value).is_integer() and abs(value) < 2**53 else float(value))


def _is_number(column: Column) -> bool:
    return isinstance(column, Ordered) and column.kind in ("integer", "number")


def _csv_bytes(schema: Schema, table: Mapping[str, Any]) -> int:
    """Estimate the size of the rows in CSV from the first ones."""
    rows = len(table[schema.names[0]])
    first = min(rows, MEASURED_ROWS)
    texts = [str(value) for name in schema.names for value in np.ma.asarray(table[name])[:first].tolist() if value]
    length = sum(len(text.encode(errors="replace")) for text in texts) / max(first, 1) + len(
        schema
    )  # a comma or line break for each
    return round(rows * length) + sum(len(name.encode(errors="replace")) + 1 for name in schema.names)


def _sample_caption(rows: int, of_rows: int, columns: int) -> str:
    which = "All rows" if rows == of_rows else f"The first {rows} of {numerals.count(of_rows)} synthetic rows"
    more = f", and the first {SAMPLE_COLUMNS} of {columns:,} columns" if columns > SAMPLE_COLUMNS else ""
    return f"{which}{more}. No row is that of a real person; only statistics of many rows mean something."


def _rough_size(size: int) -> str:
    """A size in bytes with two digits, in the largest unit in which it is at least 1.

    >>> _rough_size(634), _rough_size(9_999), _rough_size(981_414), _rough_size(1_234_567)
    ('640 bytes', '10 kB', '990 kB', '1.3 MB')
    """
    digits = 10 ** max(len(str(size)) - 2, 0)
    rounded = -(-size // digits) * digits
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if rounded >= unit:
            return f"{rounded / unit:.{1 if rounded < 10 * unit else 0}f} {name}"
    return f"{rounded} bytes"
