"""Contributions of persons in total: rows that are kept, rows that are dropped, and persons who lose some."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from certsynth.base.arrays import Ints

COUNTED_ROWS_FACTOR = 4
"""Rows of a person that count in total, kept or dropped, in multiples of the most that are kept: what one person can
change must be bounded."""


@dataclass(frozen=True, slots=True, repr=False)
class Contributions:
    """Exact totals over all persons. They are private, and their repr shows nothing.

    `over` and `within` are the numbers of persons with more than k rows and with at most k; `dropped` rows are those
    beyond the ones that are kept, at most (COUNTED_ROWS_FACTOR − 1) · k of each person.
    """

    over: int
    within: int
    kept: int
    dropped: int

    @classmethod
    def of(cls, rows_of_persons: Ints, most: int) -> Contributions:
        """The totals for persons with these numbers of rows, of which at most `most` each are kept.

        >>> import numpy as np
        >>> of = Contributions.of(np.array([1, 2, 3, 100]), 2)
        >>> of.over, of.within, of.kept, of.dropped
        (2, 2, 7, 7)
        """
        kept = rows_of_persons.clip(max=most)
        counted = rows_of_persons.clip(max=COUNTED_ROWS_FACTOR * most)
        return cls(
            over=int((rows_of_persons > most).sum()),
            within=int(((rows_of_persons > 0) & (rows_of_persons <= most)).sum()),
            kept=int(kept.sum()),
            dropped=int((counted - kept).sum()),
        )

    def __repr__(self) -> str:
        return "Contributions(<private>)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("exact totals are private and cannot be pickled")
