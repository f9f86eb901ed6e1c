"""Workload files: TOML that names the subsets of columns that matter, as subsets = [["age", "income"], ["region"]]."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from certsynth.base.files import FileTooLarge, read_small_file
from certsynth.errors import InputError

MAX_BYTES = 2**20
MAX_SUBSETS = 10_000
"""Limits of a workload file, which may come from anybody."""

_EXAMPLE = 'write subsets = [["age", "income"], ["region"]]'
_TEXT_OR_COMMENT = re.compile(r""" "(?:[^"\\\n]|\\.)*" | '[^'\n]*' | \#[^\n]* """, re.VERBOSE)


def load_workload(path: str | Path) -> list[list[str]]:
    """Read a workload file: subsets of columns, as `certify(subsets=…)` takes them."""
    path = Path(path)
    where = f"workload {path}"
    try:
        text = read_small_file(path, max_bytes=MAX_BYTES).decode()
    except FileTooLarge:
        raise InputError(f"{where}: larger than {MAX_BYTES >> 20} MB; a workload is a short text file.") from None
    except OSError as error:
        raise InputError(f"{where}: {error.strerror or 'cannot be read'}. Check the path.") from None
    except UnicodeDecodeError:
        raise InputError(f"{where}: not a text file in UTF-8. Write it as TOML.") from None
    return parse_workload(text, where=where)


def parse_workload(text: str, *, where: str = "workload") -> list[list[str]]:
    """Read the text of a workload file.

    >>> parse_workload('subsets = [["age", "income"], ["region"]]')
    [['age', 'income'], ['region']]
    """
    if "." in _TEXT_OR_COMMENT.sub("", text):  # tomllib takes quadratic time for dotted keys, and no key here has a dot
        raise InputError(f"{where}: a dot outside of quotes; {_EXAMPLE}.")
    try:
        document = tomllib.loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"{where}: not valid TOML; {_EXAMPLE}.") from None
    if set(document) != {"subsets"}:
        raise InputError(f"{where}: it must have the one entry subsets; {_EXAMPLE}.")
    subsets = document["subsets"]
    if not isinstance(subsets, list) or not subsets or not all(map(_is_subset, subsets)):
        raise InputError(f"{where}: subsets is a list of lists of column names; {_EXAMPLE}.")
    if len(subsets) > MAX_SUBSETS:
        raise InputError(f"{where}: {len(subsets):,} subsets; at most {MAX_SUBSETS:,} are supported.")
    return subsets


def _is_subset(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(name, str) for name in value)
