"""The candidates that mechanism and resolution were chosen from, and the chart that compares them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from certsynth.record.record import ComparedRecord, PrivacyRecord, Record
from certsynth.report import choice_words as words
from certsynth.report import numerals

MAX_LISTED_CANDIDATES = 60
"""Candidates in the table, best first; certificate.json has them all."""
MAX_LOSS_RATIO = 4
"""The scale ends at this multiple of the smallest loss: much worse candidates would flatten all other lines."""

Json = dict[str, Any]


def choice_view(record: Record) -> Json:
    """Return every candidate with its terms, and lines to draw if resolutions differ."""
    found = sorted(map(_candidate, record.compared), key=_best_first)
    (chosen,) = (each for each in found if each["chosen"])
    drawn = _drawn(found, chosen)
    hidden = _is_hidden(record.privacy)
    said = words.only_candidate(chosen) if len(found) == 1 else words.chosen(chosen, len(found), hidden=hidden)
    dimension = record.release.dimension
    if dimension is not None:
        said = words.adapted(chosen, len(found), dimension)
    if record.release.pairs is not None:
        said = words.chosen_by_scores(len(record.release.pairs))
    return {
        "title": _title(record),
        "introduction": f"{words.MORE_CELLS} {said}" if drawn else said,
        "drawn": drawn,
        "number": len(found),
        "caption": words.choice_table(len(found), MAX_LISTED_CANDIDATES),
        "rows": found[:MAX_LISTED_CANDIDATES],
        "mechanisms": [{"name": m, "text": words.MECHANISMS[m]} for m in _names(found) if m in words.MECHANISMS],
    }


def _title(record: Record) -> str:
    if record.release.dimension is not None or record.release.pairs is not None:
        return words.CHOSEN_PRIVATELY
    return words.CHOSEN_BY_NOISY_ROWS if _is_hidden(record.privacy) else words.CHOSEN_BEFORE


def _is_hidden(privacy: PrivacyRecord) -> bool:
    """Whether the number of rows is private, and that of persons who count the same."""
    return privacy.rows is None and privacy.persons is None


def _candidate(stated: ComparedRecord) -> Json:
    resolution = stated.resolution
    return {
        "mechanism": numerals.text(stated.mechanism, most=18),
        "resolution": resolution,
        "cells": "full detail" if resolution is None else numerals.count(resolution),
        "discretisation_text": numerals.figure(stated.discretisation),
        "noise_text": numerals.figure(stated.privatisation),
        "rehearsals": stated.rehearsals,
        "loss": stated.predicted_loss,
        "loss_text": numerals.figure(stated.predicted_loss),
        "chosen": stated.chosen,
    }


def _best_first(candidate: Json) -> tuple[float, str, int]:
    return candidate["loss"], candidate["mechanism"], candidate["resolution"] or 0


def _names(found: Sequence[Json]) -> list[str]:
    """List mechanisms in the order of `words.MECHANISMS`, then unknown ones."""
    there = {each["mechanism"] for each in found}
    return [m for m in words.MECHANISMS if m in there] + sorted(there - set(words.MECHANISMS))


def _drawn(found: Sequence[Json], chosen: Json) -> Json | None:
    """Return a line for each mechanism, and a scale from 0 up to the losses worth comparing."""
    resolutions = sorted({each["resolution"] for each in found if each["resolution"] is not None})
    if len(resolutions) < 2 or any(each["resolution"] is None for each in found):
        return None
    losses = [each["loss"] for each in found]
    ticks = _ticks(min(max(losses), max(MAX_LOSS_RATIO * min(losses), chosen["loss"])))
    above = sum(loss > ticks[-1]["at"] for loss in losses)
    lines = [
        {
            "mechanism": name,
            "points": sorted((c for c in found if c["mechanism"] == name), key=lambda c: c["resolution"]),
            "chosen": name == chosen["mechanism"],
        }
        for name in _names(found)
    ]
    rehearsed = any(each["rehearsals"] for each in found)
    return {
        "resolutions": resolutions,
        "ticks": ticks,
        "lines": lines,
        "caption": words.choice_caption(rehearsed=rehearsed, above=above, top=ticks[-1]["label"]),
        "described": words.choice_described(lines, chosen),
    }


def _ticks(largest: float) -> list[Json]:
    """Return round numbers from 0 up to the first that is at least `largest`."""
    largest = largest or 1.0  # a table of one cell loses nothing
    step = numerals.step(largest / 4)
    values = [float(f"{i * step:.12g}") for i in range(math.ceil(largest / step) + 1)]
    return [{"at": value, "label": numerals.plain(value)} for value in values]
