"""The last step: the release with its record, which states the method, its cost, and the certificate."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Mapping
from typing import Any

from certsynth.algorithm.asked import asked_record
from certsynth.algorithm.method import Run
from certsynth.algorithm.values import Chosen, Measured, Outcome
from certsynth.artefact import Release
from certsynth.artefact.certificate import fit_record, path_length
from certsynth.artefact.persons import persons_record
from certsynth.certificate.seed import seed_of
from certsynth.domain import Ordered, Schema
from certsynth.domain.reading_entries import describe_reading
from certsynth.mechanisms import Guarantee, Neighbours
from certsynth.mechanisms.guarantee import decimal_text
from certsynth.planning.choice import Design
from certsynth.projection.diagnostic import diagnose_fit
from certsynth.queries.marginals import Subset
from certsynth.record.record import (
    FORMAT,
    ComparedRecord,
    LayerRecord,
    MethodRecord,
    PairRecord,
    PrivacyRecord,
    RecomputeRecord,
    Record,
)
from certsynth.record.table import DerivedRecord, ReadingRecord, TableRecord


def record(this: Run, outcome: Outcome) -> Release:
    """Return the release in memory. Its record contains only outputs of mechanisms and public knowledge."""
    own = this.schema.measured_part(outcome.fitted.rows)
    made = Record(
        format=FORMAT,
        certsynth=importlib.metadata.version("certsynth"),
        table=table_record(this.schema),
        privacy=_privacy(this, outcome),
        asked=asked_record(this.asked, this.settings),
        release=_method(this, outcome),
        compared=_compared(outcome.chosen),
        certificate=outcome.certified.certificate,
        fit=fit_record(diagnose_fit(outcome.measured.measurements, this.schema.measured, own)),
        recompute=_recompute(this, outcome.measured),
        ledger=this.means.spending.reservation,
    )
    return Release(
        schema=this.schema,
        record=made,
        measurements=outcome.measured.measurements,
        table=outcome.fitted.table,
        releasable=this.means.spending.releasable,
        rows=outcome.fitted.rows,
    )


def table_record(schema: Schema) -> TableRecord:
    """Record the table that a schema describes."""
    mapped = {each.column for each in schema.derivations if each.expression is None}
    derived = tuple(
        DerivedRecord(name, sources, "map" if name in mapped else "expression")
        for name, sources in schema.sources.items()
    )
    by_ratios = tuple(column.name for column in schema if isinstance(column, Ordered) and column.grid)
    options: dict[str, Any] = {column.name: tuple(describe_reading(column)) for column in schema}
    readings = tuple(ReadingRecord(name, stated) for name, stated in options.items() if stated)
    return TableRecord(
        schema.name,
        schema.unit,
        tuple(schema.names),
        derived=derived or None,
        readings=readings or None,
        by_ratios=by_ratios or None,
        persons=None if schema.persons is None else persons_record(schema.persons),
    )


def _privacy(this: Run, outcome: Outcome) -> PrivacyRecord:
    """Record the cost of the release, composed of the costs that mechanisms returned."""
    of_row = Guarantee.composed(part.cost for part in outcome.spent)
    protection = this.settings.protection
    told: Mapping[str, Any] = this.settings.privacy.describe(protection.per_unit(of_row.spent))
    total = outcome.measured.last.total if of_row.neighbours is Neighbours.REPLACE_ONE else None
    persons = protection.persons is not None
    return PrivacyRecord(
        **told,
        neighbours=protection.neighbours.value,
        rows=None if persons else total,
        spent=tuple(step.to_record(protection) for step in outcome.spent),
        persons=total // protection.parts if persons and total is not None else None,
    )


def _method(this: Run, outcome: Outcome) -> MethodRecord:
    """Record the measurements and the method that fitted rows."""
    settings, measurement, layers = this.settings, outcome.measured.last, outcome.chosen.choice.layers
    strategy, names = measurement.strategy, this.schema.names
    workload = tuple(tuple(names[j] for j in subset) for subset in settings.covered) if settings.named else None
    named: Mapping[str, Any] = {  # plain texts, which the record declares as literals
        "mechanism": strategy.name,
        "order": strategy.order,
        "projection": outcome.fitted.support,
        "loss": settings.loss,
    }
    return MethodRecord(
        sparsity=max(map(len, settings.covered)),
        workload=workload,
        resolution=outcome.measured.resolution,
        dimension=outcome.chosen.dimension,
        growth=decimal_text(strategy.growth),
        path_length=path_length(measurement),
        measured=tuple(LayerRecord(layer.ways, layer.cells, layer.resolution) for layer in layers),
        detail=settings.detail,
        candidates=settings.candidates,
        preset=settings.preset,
        rows=len(outcome.fitted.rows[0]),
        pairs=_pairs(this.schema.measured, outcome.chosen),
        omitted_rules=this.omitted_rules or None,
        **named,
    )


def _pairs(schema: Schema, chosen: Chosen) -> tuple[PairRecord, ...] | None:
    """Record the pairs that were chosen by their dependence."""
    known = chosen.dependence
    return pair_records(
        schema, ((s, layer.resolution, known[s]) for layer in chosen.choice.layers for s in layer.subsets if s in known)
    )


def pair_records(schema: Schema, pairs: Iterable[tuple[Subset, int | None, float]]) -> tuple[PairRecord, ...] | None:
    """Pairs with their groups and dependence, the most dependent first; None if there are none."""
    found = [
        PairRecord(tuple(schema.names[j] for j in subset), groups, dependence)
        for subset, groups, dependence in sorted(pairs, key=lambda pair: (-pair[2], pair[0]))
        if groups is not None
    ]
    return tuple(found) or None


def _compared(chosen: Chosen) -> tuple[ComparedRecord, ...]:
    """Record all candidates of the choice."""
    return tuple(_compared_design(each, chosen=each is chosen.choice.best) for each in chosen.choice.designs)


def _compared_design(design: Design, *, chosen: bool) -> ComparedRecord:
    name: Any = design.strategy.name
    return ComparedRecord(
        mechanism=name,
        resolution=design.resolution,
        discretisation=float(design.discretisation),
        privatisation=float(design.privatisation),
        predicted_loss=float(design.predicted),
        rehearsals=len(design.rehearsed),
        chosen=chosen,
    )


def _recompute(this: Run, measured: Measured) -> RecomputeRecord:
    """Record the inputs that anybody needs to recompute the plug-in certificate."""
    proxies = this.settings.proxies(measured.resolution)
    return RecomputeRecord(
        plug_in_failure_probability=this.settings.plug_in_beta,
        draws=this.settings.draws,
        seed=f"{seed_of(measured.measurements):032x}",
        hub=proxies.hub,
        end=proxies.end,
    )
