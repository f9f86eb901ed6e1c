"""Errors that are meant for people: each says what was wrong and what to do, and never quotes a data value."""

from __future__ import annotations

from collections.abc import Iterable

_LONGEST_WORD = 60  # finding likenesses takes quadratic time


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """A sentence for the end of a message about an unknown name; nothing if no known one is like it.

    For public names only: those of columns, kinds and entries.

    >>> did_you_mean("regoin", ["age", "region"]), did_you_mean("AGE", ["age"]), did_you_mean("height", ["age"])
    (" Did you mean 'region'?", " Did you mean 'age'?", '')
    """
    import difflib  # only where something is wrong: `certsynth --help` must be quick

    words = [word for word in known if len(word) <= _LONGEST_WORD]
    if not isinstance(name, str) or len(name) > _LONGEST_WORD:  # whoever calls from Python may give anything
        return ""
    same = [word for word in words if word.strip().casefold() == name.strip().casefold()]
    near = same or difflib.get_close_matches(name, words, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


class BudgetNote(str):
    """A sentence on what became of the privacy budget, as a note of the error that ended the work."""


class CertsynthError(Exception):
    """Root of everything that certsynth raises on purpose."""


class InputError(CertsynthError):
    """An argument, a file or a table that cannot be used as it is."""


class SchemaError(InputError):
    """A schema that does not describe a table."""


class TooLarge(InputError):
    """Work that would not fit: refused before any private row is read."""


class CheckFailed(CertsynthError):
    """A check that was asked for came out negative."""


class UnsafeNoise(CertsynthError):
    """The source of noise cannot be trusted, so nothing is released."""


class SolverFailed(CertsynthError):
    """A solver gave no usable answer; the message says what to try."""


class WorkerDied(CertsynthError):
    """A process that worked for this one ended before its work did, more than once."""
