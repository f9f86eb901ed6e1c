"""The files that a path stands for: the file itself, the Parquet files of a folder, or those matching a pattern."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from certsynth.errors import InputError

PARQUET = (".parquet", ".pq")
WILDCARDS = "*?["

_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True, slots=True)
class Found:
    """A file, and the partition columns named by its parent folders, such as `year=2020`."""

    path: Path
    above: tuple[tuple[str, str | None], ...] = ()


def is_pattern(path: Path) -> bool:
    """Whether a path contains wildcards. Callers first check that no file has that literal name."""
    return any(sign in str(path) for sign in WILDCARDS)


def files_in_folder(folder: Path, where: str) -> list[Found]:
    """The Parquet files of a folder and of its subfolders named `column=value`, as Spark writes them."""
    try:
        found = list(_inside(folder, folder))
    except OSError as error:
        raise InputError(f"{where}: cannot be read ({error.strerror}). Check the folder.") from None
    if not found:
        raise InputError(f"{where}: this folder has no Parquet file in it. Give a CSV or Parquet file.")
    return found


def files_matching(pattern: Path, where: str) -> list[Found]:
    """The Parquet files that match a pattern, and those of matching folders. `**` matches any folders."""
    fixed, rest = _split(pattern)
    fits = [Path(text) for text in glob.glob(str(Path(glob.escape(str(fixed)), *rest)), recursive=True)]  # noqa: PTH207
    found: dict[Path, Found] = {}
    for path in sorted(fits):
        if any(_hidden(part) for part in path.relative_to(fixed).parts):
            continue
        inside = _inside(path, fixed) if path.is_dir() else _files(path, fixed)
        found |= {each.path: each for each in inside}
    if not found:
        other = "the matching files are not Parquet" if any(map(Path.is_file, fits)) else "no such file"
        raise InputError(f"{where}: {other}. A pattern must match files whose names end in {' or '.join(PARQUET)}.")
    return [found[path] for path in sorted(found)]


def _inside(folder: Path, top: Path) -> Iterator[Found]:
    for path in sorted(folder.iterdir()):
        if _hidden(path.name):
            continue
        if path.is_dir():
            if "=" in path.name:
                yield from _inside(path, top)
        else:
            yield from _files(path, top)


def _files(path: Path, top: Path) -> Iterator[Found]:
    if path.is_file() and path.name.lower().endswith(PARQUET):
        folders = path.relative_to(top).parts[:-1]
        named = (folder.partition("=") for folder in folders if "=" in folder)
        yield Found(
            path, tuple((unquote(name), None if value == _NULL else unquote(value)) for name, _, value in named)
        )


def _hidden(name: str) -> bool:
    """Whether tools write such files next to the rows: `_SUCCESS`, `_temporary`, `.part-0.crc`."""
    return name.startswith(("_", ".")) and name not in (".", "..")


def _split(pattern: Path) -> tuple[Path, tuple[str, ...]]:
    """Split a path into the leading folders that exist literally, and the rest, which is the pattern."""
    fixed = Path(pattern.anchor)
    parts = pattern.relative_to(fixed).parts
    for j, part in enumerate(parts):
        if not (fixed / part).is_dir():
            return fixed, parts[j:]
        fixed /= part
    return fixed, ()
