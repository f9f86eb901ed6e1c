"""How much a cheapest flow costs at most, and about, for a hundredth of the work: near mass is matched, the rest moves
coarsely.

docs/explanation/proofs/direct.md proves that it is never less than the flow over the network.
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
    """A cost that is at most `upper`, and most likely near `about`."""

    upper: Fraction
    about: Fraction


def estimate(
    cells: Sequence[Cells], places: Ints, values: Ints, *, level: int, stretch: Fraction | None = None
) -> Estimate:
    r"""What it costs to cancel a measure of mass 0 over `Network.of(cells)`.

    The measure has `values`, whole numbers, at `places`, the numbers of cells. First what is in one block is matched,
    in blocks of ever larger size, and pays at most the diameter of its block. What is left in blocks of length
    2^−`level` moves to their centres, from centre to centre over a network of those, and on to where it is due. That is
    a bound; the way between centres alone, without those to and from them, is a good guess. `stretch` is that of the
    network, if it is known.
    """
    product = _Product.of(cells, level)
    mass = exact_dot(np.abs(values), np.ones_like(values)) // 2
    farthest = mass * max(c.diameter for c in cells)  # through the hub
    if not mass or product is None:
        return Estimate(Fraction(farthest), Fraction(farthest))
    stretch = stretch_of(cells) if stretch is None else stretch
    codes = np.unravel_index(places, [c.size for c in cells])
    spent, rest = 0, values
    for blocks in product.blocks(level):
        codes, rest, cost = blocks.matched(codes, rest)
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
    """The level at which every point of every line is a part of its own."""
    return (max((c.steps for c in cells if len(c.places) > 1), default=1) - 1).bit_length()


def coarse_points(cells: Sequence[Cells], level: int) -> int:
    """How many blocks there are at a level."""
    return math.prod(len(np.unique(_parts(c, level))) + c.off_line for c in cells)


@dataclass(frozen=True, slots=True, eq=False)
class _Product:
    """Columns whose lines are cut into 2^level parts to the unit length, for falling levels: parts of parts."""

    cells: Sequence[Cells]
    unit: int

    @classmethod
    def of(cls, cells: Sequence[Cells], level: int) -> _Product | None:
        """None where coarser cells would not do: uneven ones, and lines longer than points apart are from them."""
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
        """From the finest to those of `level`."""
        finest = max(finest_level(self.cells), level)
        before: list[_Axis] | None = None
        for at in range(finest, level - 1, -1):
            before = [
                _Axis.of(c, at, self.unit, None if before is None else before[j]) for j, c in enumerate(self.cells)
            ]
            yield _Blocks(before)


@dataclass(frozen=True, slots=True, eq=False)
class _Axis:
    """One column cut into parts. `of_code` tells the part of each part of the cut before, or of each point at first;
    `point` that of each point. `spans` and `radii` are in whole units: how far points of a part are from each other at
    most, and from its centre.
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
        apart = np.arange(cells.off_line)
        at = cells.places * (unit // cells.steps) if len(cells.places) else cells.places
        lowest, highest = np.full(len(places), unit * 4), np.full(len(places), -unit * 4)
        np.minimum.at(lowest, point, at)
        np.maximum.at(highest, point, at)
        twice = (2 * places + 1) * unit >> level  # of the centre
        radii = np.maximum(twice - 2 * lowest, 2 * highest - twice) + 1 >> 1
        point = np.concatenate([point, len(places) + apart])
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
    """Products of parts."""

    axes: Sequence[_Axis]

    @property
    def coarse(self) -> list[Cells]:
        return [axis.coarse for axis in self.axes]

    def matched(self, codes: Sequence[Ints], values: Ints) -> tuple[tuple[Ints, ...], Ints, int]:
        """What is left in each block after what can be matched in it was, with what that costs, in units."""
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
        """How far the centres of some blocks are from their points at most."""
        return np.maximum.reduce([axis.radii[c] for axis, c in zip(self.axes, codes, strict=True)])
