"""The synthetic values of a column on a line, as counts at few places: enough to compute what is promised of shares."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from certsynth.base.arrays import Floats
from certsynth.domain import Ordered

MOST_PLACES = 400
"""Places that a column keeps; with more values, near ones are put together."""

_EDGE = 1e-9  # numbers sit on lattices: nothing may be decided by the last bit of one


@dataclass(frozen=True, slots=True, kw_only=True)
class Heap:
    """`counts` of rows at `codes`, which are 1/`per` apart on a line of length 1, and `absent` rows that are not on it.

    `missing`: rows may be off the line, at distance 1 from all places.

    Rows were `moved` so far on average to get to their places: a bound on how far the real rows are from the
    synthetic ones, plus that, is one on how far they are from the places.
    """

    codes: tuple[int, ...]
    counts: tuple[int, ...]
    per: float
    absent: int
    missing: bool
    moved: float

    @property
    def rows(self) -> int:
        return sum(self.counts) + self.absent

    @property
    def places(self) -> Floats:
        return np.minimum(np.array(self.codes, float) / self.per, 1.0)


def heap(column: Ordered, offsets: np.ndarray, absent: int, *, most: int = MOST_PLACES) -> Heap:
    """Cleaned values that are there, at their own places where these are few."""
    if column.whole:
        return _whole(column, offsets.astype(np.int64), absent, most)
    lattice = column.detail()
    for per in (Fraction(lattice.steps) * column.weight, Fraction(most)):
        codes, moved = _nearest(offsets, float(per))
        if moved < _EDGE and len(np.unique(codes)) <= most:  # less than `budget` in bands.py allows for
            return _heap(column, codes, float(per), absent, 0.0)
    return _heap(column, codes, float(per), absent, moved)


def _whole(column: Ordered, offsets: np.ndarray, absent: int, most: int) -> Heap:
    reach = max(column.reach, 1)
    if len(np.unique(offsets)) <= most:
        return _heap(column, offsets, float(reach), absent, 0.0)
    # in whole numbers: offsets may be as large as 2^53, and `most` times that is below 2^63
    step = -(-(reach + 1) // most)
    near = np.minimum(offsets // step * step + step // 2, reach)
    moved = float(np.abs(offsets - near).astype(float).mean()) / reach
    return _heap(column, near, float(reach), absent, moved)


def _nearest(offsets: np.ndarray, per: float) -> tuple[np.ndarray, float]:
    codes = np.floor((offsets + _EDGE) * per + 0.5).astype(np.int64)
    away = np.abs(offsets - np.minimum(codes / per, 1.0))
    return codes, float(away.mean()) if len(away) else 0.0


def _heap(column: Ordered, codes: np.ndarray, per: float, absent: int, moved: float) -> Heap:
    """Missing rows were not moved. The mean is rounded, and then up, so that it does not hang on last bits."""
    found, counts = np.unique(codes, return_counts=True)
    share = moved * len(codes) / max(len(codes) + absent, 1)
    return Heap(
        codes=tuple(map(int, found)),
        counts=tuple(map(int, counts)),
        per=per,
        absent=absent,
        missing=column.missing,
        moved=(round(share * 1e9) + 2) / 1e9 if moved else 0.0,
    )
