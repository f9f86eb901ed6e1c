"""What a draft knows about one column after a pass over the rows: its distinct texts, and how they can be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from certsynth.domain.cleaning import Raw, as_labels, as_numbers
from certsynth.sources.diagnosis import (
    MAX_WORDS,
    MISSING_WORDS,
    SENTINELS,
    date_formats,
    is_code,
    line_with,
    number_styles,
)
from certsynth.sources.outcomes import figures_as_read
from certsynth.sources.reading import objects

MAX_DISTINCT_TEXTS = 100_000
"""Most distinct texts of a column that are held in memory."""

MIN_NUMBERS_BESIDE_WORDS = 10
"""Distinct numbers or dates among which a few unknown words are taken for codes of missing values."""


@dataclass(slots=True)
class ReadingSoFar:
    """A way to read all texts so far as numbers or dates, with the range of the values."""

    kind: str
    entries: Mapping[str, Any]
    low: float = np.inf
    high: float = -np.inf
    bulk_low: float = np.inf
    bulk_high: float = -np.inf
    whole: bool = True

    def take(self, raw: Raw) -> bool:
        """Widen the range by these values; False if one of them cannot be read. The bulk is without sentinels."""
        values = figures_as_read(line_with(self.kind, self.entries), raw)
        if np.isnan(values).any():
            return False
        finite = values[np.isfinite(values)]
        bulk = finite[~np.isin(finite, _SENTINEL_NUMBERS)]
        self.low, self.high = (float(finite.min(initial=self.low)), float(finite.max(initial=self.high)))
        self.bulk_low = float(bulk.min(initial=self.bulk_low))
        self.bulk_high = float(bulk.max(initial=self.bulk_high))
        self.whole &= bool((values == np.floor(values)).all())  # infinities are clamped later
        return True


_SENTINEL_NUMBERS = [float(text) for text in SENTINELS if text.count("-") < 2]


@dataclass(slots=True)
class ColumnSummary:
    """The distinct texts of a column with their rows, and once there are too many, the readings that still hold.

    `words` are texts that mean missing in many tables; in a column of labels they are labels like others.
    """

    texts: Counter[str] = field(default_factory=Counter)
    absent: int = 0
    rows: int = 0
    crowded: bool = False
    readings: list[ReadingSoFar] | None = None
    words: set[str] = field(default_factory=set)

    def look(self, raw: Raw) -> None:
        """Add a batch of raw values."""
        self.rows += len(raw)
        is_typed = raw.dtype.kind in "iufM"
        if is_typed and self.crowded:
            self._continue_with(raw)
            return
        fresh = _count_texts(raw)
        self.absent += fresh.pop(None, 0) + fresh.pop("", 0)
        texts = [text for text in fresh if text is not None]
        for text in texts:
            if text in self.texts or len(self.texts) < MAX_DISTINCT_TEXTS:
                self.texts[text] += fresh[text]
            else:
                self.crowded = True
        if self.crowded:
            self._narrow(texts)

    def _continue_with(self, raw: Raw) -> None:
        """Add typed values to a column that has too many distinct ones to list."""
        plain = np.ma.compressed(raw)
        there = plain[~np.isnat(plain)] if raw.dtype.kind == "M" else plain[~np.isnan(plain)]
        self.absent += len(raw) - len(there)
        self.readings = [each for each in self.readings or [] if each.take(there)]

    def _narrow(self, texts: Sequence[str]) -> None:
        """Keep the readings that hold for these texts, too."""
        if self.readings is None:
            self.readings = self._first_readings()
        words = {text for text in texts if text.strip().casefold() in MISSING_WORDS}
        self.words |= words
        present = objects([text for text in texts if text not in words and text.strip()])
        coded = any(map(is_code, texts))
        self.readings = [each for each in self.readings if not (coded and each.kind == "number") and each.take(present)]

    def _first_readings(self) -> list[ReadingSoFar]:
        """The ways to read all texts that are held, the simplest first."""
        known = {text for text in self.texts if text.strip().casefold() in MISSING_WORDS}
        texts = [text for text in self.texts if text not in known and text.strip()]
        words = [text for text in texts if not any(letter.isdigit() for letter in text)]
        unknown = {text for text, number in zip(words, as_numbers(objects(words)), strict=True) if np.isnan(number)}
        if 0 < len(unknown) <= MAX_WORDS and len(texts) >= len(unknown) + MIN_NUMBERS_BESIDE_WORDS:
            texts = [text for text in texts if text not in unknown]
            known |= unknown
        if not texts:
            return []
        self.words = known
        found = [ReadingSoFar("number", style) for style in number_styles(texts)]
        days = ReadingSoFar("date", {})
        raw = objects(texts)
        plain_days = [days] if days.take(raw) else []
        found += [ReadingSoFar("date", {"format": form}) for form in date_formats(texts)]
        found = [each for each in found if each.take(raw)]
        # Plain numbers come first, then ISO dates, then texts that need an option.
        return sorted([*found, *plain_days], key=lambda each: (len(each.entries) > 0, each.kind == "date"))

    def finish(self) -> list[ReadingSoFar]:
        """The readings that hold for all rows, the simplest first."""
        if self.readings is None:
            self.readings = self._first_readings()
        return self.readings


def _count_texts(raw: Raw) -> Counter[str | None]:
    """The distinct values of a batch as texts."""
    if raw.dtype.kind not in "iufM":
        return Counter(as_labels(raw))
    values, rows = np.unique(np.ma.compressed(raw), return_counts=True)
    found: Counter[str | None] = Counter()
    for text, times in zip(as_labels(values), rows.tolist(), strict=True):
        found[text] += times
    found[None] += len(raw) - int(rows.sum())
    return found
