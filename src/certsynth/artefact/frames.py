"""The rows of a release as data frames. Each library is imported only when its kind of frame is requested.

Labels carry the whole list of the schema, in its order; columns with missing values have nullable types. Frames are
copies: changing one does not change the release.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NoReturn

import numpy as np

from certsynth.artefact.table import Table
from certsynth.base.clock import SECONDS
from certsynth.domain import Category, Column, Ordered, Schema
from certsynth.errors import InputError

FrameKind = Literal["pandas", "polars", "arrow", "dict"]

FRAMES: tuple[FrameKind, ...] = ("pandas", "polars", "arrow", "dict")


def to_pandas(schema: Schema, table: Table, rows: Sequence[np.ndarray]) -> Any:
    """Return a pandas frame: nullable `Int64` and `boolean` if values may be missing; labels are categories."""
    try:
        import pandas as pd
    except ImportError:
        _refuse_without("pandas")

    def series(column: Column, values: np.ma.MaskedArray[Any, Any], clean: np.ndarray) -> Any:
        absent = np.ma.getmaskarray(values)
        if (labels := _labels(column)) is not None:
            codes = np.where(absent, -1, np.where(absent, 0, clean).astype(np.int64))
            kind: Any = pd.Categorical
            return kind.from_codes(codes, categories=list(labels), ordered=_is_ordered(column))
        if values.dtype.kind == "M":
            return np.where(absent, np.datetime64("NaT"), values.data).astype("datetime64[s]")
        if values.dtype.kind == "f":
            return np.where(absent, np.nan, values.data)
        if not column.missing:
            return values.data.copy()
        nullable = pd.arrays.BooleanArray if values.dtype.kind == "b" else pd.arrays.IntegerArray
        return nullable(values.data.copy(), absent.copy())

    return pd.DataFrame(_columns(schema, table, rows, series), copy=False)


def to_polars(schema: Schema, table: Table, rows: Sequence[np.ndarray]) -> Any:
    """Return a polars frame: dates are `Date`, times `Datetime`, labels an `Enum` of all labels in the schema."""
    try:
        import polars as pl
    except ImportError:
        _refuse_without("polars")

    def series(column: Column, values: np.ma.MaskedArray[Any, Any], clean: np.ndarray) -> Any:
        absent = np.ma.getmaskarray(values)
        labels = _labels(column)
        present = _typed(values.data) if labels is None else np.where(absent, 0, clean).astype(np.int64)
        indices = pl.Series(column.name, present)
        if absent.any():
            indices = indices.set(pl.Series(absent), None)
        if labels is None:
            return indices
        return pl.Series(column.name, list(labels), dtype=pl.Enum(list(labels))).gather(indices)

    return pl.DataFrame(list(_columns(schema, table, rows, series).values()))


def to_arrow(schema: Schema, table: Table, rows: Sequence[np.ndarray]) -> Any:
    """Return an Arrow table: dates are `date32`, times `timestamp[us]`, labels dictionaries of all in the schema."""
    try:
        import pyarrow as pa
    except ImportError:
        _refuse_without("pyarrow")

    def array(column: Column, values: np.ma.MaskedArray[Any, Any], clean: np.ndarray) -> Any:
        absent = np.ma.getmaskarray(values)
        if (labels := _labels(column)) is not None:
            codes = pa.array(np.where(absent, 0, clean).astype(np.int32), mask=absent)
            return pa.DictionaryArray.from_arrays(
                codes, pa.array(list(labels), pa.string()), ordered=_is_ordered(column)
            )
        return pa.array(_typed(values.data), mask=absent)

    return pa.table(_columns(schema, table, rows, array))


def to_frame(kind: FrameKind | None, schema: Schema, table: Table, rows: Sequence[np.ndarray]) -> Any:
    """Return the rows as the requested kind of frame; by default pandas if it is installed, else a dict."""
    if kind is None:
        try:
            return to_pandas(schema, table, rows)
        except InputError:
            kind = "dict"
    if kind not in FRAMES:
        raise InputError(f"frame must be one of {', '.join(FRAMES)}; got {kind!r:.40}.")
    if kind == "dict":
        return {name: values.copy() for name, values in table.items()}
    return {"pandas": to_pandas, "polars": to_polars, "arrow": to_arrow}[kind](schema, table, rows)


def _columns(
    schema: Schema,
    table: Table,
    rows: Sequence[np.ndarray],
    convert: Callable[[Column, np.ma.MaskedArray[Any, Any], np.ndarray], Any],
) -> dict[str, Any]:
    return {c.name: convert(c, table[c.name], clean) for c, clean in zip(schema, rows, strict=True)}


def _typed(values: np.ndarray) -> np.ndarray:
    """A copy; times are in microseconds, as in the Parquet file, since polars has no seconds."""
    return values.astype("datetime64[us]") if values.dtype == SECONDS.dtype else values.copy()


def _labels(column: Column) -> tuple[str, ...] | None:
    """Return all labels of a column in order (cleaned values are indices into them); None for other columns."""
    if isinstance(column, Category):
        return None if column.kind == "boolean" else column.labels
    return column.values if isinstance(column, Ordered) and column.kind == "ordinal" else None


def _is_ordered(column: Column) -> bool:
    return isinstance(column, Ordered)


def _refuse_without(package: str) -> NoReturn:
    raise InputError(f"a frame of {package} needs the package {package}: pip install {package}.") from None
