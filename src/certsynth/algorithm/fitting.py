"""Step 3 and emission: from noisy measurements to a synthetic table as it will be written. No private row is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from certsynth.algorithm.settings import Settings
from certsynth.artefact.table import Table, decoded_table
from certsynth.base.arrays import Ints
from certsynth.base.progress import Progress, silent
from certsynth.certificate.plug_in import TRANSPORT_COLUMNS, Proxies
from certsynth.domain import Groups, Schema
from certsynth.mechanisms import FullMeasurement, Measurement, as_full_measurements
from certsynth.projection.emit import Detail, emit
from certsynth.projection.path_program import PathProgram
from certsynth.projection.repair import repair_rows
from certsynth.projection.support import drawn_support, fits_full_grid, full_grid, public_support
from certsynth.projection.synthesis import synthesise
from certsynth.projection.target import Projection, Target, as_probabilities
from certsynth.projection.transport_program import TransportProgram
from certsynth.queries.marginals import Marginals

LINEAR_PROGRAMS = ("auto", "public", "full-grid", "drawn")
"""Projections that weight points from somewhere; `auto` leaves open where they come from."""

MEAN_LOSS_WEIGHT = 0.01
"""What the mean loss over all subsets counts beside the largest one in Step 3 (docs/explanation/projection.md)."""


@dataclass(frozen=True, slots=True)
class Fitting:
    """How rows are made of measurements: what is asked for, or what certificate.json says was done."""

    projection: str
    loss: str | None
    sparsity: int
    detail: Detail
    proxies: Proxies

    @classmethod
    def from_settings(cls, settings: Settings, measurement: Measurement) -> Fitting:
        cells = measurement.marginals.cells
        return cls(
            projection=settings.projection,
            loss=settings.loss,
            sparsity=settings.sparsity,
            detail=settings.detail,
            proxies=settings.proxies(next((c.steps for c in cells if not isinstance(c, Groups)), None)),
        )


@dataclass(frozen=True, slots=True, eq=False)
class FitRequest:
    """What Step 3 works on: measurements to agree with, how to fit rows to them, and how many rows to make.

    `public` are cleaned public rows. With `other_loss` a linear program minimises the other of the two losses, which
    makes another candidate from the same counts.
    """

    measurements: tuple[Measurement, ...]
    schema: Schema
    how: Fitting
    rows: int
    rng: np.random.Generator
    public: Sequence[np.ndarray] | None = None
    other_loss: bool = False
    progress: Progress = silent


def fit_table(request: FitRequest) -> tuple[Table, str]:
    """Make a table that obeys the rules from full measurements; also returns the name of its support."""
    schema, how, rng, progress = request.schema, request.how, request.rng, request.progress
    measurements = as_full_measurements(request.measurements)
    assert measurements is not None
    if how.projection == "particles":
        clean = synthesise(measurements, schema, request.rows, rng, public=request.public, progress=progress)
        return repair_rows(schema, decoded_table(schema, clean), rng), "particles"
    progress("fitting", 0, 1)
    measurement = measurements[-1]
    points, support = _support(measurement, how, schema, request.public, rng)
    tight = (how.loss == "transport") != (request.other_loss and how.sparsity <= TRANSPORT_COLUMNS)
    solver: Projection = PathProgram(measurement.strategy.order, float(how.proxies.end), MEAN_LOSS_WEIGHT)
    if tight:
        solver = TransportProgram(how.proxies.hub, MEAN_LOSS_WEIGHT)
    weights = as_probabilities(solver.weights(Target.of(measurement), points), len(points))
    cells = measurement.marginals.cells
    clean = emit(points, weights, request.rows, schema=schema, cells=cells, detail=how.detail, rng=rng)
    progress("fitting", 1, 1)
    return repair_rows(schema, decoded_table(schema, clean), rng), support


def _support(
    measurement: FullMeasurement,
    how: Fitting,
    schema: Schema,
    public: Sequence[np.ndarray] | None,
    rng: np.random.Generator,
) -> tuple[Ints, str]:
    """Points that may carry weight, and the name of where they come from."""
    marginals = measurement.marginals
    name = support_name(how.projection, marginals, public=public is not None)
    if name == "public":
        assert public is not None
        codes = [c.to_cells(x, cells) for c, x, cells in zip(schema, public, marginals.cells, strict=True)]
        return public_support(codes, rng), name
    return full_grid(marginals) if name == "full-grid" else drawn_support(Target.of(measurement), rng), name


def support_name(projection: str, marginals: Marginals, *, public: bool) -> str:
    """Where the points of a projection come from. Projections that are no linear program have one name for both."""
    if projection not in LINEAR_PROGRAMS:
        return projection
    if public:
        return "public"
    if projection == "full-grid" or (projection != "drawn" and fits_full_grid(marginals)):
        return "full-grid"
    return "drawn"
