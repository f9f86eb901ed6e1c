"""The limits of the guarantees, as the report lists them: for single rows, or for persons with several rows."""

from __future__ import annotations

from collections.abc import Sequence

from certsynth.domain.persons import Persons
from certsynth.record.direct import DroppedRecord
from certsynth.record.record import PrivacyRecord
from certsynth.report.numerals import text
from certsynth.report.persons import CHOSEN_ROWS, dropped_rows


def list_limits(
    privacy: PrivacyRecord, of_unit: Sequence[tuple[str, str]], *, shares: bool = False
) -> list[dict[str, str]]:
    """List the limits of the guarantees on this page; `of_unit` are those of the protected unit, each with its heading.

    `shares`: errors of shares are certified as well.
    """
    averages = _AVERAGES.format(shares=", and shares of rows by one or two columns" if shares else "")
    said = [*of_unit, ("Averages only", averages)]
    said += [(what, limit.format(sign=_GROUPS[privacy.unit][0])) for what, limit in _LIMITS]
    return [{"what": what, "text": limit} for what, limit in said]


def row_limits(privacy: PrivacyRecord, unit: str) -> list[tuple[str, str]]:
    """List the limits of a guarantee for single rows, each with its heading; `unit` says what a row is."""
    relation, number = _RELATIONS[privacy.neighbours == "replace-one"]
    _, twice, many = _GROUPS[privacy.unit]
    if privacy.rows is not None:
        number = number.format(rows=f"{privacy.rows:,}")
    person = (
        f"The guarantee protects one row. The schema says: “{unit}”. Nothing here checks that. Somebody with m rows is "
        f"protected at {many} only, and a row that stands for several people protects them as one."
    )
    return [("A row is not a person", person), ("Neighbours", relation.format(twice=twice)), ("What n is", number)]


# Unit of the budget, the cost of two neighbouring steps, and of m: ρ grows with the square of the distance.
_GROUPS = {
    "epsilon": ("ε", "twice the ε", "m times the ε"),
    "rho": ("ρ", "four times the ρ", "m² times the ρ"),
}

# By whether neighbours are replace-one: the limits of the relation, and the status of n.
_RELATIONS = {
    True: (
        "Privacy is stated for replacing one row by any other. How many rows there are is not protected.",
        "n = {rows} is the number of rows in the real table. It is published exactly, as public knowledge.",
    ),
    False: (
        "Privacy is stated for adding or removing one row. Replacing a row is two such steps: up to {twice}.",
        "n, the number of rows in the real table, is private: it was measured with noise and is not published. The "
        "number of synthetic rows says nothing about it.",
    ),
}

_AVERAGES = (
    "The certificate covers averages over all rows, of functions that change no faster than the values do{shares}. It "
    "does not cover single rows, extremes, or a model’s coefficients. Within a group that is a share p of the rows, "
    "errors can be 1/p times larger, or more."
)

_LIMITS = (
    (
        "Rows as the schema reads them",
        "Values outside a column’s range are moved to its ends; values that are not listed become “other”, missing, "
        "or the first of the list. The certificate compares with the real rows after that, and how many were changed "
        "is not published.",
    ),
    (
        "This table, not the world",
        "The real rows may themselves be a sample, or wrong. That error is not in the bound.",
    ),
    (
        "Confidence",
        "The probability is over the noise, before it was drawn. It covers all statistics at once, so looking at many "
        "of them, or choosing among them afterwards, is allowed.",
    ),
    (
        "Budgets add up",
        "The {sign} on this page is that of this release alone. Other publications from the same rows add to it.",
    ),
    (
        "Timing is out of scope",
        "How long the computation took, its use of memory and other side channels of the machine are not covered.",
    ),
)


def person_limits(privacy: PrivacyRecord, persons: Persons, dropped: DroppedRecord | None) -> list[tuple[str, str]]:
    """List the limits of a guarantee for persons, each with its heading."""
    _, twice, many = _GROUPS[privacy.unit]
    column = text(persons.column)
    missing = {
        "drop": "Rows without a value there were left out.",
        "separate": "Each row without a value there is protected on its own only.",
    }
    person = (
        f"Rows with the same value in the column “{column}” count as the rows of one person, and are protected "
        f"together. Nothing here checks that. Somebody with m such values is protected at {many} only, people who "
        "share one are protected as one, and people with ties, such as a family, are not protected together. "
        f"{missing[persons.missing]}"
    )
    known = dropped_rows(dropped, persons)
    kept = (
        f"The certificate is about {persons.kept}. They are {CHOSEN_ROWS}. Of persons with more rows, the others are "
        f"left out; how far that moves a statistic is not in the bound.{' ' * bool(known)}{known}"
    )
    relation, number = _relation(privacy, persons)
    return [
        ("A person is a value of a column", person),
        ("Rows that were kept", kept),
        ("Neighbours", relation.format(twice=twice)),
        ("What n is", number),
    ]


def _relation(privacy: PrivacyRecord, persons: Persons) -> tuple[str, str]:
    """The limits of the relation between neighbours, and the status of n."""
    what = "persons in the real table" if persons.weigh_alike else "rows that were kept"
    number = (
        f"n, the number of {what}, is private: it was measured with noise and is not published. The number of "
        "synthetic rows says nothing about it."
    )
    if privacy.persons is not None:
        number = (
            f"n = {privacy.persons:,} is the number of persons in the real table. It is published exactly, as public "
            "knowledge. How many rows they have is not published."
        )
    if privacy.neighbours == "replace-one":
        return (
            "Privacy is stated for replacing one person, with all their rows, by any other. How many persons there are "
            "is not protected.",
            number,
        )
    return (
        "Privacy is stated for adding or removing one person, with all their rows. Replacing a person is two such "
        "steps: up to {twice}.",
        number,
    )
