"""Writes certificate.md, beside this file, and certificate.schema.json from the record of a release."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import certsynth.artefact
from certsynth.artefact.document import certificate_schema, to_json

PAGE = Path(__file__).with_name("certificate.md")
SCHEMA = Path(certsynth.artefact.__file__).with_name("certificate.schema.json")

HEAD = """# certificate.json, key by key

Every release folder has a `certificate.json`. Its form is fixed by a JSON Schema (draft 2020-12), which comes with the
package as `certsynth/artefact/certificate.schema.json`. `certsynth verify` holds a certificate against it: every key
must be there, and no other, except for keys that are said to be absent in some cases. The text must be UTF-8, name no
key twice, and hold no NaN and no infinity.

Numbers that must be exact are texts: a *rational* is digits, or digits over digits, like `19/20`; a *decimal* is never
below what it stands for. Bounds are losses from 0 to 1.

The last column says what `verify` does with a value:

- **recomputed**: computed again from the other files, and compared;
- **cross-checked**: held against what other parts of the release say; one value alone cannot be changed unseen,
  except to one that promises less;
- **on trust**: another value that everything else fits is not seen.

The noisy integers of `privacy.spent` are on trust, as those of `measurements.npz` are: figures that follow from them
are computed again. [How to verify a release](../how-to/verify.md) lists what nobody can check.

| key | what it is | value | `verify` |
|---|---|---|---|
"""

TAIL = """
Lists are marked `[]`: the keys below them are those of every entry.

This page and the schema are written by `python docs/reference/make_certificate.py` from `certsynth/record/record.py`.
"""


def page() -> str:
    """The page as it must be."""
    schema = certificate_schema()
    rows = [f"| `{path}` | {text} | {value} | {how} |\n" for path, text, value, how in keys(schema, schema, "")]
    return HEAD + "".join(rows) + TAIL


def keys(schema: dict[str, Any], part: dict[str, Any], path: str) -> Iterator[tuple[str, str, str, str]]:
    """Every key with its sentence, the values that it may have, and what `verify` does with it."""
    for option in [part, *part.get("anyOf", [])]:
        option = resolved(schema, option)
        for name, each in option.get("properties", {}).items():
            full, whole = f"{path}.{name}".removeprefix("."), resolved(schema, each)
            listed = "[]" if "items" in whole and "properties" in resolved(schema, whole["items"]) else ""
            inner = listed or "properties" in whole  # what is done with it is done with its keys
            yield full + listed, each["description"], value(schema, each), "" if inner else each["x-verify"]
            yield from keys(schema, whole, full)
        if "items" in option:
            yield from keys(schema, option["items"], f"{path}[]")


def resolved(schema: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """A part of the schema with what it refers to."""
    if "$ref" not in part:
        return part
    return part | schema["$defs"][part["$ref"].rsplit("/", 1)[-1]]


def value(schema: dict[str, Any], part: dict[str, Any]) -> str:
    """What a key may hold, in short."""
    named = {"bound": "0 to 1", "confidence": "½ to below 1", "loss": "at least 0"}
    reference = part.get("$ref", "").rsplit("/", 1)[-1]
    if reference in named:
        return named[reference]
    if reference in ("rational", "decimal"):
        return reference
    if "anyOf" in part and "properties" not in part:
        kinds = [value(schema, option) for option in part["anyOf"]]
        return " or ".join(dict.fromkeys(kinds))
    whole = resolved(schema, part)
    if "const" in whole:
        return f"`{whole['const']}`"
    if "enum" in whole:
        return ", ".join("null" if each is None else f"`{each}`" for each in whole["enum"])
    words = {"string": "text", "array": "list", "boolean": "true or false", "integer": "whole number"}
    kinds = whole["type"] if isinstance(whole["type"], list) else [whole["type"]]
    return " or ".join(words.get(kind, kind) for kind in kinds)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    SCHEMA.write_bytes(to_json(certificate_schema()))
