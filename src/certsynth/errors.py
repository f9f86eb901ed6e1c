"""Errors that are meant for people: each says what was wrong and what to do, and never quotes a data value."""

from __future__ import annotations


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
