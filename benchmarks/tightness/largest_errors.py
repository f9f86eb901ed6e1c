"""What certified errors are made of: the largest true errors of shares, group totals and moments, by column and pair.

A certificate states one number for all columns, or all pairs: the largest error of any, plus slack for noise. Here the
same maxima are computed for each column and each pair by itself. Not private.
"""

from __future__ import annotations

import itertools
import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from certsynth import Release, Schema
from certsynth.certificate.skipping import LOSS_UNITS
from certsynth.certificate.statistics import MAXIMA, StatisticMaxima
from certsynth.queries.fine import LatticeQuery
from certsynth.sources import cleaned, open_source

Batches = list[list[np.ndarray]]


def certified_errors(made: Release) -> dict[str, float]:
    """The errors that a release certifies, and the slack that each of them contains."""
    certificate = made.record.certificate
    found = {name: getattr(certificate.statistics, name) for name in MAXIMA}
    direct = certificate.direct
    slack = {} if direct is None else {"slack": direct.terms.slack}
    return {name: float(value) for name, value in found.items() if value is not None} | slack


def true_errors(made: Release, data: Path) -> dict[str, dict[str, float]]:
    """The largest true error of each kind over all columns or pairs, and the median over these."""
    schema = made.schema
    private = list(cleaned(open_source(str(data)), schema))
    synthetic = [list(made.rows)]
    found: dict[str, list[float]] = defaultdict(list)
    names = range(len(schema.names))
    for subset in [*itertools.combinations(names, 1), *itertools.combinations(names, 2)]:
        for name, error in _errors_of(schema, subset, private, synthetic).items():
            found[name].append(error)
    return {name: {"largest": max(each), "median": statistics.median(each)} for name, each in found.items()}


def _errors_of(schema: Schema, subset: Sequence[int], private: Batches, synthetic: Batches) -> dict[str, float]:
    """The largest errors of one column, or of one pair."""
    fine, maxima = LatticeQuery.of(schema, [tuple(subset)]), StatisticMaxima()
    rows = sum(len(batch[0]) for batch in private)
    maxima.update(fine, fine.count(private), fine.count(synthetic))
    return {name: loss / (LOSS_UNITS * rows) for name, loss in maxima.losses.items()}
