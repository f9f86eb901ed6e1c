"""Cleaned columns in the smallest exact types: unsigned integers whose width follows from the schema alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from certsynth.domain import Category, Column, Ordered, Schema


@dataclass(frozen=True, slots=True)
class PackedColumn:
    """How the cleaned values of a column are packed: as indices, or as the bits of floats if they have none.

    `absent` is the code of a missing value on a line.
    """

    column: Column
    kind: np.dtype[Any]
    absent: int | None = None

    @classmethod
    def of(cls, column: Column) -> PackedColumn:
        """The packing of a column; a missing value needs a code, too.

        >>> PackedColumn.of(Ordered(name="x", high=254)).kind, PackedColumn.of(Ordered(name="x", high=255)).kind
        (dtype('uint8'), dtype('uint16'))
        """
        if isinstance(column, Category):
            return cls(column, _smallest(len(column.labels)))
        last = column.last_index if isinstance(column, Ordered) else None
        if last is None or last >= 2**32 - 1:
            return cls(column, np.dtype(np.uint64))
        return cls(column, _smallest(last + 1), last + 1)

    def pack(self, clean: np.ndarray) -> np.ndarray:
        """Cleaned values as codes. Equal values have equal codes: there is one NaN, and one 0."""
        column = self.column
        if not isinstance(column, Ordered):
            return clean.astype(self.kind)
        missing = np.isnan(clean)
        if self.absent is None:
            return np.where(missing, np.nan, clean + 0.0).view(self.kind)
        codes = column.index(np.where(missing, 0.0, clean))
        codes[missing] = self.absent
        return codes.astype(self.kind)

    def unpack(self, codes: np.ndarray) -> np.ndarray:
        """The inverse of `pack`, bit by bit."""
        column = self.column
        if not isinstance(column, Ordered):
            return codes.astype(np.int64)
        if self.absent is None:
            return codes.view(np.float64)
        missing = codes == self.absent
        clean = column.at_index(np.where(missing, 0, codes).astype(np.int64))
        clean[missing] = np.nan
        return clean


def packed_columns(schema: Schema) -> tuple[PackedColumn, ...]:
    return tuple(map(PackedColumn.of, schema))


def _smallest(largest: int) -> np.dtype[Any]:
    """The smallest unsigned type that holds this number."""
    return np.dtype(next(kind for kind in (np.uint8, np.uint16, np.uint32) if largest <= np.iinfo(kind).max))
