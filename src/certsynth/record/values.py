"""The types of single values in a record, each with its JSON form, and the descriptions of fields."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal

Verified = Literal["recomputed", "cross-checked", "on trust"]
RECOMPUTED: Verified = "recomputed"
CROSS_CHECKED: Verified = "cross-checked"
ON_TRUST: Verified = "on trust"
"""How `verify` treats a value: docs/reference/certificate.md explains the three."""


@dataclass(frozen=True, slots=True)
class Said:
    """The meaning of a field, and how it is verified. An `optional` field is omitted from the JSON if it is None."""

    sentence: str
    verified: Verified
    optional: bool = False


def said(sentence: str, verified: Verified) -> Any:
    """Declare a field that is always present."""
    return dataclasses.field(metadata={"said": Said(sentence, verified)})


def said_if_any(sentence: str, verified: Verified) -> Any:
    """Declare a field that is omitted if it is None; it is passed by keyword."""
    return dataclasses.field(default=None, kw_only=True, metadata={"said": Said(sentence, verified, optional=True)})


def _unchanged(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """JSON Schema constraints on a list, apart from its entries."""

    schema: Mapping[str, Any]


AT_LEAST_ONE = Limits({"minItems": 1})


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """The JSON form of a value: its schema, its `name` in `$defs`, and functions that read and write it."""

    schema: Mapping[str, Any]
    name: str | None = None
    read: Callable[[Any], Any] = _unchanged
    write: Callable[[Any], Any] = _unchanged


def _pattern(pattern: str) -> dict[str, Any]:
    return {"type": "string", "pattern": f"^{pattern}$(?!\\n)"}


def _read_rational(text: str) -> Fraction:
    found = Fraction(text)
    if str(found) != text:
        raise ValueError("is not in lowest terms")
    return found


def _read_hexadecimal(text: str) -> float:
    found = float.fromhex(text)
    if not math.isfinite(found) or found.hex() != text:
        raise ValueError("is not written as a float is")
    return found


_MAX_INT64 = 2**63 - 1

Name = Annotated[str, Form({"type": "string", "minLength": 1})]
Columns = Annotated[
    tuple[str, ...],
    Form(
        {"type": "array", "minItems": 1, "maxItems": 1000, "items": {"type": "string", "minLength": 1}},
        "columns",
        tuple,
        list,
    ),
]
Version = Annotated[str, Form(_pattern("[0-9A-Za-z.+!-]{1,64}"))]
Identifier = Annotated[str, Form(_pattern("[a-z0-9-]{1,40}"))]
Seed = Annotated[str, Form(_pattern("[0-9a-f]{32}"))]
Sha256 = Annotated[str, Form(_pattern("[0-9a-f]{64}"))]
Purpose = Annotated[
    str,
    Form(
        _pattern(
            "(noisy marginals|noisy single columns|noisy marginals of [0-9]{1,4} columns|choosing among [0-9]{1,4} "
            "tables|choosing [0-9]{1,4} exceptions?|number of rows|choosing the resolution|scores of pairs|mean "
            "displacement|errors of the rows|dropped rows of persons)"
        )
    ),
]
Rational = Annotated[
    Fraction, Form(_pattern("(0|[1-9][0-9]{0,199})(/[1-9][0-9]{0,199})?"), "rational", _read_rational, str)
]
Decimal = Annotated[str, Form(_pattern("(0|[1-9][0-9]{0,11})([.][0-9]{0,11}[1-9])?"), "decimal")]
"""A decimal rounded up from the exact value, kept as text."""
HexFloat = Annotated[
    float, Form(_pattern("0x1[.][0-9a-f]{13}p[+-][0-9]{1,4}"), "hexadecimal", _read_hexadecimal, float.hex)
]
Bound = Annotated[float, Form({"type": "number", "minimum": 0, "maximum": 1}, "bound", float)]
Loss = Annotated[float, Form({"type": "number", "minimum": 0, "maximum": 1e300}, "loss", float)]
Confidence = Annotated[float, Form({"type": "number", "minimum": 0.5, "exclusiveMaximum": 1}, "confidence", float)]
Number = Annotated[float, Form({"type": "number", "minimum": -1e300, "maximum": 1e300}, read=float)]
Count = Annotated[int, Form({"type": "integer", "minimum": 0, "maximum": _MAX_INT64}, "count")]
Square = Annotated[int, Form({"type": "integer", "minimum": 0, "maximum": 1e38})]
Noisy = Annotated[int, Form({"type": "integer", "minimum": -_MAX_INT64 - 1, "maximum": _MAX_INT64})]
Resolution = Annotated[int, Form({"type": "integer", "minimum": 1, "maximum": 2048}, "resolution")]
RuleNumber = Annotated[int, Form({"type": "integer", "minimum": 1, "maximum": 1000})]
Ways = Annotated[int, Form({"type": "integer", "minimum": 1, "maximum": 1000})]
Dimension = Annotated[int, Form({"type": "integer", "minimum": 0, "maximum": 1000})]
Candidates = Annotated[int, Form({"type": "integer", "minimum": 1, "maximum": 100})]
Rehearsals = Annotated[int, Form({"type": "integer", "minimum": 0, "maximum": 1000})]
EmittedRows = Annotated[int, Form({"type": "integer", "minimum": 1, "maximum": 50_000_000})]
Draws = Annotated[int, Form({"type": "integer", "minimum": 1, "maximum": 100_000})]

_TYPES: dict[str, type | tuple[type, ...]] = {"string": str, "integer": int, "number": (int, float), "array": list}


def fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a JSON value satisfies the schema of a single value."""
    if isinstance(value, bool) or not isinstance(value, _TYPES[schema["type"]]):
        return False
    if isinstance(value, str):
        return len(value) >= schema.get("minLength", 0) and bool(re.search(schema.get("pattern", ""), value))
    if isinstance(value, list):
        few = schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value))
        return few and all(fits(each, schema["items"]) for each in value)
    low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    return bool(low <= value <= high and value < schema.get("exclusiveMaximum", math.inf))
