"""Paths as DuckDB reads them: it looks for patterns in them, and would read the files of others as well."""

from __future__ import annotations

from pathlib import Path

from certsynth.errors import InputError

_GLOB = "*?["


def literally(path: Path, where: str) -> str:
    """The path as a pattern that only it fits: a wildcard stands for itself in brackets, but not after a backslash.

    >>> literally(Path("/tables/year[1].parquet"), "data")
    '/tables/year[[]1].parquet'
    """
    text = path.absolute().as_posix()
    if "\\" in text and set(_GLOB) & set(text):
        raise InputError(f"{where}: a path with a backslash and one of {_GLOB} in it. Rename the file.")
    return "".join(f"[{c}]" if c in _GLOB else c for c in text)
