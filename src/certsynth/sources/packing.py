"""Text files, plain or packed: by gzip, or as the only table of a zip archive.

The format follows from names alone: that of the file and, in an archive, that of its one table.
"""

from __future__ import annotations

import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal

from certsynth.errors import InputError

_UTF16 = "text in UTF-16. Save it as UTF-8"
_FIRST_BYTES = {
    b"PK\x03\x04": "a zip archive or a spreadsheet. Give it the suffix of its format, .zip or .xlsx",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet. Save the sheet as CSV in UTF-8",
    b"\x1f\x8b": "compressed. Add .gz to its name",
    b"PAR1": "a Parquet file. Give it the suffix .parquet",
    b"\xff\xfe": _UTF16,
    b"\xfe\xff": _UTF16,
}
"""First bytes of files that are no plain text in UTF-8 whatever their names, with the remedy."""

_DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile)


@dataclass(frozen=True, slots=True)
class TextFile:
    """A text file, and how it is packed. `suffix` is that of the text itself; `member` is its name in an archive."""

    path: Path
    where: str
    suffix: str
    packing: Literal["plain", "gzip", "zip"] = "plain"
    member: str = ""

    @classmethod
    def find(cls, path: Path, where: str, suffixes: Sequence[str]) -> TextFile | None:
        """The text file at `path`, if its name ends in one of the suffixes, as it is or packed."""
        name = path.name.lower()
        for suffix in suffixes:
            if name.endswith(suffix):
                return cls(path, where, suffix)._checked()
            if name.endswith(f"{suffix}.gz"):
                return cls(path, where, suffix, "gzip")._checked()
        if name.endswith(".zip"):
            member = _only_table(path, where, suffixes)
            suffix = next(each for each in suffixes if member.lower().endswith(each))
            return cls(path, where, suffix, "zip", member)
        return None

    @contextmanager
    def lines(self, newline: str) -> Iterator[IO[str]]:
        """Open the decoded text. Invalid UTF-8 is carried along, since its column may not be needed."""
        decode = partial(io.TextIOWrapper, encoding="utf-8-sig", errors="surrogateescape", newline=newline)
        with reading(self.where), self._opened() as file, decode(file) as lines:
            yield lines

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        if self.packing == "zip":
            with zipfile.ZipFile(self.path) as archive, archive.open(self.member) as file:
                yield file
        else:
            opened: Callable[..., Any] = gzip.open if self.packing == "gzip" else Path.open
            with opened(self.path, "rb") as file:
                yield file

    def _checked(self) -> TextFile:
        """Refuse a file whose first bytes contradict its suffix."""
        try:
            with self.path.open("rb") as file:
                first = file.read(4)
        except OSError:
            return self  # reported when the file is read
        if self.packing == "gzip":
            if first and not first.startswith(b"\x1f\x8b"):
                raise InputError(f"{self.where}: not compressed. Remove .gz from its name.")
            return self
        for start, found in _FIRST_BYTES.items():
            if first.startswith(start):
                raise InputError(f"{self.where}: {found}.")
        return self


@contextmanager
def reading(where: str) -> Iterator[None]:
    """Report in one line that a file cannot be read, or is damaged."""
    try:
        yield
    except _DAMAGED as error:
        reason = getattr(error, "strerror", None) or "it is damaged"
        raise InputError(f"{where}: cannot be read ({reason}). Check the file.") from None


def _only_table(path: Path, where: str, suffixes: Sequence[str]) -> str:
    """The name of the only table in a zip archive. What macOS and Windows add is ignored."""
    with reading(where), zipfile.ZipFile(path) as archive:
        names = [each.filename for each in archive.infolist() if not each.is_dir()]
    parts = [(name, name.replace("\\", "/").split("/")) for name in names]
    tables = [
        name
        for name, folders in parts
        if name.lower().endswith(tuple(suffixes)) and not any(part.startswith((".", "__MACOSX")) for part in folders)
    ]
    if len(tables) != 1:
        found = "no table" if not tables else f"{len(tables):,} tables"
        known = ", ".join(suffixes)
        raise InputError(f"{where}: the archive has {found} in it. Pack exactly one file ({known}), or unpack it.")
    try:
        with reading(where), zipfile.ZipFile(path) as archive, archive.open(tables[0]):
            return tables[0]
    except RuntimeError:  # of which NotImplementedError is one
        found = "the archive has a password, or a compression that cannot be read"
        raise InputError(f"{where}: {found}. Unpack it.") from None
