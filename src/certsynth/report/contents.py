"""What the folder of a release contains: its first rows, its files with their sizes, and how to cite it.

Sizes are texts, so that `verify` can make a page again with the sizes that it states: another tool may write the same
rows in other bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from certsynth.domain import Category, Column, Ordered, Schema
from certsynth.record.record import Record
from certsynth.report import numerals

SAMPLE_ROWS, SAMPLE_COLUMNS = 8, 12
"""Rows and columns of the table that the page shows."""

PAGE, SUMS = "report.html", "SHA256SUMS"
FILES = {
    "synthetic.csv": "the synthetic rows, for any program",
    "synthetic.parquet": "the same rows with types, compressed, for data tools",
    "certificate.json": "all bounds with all digits, the budget and the settings",
    "measurements.npz": "the noisy counts, from which the plug-in certificate can be recomputed",
    "schema.toml": "the columns, as the data owner described them",
    "datapackage.json": "a description for tools that read data packages",
    "croissant.json": "a description for search engines and machine learning tools",
    PAGE: "this page",
    SUMS: "checksums of the files",
}

SIZED = tuple(name for name in FILES if name not in (PAGE, SUMS))
"""Files that are complete before the page is made, and have a size in it."""

_SIZE = re.compile(r"[1-9]\d? bytes|[1-9]\d0 bytes|[1-9](\.\d|\d0{0,2}) [kMG]B")

Json = dict[str, Any]


def contents_view(
    record: Record, schema: Schema, table: Mapping[str, Any], sizes: Mapping[str, str] | None = None
) -> Json:
    """Return the first rows, the files, and a citation. `sizes` has the sizes of files, as `size_text` writes them."""
    shown = list(schema)[:SAMPLE_COLUMNS]
    columns = [_first_values(column, table[column.name]) for column in shown]
    rows = [list(row) for row in zip(*columns, strict=True)]
    return {
        "columns": [{"name": numerals.text(c.title), "number": _is_number(c)} for c in shown],
        "rows": rows,
        "caption": _sample_caption(len(rows), len(table[schema.names[0]]), len(schema)),
        "files": [{"name": name, "what": what, "size": (sizes or {}).get(name, "")} for name, what in FILES.items()],
        "sized": bool(sizes),
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
        return numerals.text(column.naming.of_labels([label])[0])
    return numerals.plain(int(value) if float(value).is_integer() and abs(value) < 2**53 else float(value))


def _is_number(column: Column) -> bool:
    return isinstance(column, Ordered) and column.kind in ("integer", "number")


def _sample_caption(rows: int, of_rows: int, columns: int) -> str:
    which = "All rows" if rows == of_rows else f"The first {rows} of {numerals.count(of_rows)} synthetic rows"
    more = f", and the first {SAMPLE_COLUMNS} of {columns:,} columns" if columns > SAMPLE_COLUMNS else ""
    return f"{which}{more}. No row is that of a real person; only statistics of many rows mean something."


def size_text(size: int) -> str:
    """A size in bytes, rounded up to two digits, in the largest unit in which it is at least 1.

    >>> size_text(634), size_text(9_999), size_text(981_414), size_text(1_234_567)
    ('640 bytes', '10 kB', '990 kB', '1.3 MB')
    """
    digits = 10 ** max(len(str(size)) - 2, 0)
    rounded = -(-size // digits) * digits
    for unit, name in ((10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if rounded >= unit:
            return f"{rounded / unit:.{1 if rounded < 10 * unit else 0}f} {name}"
    return f"{rounded} bytes"


def stated_sizes(page: bytes) -> dict[str, str]:
    """The sizes that a page states; those that `size_text` could not have written are left out.

    >>> stated_sizes(b'<code>schema.toml</code></th><td class="n">1.2 kB</td>')
    {'schema.toml': '1.2 kB'}
    >>> stated_sizes(b'<code>schema.toml</code></th><td class="n">1.23 kB</td>')
    {}
    """
    found = {}
    for name in SIZED:
        cell = re.search(rb'<code>%s</code></th><td class="n">([^<]{1,12})</td>' % re.escape(name).encode(), page)
        if cell and _SIZE.fullmatch(text := cell[1].decode("ascii", "replace")):
            found[name] = text
    return found
