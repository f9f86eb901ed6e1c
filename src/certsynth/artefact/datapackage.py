"""datapackage.json: the folder in the Frictionless Data Package format, for tools that read tables."""

from __future__ import annotations

import datetime
from typing import Any

from certsynth.domain import Category, Column, Ordered, Schema
from certsynth.domain.date_format import write_moment
from certsynth.domain.schema import describe
from certsynth.record.record import MethodRecord, PrivacyRecord, Record
from certsynth.report.numerals import upward
from certsynth.report.persons import certified_rows

_TYPES = ("integer", "number", "date", "datetime", "boolean")  # others are texts
_TIME_FORMAT = "%Y-%m-%d %H:%M:%S"


def describe_package(schema: Schema, record: Record, *, parquet: str, csv: str) -> dict[str, Any]:
    """Return datapackage.json: the two files, their columns, and a description of the rows."""
    fields = [_field(column) for column in schema]
    untyped = [{"name": column.name, "type": "any"} for column in schema]
    return {
        "profile": "data-package",
        "name": "synthetic-table",
        "title": f"Synthetic rows of: {schema.name}",
        "description": summary(schema, record),
        "resources": [
            {
                "name": "synthetic-csv",
                "path": csv,
                "format": "csv",
                "mediatype": "text/csv",
                "encoding": "utf-8",
                "profile": "tabular-data-resource",
                "schema": {"fields": fields, "missingValues": [""]},
            },
            {
                "name": "synthetic-parquet",
                "path": parquet,
                "format": "parquet",
                "mediatype": "application/vnd.apache.parquet",
                # No types: Parquet has its own, and tools that read its nulls as NaN would report errors. Columns are
                # named where there are times, since tools fail to infer the type of times with nulls.
                **({"schema": {"fields": untyped}} if any(field["type"] == "datetime" for field in fields) else {}),
            },
        ],
    }


def summary(schema: Schema, record: Record) -> str:
    """Describe the rows, the budget spent on them and their certificate in two sentences."""
    certificate, privacy = record.certificate, record.privacy
    return (
        f"Synthetic data, made under differential privacy ({_spent(privacy)}, {privacy.neighbours} neighbours"
        f"{', one person with all their rows protected' if schema.persons else ''}). "
        f"With confidence {certificate.confidence!r} no 1-Lipschitz statistic of "
        f"{_columns(record.release)} differs from that of the real rows by more than "
        f"{upward(certificate.bound)} (columns scaled to "
        f"{'length 1' if all(column.weight == 1 for column in schema) else 'their weights'})."
        + (f" {certified_rows(schema.persons)}" if schema.persons else "")
    )


def _columns(how: MethodRecord) -> str:
    """Describe the columns that a certified statistic may use."""
    if how.workload is None:
        return f"at most {how.sparsity} columns"
    return f"the columns of one of the {len(how.workload):,} subsets that certificate.json names"


def _spent(privacy: PrivacyRecord) -> str:
    """Describe the budget: ε, and for Gaussian noise also δ, and the ρ that implies both."""
    if privacy.delta is None:
        return f"epsilon {privacy.epsilon}"
    return f"epsilon {privacy.epsilon} with delta {privacy.delta}, by zero-concentration with rho {privacy.rho}"


def _field(column: Column) -> dict[str, Any]:
    entries = describe(column)
    kind = entries["kind"]
    field: dict[str, Any] = {"name": column.name, "type": kind if kind in _TYPES else "string"}
    constraints: dict[str, Any] = {"required": not column.missing}
    if isinstance(column, Category) and column.kind != "boolean":
        constraints["enum"] = list(column.labels)
    elif isinstance(column, Ordered) and column.kind == "ordinal":
        constraints["enum"] = list(column.values)
    elif isinstance(column, Ordered):
        low, high = entries["low"], entries["high"]
        constraints |= {"minimum": _plain(low, column), "maximum": _plain(high, column)}
    reading = column.reading
    if kind == "boolean":
        no, yes = reading.values or ("false", "true")
        field |= {"trueValues": [yes], "falseValues": [no]}
    if kind == "number" and reading.decimal != ".":
        field["decimalChar"] = reading.decimal
    if reading.format or kind == "datetime":
        field["format"] = reading.format or _TIME_FORMAT
    if reading.missing_as:
        field["missingValues"] = [reading.missing_as]
    return field | {"constraints": constraints}


def _plain(value: Any, column: Column) -> Any:
    """A bound as JSON; a date or time as the CSV file writes it."""
    if isinstance(value, (int, float)):
        return value
    if not column.reading.format:
        return str(value)
    whole = isinstance(value, datetime.datetime)
    return write_moment(value if whole else datetime.datetime.combine(value, datetime.time()), column.reading.format)
