"""Paths for DuckDB, which expands glob patterns in them and could otherwise read other files as well."""

from __future__ import annotations

from pathlib import Path

from certsynth.errors import InputError

_WILDCARDS = "*?["


def escape_glob(path: Path, where: str) -> str:
    """The path as a glob pattern that matches only itself.

    A wildcard in brackets stands for itself, but not after a backslash: such paths are refused.

    >>> escape_glob(Path("/tables/year[1].parquet"), "data")
    '/tables/year[[]1].parquet'
    """
    text = path.absolute().as_posix()
    if "\\" in text and set(_WILDCARDS) & set(text):
        raise InputError(f"{where}: a path with a backslash and one of {_WILDCARDS} in it. Rename the file.")
    return "".join(f"[{c}]" if c in _WILDCARDS else c for c in text)
