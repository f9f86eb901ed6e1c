"""certificate.json as text: strict reading into a record, and validation against the JSON Schema of records."""

from __future__ import annotations

import functools
import itertools
import json
import math
from typing import Any

from certsynth.errors import InputError
from certsynth.record.form import from_json, json_schema
from certsynth.record.record import FORMAT, Record

EARLIER_FORMATS = ("certsynth-certificate/1", "certsynth-certificate/2")
"""The formats before this one, which lack noisy integers that `verify` computes bounds from."""

MAX_DEPTH = 16
"""Levels of nested objects and lists that are accepted: a certificate has eight."""

_MAX_MESSAGE_CHARACTERS = 160  # of a validation error that are shown
_MAX_ERRORS_COMPARED = 20  # validation errors from which the clearest is chosen


def to_json(document: Any) -> bytes:
    """Return JSON as a release stores it. NaN is not JSON and raises a ValueError."""
    return (json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def read_json(content: bytes, name: str) -> Any:
    """Read JSON that is unambiguous: no repeated key, no NaN, no overflowing number, no deep nesting."""
    try:
        value = json.loads(
            content.decode("utf-8"),
            object_pairs_hook=_object_without_repeats,
            parse_constant=_refuse_constant,
            parse_float=_finite_float,
        )
    except _RepeatedKey:
        raise InputError(f"{name} has a key twice, so that readers may disagree on what it says.") from None
    except (ValueError, RecursionError):
        raise InputError(f"{name} is not valid JSON.") from None
    if _is_too_deep(value):
        raise InputError(f"{name} is nested more deeply than any of its kind.")
    return value


def read_record(content: bytes) -> Record:
    """Read the record in certificate.json; raise InputError if it does not have the form of a certificate."""
    document = read_document(content)
    try:
        return from_json(Record, document)
    except ValueError as error:
        raise InputError(f"certificate.json does not have the form of a certificate: {error}.") from None


def read_document(content: bytes) -> dict[str, Any]:
    """Read certificate.json as JSON; raise InputError unless it states the format that this version reads."""
    document = read_json(content, "certificate.json")
    stated = document.get("format") if isinstance(document, dict) else None
    if not isinstance(document, dict) or not isinstance(stated, str):
        raise InputError("certificate.json is not a certificate of certsynth: it does not say its format.")
    if stated != FORMAT:
        if stated in EARLIER_FORMATS:
            raise InputError(
                f"certificate.json is of another version of certsynth: {stated} does not hold what verify "
                f"computes {FORMAT} from. Verify it with the version that made it, or make the release anew."
            )
        known = "a certificate of another version of certsynth" if stated.startswith("certsynth-certificate/") else ""
        raise InputError(f"certificate.json is {known or 'not a certificate of certsynth'}; this one reads {FORMAT}.")
    return document


def certificate_schema() -> dict[str, Any]:
    """Return the JSON Schema of certificate.json (draft 2020-12); certificate.schema.json is a copy of it."""
    return json_schema(Record)


def form_problem(document: Any) -> str | None:
    """Describe the first violation of the JSON Schema; None if there is none."""
    import jsonschema  # only `verify` needs it, and `certsynth --help` must start quickly

    error = jsonschema.exceptions.best_match(itertools.islice(_validator().iter_errors(document), _MAX_ERRORS_COMPARED))
    if error is None:
        return None
    where = ".".join(str(part) for part in error.absolute_path) or "the whole"
    said = (
        error.message
        if len(error.message) <= _MAX_MESSAGE_CHARACTERS
        else error.message[:_MAX_MESSAGE_CHARACTERS] + "…"
    )
    return f"{where}: {said}"


@functools.cache
def _validator() -> Any:
    import jsonschema

    return jsonschema.Draft202012Validator(certificate_schema())


class _RepeatedKey(ValueError):
    pass


def _object_without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise _RepeatedKey
    return made


def _refuse_constant(text: str) -> None:
    raise ValueError("not a JSON number")


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("not a number that floats hold")
    return value


def _is_too_deep(value: Any) -> bool:
    """Whether lists and objects are nested beyond MAX_DEPTH. Not recursive: recursion would be just as deep."""
    level = [value]
    for _ in range(MAX_DEPTH):
        inner = [each for each in level if isinstance(each, (dict, list))]
        level = [part for each in inner for part in (each.values() if isinstance(each, dict) else each)]
    return any(isinstance(each, (dict, list)) for each in level)
