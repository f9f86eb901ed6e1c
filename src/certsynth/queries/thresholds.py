"""The exact floats at which a step function of a float reaches its steps, found by evaluating the function alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from certsynth.base.arrays import Floats, Ints


def least_floats(rising: Callable[[Floats], np.ndarray], levels: Ints) -> Floats:
    """For each level, the least float at which a non-decreasing function reaches it; infinity must reach all levels.

    >>> least_floats(lambda x: np.floor(np.clip(x, 0, 9)), np.array([1, 2])).tolist()
    [1.0, 2.0]
    """
    low = np.full(len(levels), _key(np.array([-np.inf]))[0])  # below the level
    high = np.full(len(levels), _key(np.array([np.inf]))[0])  # at the level or above
    while (unsure := low + 1 < high).any():
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        reached = rising(_float(middle)) >= levels
        high = np.where(unsure & reached, middle, high)
        low = np.where(unsure & ~reached, middle, low)
    return _float(high)


def _key(values: Floats) -> Ints:
    """Map floats to integers in the same order."""
    bits = values.view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)


def _float(keys: Ints) -> Floats:
    return np.where(keys < 0, keys ^ np.int64(2**63 - 1), keys).view(np.float64)
