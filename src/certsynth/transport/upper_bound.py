"""A fast upper bound on transport cost: near mass is matched within blocks, and the rest moves between block centres.

It takes about a hundredth of the time of the flow. docs/explanation/proofs/direct.md proves that it is never less than
the flow over the network.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from certsynth.base.arrays import Ints
from certsynth.domain import Cells, Groups
from certsynth.transport.flow import cheapest_flow, exact_dot
from certsynth.transport.network import Network, stretch_of


@dataclass(frozen=True, slots=True)
class Estimate:
    """An upper bound on a cost, and an approximation of it without guarantee (`about`)."""

    upper: Fraction
    about: Fraction


def transport_upper_bound(
    cells: Sequence[Cells], places: Ints, values: Ints, *, level: int, stretch: Fraction | None = None
) -> Estimate:
    r"""An upper bound on the cost of cancelling a measure of mass 0 over `Network.of(cells)`.

    The measure has integer `values` at `places`, which are indices of cells. Mass is first matched within blocks of
    increasing size, at a cost of at most the diameter of the block. What is left in blocks of length 2^−`level` moves
    to their centres, between centres over a coarse network, and on to its target. That cost is the bound; its middle
    part alone is a good approximation. `stretch` is that of the network, if it is known.
    """
    product = _Product.of(cells, level)
    mass = exact_dot(np.abs(values), np.ones_like(values)) // 2
    farthest = mass * max(c.diameter for c in cells)  # all of it through the hub
    if not mass or product is None:
        return Estimate(Fraction(farthest), Fraction(farthest))
    stretch = stretch_of(cells) if stretch is None else stretch
    codes = np.unravel_index(places, [c.size for c in cells])
    spent, rest = 0, values
    for blocks in product.blocks(level):
        codes, rest, cost = blocks.match(codes, rest)
        spent += cost
    spent += exact_dot(np.abs(rest), blocks.radii(codes))
    between = Fraction(0)
    if rest.any():
        sizes = [c.size for c in blocks.coarse]
        measure = np.zeros(math.prod(sizes), dtype=np.int64)
        measure[np.ravel_multi_index(codes, sizes)] = rest
        network = Network.of(blocks.coarse)
        between = Fraction(cheapest_flow(network, measure).upper, network.unit)
    upper = stretch * (between + Fraction(spent, product.unit))
    return Estimate(min(upper, Fraction(farthest)), between)


def finest_level(cells: Sequence[Cells]) -> int:
    """The level at which every point of every line is in a part of its own."""
    return (max((c.steps for c in cells if len(c.places) > 1), default=1) - 1).bit_length()


def coarse_points(cells: Sequence[Cells], level: int) -> int:
    """The number of blocks at a level."""
    return math.prod(len(np.unique(_parts(c, level))) + c.off_line for c in cells)


@dataclass(frozen=True, slots=True, eq=False)
class _Product:
    """Columns whose lines are cut into 2^level parts per unit length; the parts of a level are unions of finer ones."""

    cells: Sequence[Cells]
    unit: int

    @classmethod
    def of(cls, cells: Sequence[Cells], level: int) -> _Product | None:
        """None if coarser cells do not work: uneven cells, or a line longer than the distance of isolated points."""
        unit = math.lcm(2 << level, *(c.denominator for c in cells))
        product = cls(cells, unit)
        for c in cells:
            if isinstance(c, Groups):
                return None
            ends = _parts(c, level)[:: max(len(c.places) - 1, 1)] if len(c.places) else np.zeros(2, np.int64)
            spans = Fraction(c.span, c.steps), Fraction(int(ends[-1] - ends[0]), 1 << level)
            if c.isolated and max(spans) > c.weight:
                return None
        return product

    def blocks(self, level: int) -> Iterator[_Blocks]:
        """Blocks from the finest level to `level`."""
        finest = max(finest_level(self.cells), level)
        before: list[_Axis] | None = None
        for at in range(finest, level - 1, -1):
            before = [
                _Axis.of(c, at, self.unit, None if before is None else before[j]) for j, c in enumerate(self.cells)
            ]
            yield _Blocks(before)


@dataclass(frozen=True, slots=True, eq=False)
class _Axis:
    """One column cut into parts. `point` is the part of each point; `of_code` is that of each part of the finer cut, or
    of each point if there is none. `spans` and `radii` are, in units, the largest distance between two points of a
    part, and from its centre.
    """

    point: Ints
    of_code: Ints
    coarse: Cells
    spans: Ints
    radii: Ints

    @classmethod
    def of(cls, cells: Cells, level: int, unit: int, before: _Axis | None) -> _Axis:
        line = _parts(cells, level)
        places, point = np.unique(line, return_inverse=True)
        off_line = np.arange(cells.off_line)
        at = cells.places * (unit // cells.steps) if len(cells.places) else cells.places
        lowest, highest = np.full(len(places), unit * 4), np.full(len(places), -unit * 4)
        np.minimum.at(lowest, point, at)
        np.maximum.at(highest, point, at)
        twice = (2 * places + 1) * unit >> level  # twice the centre
        radii = np.maximum(twice - 2 * lowest, 2 * highest - twice) + 1 >> 1
        point = np.concatenate([point, len(places) + off_line])
        of_code = point
        if before is not None:
            of_code = np.empty(before.coarse.size, dtype=np.int64)
            of_code[before.point] = point
        zeros = np.zeros(cells.off_line, dtype=np.int64)
        return cls(
            point=point,
            of_code=of_code,
            coarse=Cells(
                places=places,
                steps=1 << level,
                off_line=cells.off_line,
                weight=cells.weight,
                label_metric=cells.label_metric,
            ),
            spans=np.concatenate([highest - lowest, zeros]),
            radii=np.concatenate([radii, zeros]),
        )


def _parts(cells: Cells, level: int) -> Ints:
    return (cells.places << level) // cells.steps


@dataclass(frozen=True, slots=True, eq=False)
class _Blocks:
    """Blocks: products of parts of the columns."""

    axes: Sequence[_Axis]

    @property
    def coarse(self) -> list[Cells]:
        return [axis.coarse for axis in self.axes]

    def match(self, codes: Sequence[Ints], values: Ints) -> tuple[tuple[Ints, ...], Ints, int]:
        """Match mass within each block. Returns the blocks' codes, the mass left in each, and the cost in units."""
        codes = [axis.of_code[c] for axis, c in zip(self.axes, codes, strict=True)]
        block, member = np.unique(
            np.ravel_multi_index(codes, [axis.coarse.size for axis in self.axes]), return_inverse=True
        )
        more, less = (np.zeros(len(block), dtype=np.int64) for _ in range(2))
        np.add.at(more, member, np.maximum(values, 0))
        np.add.at(less, member, np.maximum(-values, 0))
        found = np.unravel_index(block, [axis.coarse.size for axis in self.axes])
        spans = np.maximum.reduce([axis.spans[c] for axis, c in zip(self.axes, found, strict=True)])
        return found, more - less, exact_dot(np.minimum(more, less), spans)

    def radii(self, codes: Sequence[Ints]) -> Ints:
        """The largest distance of a point from the centre, for blocks given by their codes."""
        return np.maximum.reduce([axis.radii[c] for axis, c in zip(self.axes, codes, strict=True)])
