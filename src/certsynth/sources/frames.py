"""Rows from memory: every data frame that narwhals knows."""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from certsynth.errors import InputError
from certsynth.sources.reading import objects, own_words, positions, refuse_twins

_FAILS = "its query fails. Collect it by itself to see why."
SUPPORTED = "a CSV or Parquet file, a DuckDB relation, or a frame of pandas, polars, pyarrow or Spark"


@dataclass(frozen=True, slots=True)
class Frame:
    """A data frame. A lazy one is run once per reading, for the columns asked for."""

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
            refuse_twins(_native_names(data), where)
            raise InputError(f"{where}: not a table that can be read. Give {SUPPORTED}.") from None
        refuse_twins(names, where)  # 1 and "1" are two columns to pandas, but not to a schema
        return cls(frame, where, names)

    @property
    def lazy(self) -> bool:
        """Whether it is a query that is yet to be run."""
        return isinstance(self.frame, nw.LazyFrame)

    def size_hint(self) -> int | None:
        return len(self.frame) if isinstance(self.frame, nw.DataFrame) else None

    def batches(self, names: Sequence[str], *, rows: int = 500_000) -> Iterator[list[np.ndarray]]:
        return self._read(positions(names, self.names, self.where), rows)

    def _read(self, wanted: Sequence[int], rows: int) -> Iterator[list[np.ndarray]]:
        frame = self.frame
        if isinstance(frame, nw.LazyFrame):
            with own_words(f"{self.where}: {_FAILS}"):
                frame = frame.select(*(self.names[i] for i in wanted)).collect()
            wanted = range(len(wanted))
        for start in range(0, len(frame), rows):
            batch = []
            for i in wanted:
                name = str(frame.columns[i])
                with own_words(f"{self.where}: column {name!r} cannot be read. Convert it to text."):
                    batch.append(_raw(frame[start : start + rows, i]))
            yield batch


def raw_columns(frame: nw.DataFrame[Any]) -> list[np.ndarray]:
    """All columns of a frame in memory, for `Column.clean`."""
    return [_raw(series) for series in frame.iter_columns()]


def _native_names(data: Any) -> list[str]:
    """Names of a frame that narwhals refuses: twins may be the reason."""
    with suppress(Exception):
        return [str(name) for name in getattr(data, "column_names", None) or data.columns]
    return []


def _raw(series: nw.Series[Any]) -> np.ndarray:
    """One column for `Column.clean`: typed where a null can be told from every value, else Python objects."""
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
        # The clock on the wall: a frame shows its times in their zone, and their day is the one it shows.
        zoned = getattr(kind, "time_zone", None) is not None
        return (series.dt.replace_time_zone(None) if zoned else series).to_numpy()
    if kind in (nw.Categorical, nw.Enum, nw.Unknown):
        # Not to_numpy: of a pyarrow dictionary it makes nulls the first label.
        pairs = zip(series.to_list(), series.is_null().to_list(), strict=True)
        return objects([None if absent else _shown(value) for value, absent in pairs])
    return objects(series.to_list())


def _shown(value: Any) -> Any:
    """Labels such as pandas' intervals and periods are meant as they are printed; bytes, lists and maps are absent."""
    if isinstance(value, (bytes, list, tuple, dict, np.ndarray)):
        return None
    return value if isinstance(value, (str, numbers.Number, datetime.date)) else str(value)
