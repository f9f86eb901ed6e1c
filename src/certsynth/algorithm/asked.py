"""The recorded options of a release, from which `verify` derives the same settings."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from certsynth.algorithm.declaration import checked
from certsynth.algorithm.options import ReleaseOptions
from certsynth.algorithm.settings import Settings
from certsynth.record.form import said_of
from certsynth.record.record import AskedRecord, Record

RECORDED_OPTIONS = (
    "epsilon",
    "delta",
    "rho",
    "sparsity",
    "resolution",
    "mechanism",
    "projection",
    "loss",
    "rows",
    "neighbours",
    "preset",
    "candidates",
    "target",
    "exceptions",
)
"""Options that are recorded as given. For public rows only their presence is recorded; subsets of columns are recorded
with the method."""


def asked_record(options: Mapping[str, Any], settings: Settings) -> AskedRecord:
    """Record options in a form that `asked_options` reads back. Share and confidence include their defaults."""
    return AskedRecord(
        **{name: options[name] for name in RECORDED_OPTIONS},
        measure_dropped=options["measure_dropped"] or None,
        certificate_share=settings.certificate_share,
        confidence=settings.confidence,
        public=options["public"] is not None,
    )


def asked_options(record: Record) -> dict[str, Any]:
    """Return the options that `release` was given, checked again one by one."""
    given = {name: str(value) if isinstance(value, Fraction) else value for name, value in said_of(record.asked)}
    given |= {"subsets": record.release.workload, "public": True if record.asked.public else None}
    given["measure_dropped"] = bool(record.asked.measure_dropped)
    return checked(ReleaseOptions, given, call="release")
