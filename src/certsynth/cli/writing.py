"""Write small files without overwriting."""

from __future__ import annotations

import os
from pathlib import Path

from certsynth.errors import InputError


def write_once(path: Path, content: bytes) -> bool:
    """Write a new file completely or not at all; return False if it already exists with the same content."""
    try:
        if os.path.lexists(path):
            if path.is_file() and path.read_bytes() == content:
                return False
            raise InputError(f"{path} already exists with different content; choose another --out.")
        with path.open("xb") as file:
            try:
                file.write(content)
                file.flush()
            except BaseException:
                path.unlink(missing_ok=True)
                raise
    except OSError as error:
        reason = error.strerror or "input/output error"
        raise InputError(f"{path} was not written ({reason}); choose another --out.") from None
    return True
