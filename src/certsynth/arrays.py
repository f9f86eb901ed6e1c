"""Array types, and arrays that cannot be changed after birth."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_A = TypeVar("_A", bound=NDArray[Any])


def frozen(array: _A) -> _A:
    """A read-only view of `array`."""
    view = array.view()
    view.flags.writeable = False
    return view
