"""Small files that are never overwritten."""

from __future__ import annotations

import os
from pathlib import Path

from certsynth.errors import InputError


def write_once(path: Path, content: bytes) -> bool:
    """Write a new file, whole or not at all; False if it is there already with this very content."""
    try:
        if os.path.lexists(path):
            if path.is_file() and path.read_bytes() == content:
                return False
            raise InputError(f"{path} exists already and is another file; choose another --out.")
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
