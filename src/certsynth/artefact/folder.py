"""A release folder is whole or absent: written beside its target, synced, checksummed, renamed; never overwritten."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from certsynth.errors import InputError

SUMS = "SHA256SUMS"


def check_target(target: Path) -> None:
    """Refuse a target that cannot be written, before anything is spent."""
    if os.path.lexists(target):
        raise InputError(f"{target} exists already; a release is never overwritten. Choose another --out.")
    parent = target.parent
    if not parent.is_dir():
        raise InputError(f"{parent} is not a folder; make it first, or choose another --out.")
    if not os.access(parent, os.W_OK | os.X_OK):
        raise InputError(f"{parent} cannot be written to; choose another --out.")


def write_folder(target: Path, files: Mapping[str, bytes], others: Callable[[Path], None] | None = None) -> None:
    """Write `files`, and what `others` writes into the folder it is given, then the checksums; all or nothing."""
    check_target(target)
    partial = target.parent / f".{target.name}.{secrets.token_hex(6)}.partial"
    try:
        partial.mkdir()
        for name, content in files.items():
            (partial / name).write_bytes(content)
        if others:
            others(partial)
        names = sorted(path.name for path in partial.iterdir())
        sums = "".join(f"{_digest(partial / name)}  {name}\n" for name in names)
        (partial / SUMS).write_text(sums, encoding="utf-8")
        for path in partial.iterdir():
            _sync(path)
        _sync(partial)
        check_target(target)
        partial.rename(target)
        _sync(target.parent)
    except OSError as error:
        reason = error.strerror or "input/output error"
        raise InputError(f"{target} was not written ({reason}); nothing is left behind.") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def check_sums(folder: Path) -> list[str]:
    """What is wrong with the folder's files: none missing, none changed, none added."""
    try:
        lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return [f"{SUMS} is missing or unreadable"]
    pairs = (line.split("  ", 1) for line in lines if "  " in line)
    listed = {name: digest for digest, name in pairs}
    problems = [f"{name} is not listed in {SUMS}" for name in _names(folder) - set(listed)]
    for name, digest in listed.items():
        if "/" in name or name not in _names(folder):
            problems.append(f"{name} is missing")
        elif _digest(folder / name) != digest:
            problems.append(f"{name} has been changed")
    return sorted(problems)


def manifest(folder: Path) -> str:
    """The hash that stands for a whole release folder: that of its checksums."""
    return _digest(folder / SUMS)


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {SUMS}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
