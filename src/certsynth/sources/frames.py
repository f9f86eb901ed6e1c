"""Rows from memory: every data frame that narwhals supports."""

from __future__ import annotations

import datetime
import numbers
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np

from certsynth.errors import InputError
from certsynth.sources.reading import mask_errors, objects, positions, refuse_duplicate_names
from certsynth.sources.storage import Storage, storage_of, storage_of_arrow

_FAILS = "its query fails. Collect it by itself to see why."
SUPPORTED = "a CSV or Parquet file, a DuckDB relation, or a frame of pandas, polars, pyarrow or Spark"


@dataclass(frozen=True, slots=True)
class Frame:
    """A data frame. A lazy one is evaluated in every pass, for the requested columns only."""

    frame: nw.DataFrame[Any] | nw.LazyFrame[Any]
    where: str
    names: tuple[str, ...]

    @classmethod
    def open(cls, data: Any, what: str) -> Frame:
        where = f"{what} ({type(data).__module__.partition('.')[0]}.{type(data).__name__})"
        frame = None
        try:
            frame = nw.from_native(data)
            names = tuple(map(str, frame.collect_schema().names()))
        except Exception:
            if isinstance(frame, nw.LazyFrame):
                raise InputError(f"{where}: {_FAILS}") from None
            refuse_duplicate_names(_native_names(data), where)
            raise InputError(f"{where}: not a table that can be read. Give {SUPPORTED}.") from None
        _refuse_guessing_scans(data, where)
        refuse_duplicate_names(names, where)  # 1 and "1" are two columns to pandas, but not to a schema
        return cls(frame, where, names)

    @property
    def lazy(self) -> bool:
        """Whether the frame is a query that has not been run."""
        return isinstance(self.frame, nw.LazyFrame)

    def storages(self, names: Sequence[str]) -> list[Storage]:
        """Storage classes of these columns; for categoricals, those of their labels."""
        with mask_errors(f"{self.where}: {_FAILS}"):
            kinds = list(self.frame.collect_schema().dtypes())
        places = positions(names, self.names, self.where)
        labelled = (nw.Categorical, nw.Enum)
        return [self._storage_of_labels(i) if kinds[i] in labelled else storage_of(kinds[i]) for i in places]

    def _storage_of_labels(self, i: int) -> Storage:
        """Storage class of the labels of a pandas categorical or an Arrow dictionary; elsewhere labels are texts."""
        native = self.frame.to_native()
        with suppress(Exception):
            if not self.frame.implementation.is_pandas():
                return storage_of_arrow(str(native.schema.field(i).type.value_type))
            kind = native.dtypes.iloc[i]
            if hasattr(kind, "pyarrow_dtype"):
                return storage_of_arrow(str(kind.pyarrow_dtype.value_type))
            return storage_of(nw.from_native(kind.categories.to_series(), series_only=True).dtype)
        return "texts"

    def is_unreadable(self, name: str) -> bool:
        """Whether the type of a column is one of lists, records or bytes."""
        with mask_errors(f"{self.where}: {_FAILS}"):
            kind = list(self.frame.collect_schema().dtypes())[self.names.index(name)]
        return kind.is_nested() or kind == nw.Binary

    def in_utc(self, name: str) -> Frame:
        """The frame with instants of a column in UTC, as other engines read them."""
        with mask_errors(f"{self.where}: {_FAILS}"):
            kind = list(self.frame.collect_schema().dtypes())[self.names.index(name)]
            if getattr(kind, "time_zone", None) is None:
                return self
            own = list(self.frame.collect_schema().names())[self.names.index(name)]
            return replace(self, frame=self.frame.with_columns(nw.col(own).dt.convert_time_zone("UTC")))

    def size_hint(self) -> int | None:
        return len(self.frame) if isinstance(self.frame, nw.DataFrame) else None

    def batches(self, names: Sequence[str], *, rows: int = 500_000) -> Iterator[list[np.ndarray]]:
        return self._read(positions(names, self.names, self.where), rows)

    def _read(self, wanted: Sequence[int], rows: int) -> Iterator[list[np.ndarray]]:
        frame = self.frame
        if isinstance(frame, nw.LazyFrame):
            with mask_errors(f"{self.where}: {_FAILS}"):
                frame = frame.select(*(self.names[i] for i in wanted)).collect()
            wanted = range(len(wanted))
        for start in range(0, len(frame), rows):
            batch = []
            for i in wanted:
                name = str(frame.columns[i])
                with mask_errors(f"{self.where}: column {name!r} cannot be read. Convert it to text."):
                    batch.append(_raw(frame[start : start + rows, i]))
            yield batch


def raw_columns(frame: nw.DataFrame[Any]) -> list[np.ndarray]:
    """All columns of an in-memory frame as arrays for `Column.clean`."""
    return [_raw(series) for series in frame.iter_columns()]


def _refuse_guessing_scans(data: Any, where: str) -> None:
    """Refuse a polars lazy frame that scans CSV or JSON: its types were guessed from the first rows."""
    if type(data).__name__ != "LazyFrame" or not type(data).__module__.startswith("polars."):
        return
    with mask_errors(f"{where}: {_FAILS}"):
        plan = str(data.explain(optimized=False))
    if re.search(r"^\s*(Csv|NDJson) SCAN", plan, re.MULTILINE):
        remedy = "Give the CSV file itself, or a Parquet file with a stated type for each column"
        raise InputError(f"{where}: polars guesses the types of CSV and JSON from rows. {remedy}.")


def _native_names(data: Any) -> list[str]:
    """Column names of a frame that narwhals refuses: duplicates may be the reason."""
    with suppress(Exception):
        return [str(name) for name in getattr(data, "column_names", None) or data.columns]
    return []


def _raw(series: nw.Series[Any]) -> np.ndarray:
    """One column for `Column.clean`: a typed array where nulls can be masked, else Python objects."""
    kind = series.dtype
    if kind.is_nested() or kind == nw.Binary:
        return objects([None] * len(series))
    if kind == nw.Boolean or kind.is_float() or (kind.is_integer() and kind not in (nw.Int128, nw.UInt128)):
        absent = series.is_null().to_numpy()
        if not absent.any():
            return series.to_numpy()
        filled = series.fill_null(False if kind == nw.Boolean else 0).to_numpy()
        return np.ma.masked_array(filled, mask=absent)
    if kind == nw.Date or kind == nw.Datetime:
        # Wall-clock time: a frame shows times in their zone, and the day is the one shown.
        zoned = getattr(kind, "time_zone", None) is not None
        return (series.dt.replace_time_zone(None) if zoned else series).to_numpy()
    if kind in (nw.Categorical, nw.Enum, nw.Unknown):
        # Not to_numpy: it turns nulls of a pyarrow dictionary into the first label.
        pairs = zip(series.to_list(), series.is_null().to_list(), strict=True)
        return objects([None if absent else _shown(value) for value, absent in pairs])
    return objects(series.to_list())


def _shown(value: Any) -> Any:
    """A label as it is printed, for types such as pandas intervals and periods; bytes, lists and maps as they are."""
    if isinstance(value, (bytes, list, tuple, dict, np.ndarray)):
        return value
    return value if isinstance(value, (str, numbers.Number, datetime.date)) else str(value)
