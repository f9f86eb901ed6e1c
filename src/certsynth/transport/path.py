"""Cells ordered along a path, and the cost of moving mass along it: the proxy loss 𝓛_T."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from certsynth.base.arrays import Floats, Ints, read_only
from certsynth.domain import Cells
from certsynth.domain.covering import tour
from certsynth.transport.hilbert import hilbert_order

Order = Literal["snake", "hilbert", "tour"]


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """An order of all cells of a product of columns.

    `order[i]` is the block index of the i-th cell on the path and `steps[i]` the distance from it to the next; the last
    entry of `steps` is the cost of one unit of missing mass (0 by default: both masses are 1 where it matters).
    """

    order: Ints
    steps: Floats

    @classmethod
    def along(cls, cells: Sequence[Cells], order: Order = "snake", *, end: float = 0.0) -> Path:
        """The path in a given order: "snake" traverses lines alternately forwards and backwards, for any number of
        columns; "hilbert" needs two columns; "tour" follows a covering tree and suits any metric.
        """
        shape = tuple(c.size for c in cells)
        if order == "tour":
            index = tour(cells)
        else:
            index = hilbert_order(*shape) if order == "hilbert" and len(shape) == 2 else snake_order(shape)
        codes = np.unravel_index(index, shape)
        steps = np.max([c.distance(x[:-1], x[1:]) for c, x in zip(cells, codes, strict=True)], axis=0)
        return cls(order=read_only(index), steps=read_only(np.append(steps, end)))

    @property
    def length(self) -> float:
        """Length from the first cell to the last: L in the general rates."""
        return float(self.steps[:-1].sum())


def snake_order(shape: Sequence[int]) -> Ints:
    """Block indices in an order in which neighbours differ by one step in one column.

    >>> snake_order((2, 3)).tolist()
    [0, 1, 2, 5, 4, 3]
    """
    order = np.zeros(1, dtype=np.int64)
    for size in reversed(shape):
        lines = np.arange(size)[:, None] * len(order) + order
        lines[1::2] = lines[1::2, ::-1].copy()
        order = lines.ravel()
    return order


def path_loss(first: Floats, second: Floats, path: Path) -> Floats:
    r"""Cost of moving `first` onto `second` along one path: at least their W1. Leading axes are kept.

    .. math:: L(v, u) = \sum_l w_l \,\bigl| \sum_{i \le l} (v_i - u_i) \bigr|

    where w_l is the length of step l of `path` and v, u are read in its order.

    Paper: Eq. (10) [path-loss]
    """
    surplus = np.cumsum((first - second)[..., path.order], axis=-1)
    return np.asarray(np.abs(surplus) @ path.steps)
