"""Standard streams reserved for certsynth's own output."""

from __future__ import annotations

import os
import sys


def reserve_streams() -> None:
    """Discard output of worker processes and native libraries, which may quote cells or corrupt the JSON.

    They write to the descriptors 1 and 2, which are redirected to the null device; `sys.stdout` and `sys.stderr` get
    new descriptors. Streams that a caller has replaced, as tests do, are left alone.
    """
    for stream, name, number in ((sys.__stdout__, "stdout", 1), (sys.__stderr__, "stderr", 2)):
        if stream is None or getattr(sys, name) is not stream or stream.closed:
            continue
        stream.flush()
        try:
            kept = os.dup(number)
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, number)
            os.close(nowhere)
        except OSError:
            continue
        setattr(
            sys,
            name,
            os.fdopen(kept, "w", buffering=1, encoding=stream.encoding, errors="replace"),
        )


def flush_output() -> bool:
    """Flush stdout and return whether that succeeded. If not, discard the rest, so that Python reports no error at
    exit."""
    try:
        if sys.stdout is not None:  # None if it was closed at startup
            sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        return False
    return True


def tolerate_any_text() -> None:
    """Print unencodable characters as ? instead of failing, for paths and terminals that are not UTF-8."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
