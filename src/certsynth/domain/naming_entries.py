"""The entries of a schema that give names to columns, labels and publishers: read, checked, and written back."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from certsynth.domain.labels import check_text
from certsynth.domain.naming import UNNAMED, Naming, Publication
from certsynth.errors import SchemaError, did_you_mean

_LABELLED = frozenset({"title", "labels"})
_MEASURED = frozenset({"title", "unit"})

NAMING_ENTRIES: Mapping[str, frozenset[str]] = {
    "integer": _MEASURED,
    "number": _MEASURED,
    "date": frozenset({"title"}),
    "datetime": frozenset({"title"}),
    "ordinal": _LABELLED,
    "category": _LABELLED,
    "boolean": _LABELLED,
    "tree": _LABELLED,
    "metric": _LABELLED,
}
"""The entries about names that columns of each kind may have."""

MAX_NAME_CHARACTERS = 200
"""Most characters of a title, of a unit and of the name of a label: they are shown next to numbers."""


def read_naming(entry: Mapping[str, Any], kind: str, labels: Sequence[str], where: str) -> Naming:
    """The names that a column's entry states, for a column with these labels."""
    if not NAMING_ENTRIES[kind] & set(entry):
        return UNNAMED
    title, unit = (_read_name(entry[key], f"{where}: {key}") if key in entry else "" for key in ("title", "unit"))
    return Naming(title, unit, _read_labels(entry.get("labels", {}), labels, where))


def describe_naming(naming: Naming) -> dict[str, Any]:
    """The entries of a column's names, as `read_naming` reads them."""
    stated = {"title": naming.title, "unit": naming.unit, "labels": dict(naming.labels)}
    return {key: value for key, value in stated.items() if value}


def _read_labels(stated: Any, labels: Sequence[str], where: str) -> tuple[tuple[str, str], ...]:
    """Names of labels in the order of the column. No two labels are shown by one name."""
    if not isinstance(stated, dict):
        raise SchemaError(f'{where}: labels gives names to labels, like {{ "1" = "private company" }}.')
    known = set(labels)
    for label in stated:
        if label not in known:
            raise SchemaError(
                f"{where}: labels names {label!r:.60}, which is not among the values; correct or remove it."
                f"{did_you_mean(label, labels)}"
            )
    names = {label: _read_name(name, f"{where}: the name of {label!r:.60}") for label, name in stated.items()}
    shown: dict[str, str] = {}
    for label in labels:
        twin = shown.setdefault(names.get(label, label), label)
        if twin != label:
            raise SchemaError(
                f"{where}: {twin!r:.60} and {label!r:.60} have the same name in labels; change one of the two."
            )
    return tuple((label, names[label]) for label in labels if label in names)


def _read_name(value: Any, where: str) -> str:
    name = check_text(value, where)
    if len(name) > MAX_NAME_CHARACTERS:
        raise SchemaError(f"{where} has more than {MAX_NAME_CHARACTERS} characters; shorten it.")
    return name


PUBLICATION_ENTRIES = ("publisher", "published")


def read_publication(table: Mapping[str, Any], where: str) -> Publication:
    """The publication that the `[table]` of a schema states."""
    publisher, published = (table.get(key) for key in PUBLICATION_ENTRIES)
    if published is not None and (not isinstance(published, datetime.date) or isinstance(published, datetime.datetime)):
        raise SchemaError(f"{where}: [table] published is a date without quotes, like 2024-12-31.")
    name = "" if publisher is None else _read_name(publisher, f"{where}: [table] publisher")
    return Publication(name, published)


def describe_publication(publication: Publication) -> dict[str, Any]:
    """The entries of a publication, as `read_publication` reads them."""
    stated = {"publisher": publication.publisher, "published": publication.published}
    return {key: value for key, value in stated.items() if value}
