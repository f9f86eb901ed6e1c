"""Properties of a release that anybody can check, and those that nobody can, as `verify` and the report state them."""

from __future__ import annotations

from certsynth.record.record import Record
from certsynth.record.table import PersonsRecord
from certsynth.report.numerals import text

CHECKS = {
    "files": "every file has its published checksum",
    "certificate form": "certificate.json has the form of a certificate",
    "schema": "the schema is the one that the certificate refers to",
    "rows": "the rows are the same in both files, hold only values that the schema allows, and break none of its rules",
    "measurements": "the noisy counts are complete and those of the stated columns",
    "privacy": "every step has its share of the stated {sign} and the noise that this share requires, {adding}",
    "method": "mechanism, resolution and subsets of columns are as stated",
    "fit": "how close the rows are to the noisy counts, recomputed",
    "plug-in certificate": "the plug-in certificate, recomputed from the noisy counts and the synthetic rows",
    "direct certificate": "the direct certificate, recomputed from its noisy integers",
    "bound": "the bound is the smaller of its parts, and their failure probabilities fit into one",
    "description": "the description for tools that read tables",
    "report": "this report, byte for byte",
}
"""Sentence for each check, by the name of the check."""

_ADDING = {"epsilon": "and its parts add up", "rho": "its parts add up, and ρ implies the stated ε and δ"}

UNVERIFIABLE = (
    "that the noisy counts are those of the real rows, with noise drawn as stated",
    "that the real rows were read as the schema says, are the rows they are claimed to be, and are as many as stated",
    "that no other release from the same rows spent budget as well: the budgets would add up",
    "that the confidence was chosen before the noise was drawn",
    "how the method was chosen and the rows were fitted: predictions and names, which cannot make a bound smaller",
)
"""Properties that cannot be checked of any release."""

UNVERIFIABLE_BY_STEP = {
    "number of rows": "the noisy number of rows, by which bounds are divided if the true number is private",
    "mean displacement": "the noisy displacement that the plug-in certificate uses: the only check is that rows can "
    "have it",
    "dropped rows of persons": "the noisy numbers from which the share of dropped rows is computed",
    "errors of the rows": "the noisy errors from which the direct certificate is computed: only the owner of the real "
    "rows can compute the errors",
}
"""Properties that cannot be checked if the budget has this step, by the name of the step."""


UNVERIFIABLE_EXCEPTIONS = (
    "which subsets of columns were chosen as exceptions: other choices would make bounds larger or smaller, but they "
    "hold whichever were chosen before their noise was drawn"
)
"""The same if there are exceptions."""


def _persons(persons: PersonsRecord) -> str:
    return (
        f"that the column {text(persons.column)!r} says whose row it is, and that at most "
        f"{persons.rows_per_person:,} rows of each person were kept"
    )


def can_verify(unit: str) -> list[str]:
    """List what can be checked; `unit` is the unit of the budget, "epsilon" or "rho"."""
    sign = {"epsilon": "ε", "rho": "ρ"}[unit]
    return [text.format(sign=sign, adding=_ADDING[unit]) for text in CHECKS.values()]


def cannot_verify(record: Record) -> list[str]:
    """List what nobody can check about the release with this record."""
    made = {step.on for step in record.privacy.spent}
    chosen = [UNVERIFIABLE_EXCEPTIONS] if record.certificate.exceptions else []
    persons = [_persons(record.table.persons)] if record.table.persons else []
    return [*UNVERIFIABLE, *persons, *(text for what, text in UNVERIFIABLE_BY_STEP.items() if what in made), *chosen]
