"""Particles: rows of codes that swap values until their tables come close to the measured ones, at all scales.

docs/explanation/projection.md says why each choice is what it is, and what else was tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from certsynth.base.arrays import Floats, Ints
from certsynth.base.progress import Progress, silent
from certsynth.domain import Cells
from certsynth.domain.covering import woven_level

Indices = NDArray[np.uint32]
"""Short, so that more of them stay in cache; unsigned, so that numba does not ask whether they count from the end."""

START_TEMPERATURE, END_TEMPERATURE = 25.0, 2.5
"""Temperatures at the beginning and the end, in units of what a swap changes where errors are as large as noise."""

COOLING_SWEEPS = 40
MAX_SETTLING_SWEEPS = 20
SETTLED_GAIN = 0.01
"""Sweeps at falling temperature, and at most so many more at zero, until one gains less than this share of what noise
alone would leave. A sweep offers as many swaps as half the number of values, so that each value is asked about once."""

MANY_PARTICLES, COOLING_SWEEPS_OF_MANY = 10_000, 12
"""From so many rows on fewer sweeps at falling temperature do as well (docs/explanation/projection.md)."""

PREFETCH_PROPOSALS = 4
"""So many offers before it is made, a swap's rows are looked for: memory takes as long as some offers do."""


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
        way = [_merge_codes(c, parts) for c in cells]
        finest = all(count_places(codes) == c.size for codes, c in zip(way, cells, strict=True))
        if sum(count_places(codes) > 1 for codes in way) > 1 or (finest and not ways):
            ways.append(way)
        if finest:
            return ways[::-1]
        parts *= 2


def count_places(codes: Ints) -> int:
    return int(codes.max()) + 1


def _merge_codes(cells: Cells, parts: int) -> Ints:
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
    cooling = COOLING_SWEEPS_OF_MANY if hot and count >= MANY_PARTICLES else COOLING_SWEEPS
    for sweep in range(cooling + MAX_SETTLING_SWEEPS):
        heat = (
            START_TEMPERATURE * (END_TEMPERATURE / START_TEMPERATURE) ** (sweep / (cooling - 1)) * unit
            if hot and sweep < cooling
            else 0.0
        )
        first, second = rng.integers(count, size=(2, proposals), dtype=np.int32)
        column = rng.integers(columns, size=proposals, dtype=np.int32)
        patience = rng.standard_exponential(proposals, dtype=np.float32) * np.float32(heat)
        gain = -_sweep(state.rows, first, second, column, patience, *state.arrays())
        progress("fitting", sweep + 1, cooling + MAX_SETTLING_SWEEPS)
        if not heat and gain < SETTLED_GAIN * len(views):
            break
    progress("fitting", cooling + MAX_SETTLING_SWEEPS, cooling + MAX_SETTLING_SWEEPS)
    return state.codes()


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """Rows and views as flat arrays. An entry stands for one view as seen from one of its columns.

    Each code of each column has a line in `offsets`: what it adds to a row's place in `residual`, for each entry of the
    column, and a 0 at the end. Rows hold where the lines of their codes begin: what a swap asks about a row then lies
    side by side.
    """

    rows: Indices  # row by row: a swap looks at all of two rows
    lines: Ints  # where the lines of column j begin
    begin: Indices  # entries of column j: begin[j] to begin[j + 1]
    view: Ints
    others: tuple[tuple[Indices, Indices], ...]  # the other columns of the view, and where in their lines it is
    offsets: Indices
    weight: Floats  # of views
    residual: Floats  # counts of the rows minus what they should be

    @classmethod
    def of(cls, start: Ints, views: Sequence[View], *, alone: bool = False) -> _State:
        """`alone`: views of a single column have entries, too. No swap needs them: columns hold what they held."""
        count = len(start)
        columns = np.ascontiguousarray(start.T)
        sizes = columns.max(axis=1) + 1  # a code that is not there never comes
        entries: list[list[tuple[int, Ints]]] = [[] for _ in columns]  # views, and what codes add to places there
        residual: list[Floats] = []
        base = 0
        for index, view in enumerate(views):
            stride, at = len(view.target), np.zeros(count, np.int64)
            for column, codes in zip(view.columns, view.codes, strict=True):
                stride //= count_places(codes)
                offsets = codes[: sizes[column]] * stride
                at += offsets[columns[column]]
                if alone or len(view.columns) > 1:
                    entries[column].append((index, offsets + base * (column == view.columns[0])))
            residual.append(np.bincount(at, minlength=len(view.target)) - count * view.target)
            base += len(view.target)
        tables = [
            np.column_stack([*(offsets for _, offsets in seen), np.zeros(size, np.int64)])
            for seen, size in zip(entries, sizes, strict=True)
        ]
        begin = np.cumsum([0, *map(len, entries)])
        lines = np.cumsum([0, *(table.size for table in tables)])
        assert max(lines[-1], base) < 2**32
        return cls(
            rows=(lines[:-1] + start * (np.diff(begin) + 1)).astype(np.uint32, order="C"),
            lines=lines[:-1],
            begin=begin.astype(np.uint32),
            view=np.array([index for seen in entries for index, _ in seen], np.int64),
            others=_other_columns(views, [[index for index, _ in seen] for seen in entries]),
            offsets=np.concatenate([table.ravel() for table in tables]).astype(np.uint32),
            # Whole rows cannot come closer than about half a row to each place, noise or not.
            weight=np.array([1 / ((count * v.noise) ** 2 + len(v.target) / 4) for v in views]),
            residual=np.concatenate(residual),
        )

    def arrays(self) -> tuple[Any, ...]:
        """What a sweep wants after the rows and the offers."""
        return self.begin, self.others, self.offsets, self.weight[self.view], self.residual

    def codes(self) -> Ints:
        """The rows as they came, with swaps."""
        return (self.rows - self.lines) // (np.diff(self.begin) + 1)


def _other_columns(views: Sequence[View], entries: Sequence[Sequence[int]]) -> tuple[tuple[Indices, Indices], ...]:
    """For each entry its second column, its third, and so on; and where in the lines of that column its view is.

    Views of fewer columns have their own column's last place instead: a 0 that adds nothing. So a sweep need not ask
    how many there are, and numba, which knows the length of a tuple, makes no loop of them.
    """
    more = max(1, *(len(view.columns) - 1 for view in views))
    places_in_lines = [{index: place for place, index in enumerate(seen)} for seen in entries]
    found = np.empty((more, 2, sum(map(len, entries))), np.uint32)
    e = 0
    for column, seen in enumerate(entries):
        for index in seen:
            others = [(c, places_in_lines[c][index]) for c in views[index].columns if c != column]
            found[:, :, e] = others + [(column, len(seen))] * (more - len(others))
            e += 1
    return tuple((columns, at) for columns, at in found)


@njit(cache=True, fastmath=True, nogil=True)
def _sweep(
    rows: Indices,
    first: NDArray[np.int32],
    second: NDArray[np.int32],
    column: NDArray[np.int32],
    patience: NDArray[np.float32],
    begin: Indices,
    others: tuple[tuple[Indices, Indices], ...],
    offsets: Indices,
    weight: Floats,
    residual: Floats,
) -> float:
    """Offer swaps, one after the other: rows first[t] and second[t] exchange their values of column[t].

    A swap that changes the error by less than patience[t] is made. Returns the change of the error in all.
    """
    touched = np.empty((weight.shape[0] + 1, 4), np.uint32)
    moved = 0.0
    for t in range(first.shape[0]):
        i, h, j = first[t], second[t], column[t]
        soon = min(t + PREFETCH_PROPOSALS, first.shape[0] - 1)
        touched[-1, 0], touched[-1, 1] = rows[first[soon], 0], rows[second[soon], 0]  # read by nobody, but near now
        a, b = rows[i, j], rows[h, j]
        if a == b:
            continue
        change, count = 0.0, np.uint64(0)
        for m in range(begin[j + 1] - begin[j]):
            e = begin[j] + m
            a_at, b_at = offsets[a + m], offsets[b + m]
            i_at = h_at = np.uint64(0)
            for other, at in others:
                i_at += offsets[rows[i, other[e]] + at[e]]
                h_at += offsets[rows[h, other[e]] + at[e]]
            # Row i leaves one place for another, and row h takes the same way in the opposite direction.
            slope = residual[i_at + b_at] - residual[i_at + a_at] + residual[h_at + a_at] - residual[h_at + b_at]
            # Often both ways are none, or cancel. To count that as 0 is faster than a jump that cannot be guessed.
            counts = (a_at != b_at) & (i_at != h_at)
            change += np.float64(counts) * weight[e] * (2.0 * slope + 4.0)
            touched[count, 0], touched[count, 1] = i_at + a_at, h_at + b_at
            touched[count, 2], touched[count, 3] = i_at + b_at, h_at + a_at
            count += np.uint64(counts)
        if change < patience[t]:
            rows[i, j], rows[h, j] = b, a
            moved += change
            for m in range(count):
                residual[touched[m, 0]] -= 1.0
                residual[touched[m, 1]] -= 1.0
                residual[touched[m, 2]] += 1.0
                residual[touched[m, 3]] += 1.0
    return moved
