"""Averages of user-supplied functions with a stated Lipschitz constant."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from certsynth.answers.basis import Basis
from certsynth.answers.places import scale
from certsynth.answers.queries import name_suggestion
from certsynth.domain import Category, Column, Ordered
from certsynth.errors import InputError

Function = Callable[..., Any]


def average(
    basis: Basis,
    function: Function,
    columns: Sequence[str],
    *,
    lipschitz: float | None,
    slopes: Mapping[str, float] | None,
    bounds: tuple[float, float] | None,
    row_by_row: bool,
) -> tuple[float, float, float, float]:
    r"""Estimate, low, high and bound of the average of a function, whose error is at most L·b.

    L is the Lipschitz constant for the metric of the certificate. If `lipschitz` refers to columns of length 1, L is at
    most lipschitz / (smallest weight). For slopes in own units, :math:`|f(x) − f(y)| ≤ Σ_j s_j |x_j − y_j|`, it is at
    most :math:`Σ_j s_j · range_j / w_j`.
    """
    known = _checked_columns(basis, columns)
    if (lipschitz is None) == (slopes is None):
        raise InputError("state how fast the function changes: either lipschitz=… or slopes={…}.")
    low, high = _checked_bounds(bounds)
    if slopes is not None:
        constant = _from_slopes(known, slopes, high - low)
    else:
        assert lipschitz is not None
        constant = _checked_constant(lipschitz, "lipschitz") / min(float(column.weight) for column in known)
    bound = basis.bound(columns)
    estimate = float(np.mean(_values(basis, function, columns, low, high, row_by_row=row_by_row)))
    return estimate, max(low, estimate - constant * bound), min(high, estimate + constant * bound), bound


def _checked_columns(basis: Basis, columns: Sequence[str]) -> list[Column]:
    if isinstance(columns, str) or not columns or not all(isinstance(name, str) for name in columns):
        raise InputError('name the columns that the function looks at: columns=("age", "income").')
    for name in columns:
        if name not in basis.columns:
            raise InputError(f"no column is called {name!r:.60}{name_suggestion(name, basis.schema.names)}.")
    if len(set(columns)) < len(columns):
        raise InputError("a column is named twice; name each once.")
    return [basis.columns[name] for name in columns]


def _checked_bounds(bounds: tuple[float, float] | None) -> tuple[float, float]:
    if bounds is None:
        return -math.inf, math.inf
    try:
        low, high = (float(end) for end in bounds)
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    if not low <= high:
        raise InputError("bounds are two numbers, the smaller one first: bounds=(0, 1).")
    return low, high


def _checked_constant(value: Any, what: str) -> float:
    try:
        constant = float(value)
    except (TypeError, ValueError):
        constant = math.nan
    if not 0 <= constant < math.inf:
        raise InputError(f"{what} must be a non-negative number.")
    return constant


def _from_slopes(columns: Sequence[Column], slopes: Mapping[str, float], span: float) -> float:
    """Lipschitz constant from slopes: another label is a step of 1; a missing value may change the function by
    `span`."""
    if not isinstance(slopes, Mapping) or set(slopes) != {column.name for column in columns}:
        raise InputError("slopes must name the columns of the function, each with a number in its own units.")
    constant = 0.0
    for column in columns:
        slope = _checked_constant(slopes[column.name], f"the slope of {column.name!r:.60}")
        if isinstance(column, Ordered):
            constant += slope * scale(column)
        elif isinstance(column, Category):
            constant += slope / float(column.min_label_distance)
    lightest = min((float(column.weight) for column in columns if column.missing), default=None)
    if lightest is None:
        return constant
    if not math.isfinite(span):
        raise InputError("a column may have missing values, which slopes do not cover; give bounds=(low, high).")
    return max(constant, span / lightest)


def _values(
    basis: Basis, function: Function, columns: Sequence[str], low: float, high: float, *, row_by_row: bool
) -> np.ndarray:
    """Evaluate the function on the synthetic rows."""
    arrays = [_shown(basis, name) for name in columns]
    if row_by_row:
        found: Any = [function(*row) for row in zip(*(array.tolist() for array in arrays), strict=True)]
    else:
        found = function(*arrays)
    if np.ma.isMaskedArray(found) and np.ma.getmaskarray(found).any():
        raise InputError("the function returns no value for missing inputs; let it return a number there as well.")
    try:
        values = np.asarray(found, dtype=float)
    except (TypeError, ValueError):
        values = np.empty(())
    if values.shape != (basis.size,):
        raise InputError(
            "the function must return one number for each row: it receives whole columns as arrays, or single values "
            "with row_by_row=True."
        )
    if not np.isfinite(values).all() or (values < low).any() or (values > high).any():
        raise InputError("the function returns values that are not finite or outside its bounds; widen them.")
    return values


def _shown(basis: Basis, name: str) -> Any:
    """The values of a column as written; a masked array if they may be missing."""
    decoded = basis.columns[name].decode(basis.clean[name])
    return decoded if basis.columns[name].missing else decoded.data
