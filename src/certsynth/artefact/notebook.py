"""Notebook display of a release and of its certificate: a short HTML summary of the report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from certsynth.artefact.table import Table
from certsynth.base.html import block, paragraph, table
from certsynth.domain import Schema
from certsynth.record.record import CertificateRecord, MethodRecord, PrivacyRecord, Record
from certsynth.report import numerals, words
from certsynth.report.columns import column_view
from certsynth.report.persons import certified_rows, protected_unit
from certsynth.report.view import column_bounds

MAX_LISTED_COLUMNS = 20
MAX_LISTED_SUBSETS = 20
"""Rows of the two tables: a summary should fit on a screen."""


def release_html(schema: Schema, record: Record, rows: Table, folder: Path | None) -> str:
    """Show name, size, privacy, the certificate, and its bound for each column in the column's own units."""
    certificate, size = record.certificate, numerals.count(record.release.rows)
    bounds = column_bounds(certificate, schema.names)
    shown = []
    for column in schema.columns[:MAX_LISTED_COLUMNS]:
        view = column_view(column, rows[column.name], bounds[column.name])
        fact = view["facts"][0] if view["facts"] else None
        own = "—"
        if fact and fact["plus_minus_text"]:
            own = f"{fact['what']}: {fact['value'] + ' ' if fact['value'] else ''}± {fact['plus_minus_text']}"
        shown.append([view["name"], view["kind"], view["bound_text"], own])
    more = len(schema) - len(shown)
    parts = [
        paragraph(
            f"{numerals.text(schema.name, most=200)}: {size} synthetic rows × {len(schema)} columns", strong=True
        ),
        paragraph(
            f"Privacy: {spent_text(record.privacy)}, {record.privacy.neighbours} neighbours, "
            f"{protected_unit(schema.persons)} protected."
        ),
        paragraph(promise(certificate, record.release)),
        *([paragraph(certified_rows(schema.persons))] if schema.persons else []),
        table(["column", "kind", "off by at most", "in its own units"], shown),
    ]
    if more:
        parts.append(paragraph(f"and {more:,} more column{'s' * (more > 1)}."))
    if omitted := words.omitted_rules(record.release.omitted_rules or ()):
        parts.append(paragraph(f"Note: {omitted}."))
    if folder is not None:
        parts.append(paragraph(f"The report is {numerals.text(folder / 'report.html', most=300)}."))
    return block(*parts)


class Bounds(Protocol):
    """The fields of a certificate that are shown."""

    @property
    def bound(self) -> float: ...

    @property
    def confidence(self) -> float: ...

    @property
    def kind(self) -> str: ...

    @property
    def subsets(self) -> Sequence[tuple[Sequence[str], float]]: ...


def certificate_html(certificate: Bounds) -> str:
    """Show the bound of the certificate and of each subset of columns."""
    subsets = certificate.subsets
    shown = [
        [", ".join(map(numerals.text, columns)), numerals.upward(bound)]
        for columns, bound in subsets[:MAX_LISTED_SUBSETS]
    ]
    more = len(subsets) - len(shown)
    parts = [
        paragraph(
            f"Off by at most {numerals.upward(certificate.bound)} with confidence {certificate.confidence!r} "
            f"({words.KINDS.get(certificate.kind, certificate.kind)}).",
            strong=True,
        ),
        table(["columns", "off by at most"], shown),
    ]
    return block(*parts, *([paragraph(f"and {more:,} more subset{'s' * (more > 1)}.")] if more else []))


def promise(certificate: CertificateRecord, how: MethodRecord) -> str:
    """State the certificate in the words of the report."""
    said = {
        "confidence_text": numerals.confidence(certificate.confidence),
        "looks_at": words.looks_at(how.sparsity, complete=how.workload is None),
        "bound_text": numerals.upward(certificate.bound),
    }
    return words.statement(said)


def spent_text(privacy: PrivacyRecord) -> str:
    return f"ε = {privacy.epsilon}" + (f", δ = {privacy.delta}" if privacy.delta else "")
