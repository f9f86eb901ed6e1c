"""Truths and distances of single comparisons, remembered: the cells of a table and the groups of a query share them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import reduce

import numpy as np

from certsynth.base.arrays import read_only
from certsynth.domain.condition import Among, And, Atom, Comparison, Condition, Linear, Missing, Not, Or, Rows, Ternary

MAX_BYTES = 2**27
"""Bytes of the arrays that are remembered; beyond that they are computed again."""


class Arrays:
    """Read-only arrays by key."""

    def __init__(self) -> None:
        self._known: dict[Hashable, np.ndarray] = {}
        self._bytes = 0

    def get(self, key: Hashable, compute: Callable[[], np.ndarray]) -> np.ndarray:
        """The array of a key, computed if it is not known."""
        if (found := self._known.get(key)) is None:
            found = read_only(compute())
            if self._bytes + found.nbytes <= MAX_BYTES:
                self._known[key] = found
                self._bytes += found.nbytes
        return found


class Truths:
    """The truth of conditions for the same rows: `Condition.holds`, with atoms remembered."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._atoms = Arrays()

    def holds(self, condition: Condition) -> Ternary:
        if isinstance(condition, Not):
            return -self.holds(condition.part)
        if isinstance(condition, (And, Or)):
            join = np.minimum if isinstance(condition, And) else np.maximum
            return reduce(join, map(self.holds, condition.parts))
        if isinstance(condition, Atom) and (key := key_of(condition)) is not None:
            return self._atoms.get(key, lambda: condition.holds(self.rows))
        return condition.holds(self.rows)


def key_of(atom: Atom) -> Hashable | None:
    """A key that equal comparisons share, or None for atoms that have none."""
    if isinstance(atom, Comparison):
        return "comparison", _key_of_sum(atom.left), atom.sign, _key_of_sum(atom.right)
    if isinstance(atom, Among):
        return "among", _key_of_sum(atom.term), atom.values
    return ("missing", atom.name) if isinstance(atom, Missing) else None


def _key_of_sum(form: Linear) -> Hashable:
    """The order of terms is part of the key: it can change the last bit of a sum."""
    return tuple(form.weights.items()), form.constant
