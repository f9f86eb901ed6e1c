"""Particles: rows of codes that swap values until their tables are close to the measured ones, at all scales.

docs/explanation/projection.md gives the reason for each choice, and what else was tried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from certsynth.base.arrays import Floats, Ints
from certsynth.base.progress import Progress, silent
from certsynth.domain import Cells
from certsynth.domain.covering import covering_level

Indices = NDArray[np.uint32]
"""32 bits, so that more of them fit into the cache; unsigned, so that numba omits the test for negative indices."""

TARGET_ERROR = 1.0
"""The error that noise gives the rows that were measured: a view with a larger one is fitted further."""

MAX_ERROR = 1.5
"""The error above which `mend` works on a view."""

MAX_BLIND_SWEEPS = 10
SETTLED_GAIN = 0.01
"""Sweeps of swaps between random rows, at most, and the gain in error per view below which they stop. A sweep proposes
half as many swaps as there are values, so that each value takes part in one on average."""

MAX_GUIDED_ROUNDS = 80
MAX_IDLE_VISITS = 6
IDLE_GAIN = 0.02
"""Rounds of guided swaps, at most. A visit is idle if it does not lower the least error of its view so far by this
share; after so many idle visits a view is left alone: other views, or the values of its columns, stand in the way."""

MIN_MERGED_PARTS = 4_096
"""Parts of a line from which a scale that is the same as the one before is left out: a special value may need very many
parts to be told from its neighbours."""

PREFETCH_PROPOSALS = 4
"""Prefetch distance: rows are touched this many proposals ahead of use, to hide memory latency."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """A table of some columns at some scale, with its target.

    `codes[i]` maps codes of column `columns[i]` to positions in `target`, the last column running fastest. `target` and
    `noise`, the root of the summed squares of its error, are shares of the rows. `relevance` weights the squared errors
    of the places; without it all count the same.
    """

    columns: tuple[int, ...]
    codes: tuple[Ints, ...]
    target: Floats
    noise: float
    relevance: Floats | None = None

    def weights(self, count: int) -> Floats:
        """Weights of the squared errors of the places, in rows, whose sum is about 1 for the `count` rows that were
        measured.
        """
        places = len(self.target)
        relevance = np.ones(places) if self.relevance is None else self.relevance
        # Counts are whole numbers: even without noise they miss each target by up to about half a row.
        expected = (count * self.noise) ** 2 / places + 1 / 4
        return relevance / (relevance.sum() * expected)


def scales(cells: Sequence[Cells]) -> list[list[Ints]]:
    """Code maps of a product of columns at each scale, finest first: the cells, then ever longer parts of the line.

    Labels with a metric are merged as its coverings merge them; other points off the line stay separate at every scale.
    Scales at which fewer than two columns have two codes are left out, since no swap changes their counts.

    >>> [[c.tolist() for c in way] for way in scales([Cells(np.arange(4), 4, 0), Cells(np.arange(2), 1, 1)])]
    [[[0, 1, 2, 3], [0, 1, 2]], [[0, 0, 1, 1], [0, 1, 2]]]
    """
    ways: list[list[Ints]] = []
    parts = 1
    while True:
        way = [_merge_codes(c, parts) for c in cells]
        finest = all(count_places(codes) == c.size for codes, c in zip(way, cells, strict=True))
        same = parts > MIN_MERGED_PARTS and ways and all(map(np.array_equal, way, ways[-1]))
        if not same and (sum(count_places(codes) > 1 for codes in way) > 1 or (finest and not ways)):
            ways.append(way)
        if finest:
            return ways[::-1]
        parts *= 2


def count_places(codes: Ints) -> int:
    return int(codes.max()) + 1


def _merge_codes(cells: Cells, parts: int) -> Ints:
    """Codes after the line is cut into `parts` equal parts and the points of each part are merged."""
    line = np.minimum(cells.places * parts // cells.steps, parts - 1)
    woven = covering_level(cells, parts.bit_length() - 1)
    alone = parts + len(woven) + np.arange(cells.isolated)
    return np.unique(np.concatenate([line, parts + woven, alone]), return_inverse=True)[1]


def fit(start: Ints, views: Sequence[View], rng: np.random.Generator, *, progress: Progress = silent) -> Ints:
    r"""Swap values between the rows of `start` until every view is as close to its target as its noise warrants.

    The error of a view is

    .. math:: \|N\,target - counts\|^2 / (N\,noise)^2

    with places weighted by their relevance. It is about 1 for the rows that were measured, so fitting further would
    follow the noise. Swaps keep the distribution of each column, and only those that decrease the sum of all errors are
    made. Swaps between random rows stop when the mean error is 1; guided swaps then mend the views that are still
    further away.
    """
    count, columns = start.shape
    if count < 2 or not views:
        return start
    state = _State.of(start, views)
    proposals = -(-count * columns // 2)
    total = MAX_BLIND_SWEEPS + MAX_GUIDED_ROUNDS
    for sweep in range(MAX_BLIND_SWEEPS):
        if state.errors().mean() <= TARGET_ERROR:
            break
        first, second = rng.integers(count, size=(2, proposals), dtype=np.int32)
        column = rng.integers(columns, size=proposals, dtype=np.int32)
        gain = -_sweep(state.rows, first, second, column, *state.arrays())
        progress("fitting", sweep + 1, total)
        if gain < SETTLED_GAIN * len(views):
            break
    _guide(state, _finest(views), rng, progress)
    progress("fitting", total, total)
    return state.codes()


def mend(start: Ints, views: Sequence[View], rng: np.random.Generator, *, progress: Progress = silent) -> Ints:
    """Guided swaps alone, for the finest views that `start` is far from."""
    if len(start) < 2 or not views:
        return start
    state = _State.of(start, views)
    far = {columns: index for columns, index in _finest(views).items() if state.error(index) > MAX_ERROR}
    _guide(state, far, rng, progress)
    return state.codes()


def _finest(views: Sequence[View]) -> dict[tuple[int, ...], int]:
    """The index of the view with the most places, and of those with the least noise, of each set of columns."""
    found: dict[tuple[int, ...], int] = {}
    for index, view in enumerate(views):
        best = views[found.setdefault(view.columns, index)]
        if (len(view.target), -view.noise) > (len(best.target), -best.noise):
            found[view.columns] = index
    return {columns: index for columns, index in found.items() if len(columns) > 1}


def _guide(state: _State, finest: Mapping[tuple[int, ...], int], rng: np.random.Generator, progress: Progress) -> None:
    """Mend views that are further from their targets than noise: swap values among rows of over-full cells.

    Where one column is almost a function of another, few rows are wrong, and two random rows hardly ever are two of
    them. Rows of over-full cells are likely to be.
    """
    idle = dict.fromkeys(finest.values(), 0)
    least = {index: state.error(index) for index in idle}
    room = np.empty(len(state.rows), np.int32)
    for done in range(MAX_GUIDED_ROUNDS):
        visited = False
        for columns, index in finest.items():
            if idle[index] == MAX_IDLE_VISITS or state.error(index) <= TARGET_ERROR:
                continue
            visited = True
            entries = np.array([state.entry(column, index) for column in columns], np.uint32)
            numbers = rng.random(len(state.rows), np.float32)
            counts, excess = state.counts(index), state.excess(index)
            begin, where = state.places[index], np.array(columns)
            found = _overfull_rows(state.rows, where, entries, state.offsets, begin, counts, excess, numbers, room)
            for column in columns:
                first, second = rng.permutation(room[:found])[: found // 2 * 2].reshape(2, -1)
                _sweep(state.rows, first, second, np.full(len(first), column, np.int32), *state.arrays())
            if (error := state.error(index)) < (1 - IDLE_GAIN) * least[index]:
                least[index] = error
            else:
                idle[index] += 1
        if not visited:
            return
        progress("fitting", MAX_BLIND_SWEEPS + done + 1, MAX_BLIND_SWEEPS + MAX_GUIDED_ROUNDS)


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """Rows and views as flat arrays. An entry is a pair of a view and one of its columns.

    Each code of each column has a line in `offsets`: what it adds to a row's position in `residual`, for each entry of
    the column, and a final 0. Rows store where the lines of their codes begin, so that the data a swap needs about a
    row are adjacent in memory.
    """

    rows: Indices  # row by row, since a swap reads two whole rows
    lines: Ints  # start of the lines of column j
    begin: Indices  # entries of column j: begin[j] to begin[j + 1]
    view: Ints
    others: tuple[tuple[Indices, Indices], ...]  # the other columns of each entry's view, and its index in their lines
    offsets: Indices
    places: Ints  # position in `residual` where each view begins
    shapes: list[tuple[int, ...]]  # number of codes of each view's columns
    weight: Floats  # of places
    target: Floats
    residual: Floats  # counts of the rows minus their targets

    @classmethod
    def of(cls, start: Ints, views: Sequence[View], *, single_columns: bool = False) -> _State:
        """`single_columns`: give views of one column entries, too, although no swap of two values changes them."""
        count = len(start)
        columns = np.ascontiguousarray(start.T)
        sizes = columns.max(axis=1) + 1  # no swap brings in a code that is absent now
        entries: list[list[tuple[int, Ints]]] = [[] for _ in columns]  # views, and the position offset of each code
        residual: list[Floats] = []
        base = 0
        for index, view in enumerate(views):
            stride, at = len(view.target), np.zeros(count, np.int64)
            for column, codes in zip(view.columns, view.codes, strict=True):
                stride //= count_places(codes)
                offsets = codes[: sizes[column]] * stride
                at += offsets[columns[column]]
                if single_columns or len(view.columns) > 1:
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
            weight=np.concatenate([view.weights(count) for view in views]),
            places=np.cumsum([0, *(len(view.target) for view in views)]),
            shapes=[tuple(count_places(codes) for codes in view.codes) for view in views],
            target=np.concatenate([count * view.target for view in views]),
            residual=np.concatenate(residual),
        )

    def arrays(self) -> tuple[Any, ...]:
        """The arguments of `_sweep` after the rows and the proposals."""
        return self.begin, self.others, self.offsets, self.weight, self.residual

    def errors(self) -> Floats:
        """The error of each view: about 1 for the rows that were measured."""
        return np.add.reduceat(self.weight * self.residual**2, self.places[:-1])

    def error(self, index: int) -> float:
        """The error of one view."""
        places = self._places(index)
        return float(self.weight[places] @ self.residual[places] ** 2)

    def excess(self, index: int) -> Floats:
        """How many rows each place of a view has above its target or, where lines lack rows, above their average lack.

        Rows of a table cannot make up for targets below 0, so that a line may lack rows in the places that should have
        most, and have none too many in any other. At the nearest rows, the lack is the same in all places with rows.
        """
        residual = self._of_view(self.residual, index)
        occupied = residual + self._of_view(self.target, index) > 0.5
        lack = np.zeros(residual.shape)
        for axis in range(residual.ndim):
            others = tuple(other for other in range(residual.ndim) if other != axis)
            number = np.maximum(occupied.sum(axis=others, keepdims=True), 1)
            lack = np.minimum(lack, (residual * occupied).sum(axis=others, keepdims=True) / number)
        return np.asarray((residual - lack).ravel())

    def counts(self, index: int) -> Floats:
        """The rows in each place of a view."""
        places = self._places(index)
        return np.asarray(self.residual[places] + self.target[places])

    def entry(self, column: int, index: int) -> int:
        """The index of a view in the lines of one of its columns."""
        return int(np.searchsorted(self.view[self.begin[column] : self.begin[column + 1]], index))

    def _places(self, index: int) -> slice:
        return slice(self.places[index], self.places[index + 1])

    def _of_view(self, values: Floats, index: int) -> Floats:
        """The values of a view's places, with an axis for each of its columns."""
        return values[self._places(index)].reshape(self.shapes[index])

    def codes(self) -> Ints:
        """The rows in the coding of `start`, after all swaps."""
        return (self.rows - self.lines) // (np.diff(self.begin) + 1)


def _other_columns(views: Sequence[View], entries: Sequence[Sequence[int]]) -> tuple[tuple[Indices, Indices], ...]:
    """For each entry, the other columns of its view, and the view's index in the lines of those columns.

    Views of fewer columns are padded with the entry's own column and the final 0 of its line, which adds nothing: all
    entries have equally many other columns, and numba, which knows the length of a tuple, unrolls the loop over them.
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
    begin: Indices,
    others: tuple[tuple[Indices, Indices], ...],
    offsets: Indices,
    weight: Floats,
    residual: Floats,
) -> float:
    """Propose swaps one after the other: rows first[t] and second[t] exchange their values of column[t].

    A swap is made if it decreases the error. Returns the total change of the error.
    """
    touched = np.empty((others[0][0].shape[0] + 1, 4), np.uint32)
    moved = 0.0
    for t in range(first.shape[0]):
        i, h, j = first[t], second[t], column[t]
        soon = min(t + PREFETCH_PROPOSALS, first.shape[0] - 1)
        touched[-1, 0], touched[-1, 1] = rows[first[soon], 0], rows[second[soon], 0]  # never read: fills the cache
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
            # Row i moves from one position to another, and row h makes the opposite move.
            i_from, i_to, h_from, h_to = i_at + a_at, i_at + b_at, h_at + b_at, h_at + a_at
            left = weight[i_from] * (1.0 - 2.0 * residual[i_from]) + weight[h_from] * (1.0 - 2.0 * residual[h_from])
            taken = weight[i_to] * (1.0 + 2.0 * residual[i_to]) + weight[h_to] * (1.0 + 2.0 * residual[h_to])
            # Often nothing moves, or the moves cancel. Multiplying by 0 is faster than an unpredictable branch.
            counts = (a_at != b_at) & (i_at != h_at)
            change += np.float64(counts) * (left + taken)
            touched[count, 0], touched[count, 1] = i_from, h_from
            touched[count, 2], touched[count, 3] = i_to, h_to
            count += np.uint64(counts)
        if change < 0.0:
            rows[i, j], rows[h, j] = b, a
            moved += change
            for m in range(count):
                residual[touched[m, 0]] -= 1.0
                residual[touched[m, 1]] -= 1.0
                residual[touched[m, 2]] += 1.0
                residual[touched[m, 3]] += 1.0
    return moved


@njit(cache=True, nogil=True)
def _overfull_rows(
    rows: Indices,
    columns: Ints,
    entries: Indices,
    offsets: Indices,
    begin: int,
    counts: Floats,
    excess: Floats,
    numbers: NDArray[np.float32],
    found: NDArray[np.int32],
) -> int:
    """List rows in places of a view that have an excess of rows, and return how many there are.

    A row is listed with probability min(1, 2·excess/count): twice as many rows of each place as are to leave it. The
    places of the view begin at position `begin`.
    """
    count = 0
    for i in range(rows.shape[0]):
        at = np.uint64(0)
        for m in range(columns.shape[0]):
            at += offsets[rows[i, columns[m]] + entries[m]]
        place = at - np.uint64(begin)
        if excess[place] > 0.0 and numbers[i] * counts[place] < 2.0 * excess[place]:
            found[count] = i
            count += 1
    return count
