"""Rows from JSON lines: one object in each line, whose scalars are read as their texts.

There is no header. Which keys occur is known from rows alone, so a column of the schema is never refused: a key that a
line lacks is absent there, as `null` is. Numbers are texts as they are written, without a float in between.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from certsynth.domain.reading import NumberText
from certsynth.errors import InputError
from certsynth.sources.caching import ParsedFile, is_small
from certsynth.sources.packing import TextFile, reading
from certsynth.sources.reading import CHUNK_ROWS, MAX_TEXT_ROWS, SAVE_AS_UTF8, gather_columns, is_text

SUFFIXES = (".jsonl", ".ndjson")

MAX_LINE_CHARACTERS = 2**24
"""Longest line, so that a file without line breaks does not fill the memory."""

_CONSTANTS = {"NaN": None, "Infinity": "inf", "-Infinity": "-inf"}
"""What Python writes for floats that JSON does not have."""

_TRUTHS = {True: "true", False: "false"}


class _MalformedLineError(Exception):
    """A line that is no JSON object."""


@dataclass(frozen=True, slots=True)
class JsonLines(ParsedFile):
    """A UTF-8 text file with one JSON object in each line. Lists and objects as values are absent."""

    file: TextFile

    @classmethod
    def open(cls, file: TextFile) -> JsonLines:
        with reading(file.where):
            return cls(file.path, file.where, file, is_small=is_small(file.path))

    @property
    def names(self) -> tuple[str, ...]:
        """All keys, in the order of their first lines. All rows are read: this is for drafts and checks."""
        found: dict[str, None] = {}
        for row in self._objects():
            found.update(dict.fromkeys(row))
        return tuple(found)

    def batches(
        self, names: Sequence[str], *, rows: int = 500_000, scalars: Sequence[str] = ()
    ) -> Iterator[list[np.ndarray]]:
        """Yield raw columns. Of `scalars`, lists and objects are refused rather than absent."""
        return gather_columns(self._chunks(names, scalars), range(len(names)), min(rows, MAX_TEXT_ROWS))

    def _chunks(self, names: Sequence[str], scalars: Sequence[str] = ()) -> Iterator[list[list[str | None]]]:
        chunk: list[list[str | None]] = []
        for row in self._objects():
            for name in scalars:
                if isinstance(row.get(name), (list, dict)):
                    raise InputError(f"{self.where}: {name!r} holds a list or an object in some line. Write one value.")
            chunk.append([_text(row.get(name)) for name in names])
            if len(chunk) == CHUNK_ROWS:
                yield self._checked(chunk, names)
                chunk = []
        yield self._checked(chunk, names)

    def _checked(self, chunk: list[list[str | None]], names: Sequence[str]) -> list[list[str | None]]:
        for i, name in enumerate(names):
            if not is_text(row[i] or "" for row in chunk):
                raise InputError(f"{self.where}: {name!r} is not text in UTF-8. {SAVE_AS_UTF8}.")
        return chunk

    def _objects(self) -> Iterator[dict[str, Any]]:
        with self._lines() as lines:
            number = 0
            while line := lines.readline(MAX_LINE_CHARACTERS):
                number += 1
                if line.isspace():
                    continue
                try:
                    row = _decode(line)
                except (ValueError, RecursionError, _MalformedLineError):
                    found = f"line {number:,} is not a JSON object, has a key twice, or is too long"
                    remedy = "Write one object in each line; for an array, jq -c '.[]' does so"
                    raise InputError(f"{self.where}: {found}. {remedy}.") from None
                yield row

    def _lines(self) -> Any:
        return self.file.lines("\n")


def _decode(line: str) -> dict[str, Any]:
    if len(line) == MAX_LINE_CHARACTERS and not line.endswith("\n"):
        raise _MalformedLineError
    row = json.loads(
        line,
        parse_int=NumberText,
        parse_float=NumberText,
        parse_constant=_CONSTANTS.__getitem__,
        object_pairs_hook=_unique,
    )
    if not isinstance(row, dict):
        raise _MalformedLineError
    return row


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object. One with a key twice is refused: readers differ in which of the two values they take."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _MalformedLineError
    return found


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return _TRUTHS[value] if isinstance(value, bool) else None
