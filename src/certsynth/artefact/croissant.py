"""croissant.json: the folder in the Croissant format of MLCommons (JSON-LD), with the flag for synthetic data.

Only the publisher knows a licence, an address or a date, so these are left out: the text depends on the release alone.
"""

from __future__ import annotations

import urllib.parse
from collections.abc import Sequence
from typing import Any

from certsynth.artefact.datapackage import summary
from certsynth.domain import Category, Column, Ordered, Schema
from certsynth.domain.schema import describe
from certsynth.record.record import Record

CONFORMS_TO = ("http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0")

PAPER = (
    "@misc{certified-private-data-release, "
    "title={Certified private data release for sparse {L}ipschitz functions}, "
    'author={Donhauser, Konstantin and Lokna, Johan and Sanyal, Amartya and Boedihardjo, March and H{\\"o}nig, Robert '
    "and Yang, Fanny}}"
)
"""The citation of the method; the rows themselves belong to their publisher."""

_ROWS = "rows"
_TYPES = {
    "integer": "sc:Integer",
    "number": "sc:Float",
    "date": "sc:Date",
    "datetime": "sc:DateTime",
    "boolean": "sc:Boolean",
}

# The terms that Croissant 1.0 requires in the context, including those that are not used here.
# fmt: off
_OWN_TERMS = (
    "citeAs", "column", "equivalentProperty", "extract", "field", "fileObject", "fileProperty", "fileSet",
    "format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet",
    "references", "regex", "repeated", "replace", "samplingRate", "separator", "source", "subField",
    "transform",
)
# fmt: on
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
} | {term: f"cr:{term}" for term in _OWN_TERMS}


def describe_croissant(
    schema: Schema, record: Record, *, parquet: tuple[str, str], csv: tuple[str, str]
) -> dict[str, Any]:
    """Return croissant.json: the two files, each with its name and SHA-256, their columns, and the kind of data."""
    said = summary(schema, record)
    sources = schema.sources
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": list(CONFORMS_TO),
        "name": f"Synthetic rows of: {schema.name}",
        "description": said,
        "version": "1.0.0",  # a release is never overwritten: a new one is a new data set
        "keywords": ["synthetic data", "differential privacy", "certificate"],
        "citeAs": PAPER,
        "isLiveDataset": False,
        "rai:hasSyntheticData": True,
        "rai:dataCollection": (
            f"All rows are synthetic: no private row was copied. {said} The certificate and how it was computed are "
            "in certificate.json."
        ),
        "rai:dataCollectionType": ["Synthetic data"],
        "rai:personalSensitiveInformation": [
            "The columns may be about people; no row is about anybody. Rows were made from noisy counts and from what "
            f"is public. What they can tell about {_protected(schema)} is bounded by differential privacy "
            f"({schema.unit})."
        ],
        "rai:dataLimitations": [
            "What the certificate does not cover is not promised: statistics of more columns at once, statistics that "
            "change quickly with a value, single rows, and small groups."
        ],
        "rai:dataUseCases": ["Statistics of few columns at once, each within the certified bound of the real one."],
        "distribution": [
            _file(*csv, "text/csv"),
            _file(*parquet, "application/x-parquet"),  # the media type that Croissant readers accept
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": _ROWS,
                "name": _ROWS,
                "description": f"{record.release.rows:,} synthetic rows; both files hold the same.",
                "field": [_field(column, sources.get(column.name, ()), parquet[0]) for column in schema],
            }
        ],
    }


def _protected(schema: Schema) -> str:
    return "a private row" if schema.persons is None else "a person, with all rows of that person,"


def _file(name: str, digest: str, kind: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "encodingFormat": kind,
        "sha256": digest,
    }


def _field(column: Column, sources: Sequence[str], file: str) -> dict[str, Any]:
    return {
        "@type": "cr:Field",
        "@id": f"{_ROWS}/{urllib.parse.quote(column.name, safe='')}",  # an identifier cannot contain spaces, a name can
        "name": column.name,
        "description": _meaning(column) + (f"; derived from {' and '.join(sources)}" if sources else ""),
        "dataType": _TYPES.get(describe(column)["kind"], "sc:Text"),
        "source": {"fileObject": {"@id": file}, "extract": {"column": column.name}},
    }


def _meaning(column: Column) -> str:
    """Describe the values of a column briefly; the labels themselves are listed in other files."""
    entries = describe(column)
    what = str(entries["kind"])
    if isinstance(column, Category) and column.kind != "boolean":
        what += f", one of {len(column.labels):,} labels that datapackage.json lists"
    elif isinstance(column, Ordered) and column.kind == "ordinal":
        what += f", one of {len(column.values):,} labels in an order that schema.toml gives"
    elif isinstance(column, Ordered):
        what += f" from {entries['low']} to {entries['high']}"
        what += f", one of {len(column.grid):,} values, compared by ratios" if column.grid else ""
    return f"{what}; {'may be' if column.missing else 'never'} missing"
