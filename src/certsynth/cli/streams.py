"""Standard streams that only certsynth writes to."""

from __future__ import annotations

import os
import sys


def keep_for_ourselves() -> None:
    """Let worker processes and native libraries write to nowhere: what they say may quote cells, or spoil the JSON.

    They write to the descriptors 1 and 2, which now lead nowhere; `sys.stdout` and `sys.stderr` get new ones.
    Only for a process that is ours: streams that somebody has replaced, as tests do, are left alone.
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


def flushed() -> bool:
    """Whether all that was printed has arrived. If not, it is dropped, so that Python does not complain at the end."""
    try:
        if sys.stdout is not None:  # None: it was closed from the start
            sys.stdout.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
        return False
    return True


def tolerate_any_text() -> None:
    """A path or a terminal that is not UTF-8 must not break a message."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
