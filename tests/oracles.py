"""The paper written out slowly and literally. Nothing here calls `certsynth`: fast code is compared with this.

A column is anything with `places`, `steps` and `off_line`, and perhaps a `weight` and a `label_metric` (see `Cells`);
a cell of several columns is a tuple of codes.
Everything is dense and exact or solved as the linear program that the definition is.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import linprog

Cell = tuple[int, ...]


class LineAndPoints(Protocol):
    """Points on a line at `places`/`steps`, and `off_line` points at distance `weight` from all others: 1 unless given.

    The first of those off the line may be in a `label_metric`, which has their distances as shares of `weight`.
    """

    @property
    def places(self) -> Any: ...
    @property
    def steps(self) -> int: ...
    @property
    def off_line(self) -> int: ...


Columns = Sequence[LineAndPoints]


# ------------------------------------------------------------ the metric


def column_distance(column: LineAndPoints, a: int, b: int) -> Fraction:
    """|x − y| on the line; what the metric says of two labels in it; else `weight` between different points."""
    on_line, weight, metric = (
        len(column.places),
        getattr(column, "weight", Fraction(1)),
        getattr(column, "label_metric", None),
    )
    if a == b:
        return Fraction(0)
    if max(a, b) < on_line:
        return Fraction(abs(int(column.places[a]) - int(column.places[b])), column.steps)
    if metric is not None and max(a, b) < metric.size:
        return weight * Fraction(int(metric.distances[a, b]), metric.unit)
    return Fraction(weight)


def shortest_ways(direct: Sequence[Sequence[Fraction | None]]) -> list[list[Fraction | None]]:
    """Lengths of the shortest ways between all points, from those of direct ones (None: there is none). Floyd's way."""
    ways = [list(row) for row in direct]
    for over, a, b in itertools.product(range(len(ways)), repeat=3):
        first, second, known = ways[a][over], ways[over][b], ways[a][b]
        if first is not None and second is not None and (known is None or first + second < known):
            ways[a][b] = first + second
    return ways


def all_cells(columns: Columns) -> list[Cell]:
    """All cells, the last column running fastest."""
    return list(itertools.product(*(range(len(c.places) + c.off_line) for c in columns)))


def distance(columns: Columns, first: Cell, second: Cell) -> Fraction:
    """The maximum over the columns."""
    return max(column_distance(c, a, b) for c, a, b in zip(columns, first, second, strict=True))


def metric(columns: Columns) -> np.ndarray:
    """All distances as exact fractions, in an array of objects."""
    cells = all_cells(columns)
    matrix = np.empty((len(cells), len(cells)), dtype=object)
    for (i, a), (j, b) in itertools.product(enumerate(cells), repeat=2):
        matrix[i, j] = distance(columns, a, b)
    return matrix


def diameter(columns: Columns) -> Fraction:
    return Fraction(metric(columns).max())


# ------------------------------------------------------------ transport, as it is defined


def lipschitz_supremum(measure: np.ndarray, distances: np.ndarray, hub: float | Fraction) -> tuple[float, np.ndarray]:
    """sup Σ f(z) ω(z) over |f(x) − f(y)| ≤ d(x, y) and |f| ≤ hub, and an f that attains it. Eq. (13)."""
    size = len(measure)
    rows, most = [], []
    for i, j in itertools.permutations(range(size), 2):
        row = np.zeros(size)
        row[i], row[j] = 1.0, -1.0
        rows.append(row)
        most.append(float(distances[i, j]))
    answer = linprog(
        -np.asarray(measure, float),
        A_ub=np.array(rows) if rows else None,
        b_ub=np.array(most) if rows else None,
        bounds=(-float(hub), float(hub)),
        method="highs-ds",
    )
    assert answer.status == 0, answer.message
    return float(-answer.fun), np.asarray(answer.x)


def exact_supremum(measure: np.ndarray, columns: Columns, hub: Fraction) -> Fraction:
    """The same supremum without any rounding: the corner that the solver found, put on its lattice and checked.

    The corners of the polytope of all f lie on multiples of 1/(2·lcm of the steps) if the hub does; f is 1-Lipschitz
    and bounded as a fact about fractions, so its value is a lower bound whatever the solver did.
    """
    distances = metric(columns)
    unit = 2 * math.lcm(hub.denominator, *(c.steps for c in columns))
    f = [Fraction(round(x * unit), unit) for x in lipschitz_supremum(measure, distances, hub)[1]]
    assert all(abs(x) <= hub for x in f)
    assert all(f[i] - f[j] <= distances[i, j] for i, j in itertools.permutations(range(len(f)), 2))
    return sum((x * Fraction(float(mass)) for x, mass in zip(f, measure, strict=True)), Fraction(0))


def wasserstein_on_a_line(first: Sequence[int], second: Sequence[int], column: LineAndPoints) -> Fraction:
    """W1 of two tables of counts, as shares, on one line: the area between their distribution functions."""
    n, m = sum(map(int, first)), sum(map(int, second))
    gaps = [int(b) - int(a) for a, b in itertools.pairwise(column.places)]
    surplus, area = Fraction(0), Fraction(0)
    for gap, a, b in zip(gaps, first, second, strict=False):
        surplus += Fraction(int(a), n) - Fraction(int(b), m)
        area += gap * abs(surplus)
    return area / column.steps


def wasserstein(first: np.ndarray, second: np.ndarray, distances: np.ndarray) -> float:
    """W1 by its definition: the cheapest coupling of two measures of equal mass.

    Signed measures are taken apart: what is negative in one is put on the other side.
    """
    difference = np.asarray(first, float) - np.asarray(second, float)
    give, take = np.maximum(difference, 0), np.maximum(-difference, 0)
    assert math.isclose(give.sum(), take.sum(), rel_tol=1e-9, abs_tol=1e-12), "unequal masses"
    take = take * (give.sum() / take.sum()) if take.sum() else take
    size = len(give)
    leaves = np.kron(np.eye(size), np.ones(size))
    arrives = np.kron(np.ones(size), np.eye(size))
    answer = linprog(
        distances.astype(float).ravel(),
        A_eq=np.vstack([leaves, arrives])[:-1],  # the last equation follows from the others
        b_eq=np.r_[give, take][:-1],
        method="highs-ds",
    )
    assert answer.status == 0, answer.message
    return float(answer.fun)


# ------------------------------------------------------------ paths


def snake(shape: Sequence[int]) -> list[Cell]:
    """Through the cells of a box: the first coordinate up, the others forwards and backwards in turn."""
    if not shape:
        return [()]
    rest = snake(shape[1:])
    return [(i, *tail) for i in range(shape[0]) for tail in (rest[::-1] if i % 2 else rest)]


def row_major(shape: Sequence[int]) -> list[Cell]:
    """Line by line, always from the left: consecutive cells need not touch."""
    return list(itertools.product(*map(range, shape)))


def path_loss_as_printed(first: Sequence[float], second: Sequence[float], k: int) -> float:
    """Eq. (7) of one block: (1/k) Σ_l |Σ_{i≤l} (v_i − u_i)|, both in path order."""
    loss, surplus = 0.0, 0.0
    for v, u in zip(first, second, strict=True):
        surplus += v - u
        loss += abs(surplus) / k
    return loss


# ------------------------------------------------------------ Haar (appendix B)


def haar(levels: int) -> np.ndarray:
    """The transposed Haar matrix M_k: level l has max(1, 2^{l−1}) columns with entries ±max(1, 2^{l−1})/2^k."""
    size = 2**levels
    columns = [np.full(size, 1 / size)]
    for level in range(1, levels + 1):
        support = 2 ** (levels - level + 1)
        for start in range(0, size, support):
            column = np.zeros(size)
            column[start : start + support // 2] = 2 ** (level - 1) / size
            column[start + support // 2 : start + support] = -(2 ** (level - 1)) / size
            columns.append(column)
    return np.array(columns).T


def haar_inverse(levels: int) -> np.ndarray:
    """The inverse: the transpose with all entries that are not zero scaled to ±1."""
    return np.sign(haar(levels)).T


# ------------------------------------------------------------ trees and least squares


def squares(columns: Columns) -> list[np.ndarray]:
    """Membership matrices (squares × cells) of the levels of a tree, coarsest first.

    On every line the i-th of m points is in part ⌊i·p/m⌋ of p = 2, 4, 8, … or, once that many are more than the points,
    alone; labels of a label metric are in the parts of a covering within 1/p of them; other points off the line are
    alone. Levels that have as many squares as the one before are left out, as is a single one.
    """
    found: list[np.ndarray] = []
    cells = all_cells(columns)
    parts = 2
    while len(found[-1] if found else [0]) < len(cells):
        names = [tuple(_part(c, code, parts) for c, code in zip(columns, cell, strict=True)) for cell in cells]
        members = sorted(set(names))
        if len(members) > (len(found[-1]) if found else 1):
            found.append(np.array([[int(name == member) for name in names] for member in members]))
        parts *= 2
    return found


def _part(column: LineAndPoints, code: int, parts: int) -> tuple[int, int]:
    on_line, metric = len(column.places), getattr(column, "label_metric", None)
    if metric is not None and code < metric.size:
        distances = [
            [Fraction(int(d), metric.unit) for d in row[: metric.size]] for row in metric.distances[: metric.size]
        ]
        return 0, covering_centre(distances, code, parts)
    if code >= on_line:
        return 1, code
    return 0, math.floor(Fraction(code * min(parts, on_line), on_line))


def covering_centre(distances: Sequence[Sequence[Fraction]], label: int, parts: int) -> int:
    """The centre, counted in the order of choosing, that a label hangs on in a covering by balls of radius 1/`parts`.

    Centres are chosen farthest first. A label hangs on the nearest centre of the first level that it is no centre of,
    that one on the nearest of the level before, and so on.
    """
    everybody = range(len(distances))
    order = [min(everybody, key=lambda i: max(distances[i]))]
    reach = []
    while len(order) < len(distances):
        left = [i for i in everybody if i not in order]
        order.append(max(left, key=lambda i: min(distances[i][j] for j in order)))
        reach.append(min(distances[order[-1]][j] for j in order[:-1]))
    finest = parts
    while 1 + sum(r > Fraction(1, finest) for r in reach) < len(order):
        finest *= 2
    while finest >= parts:
        centres = order[: 1 + sum(r > Fraction(1, finest) for r in reach)]
        label = label if label in centres else min(centres, key=lambda c: distances[label][c])
        finest //= 2
    return order.index(label)


def least_squares(design: np.ndarray, seen: np.ndarray, variances: np.ndarray, total: float | None) -> np.ndarray:
    """The x with the least Σ (design·x − seen)²/variance, and of those the shortest; with Σ x = total where given."""
    scale = 1 / np.sqrt(variances)
    if total is None:
        return np.linalg.lstsq(design * scale[:, None], seen * scale, rcond=None)[0]
    anyhow = np.full(design.shape[1], total / design.shape[1])
    free = null_space(np.ones((1, design.shape[1])))
    best = np.linalg.lstsq((design @ free) * scale[:, None], (seen - design @ anyhow) * scale, rcond=None)[0]
    return anyhow + free @ best


# ------------------------------------------------------------ overlapping marginals


def agreement(
    blocks: Sequence[np.ndarray],
    sizes: Sequence[int],
    subsets: Sequence[Sequence[int]],
    variances: Mapping[tuple[int, tuple[int, ...]], float],
) -> list[np.ndarray]:
    """Blocks that agree: every part of a block is averaged with that part of all blocks which have it.

    A block is the sum of parts, one for each set R of its columns, which depend on these alone and sum to nothing over
    any of them. Blocks say how large a part is by its sums over the columns outside R, and are averaged with
    1/variances[block, R] as weights. The part of no column is the total, which all blocks share.
    """
    parts = {
        (j, shared): _part_of(block.reshape([sizes[c] for c in subset]), subset, shared)
        for j, (subset, block) in enumerate(zip(subsets, blocks, strict=True))
        for shared in _sets(subset)
    }
    made = []
    for j, subset in enumerate(subsets):
        whole = parts[j, ()]
        for shared in _sets(subset)[1:]:
            holders = [i for i, other in enumerate(subsets) if set(shared) <= set(other)]
            weights = np.array([1 / variances[i, shared] for i in holders])
            sums = [
                parts[i, shared].sum(axis=tuple(axis for axis, c in enumerate(subsets[i]) if c not in shared))
                for i in holders
            ]
            average = np.tensordot(weights / weights.sum(), sums, axes=1)
            shape = [sizes[c] if c in shared else 1 for c in subset]
            whole = whole + average.reshape(shape) * average.size / whole.size
        made.append(whole.ravel())
    return made


def _sets(subset: Sequence[int]) -> list[tuple[int, ...]]:
    return [shared for size in range(len(subset) + 1) for shared in itertools.combinations(subset, size)]


def _part_of(block: np.ndarray, subset: Sequence[int], shared: Sequence[int]) -> np.ndarray:
    for axis, column in enumerate(subset):
        mean = block.mean(axis=axis, keepdims=True)
        block = block - mean if column in shared else np.broadcast_to(mean, block.shape)
    return block


# ------------------------------------------------------------ Step 3


def marginal_matrix(columns: Columns, points: Sequence[Cell], subset: Sequence[int]) -> np.ndarray:
    """A^S: entry (cell, point) is 1 where the point's projection on the subset is the cell."""
    cells = all_cells([columns[j] for j in subset])
    return np.array([[float(tuple(p[j] for j in subset) == cell) for p in points] for cell in cells])


def least_path_loss(
    columns: Columns,
    subsets: Sequence[Sequence[int]],
    target: Sequence[np.ndarray],
    points: Sequence[Cell],
    *,
    end: float = 0.0,
) -> float:
    """min over weights α of max_S Σ_l w_l |Σ_{i≤l} (ν − Aα)_i| along the snake: one bound h for each absolute value."""
    count, cells = len(points), sum(len(block) for block in target)
    width = count + cells + 1  # α, h, and the maximum
    rows, most, seen = [], [], count
    for subset, block in zip(subsets, target, strict=True):
        chosen = [columns[j] for j in subset]
        where = {cell: i for i, cell in enumerate(all_cells(chosen))}
        path = snake([len(c.places) + c.off_line for c in chosen])
        order = [where[cell] for cell in path]
        partial = np.cumsum(marginal_matrix(columns, points, subset)[order], axis=0)
        known = np.cumsum(np.asarray(block)[order])
        lengths = [float(distance(chosen, a, b)) for a, b in itertools.pairwise(path)] + [end]
        for step in range(len(path)):
            for sign in (1.0, -1.0):
                row = np.zeros(width)
                row[:count], row[seen + step] = -sign * partial[step], -1.0
                rows.append(row)
                most.append(-sign * known[step])
        row = np.zeros(width)
        row[seen : seen + len(path)], row[-1] = lengths, -1.0
        rows.append(row)
        most.append(0.0)
        seen += len(path)
    answer = linprog(
        np.r_[np.zeros(width - 1), 1.0],
        A_ub=np.array(rows),
        b_ub=np.array(most),
        A_eq=np.r_[np.ones(count), np.zeros(width - count)][None, :],
        b_eq=np.ones(1),
        method="highs-ds",
    )
    assert answer.status == 0, answer.message
    return float(answer.fun)


def least_transport_loss(
    columns: Columns,
    subsets: Sequence[Sequence[int]],
    target: Sequence[np.ndarray],
    points: Sequence[Cell],
    *,
    hub: Fraction | None = None,
) -> float:
    """min over weights α of max_S sup_f ⟨f, ν − Aα⟩, without duality.

    The supremum is a maximum over finitely many f (the corners of their polytope): start with none, find the best
    weights against those known, ask for the worst f against these weights, until nothing is gained.
    """
    count = len(points)
    spaces = []
    for subset in subsets:
        chosen = [columns[j] for j in subset]
        reach = diameter(chosen) / 2 if hub is None else hub
        spaces.append((metric(chosen), reach, marginal_matrix(columns, points, subset)))
    cuts, most = [np.r_[np.zeros(count), -1.0]], [0.0]
    for _ in range(2_000):
        answer = linprog(
            np.r_[np.zeros(count), 1.0],
            A_ub=np.array(cuts),
            b_ub=np.array(most),
            A_eq=np.r_[np.ones(count), 0.0][None, :],
            b_eq=np.ones(1),
            method="highs-ds",
        )
        assert answer.status == 0, answer.message
        weights, lower = answer.x[:count], float(answer.fun)
        upper = 0.0
        for (distances, reach, matrix), block in zip(spaces, target, strict=True):
            value, f = lipschitz_supremum(block - matrix @ weights, distances, reach)
            upper = max(upper, value)
            cuts.append(np.r_[-f @ matrix, -1.0])
            most.append(-float(f @ block))
        if upper - lower < 1e-9:
            return upper
    raise AssertionError("the cuts did not close the gap")


# ------------------------------------------------------------ the laws of the noise


def laplace_probability(scale: float, z: int) -> float:
    """P(Z = z) = (1 − p)/(1 + p) · p^{|z|} with p = e^{−1/scale}."""
    p = math.exp(-1 / scale)
    return (1 - p) / (1 + p) * math.exp(-abs(z) / scale)


def laplace_tail(scale: float, t: int) -> Decimal:
    """P(Z > t) for t ≥ 0, term by term in 60 digits until nothing is left to add."""
    with localcontext() as context:
        context.prec = 60
        p = (-1 / Decimal(scale)).exp()
        term = (1 - p) / (1 + p) * p ** (t + 1)
        tail = Decimal(0)
        while term > Decimal("1e-45") * (tail + term):
            tail += term
            term *= p
        return tail


def laplace_variance(scale: float) -> float:
    """Σ z² P(Z = z), summed as it stands."""
    reach = math.ceil(60 * scale) + 1
    return sum(2 * z * z * laplace_probability(scale, z) for z in range(1, reach))


def gaussian_probability(scale: float, z: int) -> float:
    """P(Z = z) = e^{−z²/2scale²} / Σ_k e^{−k²/2scale²}."""
    return math.exp(-((z / scale) ** 2) / 2) / gaussian_mass(scale)


@functools.cache
def gaussian_mass(scale: float) -> float:
    """Σ_k e^{−k²/2scale²} over all integers, summed without loss."""
    reach = math.ceil(40 * scale) + 1
    return 1 + 2 * math.fsum(math.exp(-((k / scale) ** 2) / 2) for k in range(1, reach))


@functools.cache
def gaussian_tail(scale: float, t: int) -> Decimal:
    """P(Z > t) for t ≥ 0, term by term in 60 digits until nothing is left to add."""
    with localcontext() as context:
        context.prec = 60
        return _gaussian_sum(scale, t + 1) / (1 + 2 * _gaussian_sum(scale, 1))


def _gaussian_sum(scale: float, start: int) -> Decimal:
    """Σ_{z ≥ start} q^{z²} with q = e^{−1/2scale²}."""
    q = (-1 / (2 * Decimal(scale) ** 2)).exp()
    term, ratio, total, z = q ** (start * start), q ** (2 * start + 1), Decimal(0), start
    while term > Decimal("1e-50") * (total + term):
        total += term
        term, ratio, z = term * ratio, ratio * q * q, z + 1
    return total


def gaussian_variance(scale: float) -> float:
    """Σ z² P(Z = z), summed as it stands."""
    reach = math.ceil(40 * scale) + 1
    return sum(2 * z * z * gaussian_probability(scale, z) for z in range(1, reach))
