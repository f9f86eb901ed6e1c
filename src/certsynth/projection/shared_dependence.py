"""Remove noise from tables of two columns: values of a column that resemble each other in one table do so in others.

Whether two occupations have similar incomes, and whether they need similar schooling, are two questions with related
answers. Rows that were fitted once show which values of a column behave alike; with this knowledge, each noisy table
says more. This reads noisy counts and fitted rows only. It shapes the synthetic rows and enters no certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from certsynth.base.arrays import Floats, Ints
from certsynth.projection.group_masses import halving_contrasts

MAX_CELLS = 1_100
"""Cells of a column up to which this is done: time grows with the square."""

STRENGTH_POWER = 0.5
"""A table enters the covariances of its columns with this power of its strength: strong dependence says more about
them, but should not hide how weaker tables differ."""

MAX_STEPS, TOLERANCE = 100, 1e-4
"""Conjugate gradients: steps, at most, and the relative residual at which they end."""

MAX_MISFIT, MAX_DEVIATIONS = 1.15, 3.0
"""The model is used for a table unless its squared distance from the most likely one, as a multiple of what the model
expects, exceeds the first number by the second times the standard deviation that it has by chance. Two columns of which
one is nearly a function of the other are unlike all other tables, for instance."""

LEAST_VARIANCE = 1e-18
"""The least variance of the noise: numbers stay finite without noise."""

DECIMALS = 10
"""Results are rounded, so that processors that add numbers in another order give the same rows."""


@dataclass(frozen=True, slots=True, eq=False)
class NoisyTable:
    """A noisy table of two columns, as shares of the rows, with draws of its error.

    `groups` maps the cells in which rows are coded to cells of the table, and `shares` are the distributions of the two
    columns. `levels` are those of `contrast_levels` for noise on nested squares, None for noise alike on all cells.
    """

    columns: tuple[int, int]
    groups: tuple[Ints, Ints]
    shares: tuple[Floats, Floats]
    values: Floats
    errors: Floats
    levels: tuple[Ints, Ints] | None


def contrast_levels(size: int, *, on_line: bool) -> Ints:
    """The level of each contrast of `size` cells, the sum of all first; labels are apart at every level.

    >>> contrast_levels(4, on_line=True).tolist(), contrast_levels(3, on_line=False).tolist()
    ([0, 1, 2, 2], [0, 0, 0])
    """
    if not on_line:
        return np.zeros(size, np.int64)
    return np.concatenate([[0], np.sort(halving_contrasts(size)[1]) + 1])


def sharpen(tables: Sequence[NoisyTable], rows: Ints, rng: np.random.Generator) -> list[tuple[Floats, Floats]]:
    r"""The most likely table for each noisy one, with draws of its error, given rows that were fitted to them.

    A table that the model does not suit stays as it is.

    The model: what a table has beyond independence is normal around 0, with covariance

    .. math:: strength \cdot A_i \otimes A_j

    where :math:`A_i` says how values of column i resemble each other in all tables, and the noise is added to that.
    Strength and covariances are those of the fitted `rows`.
    """
    sizes = [len(groups) for groups in _groups_by_column(tables)]
    dependence = {columns: _dependence(rows, sizes, columns) for columns in dict.fromkeys(t.columns for t in tables)}
    covariances = _covariances(dependence, sizes)
    return [_sharpen(table, covariances, float((dependence[table.columns] ** 2).sum()), rng) for table in tables]


def _groups_by_column(tables: Sequence[NoisyTable]) -> list[Ints]:
    """The groups of each column in some table; none for columns without a table."""
    found = {j: groups for table in tables for j, groups in zip(table.columns, table.groups, strict=True)}
    return [found.get(j, np.empty(0, np.int64)) for j in range(max(found, default=-1) + 1)]


def _dependence(rows: Ints, sizes: Sequence[int], columns: tuple[int, int]) -> Floats:
    """The shares of the rows in the cells of two columns, minus those that independent columns would have."""
    first, second = columns
    shape = sizes[first], sizes[second]
    table = np.bincount(rows[:, first] * shape[1] + rows[:, second], minlength=shape[0] * shape[1]).reshape(shape)
    shares = table / len(rows)
    return np.asarray(shares - np.outer(shares.sum(axis=1), shares.sum(axis=0)))


def _covariances(dependence: dict[tuple[int, int], Floats], sizes: Sequence[int]) -> list[Floats]:
    """How values of each column resemble each other in its tables, with trace 1."""
    found = [np.zeros((size, size)) for size in sizes]
    for (first, second), table in dependence.items():
        strength = float((table**2).sum())
        if strength > 0:
            found[first] += strength ** (STRENGTH_POWER - 1) * (table @ table.T)
            found[second] += strength ** (STRENGTH_POWER - 1) * (table.T @ table)
    return [covariance / max(float(np.trace(covariance)), LEAST_VARIANCE) for covariance in found]


def _sharpen(
    table: NoisyTable, covariances: Sequence[Floats], strength: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """The most likely table, with draws of its error: of tables that are drawn from the model and measured.

    The noisy table itself where the model does not suit it.
    """
    bases = [_basis(len(shares), table.levels is not None) for shares in table.shares]
    first, second = (
        basis @ _sum_groups(covariances[j], groups, len(basis)) @ basis.T
        for basis, j, groups in zip(bases, table.columns, table.groups, strict=True)
    )
    independent = np.outer(*table.shares)
    shape = independent.shape
    seen = bases[0] @ (table.values.reshape(shape) - independent) @ bases[1].T
    noise = bases[0] @ table.errors.reshape(-1, *shape) @ bases[1].T
    variances = _variances(noise, table.levels)
    drawn = strength**0.5 * (_root(first) @ rng.standard_normal(noise.shape) @ _root(second).T)

    def spread(z: Floats) -> Floats:
        return np.asarray(strength * (first @ z @ second))

    diagonal = strength * np.outer(np.diag(first), np.diag(second))
    measured = np.concatenate([seen[None], drawn + noise])
    likely = spread(_solve(spread, diagonal, variances, measured))
    misfits = ((measured - likely) ** 2 / variances).sum(axis=(1, 2))
    if misfits[0] > (MAX_MISFIT + MAX_DEVIATIONS * (2 / seen.size) ** 0.5) * misfits[1:].mean():
        return table.values, table.errors
    likely[1:] -= drawn
    if (likely[1:] ** 2).sum() > (noise**2).sum():  # the model says less than the table
        return table.values, table.errors
    found = bases[0].T @ likely @ bases[1]
    found[0] += independent
    found = np.round(found.reshape(len(found), -1), DECIMALS)
    return found[0], found[1:]


def _basis(size: int, contrasts: bool) -> Floats:
    """The sum of all cells and the contrasts of halves, or the cells themselves; orthonormal."""
    if not contrasts:
        return np.eye(size)
    found, levels = halving_contrasts(size)
    return np.concatenate([np.full((1, size), size**-0.5), found[np.argsort(levels, kind="stable")]])


def _sum_groups(covariance: Floats, groups: Ints, size: int) -> Floats:
    """The covariance of sums over groups of cells."""
    found = np.zeros((size, size))
    np.add.at(found, (groups[:, None], groups[None]), covariance)
    return found


def _variances(noise: Floats, levels: tuple[Ints, Ints] | None) -> Floats:
    """The variance of the noise of each contrast: all of the same level have the same."""
    squares = np.mean(noise**2, axis=0)
    kinds = np.zeros(squares.shape, np.int64) if levels is None else np.maximum(levels[0][:, None], levels[1][None])
    means = np.bincount(kinds.ravel(), squares.ravel()) / np.maximum(np.bincount(kinds.ravel()), 1)
    return np.maximum(means[kinds], LEAST_VARIANCE)


def _root(covariance: Floats) -> Floats:
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _solve(spread: Callable[[Floats], Floats], diagonal: Floats, variances: Floats, seen: Floats) -> Floats:
    """Solve spread(z) + variances · z = seen, for all that was seen at once, by conjugate gradients."""
    z, residual = np.zeros_like(seen), seen.copy()
    scale = 1 / (diagonal + variances)
    direction = scale * residual
    size = _inner(residual, direction)
    enough = TOLERANCE**2 * size
    for _ in range(MAX_STEPS):
        if (size <= enough).all():
            break
        image = spread(direction) + variances * direction
        step = _ratio(size, _inner(direction, image))
        z += step * direction
        residual -= step * image
        scaled = scale * residual
        before, size = size, _inner(residual, scaled)
        direction = scaled + _ratio(size, before) * direction
    return z


def _inner(a: Floats, b: Floats) -> Floats:
    return np.asarray((a * b).sum(axis=(1, 2), keepdims=True))


def _ratio(a: Floats, b: Floats) -> Floats:
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)
