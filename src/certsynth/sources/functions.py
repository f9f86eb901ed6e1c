"""Columns that are functions of other columns, found in one pass over the rows with bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import permutations

import numpy as np

from certsynth.base.arrays import Ints
from certsynth.domain.cleaning import Raw, as_labels

MAX_VALUES = 10_000
"""Most distinct values of a column that can be part of a function: a map of more is no knowledge that a person has."""

MAX_COLUMNS = 100
"""Most columns that are compared in pairs."""

FIRST_ROWS = 2_000
"""Rows on which all pairs are compared; few pairs look like functions after that."""

MIN_ROWS_PER_VALUE = 5
"""Rows that each value of the one column must have on average: with fewer, anything looks like a function."""

MIN_OTHER_ROWS = 10
"""Rows in which the second column does not have its most frequent value: an almost constant column is a function of
anything."""


class FunctionSearch:
    """Pairs of columns of which the second has been a function of the first so far.

    >>> search = FunctionSearch(2)
    >>> search.add([np.arange(200) % 6, np.arange(200) % 6 // 2])
    >>> search.found()
    {1: 0}
    """

    def __init__(self, columns: int) -> None:
        self.columns = {i: _Codes() for i in range(min(columns, MAX_COLUMNS))}
        self.maps: dict[tuple[int, int], Ints] | None = None
        self.rows = 0

    def add(self, batch: Sequence[Raw]) -> None:
        """Compare the pairs that are left on a batch of raw columns."""
        self.rows += len(batch[0])
        used = set(self.columns) if self.maps is None else {i for pair in self.maps for i in pair}
        codes = {i: found for i in sorted(used) if (found := self.columns[i].code(batch[i])) is not None}
        if self.maps is None:
            first = {i: values[:FIRST_ROWS] for i, values in codes.items()}
            pairs = permutations(codes, 2)
            self.maps = {(a, b): np.empty(0, np.int64) for a, b in pairs if _is_function(first[a], first[b])}
        for pair in list(self.maps):
            if not set(pair) <= set(codes) or not self._extend(pair, codes[pair[0]], codes[pair[1]]):
                del self.maps[pair]

    def _extend(self, pair: tuple[int, int], source: Ints, target: Ints) -> bool:
        """Add rows to the map of a pair; False if a value has two images."""
        assert self.maps is not None
        known = self.maps[pair]
        image = np.concatenate([known, np.full(len(self.columns[pair[0]].known) - len(known), -1)])
        fresh = image[source] < 0
        image[source[fresh]] = target[fresh]
        self.maps[pair] = image
        return bool((image[source] == target).all())

    def found(self) -> dict[int, int]:
        """For each column that is a function of others, the one of these with the fewest values."""
        best: dict[int, int] = {}
        for source, target in self.maps or {}:
            keys, values = self.columns[source], self.columns[target]
            is_renaming = (target, source) in (self.maps or {})
            if len(keys.known) * MIN_ROWS_PER_VALUE > self.rows or values.other_rows() < MIN_OTHER_ROWS:
                continue
            if is_renaming and source > target:
                continue
            if target not in best or len(keys.known) < len(self.columns[best[target]].known):
                best[target] = source
        return best


class _Codes:
    """Values of one column as small integers, in the order in which they first occur."""

    def __init__(self) -> None:
        self.known: dict[str | None, int] = {}
        self.too_many = False
        self.rows: Counter[int] = Counter()

    def code(self, raw: Raw) -> Ints | None:
        """The codes of raw values; None once there are too many values."""
        if self.too_many:
            return None
        known = self.known
        if raw.dtype.kind in "iufM" and not np.ma.is_masked(raw):
            values, places = np.unique(np.ma.getdata(raw), return_inverse=True)
            if len(values) > MAX_VALUES:
                self.too_many = True
                known.clear()
                return None
            codes = np.array([known.setdefault(text, len(known)) for text in as_labels(values)], np.int64)[places]
        else:
            texts = as_labels(raw)
            codes = np.fromiter((known.setdefault(text, len(known)) for text in texts), np.int64, len(texts))
        self.too_many = len(known) > MAX_VALUES
        if self.too_many:
            known.clear()
            return None
        self.rows.update(dict(enumerate(np.bincount(codes, minlength=len(known)).tolist())))
        return codes

    def other_rows(self) -> int:
        """Rows without the most frequent value."""
        return self.rows.total() - max(self.rows.values(), default=0)


def _is_function(source: Ints, target: Ints) -> bool:
    pairs = source * (MAX_VALUES + 1) + target
    return len(np.unique(pairs)) == len(np.unique(source))
