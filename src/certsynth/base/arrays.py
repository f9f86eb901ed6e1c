"""Array types, sums by group, and read-only views."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_A = TypeVar("_A", bound=NDArray[Any])


def sum_by_group(groups: Ints, weights: Floats, size: int) -> Floats:
    """Sum the weights in each of `size` groups along the last axis. Leading axes are kept.

    >>> sum_by_group(np.array([0, 2, 2]), np.array([1.0, 2.0, 3.0]), 4).tolist()
    [1.0, 0.0, 5.0, 0.0]
    """
    *lead, _ = weights.shape
    count = math.prod(lead)
    places = groups if count == 1 else np.arange(count)[:, None] * size + groups
    return np.bincount(places.ravel(), weights.ravel(), count * size).astype(np.float64).reshape(*lead, size)


def read_only(array: _A) -> _A:
    """A read-only view of `array`."""
    view = array.view()
    view.flags.writeable = False
    return view
