"""The default method: single columns at full detail, then tables of several columns in cells derived from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from certsynth.algorithm.fitting import FitRequest, fit_table
from certsynth.algorithm.layers import measure_layers
from certsynth.algorithm.settings import SPLITS, Defaults, Settings, common_settings
from certsynth.algorithm.sizes import check_program, check_size
from certsynth.algorithm.task import Task
from certsynth.algorithm.values import Chosen, ExpectedLayer, Means, PrivateTable
from certsynth.artefact.steps import Expected
from certsynth.artefact.table import Table
from certsynth.base.progress import Progress
from certsynth.certificate.plug_in import TRANSPORT_COLUMNS
from certsynth.domain import Schema
from certsynth.errors import InputError
from certsynth.mechanisms import Measurement
from certsynth.mechanisms.scalars import NoisyScalars
from certsynth.planning.choice import RESOLUTIONS, choose, tables_at
from certsynth.planning.plan import Plan, plan_layers, predict_quickly
from certsynth.projection.emit import Detail
from certsynth.projection.support import check_full_grid


class Layered:
    """Measure tables of all covered subsets; fit rows by particles or by a linear program."""

    name = "layered"
    defaults = Defaults()
    linear_program_loss = "transport"
    states_dimension = False

    def settings(self, schema: Schema, options: Mapping[str, Any]) -> Settings:
        asked = common_settings(self.name, schema, options, self.defaults, sparsity=options["sparsity"])
        projection, loss = asked.projection, asked.loss
        _check_public(projection, public=options["public"] is not None)
        if projection == "auto" and loss is None and self.fits_particles(asked):
            projection = "particles"
        if loss is not None or projection != "particles":
            loss = self._loss(loss, projection, asked.sparsity)
        # Emit cell centres if only the plug-in certificate applies (it charges every offset); else spread values.
        detail: Detail = "spread" if asked.certificate_share else "centre"
        is_open = options["certificate_share"] is None and bool(asked.certificate_share)
        return replace(asked, projection=projection, loss=loss, detail=detail, share_is_open=is_open)

    def _loss(self, loss: str | None, projection: str, sparsity: int) -> str:
        """Return the loss that a linear program minimises."""
        if loss is None:
            return self.linear_program_loss if sparsity <= TRANSPORT_COLUMNS else "path"
        if projection == "particles":
            raise InputError("particles have a loss of their own; leave `loss` out, or choose another `projection`.")
        if loss == "transport" and sparsity > TRANSPORT_COLUMNS:
            raise InputError(
                f'the transport loss is for at most {TRANSPORT_COLUMNS} columns at once; choose `loss="path"`.'
            )
        return loss

    def fits_particles(self, settings: Settings) -> bool:
        """Whether particles are the default: their rows need the direct certificate."""
        return bool(settings.certificate_share)

    def check(self, schema: Schema, settings: Settings, *, memory: int | None) -> None:
        marginals = tables_at(Task(schema, settings, rows=0), settings.resolution or min(RESOLUTIONS))
        check_size(marginals, draws=settings.draws, memory=memory)
        if settings.loss is not None:
            check_program(marginals, loss=settings.loss)
        if settings.projection == "full-grid":
            check_full_grid(marginals)

    def choose(self, task: Task, private: PrivateTable, means: Means) -> Chosen:
        return Chosen(choose(task, memory=means.memory, progress=means.progress))

    def expected_choice(self, settings: Settings, compared: int) -> list[Expected]:
        return []  # plans are made from public knowledge

    def expected_layers(
        self, schema: Schema, settings: Settings, measurements: Sequence[Measurement], scores: NoisyScalars | None
    ) -> tuple[ExpectedLayer, ...]:
        return tuple(ExpectedLayer(*layer) for layer in settings.layers(split_of(settings, measurements)))

    def measure(self, task: Task, chosen: Chosen, private: PrivateTable, means: Means) -> tuple[Measurement, ...]:
        return tuple(measure_layers(private.counting, task.schema, chosen.choice.layers, noise=means.spending))

    def fit(self, request: FitRequest) -> tuple[Table, str]:
        return fit_table(request)

    def plan(self, task: Task, *, memory: int | None, progress: Progress) -> Plan:
        return plan_layers(task, memory=memory, progress=progress)

    def predict(self, task: Task) -> float:
        return predict_quickly(task)


def split_of(settings: Settings, measurements: Sequence[Measurement]) -> Fraction:
    """The split of the measurement budget among layers, inferred from their costs; a layer without cost fits any."""
    budget = settings.measurement_budget.amount
    spent = [m.cost.spent.amount for m in measurements]
    for split in SPLITS:
        shares = [share for *_, share in settings.layers(split)]
        if len(shares) == len(spent) and all(not a or a == budget * s for a, s in zip(spent, shares, strict=True)):
            return split
    return SPLITS[0]


def _check_public(projection: str, *, public: bool) -> None:
    if projection == "public" and not public:
        raise InputError("the projection public needs public rows: give `public`, or choose another `projection`.")
    if public and projection in ("full-grid", "drawn"):
        raise InputError(
            f"public rows are not used by the projection {projection}; leave out `public` or `projection`."
        )


LAYERED = Layered()
