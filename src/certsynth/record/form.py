"""Generic conversion of records to JSON and back, and to JSON Schema, driven by the fields of the dataclasses."""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from certsynth.record.values import Form, Limits, Said, fits

T = TypeVar("T")

Json = dict[str, Any]
NULL: Json = {"type": "null"}


def said_of(record: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of a record's fields in order, without optional ones that are None."""
    cls: Any = type(record)
    for name, _, about in _fields(cls):
        value = getattr(record, name)
        if not (about.optional and value is None):
            yield name, value


def to_json(record: Any) -> Json:
    """Convert a record to JSON, with keys in the order of its fields."""
    cls: Any = type(record)
    known = {name: annotation for name, annotation, _ in _fields(cls)}
    return {name: _written(value, known[name]) for name, value in said_of(record)}


def from_json(cls: type[T], value: Any, path: str = "") -> T:
    """Read a record from JSON. An unknown or missing key, or an invalid value, is a ValueError that names its path."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{path or 'the whole'} is not an object")
    own: Any = cls
    fields = _fields(own)
    if len(set(value) - {name for name, *_ in fields}):
        raise ValueError(f"{path or 'the whole'} has a key that does not belong there")
    found = {}
    for name, annotation, about in fields:
        place = f"{path}.{name}".removeprefix(".")
        if name in value:
            found[name] = _read(value[name], annotation, place, null=not about.optional)
        elif not about.optional:
            raise ValueError(f"{place} is missing")
    return cls(**found)


def json_schema(cls: Any) -> Json:
    """Return the JSON Schema of a record, with `$defs` for all named types."""
    named: dict[str, Json] = {}
    whole = _object_schema(cls, named)
    return {**whole, "$defs": named}


@functools.cache
def _fields(cls: Any) -> tuple[tuple[str, Any, Said], ...]:
    """Return name, type and description of every field, in the order of declaration."""
    hints = get_type_hints(cls, include_extras=True)
    return tuple((f.name, hints[f.name], f.metadata["said"]) for f in dataclasses.fields(cls))


def _options(annotation: Any) -> tuple[tuple[Any, ...], bool]:
    """Return the types that a value may have, and whether it may be null."""
    if get_origin(annotation) not in (Union, types.UnionType):
        return (annotation,), False
    found = get_args(annotation)
    return tuple(each for each in found if each is not type(None)), type(None) in found


def _form(annotation: Any) -> Form | None:
    """Return the form of a single value; None for lists, records and literals."""
    marks = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return next((mark for mark in marks if isinstance(mark, Form)), None)


def _plain(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _is_record(annotation: Any) -> bool:
    return dataclasses.is_dataclass(annotation)


def _entry(annotation: Any) -> Any:
    """Return the type of a list's entries; None if it is not a list."""
    plain = _plain(annotation)
    return get_args(plain)[0] if get_origin(plain) is tuple else None


def _limits(annotation: Any) -> Json:
    """Return the JSON Schema constraints on a list as a whole."""
    marks = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    return next((dict(mark.schema) for mark in marks if isinstance(mark, Limits)), {})


# ---------------------------------------------------------------------------------------------------------------------
# to JSON and back


def _written(value: Any, annotation: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if dataclasses.is_dataclass(value):
        return to_json(value)
    (only,), _ = _options(annotation)
    if form := _form(only):
        return form.write(value)
    if (entry := _entry(only)) is not None:
        return [_written(each, entry) for each in value]
    return value


def _read(value: Any, annotation: Any, path: str, *, null: bool = True) -> Any:
    options, may_be_null = _options(annotation)
    if value is None and may_be_null and null:
        return None
    if len(options) > 1:  # records that differ in their keys
        keys = set(value) if isinstance(value, Mapping) else set()
        options = tuple(each for each in options if {name for name, *_ in _fields(each)} == keys)
        if not options:
            raise ValueError(f"{path} has other keys than it can have")
    only = options[0]
    if form := _form(only):
        return _read_value(value, form, path)
    if (entry := _entry(only)) is not None:
        return _read_list(value, entry, _limits(only), path)
    if _is_record(only):
        return from_json(only, value, path)
    fine = isinstance(value, bool) if only is bool else isinstance(value, (str, bool)) and value in get_args(only)
    if not fine:
        raise ValueError(f"{path} is not what it can be")
    return value


def _read_value(value: Any, form: Form, path: str) -> Any:
    if not fits(value, form.schema):
        raise ValueError(f"{path} is not what it can be")
    try:
        return form.read(value)
    except (ValueError, OverflowError, ZeroDivisionError):
        raise ValueError(f"{path} is not written as it must be") from None


def _read_list(value: Any, entry: Any, limits: Json, path: str) -> tuple[Any, ...]:
    if not isinstance(value, list):
        raise ValueError(f"{path} is not a list")
    if not limits.get("minItems", 0) <= len(value) <= limits.get("maxItems", len(value)):
        raise ValueError(f"{path} has too many or too few entries")
    return tuple(_read(each, entry, f"{path}[{j}]") for j, each in enumerate(value))


# ---------------------------------------------------------------------------------------------------------------------
# the JSON Schema


def _object_schema(cls: Any, named: dict[str, Json]) -> Json:
    fields = _fields(cls)
    return {
        **getattr(cls, "HEAD", {}),
        "type": "object",
        "additionalProperties": False,
        "required": [name for name, _, about in fields if not about.optional],
        "properties": {
            name: {
                "description": about.sentence,
                "x-verify": about.verified,
                **_schema(annotation, named, null=not about.optional),
            }
            for name, annotation, about in fields
        },
        **getattr(cls, "CONDITIONS", {}),
    }


def _schema(annotation: Any, named: dict[str, Json], *, null: bool = True) -> Json:
    options, may_be_null = _options(annotation)
    found = [_single_schema(each, named) for each in options]
    if may_be_null and null:
        if len(found) == 1 and "enum" in found[0]:
            return {"enum": [*found[0]["enum"], None]}
        found = [NULL, *found]
    return found[0] if len(found) == 1 else {"anyOf": found}


def _single_schema(annotation: Any, named: dict[str, Json]) -> Json:
    if form := _form(annotation):
        return dict(form.schema) if form.name is None else _referred(form.name, dict(form.schema), named)
    if (entry := _entry(annotation)) is not None:
        limits = _limits(annotation)
        return {"type": "array", **limits, "items": _schema(entry, named)}
    if _is_record(annotation):
        found = _object_schema(annotation, named)
        name = getattr(annotation, "NAME", None)
        return found if name is None else _referred(name, found, named)
    if get_origin(annotation) is Literal:
        values = list(get_args(annotation))
        return {"const": values[0]} if len(values) == 1 else {"enum": values}
    return {"type": "boolean"}


def _referred(name: str, schema: Json, named: dict[str, Json]) -> Json:
    named[name] = schema
    return {"$ref": f"#/$defs/{name}"}
