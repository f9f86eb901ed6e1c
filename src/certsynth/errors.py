"""Errors for users: each message states the problem and the remedy, and never quotes a data value."""

from __future__ import annotations

from collections.abc import Iterable

_MAX_COMPARED_CHARACTERS = 60  # the search for similar names takes quadratic time


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """A suggestion for the end of a message about an unknown name; empty if no known name is similar.

    For public names only: of columns, kinds and options.

    >>> did_you_mean("regoin", ["age", "region"]), did_you_mean("AGE", ["age"]), did_you_mean("height", ["age"])
    (" Did you mean 'region'?", " Did you mean 'age'?", '')
    """
    import difflib  # imported only for errors, so that `certsynth --help` stays fast

    words = [word for word in known if len(word) <= _MAX_COMPARED_CHARACTERS]
    if not isinstance(name, str) or len(name) > _MAX_COMPARED_CHARACTERS:  # a Python caller may pass anything
        return ""
    same = [word for word in words if word.strip().casefold() == name.strip().casefold()]
    near = same or difflib.get_close_matches(name, words, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


class BudgetNote(str):
    """A note on an error that says whether the privacy budget was spent."""


class CertsynthError(Exception):
    """Base class of all errors that certsynth raises deliberately."""


class InputError(CertsynthError):
    """An argument, file or table that cannot be used."""


class SchemaError(InputError):
    """A schema that does not describe a table."""


class TooLarge(InputError):
    """A task that would exceed memory or size limits; refused before any private row is read."""


class CheckFailed(CertsynthError):
    """A requested check failed."""


class UnsafeNoise(CertsynthError):
    """The source of randomness is not trustworthy, so nothing is released."""


class SolverFailed(CertsynthError):
    """A solver returned no usable result; the message says what to try."""


class WorkerDied(CertsynthError):
    """A worker process died repeatedly before it finished its task."""
