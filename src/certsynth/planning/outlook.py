"""What bound to expect of one candidate: a middle and a range, from made-up tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from certsynth.domain import Schema
from certsynth.layers import Layer
from certsynth.parallel import run
from certsynth.planning.choice import Candidate, blank_layers
from certsynth.planning.rehearsal import certified_loss, rehearse, slack
from certsynth.planning.tables import made_up, strengths
from certsynth.planning.thinning import thinned
from certsynth.progress import Progress, silent
from certsynth.queries import Marginals
from certsynth.queries.displacement import displacement
from certsynth.queries.fine import MOVE_UNITS
from certsynth.queries.marginals import Subset
from certsynth.settings import Settings

EASIER, WIDER = 0.92, 1.25
"""Survey tables lose a little less than made-up ones, by this factor; what is expected lies between the smallest and
the largest rehearsal, each moved outward by the other."""

SPREAD_INSIDE, SPREAD_NOISE = 0.7, 0.4
"""What rows of a linear program lose that are spread inside even cells: of what a cell may lose, and of the noise."""

FIRST_SEED = 100
"""Tables are others than those that the choice saw."""

_ROWS = 2_000  # of a table that is only read, not released


@dataclass(frozen=True, slots=True)
class Outlook:
    """The bound to expect with its range, the slack in it, and how many rehearsals it comes from."""

    middle: float
    low: float
    high: float
    slack: float = 0.0
    rehearsals: int = 0

    def of(self, ratio: float) -> Outlook:
        """The outlook of another candidate, whose loss should be so many times this one's."""
        scale = (self.slack + ratio * (self.middle - self.slack)) / self.middle if self.middle else 1.0
        return Outlook(scale * self.middle, scale * self.low, scale * self.high, self.slack)


def is_rehearsed(settings: Settings, candidate: Candidate) -> bool:
    """Whether releases are rehearsed: particles are, where the direct certificate speaks."""
    return bool(settings.certificate_share) and candidate.layers[-1].cells != "even"


def expected(
    schema: Schema,
    settings: Settings,
    rows: int,
    candidate: Candidate,
    privatisation: float,
    progress: Progress = silent,
) -> Outlook:
    """By rehearsals where there are some; else terms are added up. `privatisation` is that of the certificate."""
    if is_rehearsed(settings, candidate):
        return _rehearsed(schema, settings, rows, candidate, progress)
    if settings.certificate_share:
        extra = slack(schema, settings, rows)
        loss = SPREAD_INSIDE * candidate.discretisation + SPREAD_NOISE * candidate.privatisation
        return Outlook(loss + extra, loss / 2 + extra / 2, 2 * (loss + extra), extra)
    return _plug_in(schema, settings, candidate, privatisation)


def _rehearsed(schema: Schema, settings: Settings, rows: int, candidate: Candidate, progress: Progress) -> Outlook:
    tables = _tables(len(settings.subsets))
    tasks = [
        (schema, settings.subsets, candidate.layers, rows, strength, FIRST_SEED + i)
        for i, strength in enumerate(strengths(tables))
    ]
    found = run(_rehearsed_loss, tasks, work=10**9, phase="rehearsing the release", progress=progress)
    losses, extra = EASIER * np.array(found), slack(schema, settings, rows)
    low, high = losses.min() / WIDER + extra / 2, losses.max() * WIDER + 2 * extra
    return Outlook(float(np.median(losses)) + extra, float(low), float(high), extra, tables)


def _rehearsed_loss(
    schema: Schema, subsets: Sequence[Subset], layers: Sequence[Layer], rows: int, strength: float, seed: int
) -> float:
    schema, layers, subsets = thinned(schema, layers, subsets)
    return certified_loss(schema, subsets, rehearse(schema, layers, rows, strength=strength, seed=seed))


def _tables(subsets: int) -> int:
    """On how many made-up tables a release is rehearsed whose certificate covers so many subsets."""
    return 5 if subsets <= 30 else 4 if subsets <= 100 else 3


def _plug_in(schema: Schema, settings: Settings, candidate: Candidate, privatisation: float) -> Outlook:
    """The terms of the plug-in certificate: what rows lose to the centres of cells and noise, the fit, and what is
    written beside the centres. Rows are as far from the noisy counts as the truth is.
    """
    marginals = blank_layers(schema, candidate.layers, 0)[-1].marginals
    bounds = []
    for i, strength in enumerate(strengths(5)):
        table = made_up(schema, _ROWS, strength=strength, rng=np.random.default_rng(FIRST_SEED + i))
        written = [c.centres(g)[c.to_cells(x, g)] for c, x, g in zip(schema, table, marginals.cells, strict=True)]
        inside = candidate.discretisation
        if settings.displacement_share:
            inside = min(inside, _mean_displacement(schema, marginals, table))
        bounds.append(inside + privatisation + candidate.privatisation + _mean_displacement(schema, marginals, written))
    return Outlook(float(np.median(bounds)), min(bounds) / WIDER, max(bounds) * WIDER)


def _mean_displacement(schema: Schema, marginals: Marginals, table: Sequence[np.ndarray]) -> float:
    return displacement(schema, marginals, [table]) / (MOVE_UNITS * len(table[0]))
