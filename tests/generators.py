"""Inputs that are hard on purpose: holes in a line, one cell, one category, missing points, ties, negative mass."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from certsynth.domain import Cells, Groups
from certsynth.domain.label_metric import LabelMetric, matrix_metric, tree_metric
from certsynth.mechanisms import Strategy
from certsynth.transport import Network
from certsynth.transport.flow import flow_cost, solve

Shape = Sequence[Cells]
ONE = Fraction(1)


def line(k: int, *, missing: bool = False, weight: Fraction = ONE) -> Cells:
    """k cells of width 1/k, as an ordered column has them, or narrower ones."""
    return on_line(np.arange(k), k, missing=missing, weight=weight)


def spaced(size: int, off_line: int = 0) -> Cells:
    """`size` points from 0 to 1, and others apart from all."""
    return Cells(places=np.arange(size), steps=max(size - 1, 1), off_line=off_line)


def lattice(steps: int, *, missing: bool = False, weight: Fraction = ONE) -> Cells:
    """steps + 1 points from 0 to 1, or to the weight."""
    return on_line(np.arange(steps + 1), steps, missing=missing, weight=weight)


def holes(places: Sequence[int], steps: int, *, missing: bool = False, weight: Fraction = ONE) -> Cells:
    """A line of which only some steps can hold a value."""
    return on_line(np.array(places), steps, missing=missing, weight=weight)


def on_line(places: np.ndarray, steps: int, *, missing: bool, weight: Fraction) -> Cells:
    """Points of a line that is drawn to the length of its weight."""
    return Cells(
        places=weight.numerator * places, steps=weight.denominator * steps, off_line=int(missing), weight=weight
    )


def labels(count: int, *, weight: Fraction = ONE) -> Cells:
    """Categories: points apart, and no line."""
    return Cells(places=np.empty(0, np.int64), steps=1, off_line=count, weight=weight)


def with_metric(metric: LabelMetric, *, missing: bool = False, weight: Fraction = ONE) -> Cells:
    """Labels with distances of their own."""
    return Cells(
        places=np.empty(0, np.int64), steps=1, off_line=metric.size + missing, weight=weight, label_metric=metric
    )


def random_paths(rng: np.random.Generator, count: int) -> list[tuple[str, ...]]:
    """All codes of a random tree, each below one that comes before it."""
    paths: list[tuple[str, ...]] = [("0",)]
    for code in range(1, count):
        above = paths[int(rng.integers(max(0, len(paths) - rng.integers(1, 9)), len(paths)))]
        paths.append((*above, str(code)))
    return paths


def random_label_metric(rng: np.random.Generator, *, labels: int) -> LabelMetric:
    """A tree of codes some of which are no labels, or places on a circle or in a plane, with ties."""
    kind = rng.choice(["tree", "circle", "plane"])
    if kind == "tree":
        paths = random_paths(rng, labels + int(rng.integers(0, 4)))
        return tree_metric([paths[i] for i in rng.permutation(len(paths))[:labels]])
    if kind == "circle":
        gaps = np.abs(np.subtract.outer(np.arange(labels), np.arange(labels)))
        distances = np.minimum(gaps, labels - gaps)
    else:
        places = rng.permutation(max(labels, 49))[:labels]
        distances = np.abs(np.subtract.outer(places % 7, places % 7)) + np.abs(
            np.subtract.outer(places // 7, places // 7)
        )
    return matrix_metric([[Fraction(int(d)) for d in row] for row in distances])


def light(k: int, *, missing: bool = False) -> Cells:
    """k cells of width 1/2k: the line of a column of weight a half."""
    return Cells(places=np.arange(k), steps=2 * k, off_line=int(missing), weight=Fraction(1, 2))


def codes(count: int, *, missing: bool = False) -> Cells:
    """Labels of a tree in which every other one hangs on the one before it, and the rest on the first."""
    paths = [("a",)]
    for i in range(1, count):
        paths.append((*paths[i - 1 if i % 2 else 0], str(i)))
    return with_metric(tree_metric(paths), missing=missing, weight=Fraction(3, 4))


def spots(count: int, *, missing: bool = False) -> Cells:
    """Labels at places of a plane, with the distances of a taxi."""
    at = [(i * i, 3 * i % 5) for i in range(count)]
    return with_metric(
        matrix_metric([[Fraction(abs(a - c) + abs(b - d)) for c, d in at] for a, b in at]),
        missing=missing,
        weight=Fraction(3, 4),
    )


def merged(lattice: Cells) -> Groups:
    """Every other label goes together with the one before it; what is in no metric stays alone, if there is one."""
    alone = lattice.isolated if lattice.label_metric is not None else 0
    together = lattice.off_line - alone
    representatives = np.append(np.arange(0, together, 2), np.arange(together, lattice.off_line))
    group_of_label = np.append(np.arange(together) // 2, (together + 1) // 2 + np.arange(alone))
    return Groups.of(lattice, None, group_of_label, representatives)


HARD_SHAPES: dict[str, tuple[Cells, ...]] = {
    "one cell": (line(1),),
    "one category": (labels(1),),
    "two categories": (labels(2),),
    "a point and a missing value": (line(1, missing=True),),
    "a hole at the start": (holes([2, 3, 7], 8),),
    "a hole and a missing value": (holes([0, 3], 4, missing=True),),
    "a square": (line(4), line(4)),
    "a line of one cell": (line(5), line(1)),
    "integer ratio of steps": (lattice(2), lattice(6)),
    "co-prime steps": (lattice(5), lattice(7)),
    "co-prime steps with holes": (holes([0, 2, 3, 5], 5), holes([1, 4, 6], 7)),
    "category by line": (labels(3), line(5)),
    "category by category": (labels(3), labels(4)),
    "one category by holes": (labels(1), holes([1, 4, 6], 7)),
    "both may be missing": (line(3, missing=True), lattice(2, missing=True)),
    "a cube": (line(3), line(3), line(3)),
    "three unequal steps": (lattice(2), lattice(3), lattice(5)),
    "three kinds": (holes([0, 2], 3, missing=True), labels(2), line(3)),
}


def random_column(rng: np.random.Generator, *, most: int, weight: Fraction = ONE, metrics: bool = False) -> Cells:
    """A column of at most `most` cells."""
    kind = rng.choice(["line", "lattice", "holes", "labels", *(["metric"] if metrics else [])])
    if kind == "labels":
        return labels(int(rng.integers(1, most + 1)), weight=weight)
    missing = bool(most > 1 and rng.random() < 0.3)
    room = most - missing
    if kind == "metric":
        return with_metric(
            random_label_metric(rng, labels=int(rng.integers(1, room + 1))), missing=missing, weight=weight
        )
    if kind == "holes":
        steps = int(rng.integers(1, 2 * room + 1))
        count = int(rng.integers(1, min(room, steps) + 1))
        return holes(sorted(rng.choice(steps, count, replace=False).tolist()), steps, missing=missing, weight=weight)
    if kind == "lattice" and room > 1:
        return lattice(int(rng.integers(1, room)), missing=missing, weight=weight)
    return line(int(rng.integers(1, room + 1)), missing=missing, weight=weight)


def random_shape(rng: np.random.Generator, *, columns: int, most_cells: int) -> tuple[Cells, ...]:
    """A product of random columns with at most `most_cells` cells."""
    most = max(2, math.floor(most_cells ** (1 / columns)))
    return tuple(random_column(rng, most=most) for _ in range(columns))


def size(shape: Shape) -> int:
    return math.prod(c.size for c in shape)


def random_signed(rng: np.random.Generator, cells: int) -> np.ndarray:
    """A signed measure of any mass, with zeros and ties."""
    kind = rng.integers(4)
    if kind == 0:
        return rng.normal(size=cells)
    if kind == 1:
        return rng.integers(-2, 3, size=cells).astype(float)
    if kind == 2:  # sparse
        return rng.normal(size=cells) * (rng.random(cells) < 0.2)
    return rng.random(cells)  # positive: all of it has to go through the hub


def random_balanced(rng: np.random.Generator, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Two signed measures of equal mass (one has negative parts half of the time)."""
    first, second = rng.dirichlet(np.full(cells, 0.5)), rng.dirichlet(np.full(cells, 0.5))
    if rng.random() < 0.5:
        noise = rng.normal(size=cells) / cells
        first = first + noise - noise.mean()
    return first, second


def random_counts(rng: np.random.Generator, cells: int, rows: int) -> np.ndarray:
    """Counts of `rows` rows over cells, many of them empty."""
    return rng.multinomial(rows, rng.dirichlet(np.full(cells, 0.3))).astype(np.int64)


def least_cost(network: Network, supply: np.ndarray) -> int:
    """What the cheapest flow costs."""
    found = flow_cost(network, supply, solve(network, supply)[0])
    assert found is not None
    return found


def named(strategy: Strategy) -> str:
    """A name for the case of a test."""
    return f"{strategy.name}, {strategy.neighbours}, {strategy.growth}"
