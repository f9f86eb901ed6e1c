"""The synthetic values of an ordered column as counts in few bins, from which bounds on shares are computed."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from certsynth.answers.basis import last_bit
from certsynth.base.arrays import Floats
from certsynth.domain import Ordered

MAX_PLACES = 400
"""Bins of a column: the report carries them all. A column with more distinct values has its nearby ones merged."""

_ROUNDING = 1e-9  # values sit on lattices: a rounding error must not decide a bin
_PLACE_ERROR = 2.0**-50  # more than dividing by the length of a range, or by `per`, puts a place off


@dataclass(frozen=True, slots=True, kw_only=True)
class BinnedCounts:
    """`counts` of rows at the positions `codes` / `per` on a line of length 1, and `absent` rows with a missing value.

    `missing`: values may be missing; a missing value is at distance 1 from every position.

    `moved` is the mean distance by which binning moved rows: a bound on the distance between real and synthetic rows,
    plus `moved`, bounds the distance between real rows and binned values. `slack` is an allowance for the last bits of
    numbers, which put the places of written values off those that were certified, and off those of the bins.
    """

    codes: tuple[int, ...]
    counts: tuple[int, ...]
    per: float
    absent: int
    missing: bool
    moved: float
    slack: float = 0.0

    @property
    def rows(self) -> int:
        return sum(self.counts) + self.absent

    @property
    def places(self) -> Floats:
        return np.minimum(np.array(self.codes, float) / self.per, 1.0)


def bin_counts(column: Ordered, offsets: np.ndarray, absent: int, *, max_places: int = MAX_PLACES) -> BinnedCounts:
    """Count cleaned values that are not missing, at their own positions if there are at most `max_places`."""
    if column.whole:
        return _bin_whole(column, offsets.astype(np.int64), absent, max_places)
    lattice, bits = column.detail(), last_bit(column) / float(column.weight)
    for per in (Fraction(lattice.steps) * column.weight, Fraction(max_places)):
        codes, away = _nearest_codes(offsets, float(per))
        moved = float(away.mean()) if len(away) else 0.0
        if moved < _ROUNDING and len(np.unique(codes)) <= max_places:
            on_lattice = away.max(initial=0.0) <= bits + _PLACE_ERROR
            slack = 2 * bits + _PLACE_ERROR if on_lattice else bits
            return _binned(column, codes, float(per), absent, 0.0 if on_lattice else moved, slack)
    return _binned(column, codes, float(per), absent, moved, bits)


def _bin_whole(column: Ordered, offsets: np.ndarray, absent: int, max_places: int) -> BinnedCounts:
    reach = max(column.reach, 1)
    if len(np.unique(offsets)) <= max_places:
        return _binned(column, offsets, float(reach), absent, 0.0)
    # in integers: offsets may be as large as 2^53, and `max_places` times that is below 2^63
    step = -(-(reach + 1) // max_places)
    near = np.minimum(offsets // step * step + step // 2, reach)
    moved = float(np.abs(offsets - near).astype(float).mean()) / reach
    return _binned(column, near, float(reach), absent, moved)


def _nearest_codes(offsets: np.ndarray, per: float) -> tuple[np.ndarray, Floats]:
    """The nearest code of each place, and its distance."""
    codes = np.floor((offsets + _ROUNDING) * per + 0.5).astype(np.int64)
    return codes, np.abs(offsets - np.minimum(codes / per, 1.0))


def _binned(
    column: Ordered, codes: np.ndarray, per: float, absent: int, moved: float, slack: float = 0.0
) -> BinnedCounts:
    """Count each code. `moved` is averaged over all rows (missing ones did not move), rounded, then raised by 2e-9, so
    that it is an upper bound that does not depend on rounding errors."""
    found, counts = np.unique(codes, return_counts=True)
    share = moved * len(codes) / max(len(codes) + absent, 1)
    return BinnedCounts(
        codes=tuple(map(int, found)),
        counts=tuple(map(int, counts)),
        per=per,
        absent=absent,
        missing=column.missing,
        moved=(round(share * 1e9) + 2) / 1e9 if moved else 0.0,
        slack=slack,
    )
