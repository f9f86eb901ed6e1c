"""Release folders, complete or absent: written next to the target, checksummed, synced, renamed; never overwritten.

A folder holds regular files only: a reader follows no links and waits for no pipes.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from certsynth.artefact.signature import SIGNATURE, SIGNER
from certsynth.base.files import FileTooLarge, read_small_file, sync
from certsynth.errors import InputError

SUMS = "SHA256SUMS"

MAX_FILE_BYTES = {
    SUMS: 2**16,
    SIGNATURE: 64,
    SIGNER: 2**12,
    "certificate.json": 2**28,
    "croissant.json": 2**28,
    "datapackage.json": 2**28,
    "measurements.npz": 2**32,
    "report.html": 2**28,
    "schema.toml": 2**24,
    "synthetic.csv": 2**40,
    "synthetic.parquet": 2**40,
}
"""Files of a release with their maximum sizes in bytes: larger files are not read."""

_MAX_FILES = 100
_SUMS_LINE = re.compile(r"([0-9a-f]{64})  ([^\x00-\x1f\x7f/\\]{1,255})")

_AT_FDCWD, _RENAME_NOREPLACE = -100, 1  # constants of Linux


def check_target(target: Path) -> None:
    """Raise InputError if the target cannot be written, before any budget is spent."""
    _check_absent(target)
    parent = target.parent
    if not parent.is_dir():
        raise InputError(f"{parent} is not a folder; make it first, or choose another `out`.")
    try:  # permissions do not tell: some file systems refuse even root
        trial = _partial_path(target)
        trial.mkdir()
        trial.rmdir()
    except OSError:
        raise InputError(f"{parent} cannot be written to; choose another `out`.") from None


def write_folder(
    target: Path,
    files: Mapping[str, bytes],
    others: Callable[[Path], None] | None = None,
    *,
    sign: Callable[[bytes], bytes] | None = None,
) -> None:
    """Write `files`, let `others` write more into the folder, then write the checksums: all of it or nothing.

    `sign` returns the signature of the checksums, which is stored in its own file.
    """
    check_target(target)
    partial = _partial_path(target)
    try:
        sys.audit("certsynth.folder.make")
        partial.mkdir()
        for name, content in files.items():
            sys.audit("certsynth.folder.file")
            (partial / name).write_bytes(content)
        if others:
            sys.audit("certsynth.folder.table")
            others(partial)
        sys.audit("certsynth.folder.sums")
        names = sorted(path.name for path in partial.iterdir())
        sums = "".join(f"{digest(partial / name)}  {name}\n" for name in names).encode()
        (partial / SUMS).write_bytes(sums)
        if sign:
            sys.audit("certsynth.folder.sign")
            (partial / SIGNATURE).write_bytes(sign(sums))
        sys.audit("certsynth.folder.sync")
        for path in partial.iterdir():
            sync(path)
        sync(partial)
        sys.audit("certsynth.folder.rename")
        _rename_into_place(partial, target)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR) and os.path.lexists(target):
            _check_absent(target)
        reason = error.strerror or "input/output error"
        raise InputError(f"{target} was not written ({reason}); nothing is left behind.") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    try:
        sys.audit("certsynth.folder.renamed")
        sync(target.parent)
    except OSError as error:
        reason = error.strerror or "input/output error"
        raise InputError(f"{target} is written, but may be lost in a power cut ({reason}); check the disk.") from None


def check_plain(folder: Path) -> None:
    """Raise InputError unless the folder holds only regular files of plausible sizes; none of them is opened."""
    if not folder.is_dir():
        found = "it is a file. Give the folder that it lies in" if folder.is_file() else "there is no such folder"
        raise InputError(f"{folder} is not a release folder: {found}.")
    try:
        with os.scandir(folder) as entries:
            for number, entry in enumerate(entries):
                if number == _MAX_FILES:
                    raise InputError(f"{folder} is not a release folder: it holds more than {_MAX_FILES} files.")
                what, name = entry.stat(follow_symlinks=False), printable_name(entry.name)
                if stat.S_ISLNK(what.st_mode):
                    raise InputError(
                        f"{folder}: {name} is a link, and a release has none; copy the folder with what its links "
                        "lead to, if you trust them."
                    )
                if not stat.S_ISREG(what.st_mode):
                    raise InputError(f"{folder}: {name} is not a plain file, and a release holds nothing else.")
                if what.st_size > MAX_FILE_BYTES.get(entry.name, 2**40):
                    raise InputError(f"{folder}: {name} is larger than any release's.")
    except OSError as error:
        raise InputError(f"{folder} cannot be read ({error.strerror or 'input/output error'}).") from None


def read_plain(folder: Path, name: str) -> bytes:
    """Read a small file of a release. Type and size are rechecked: the file may have changed after `check_plain`."""
    try:
        return read_small_file(folder / name, max_bytes=MAX_FILE_BYTES[name], follow_links=False)
    except (OSError, FileTooLarge):
        raise InputError(
            f"{folder} is not a release folder: {name} cannot be read. Give a folder that `certsynth release` wrote."
        ) from None


def check_sums(folder: Path) -> list[str]:
    """List the problems of the folder's files: missing, changed, added, or unknown to any release."""
    try:
        check_plain(folder)
        text = read_plain(folder, SUMS).decode("utf-8")
    except InputError as error:
        if not os.path.lexists(folder / SUMS):
            return [f"{SUMS} is missing"]
        return [str(error).rstrip(".")]
    except UnicodeDecodeError:
        return [f"{SUMS} is not a text"]
    *lines, last = text.split("\n")
    found = [_SUMS_LINE.fullmatch(line) for line in lines]
    if last or not lines or not all(found):
        return [f"{SUMS} is not a list of checksums"]
    pairs = [(match[2], match[1]) for match in found if match]
    listed, present = dict(pairs), {path.name for path in folder.iterdir()} - {SUMS, SIGNATURE}
    problems = [f"{SUMS} lists a file twice"] if len(listed) < len(pairs) else []
    problems += [f"{printable_name(name)} is not listed in {SUMS}" for name in present - set(listed)]
    for name, stated in listed.items():
        if name not in present:
            problems.append(f"{printable_name(name)} is missing")
        elif name not in MAX_FILE_BYTES:
            problems.append(f"{printable_name(name)} is no file of a release: nothing is known about it")
        elif digest(folder / name) != stated:
            problems.append(f"{name} has been changed")
    always = set(MAX_FILE_BYTES) - {SUMS, SIGNATURE, SIGNER}
    problems += [f"{name} is missing" for name in always - set(listed) - present]
    return sorted(problems)


def manifest(folder: Path) -> str:
    """Return the hash of the checksums, which identifies the whole release folder."""
    return digest(folder / SUMS)


def printable_name(name: str) -> str:
    """Return a file's name, escaped if it contains characters that cannot be printed."""
    return name if name.isprintable() else ascii(name)


def _check_absent(target: Path) -> None:
    if os.path.lexists(target):
        raise InputError(f"{target} exists already; a release is never overwritten. Choose another `out`.")


def _partial_path(target: Path) -> Path:
    """Return a hidden path next to the target; its name is shortened to stay within the limit of file systems."""
    return target.parent / f".{target.name[:40]}.{secrets.token_hex(6)}.partial"


def _rename_into_place(partial: Path, target: Path) -> None:
    """Rename without replacing anything that appeared at the target in the meantime.

    A plain rename refuses a file, a link or a non-empty folder, but replaces an empty folder. Linux can refuse that,
    too; elsewhere, only an empty folder created at this very moment can be lost.
    """
    problem = _rename_without_replacing(partial, target)
    if problem == errno.EEXIST:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    if problem:
        _check_absent(target)
        partial.rename(target)


def _rename_without_replacing(partial: Path, target: Path) -> int:
    """Return 0 on success, else the errno: not every system and file system supports it."""
    if sys.platform != "linux":
        return errno.ENOSYS
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        return errno.ENOSYS
    done = call(_AT_FDCWD, os.fsencode(partial), _AT_FDCWD, os.fsencode(target), _RENAME_NOREPLACE)
    return 0 if done == 0 else ctypes.get_errno()


def digest(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
