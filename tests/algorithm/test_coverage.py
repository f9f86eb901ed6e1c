"""All numbers of a release hold together as often as it says: losses, shares, totals, moments and noisy cells."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from certsynth import Release, evaluate, release
from certsynth.answers.noisy_cells import CellTable
from certsynth.artefact.certificate import noisy_cells
from certsynth.certificate.coverage import statistic_queries
from certsynth.certificate.direct import LOSS_UNITS
from certsynth.certificate.statistics import StatisticMaxima
from certsynth.mechanisms.samplers import Noise
from certsynth.queries.marginals import CellCounts, Marginals
from certsynth.queries.tally import tally_batches
from small import NATIVE, LyingNoise, failures_allowed, native

ROWS = 60
TABLE = native(ROWS)
CLEAN = [column.clean(TABLE[column.name].to_numpy()) for column in NATIVE]
MODES = [
    {"neighbours": "replace-one", "epsilon": 3},
    {"neighbours": "add-remove", "epsilon": 3},
    {"neighbours": "add-remove", "rho": 2},
]


def boxes_of(table: CellTable) -> Iterator[np.ndarray]:
    """All products of intervals of cells, and of sets of few labels."""
    sides = []
    for cells in table.cells:
        size, line = cells.size, len(cells.places)
        every = (np.array(each) for each in itertools.product((False, True), repeat=size) if any(each))
        sides.append([each for each in every if np.abs(np.diff([0, *each[:line].astype(int), 0])).sum() <= 2])
    for sets in itertools.product(*sides):
        yield sets[0] if len(sets) == 1 else sets[0][:, None] & sets[1]


def too_small(made: Release) -> bool:
    """Whether any number that the release states is below the truth."""
    certificate = made.record.certificate
    assert certificate.statistics is not None
    losses = evaluate(TABLE, made.to_polars(), NATIVE)
    singles = evaluate(TABLE, made.to_polars(), NATIVE, sparsity=1)
    if losses.lower > certificate.bound + 1e-9 or singles.lower > certificate.single_column_bound + 1e-9:
        return True
    errors = StatisticMaxima()  # compared with all sets in certificate/test_statistics.py
    for query in statistic_queries(NATIVE, made.subsets):
        errors.update(query, query.count([CLEAN]), query.count([made.rows]))
    stated = certificate.statistics
    if any(error > getattr(stated, name) * ROWS * LOSS_UNITS + 1 for name, error in errors.losses.items()):
        return True
    noisy = noisy_cells(made.schema, certificate, made.measurements)
    if not noisy.fewest_rows <= ROWS <= noisy.most_rows:
        return True
    return any(outside(table) for table in noisy.tables)


def outside(table: CellTable) -> bool:
    """Whether some box of cells has a number of rows that its noisy counts exclude."""
    names = [column.name for column in NATIVE]
    subset = tuple(names.index(column.name) for column in table.columns)
    cells = [column.cells(1) for column in NATIVE]
    for j, each in zip(subset, table.cells, strict=True):
        cells[j] = each
    counted = tally_batches([CLEAN], CellCounts(NATIVE, Marginals(cells=tuple(cells), subsets=(subset,))))
    exact = counted.blocks[0].reshape(table.counts.shape)
    for box in boxes_of(table):
        low, high = table.rows(box)
        if not low - 1e-9 <= exact[box].sum() <= high + 1e-9:
            return True
    return False


def failures(runs: int, confidence: float, asked: dict[str, object], noise: Noise | None = None) -> int:
    plain = {"mechanism": "identity", "resolution": 4, "certificate_share": "0.3", "rows": 40, "confidence": confidence}
    return sum(too_small(release(TABLE, NATIVE, **plain, **asked, noise=noise, seed=run)) for run in range(runs))


QUICK = [pytest.param(8, 0.8, MODES[0]), pytest.param(8, 0.5, MODES[2])]
SLOW = [
    pytest.param(230, confidence, asked, marks=pytest.mark.slow) for confidence in (0.5, 0.8, 0.95) for asked in MODES
]


@pytest.mark.parametrize(("runs", "confidence", "asked"), [*QUICK, *SLOW])
def test_all_numbers_hold_together_as_often_as_they_say(runs, confidence, asked):
    """2,070 releases in the slow version."""
    assert failures(runs, confidence, asked) <= failures_allowed(runs, 1 - confidence)


@pytest.mark.parametrize("asked", [MODES[0], *(pytest.param(each, marks=pytest.mark.slow) for each in MODES[1:])])
def test_noise_that_is_wider_than_it_says_would_be_seen(asked):
    assert failures(12, 0.95, asked, LyingNoise(8)) > failures_allowed(12, 0.05)
