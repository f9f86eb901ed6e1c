"""The method of appendix D: a grid for the rows' own dimension, whose heavy cells get rows at their centres."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from certsynth.algorithm.fitting import FitRequest
from certsynth.algorithm.low_dimensional.adaptation import choose_grid
from certsynth.algorithm.low_dimensional.heavy_cells import heavy_cells
from certsynth.algorithm.low_dimensional.plan import plan_grids, predict_quickly
from certsynth.algorithm.request import checked_budget
from certsynth.algorithm.settings import Defaults, Settings, common_settings
from certsynth.algorithm.sizes import check_grid
from certsynth.algorithm.task import Task
from certsynth.algorithm.values import Chosen, ExpectedLayer, Means, PrivateTable
from certsynth.artefact.steps import RESOLUTION_CHOICE, Expected
from certsynth.artefact.table import Table, decoded_table
from certsynth.base.progress import Progress
from certsynth.domain import Schema
from certsynth.errors import InputError
from certsynth.mechanisms import Measurement, Sensitivity, Unit
from certsynth.mechanisms.scalars import NoisyScalars
from certsynth.mechanisms.sparse import LowDimensional as GridStrategy
from certsynth.mechanisms.sparse import measure_sparse
from certsynth.planning.plan import Plan
from certsynth.projection.emit import emit
from certsynth.projection.repair import repair_rows
from certsynth.queries.occupied import Occupancy, joint_grid

LATTICE_COLUMNS = 2
"""Subsets of more columns are compared on a net: rows lie at the centres of few cells, so a net of these is finer than
a lattice of three columns."""

CHOICE_SHARE = Fraction(1, 10)
"""Share of the budget that chooses the resolution where the rows' dimension is unknown."""


class LowDimensional:
    """One grid of all columns. `signed`: negative counts are kept like positive ones, as in the paper.

    Paper: Theorem 3 [low-dimensional], Theorem 4 [low-dimensional-general]
    """

    states_dimension = True

    def __init__(self, *, signed: bool) -> None:
        self.signed = signed
        self.name = "low-dimensional-l1" if signed else "low-dimensional"

    def settings(self, schema: Schema, options: Mapping[str, Any]) -> Settings:
        self._check(schema, options)
        settings = common_settings(self.name, schema, options, Defaults(), sparsity=len(schema))
        projection = "l1-ball" if self.signed else "simplex"
        # Rows do not fill their cell: its centre is nearer to them than other places in it are.
        return replace(
            settings,
            projection=projection,
            detail="centre",
            choice_share=self._choice_share(settings),
            lattice_columns=LATTICE_COLUMNS,
        )

    def _check(self, schema: Schema, options: Mapping[str, Any]) -> None:
        """One grid of all columns fixes much: refuse what it has no use for."""
        if checked_budget(options["epsilon"], options["delta"], options["rho"]).budget.unit is not Unit.EPSILON:
            raise InputError(
                f"the mechanism {self.name} has Laplace noise, for `epsilon` alone: leave `delta` and `rho` out."
            )
        useless = {
            "a `sparsity` other than that of all columns": options["sparsity"] not in (None, len(schema)),
            "`subsets`": options["subsets"] is not None,
            "`projection`": options["projection"] != "auto",
            "`loss`": options["loss"] is not None,
            "`public`": options["public"] is not None,
            "`preset`": options["preset"] is not None,
            "`candidates`": options["candidates"] != 1,
        }
        for name, given in useless.items():
            if given:
                raise InputError(
                    f"the mechanism {self.name} is for statistics of all columns at once, and has no use for {name}: "
                    "leave that out. `columns` names the columns that matter."
                )
        if options["certificate_share"] == 0:
            raise InputError(
                f"for the mechanism {self.name} only the direct certificate can speak: `certificate_share` must be "
                "above 0."
            )

    def _choice_share(self, settings: Settings) -> Fraction:
        """In the paper's way every support size has as much as the counts: of d + 2 equal parts, d + 1."""
        if settings.resolution is not None:
            return Fraction(0)
        if not self.signed:
            return CHOICE_SHARE
        return (1 - settings.certificate_share - settings.count_share) * Fraction(
            settings.sparsity + 1, settings.sparsity + 2
        )

    def check(self, schema: Schema, settings: Settings, *, memory: int | None) -> None:
        check_grid(schema, settings.resolution)

    def choose(self, task: Task, private: PrivateTable, means: Means) -> Chosen:
        return choose_grid(private.counting, task, spending=means.spending)

    def expected_choice(self, settings: Settings, compared: int) -> list[Expected]:
        if not settings.choice_share or compared == 1:
            return []
        amount = settings.budget.amount * settings.choice_share
        if not self.signed:  # scores, each with a sensitivity of its own
            return [Expected(RESOLUTION_CHOICE, amount, None, noised=False)]
        return [Expected(RESOLUTION_CHOICE, amount, Sensitivity(compared, compared), numbers=compared)]

    def expected_layers(
        self, schema: Schema, settings: Settings, measurements: Sequence[Measurement], scores: NoisyScalars | None
    ) -> tuple[ExpectedLayer, ...]:
        return tuple(ExpectedLayer(*layer) for layer in settings.layers(Fraction(1)))

    def measure(self, task: Task, chosen: Chosen, private: PrivateTable, means: Means) -> tuple[Measurement, ...]:
        (layer,) = chosen.choice.layers
        assert isinstance(layer.strategy, GridStrategy)
        assert layer.resolution is not None
        (counts,) = private.counting(Occupancy(task.schema, [joint_grid(task.schema, layer.resolution)]))
        return (measure_sparse(counts, layer.strategy, budget=layer.budget, noise=means.spending),)

    def fit(self, request: FitRequest) -> tuple[Table, str]:
        request.progress("fitting", 0, 1)
        (measurement,), schema, rng = request.measurements, request.schema, request.rng
        points, weights = heavy_cells(measurement, signed=self.signed)
        cells, detail = measurement.marginals.cells, request.how.detail
        clean = emit(points, weights, request.rows, schema=schema, cells=cells, detail=detail, rng=rng)
        request.progress("fitting", 1, 1)
        return repair_rows(schema, decoded_table(schema, clean), rng), request.how.projection

    def plan(self, task: Task, *, memory: int | None, progress: Progress) -> Plan:
        return plan_grids(task)

    def predict(self, task: Task) -> float:
        return predict_quickly(task)


ON_SIMPLEX, IN_L1_BALL = LowDimensional(signed=False), LowDimensional(signed=True)
