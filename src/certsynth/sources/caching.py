"""Tables in files that are slow to parse: the cleaned rows of a small file are kept in memory after the first pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from certsynth.domain.schema import Schema

MAX_CACHED_BYTES = 2**26
"""Largest file, and largest set of cleaned rows, in bytes, that is kept in memory. Parsing text takes longer than
counting, and a release makes several passes over the rows."""


def is_small(path: Path) -> bool:
    """Whether the cleaned rows of a file may be kept. A packed file may still prove too large."""
    return path.stat().st_size <= MAX_CACHED_BYTES


@dataclass(frozen=True, slots=True)
class ParsedFile(ABC):
    """A file whose rows are parsed in Python. Messages call it `where`."""

    path: Path
    where: str
    is_small: bool = field(default=False, kw_only=True)
    kept: dict[tuple[Schema, int], list[list[np.ndarray]]] = field(
        default_factory=dict, compare=False, repr=False, kw_only=True
    )

    @abstractmethod
    def batches(self, names: Sequence[str], *, rows: int = 500_000) -> Iterator[list[np.ndarray]]:
        """Yield raw columns, as `Source.batches` does."""

    def size_hint(self) -> int | None:
        return None

    def cleaned(self, schema: Schema, *, rows: int = 500_000) -> Iterator[list[np.ndarray]]:
        """Batches of cleaned columns. Where a small file was read to its end, they come from memory again."""
        if kept := self.kept.get((schema, rows)):
            return iter(kept)
        batches = self.batches(schema.names, rows=rows)
        clean = ([column.clean(raw) for column, raw in zip(schema, batch, strict=True)] for batch in batches)
        return self._caching((schema, rows), clean) if self.is_small else clean

    def _caching(self, key: tuple[Schema, int], batches: Iterable[list[np.ndarray]]) -> Iterator[list[np.ndarray]]:
        held, room = [], MAX_CACHED_BYTES
        for batch in batches:
            room -= sum(column.nbytes for column in batch)
            if room >= 0:
                held.append(batch)
            else:  # the file is compressed, or numbers take more bytes than their texts
                held.clear()
            yield batch
        if room >= 0:
            self.kept[key] = held
