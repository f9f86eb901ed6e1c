"""Particles: rows of codes that swap values until their tables come close to the measured ones, at all scales.

docs/explanation/projection.md says why each choice is what it is, and what else was tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from certsynth.arrays import Floats, Ints
from certsynth.domain import Cells
from certsynth.domain.covering import woven_level
from certsynth.progress import Progress, silent

HOT, COLD = 25.0, 2.5
"""Temperatures at the beginning and the end, in units of what a swap changes where errors are as large as noise."""

SWEEPS = 40
SETTLING_SWEEPS = 20
SETTLED = 0.01
"""Sweeps at falling temperature, and at most so many more at zero, until one gains less than this share of what noise
alone would leave. A sweep offers as many swaps as half the number of values, so that each value is asked about once."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A table of some columns at some scale, and what it should be.

    `codes[i]` maps codes of column `columns[i]` to places in `target`, the last running fastest. `target` is in shares
    and so is `noise`: the root of the summed squares of the error that it comes with.
    """

    columns: tuple[int, ...]
    codes: tuple[Ints, ...]
    target: Floats
    noise: float


def scales(cells: Sequence[Cells]) -> list[list[Ints]]:
    """Ways to look at a product of columns: its cells; then with points together that share a quarter, half a line.

    Labels of a web come together as its coverings have them; other points apart stay apart at every scale. Scales at
    which fewer than two columns have two places are left out: no swap changes what is seen there.

    >>> [[c.tolist() for c in way] for way in scales([Cells(np.arange(4), 4, 0), Cells(np.arange(2), 1, 1)])]
    [[[0, 1, 2, 3], [0, 1, 2]], [[0, 0, 1, 1], [0, 1, 2]]]
    """
    ways: list[list[Ints]] = []
    parts = 1
    while True:
        way = [_together(c, parts) for c in cells]
        finest = all(places(codes) == c.size for codes, c in zip(way, cells, strict=True))
        if sum(places(codes) > 1 for codes in way) > 1 or (finest and not ways):
            ways.append(way)
        if finest:
            return ways[::-1]
        parts *= 2


def places(codes: Ints) -> int:
    return int(codes.max()) + 1


def _together(cells: Cells, parts: int) -> Ints:
    """Codes after the line is cut into equal parts, and all points in a part are one."""
    line = np.minimum(cells.places * parts // cells.steps, parts - 1)
    woven = woven_level(cells, parts.bit_length() - 1)
    alone = parts + len(woven) + np.arange(cells.alone)
    return np.unique(np.concatenate([line, parts + woven, alone]), return_inverse=True)[1]


def fit(
    start: Ints, views: Sequence[View], rng: np.random.Generator, *, hot: bool = True, progress: Progress = silent
) -> Ints:
    r"""Swap values between the rows of `start` until all views are close. What each column holds stays as it is.

    .. math:: \sum_{views} \|N\,target - counts\|^2 / (N\,noise)^2

    falls: every view counts as much as what noise does to it. Early on some swaps that raise it are taken as well,
    unless `hot` is false: then what `start` knows beyond the views is kept as far as they allow.
    """
    count, columns = start.shape
    if count < 2 or not views:
        return start
    state = _State.of(start, views)
    unit = float(np.mean([w / np.sqrt(len(v.target) * w) for v, w in zip(views, state.weight, strict=True)]))
    proposals = -(-count * columns // 2)
    for sweep in range(SWEEPS + SETTLING_SWEEPS):
        heat = HOT * (COLD / HOT) ** (sweep / (SWEEPS - 1)) * unit if hot and sweep < SWEEPS else 0.0
        first, second = rng.integers(count, size=(2, proposals), dtype=np.int32)
        column = rng.integers(columns, size=proposals, dtype=np.int32)
        patience = rng.standard_exponential(proposals, dtype=np.float32) * np.float32(heat)
        gain = -_sweep(state.rows, first, second, column, patience, *state.arrays())
        progress("fitting", sweep + 1, SWEEPS + SETTLING_SWEEPS)
        if not heat and gain < SETTLED * len(views):
            break
    progress("fitting", SWEEPS + SETTLING_SWEEPS, SWEEPS + SETTLING_SWEEPS)
    return state.rows.astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """Rows and views as flat arrays. An entry stands for one view as seen from one of its columns."""

    rows: NDArray[np.int32]  # row by row: a swap looks at all of two rows
    begin: Ints  # entries of column j: begin[j] to begin[j + 1]
    view: Ints
    own: Ints  # row of `offsets` for the column itself
    others: Ints  # the other columns of the view, −1 where there are no more
    others_offsets: Ints  # rows of `offsets` for them
    offsets: Ints  # code to offset in the view
    base: Ints  # where the residuals of a view begin
    weight: Floats
    residual: Floats  # counts of the rows minus what they should be

    @classmethod
    def of(cls, start: Ints, views: Sequence[View]) -> _State:
        rows = np.array(start, dtype=np.int32, order="C")
        count = len(start)
        widest = max(len(v.columns) for v in views)
        longest = max(len(codes) for v in views for codes in v.codes)
        entries: list[list[tuple[int, int, list[int], list[int]]]] = [[] for _ in rows.T]
        offsets: list[Ints] = []
        residual: list[Floats] = []
        for index, view in enumerate(views):
            ids = range(len(offsets), len(offsets) + len(view.columns))
            stride = len(view.target)
            for codes in view.codes:
                stride //= places(codes)
                offsets.append(np.pad(codes * stride, (0, longest - len(codes))))
            at = np.sum([offsets[k][rows[:, c]] for k, c in zip(ids, view.columns, strict=True)], axis=0)
            residual.append(np.bincount(at, minlength=len(view.target)) - count * view.target)
            for k, column in zip(ids, view.columns, strict=True):
                others = [(o, m) for m, o in zip(ids, view.columns, strict=True) if m != k]
                others += [(-1, 0)] * (widest - len(view.columns))
                entries[column].append((index, k, [o for o, _ in others], [m for _, m in others]))
        flat = [entry for column in entries for entry in column]
        lengths = [len(view.target) for view in views]
        return cls(
            rows=rows,
            begin=np.cumsum([0, *map(len, entries)]),
            view=np.array([e[0] for e in flat]),
            own=np.array([e[1] for e in flat]),
            others=np.array([e[2] for e in flat], np.int64).reshape(len(flat), widest - 1),
            others_offsets=np.array([e[3] for e in flat], np.int64).reshape(len(flat), widest - 1),
            offsets=np.array(offsets),
            base=np.cumsum([0, *lengths[:-1]]),
            # Whole rows cannot come closer than about half a row to each place, noise or not.
            weight=np.array([1 / ((count * v.noise) ** 2 + len(v.target) / 4) for v in views]),
            residual=np.concatenate(residual),
        )

    def arrays(self) -> tuple[np.ndarray, ...]:
        """What a sweep wants after the rows and the offers."""
        entries = (self.begin, self.view, self.own, self.others, self.others_offsets)
        return *entries, self.offsets, self.base, self.weight, self.residual


@njit(cache=True, fastmath=True, nogil=True)
def _sweep(
    rows: NDArray[np.int32],
    first: NDArray[np.int32],
    second: NDArray[np.int32],
    column: NDArray[np.int32],
    patience: NDArray[np.float32],
    begin: Ints,
    view: Ints,
    own: Ints,
    others: Ints,
    others_offsets: Ints,
    offsets: Ints,
    base: Ints,
    weight: Floats,
    residual: Floats,
) -> float:
    """Offer swaps, one after the other: rows first[t] and second[t] exchange their values of column[t].

    A swap that changes the error by less than patience[t] is made. Returns the change of the error in all.
    """
    touched = np.empty((view.shape[0], 4), np.int64)
    moved = 0.0
    for t in range(first.shape[0]):
        i, h, j = first[t], second[t], column[t]
        a, b = rows[i, j], rows[h, j]
        if a == b:
            continue
        change, count = 0.0, 0
        for e in range(begin[j], begin[j + 1]):
            a_at, b_at = offsets[own[e], a], offsets[own[e], b]
            if a_at == b_at:
                continue
            i_at = base[view[e]]
            h_at = i_at
            for o in range(others.shape[1]):
                c = others[e, o]
                if c >= 0:
                    i_at += offsets[others_offsets[e, o], rows[i, c]]
                    h_at += offsets[others_offsets[e, o], rows[h, c]]
            if i_at == h_at:
                continue
            # Row i leaves one place for another, and row h takes the same way in the opposite direction.
            slope = residual[i_at + b_at] - residual[i_at + a_at] + residual[h_at + a_at] - residual[h_at + b_at]
            change += weight[view[e]] * (2.0 * slope + 4.0)
            touched[count, 0], touched[count, 1] = i_at + a_at, h_at + b_at
            touched[count, 2], touched[count, 3] = i_at + b_at, h_at + a_at
            count += 1
        if change < patience[t]:
            rows[i, j], rows[h, j] = b, a
            moved += change
            for m in range(count):
                residual[touched[m, 0]] -= 1.0
                residual[touched[m, 1]] -= 1.0
                residual[touched[m, 2]] += 1.0
                residual[touched[m, 3]] += 1.0
    return moved
