"""Algorithm 1, end to end: count, add noise, project, emit, certify. The only module that sees both ends."""

from __future__ import annotations

import importlib.metadata
import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from certsynth.adaptation import adapted
from certsynth.algorithm.declaration import takes
from certsynth.algorithm.options import ReleaseOptions
from certsynth.artefact import Release
from certsynth.artefact.certificate import (
    ADAPTING,
    COUNTED,
    DISPLACEMENT,
    FORMAT,
    LOSS_OF_ROWS,
    LOSS_OF_SINGLES,
    Certificate,
    choosing,
    measuring,
    path_length,
)
from certsynth.artefact.folder import check_target, manifest
from certsynth.artefact.signature import as_signer
from certsynth.artefact.table import cleaned_table
from certsynth.certificate.plug_in import PlugIn, Proxy, plug_in
from certsynth.certification import choose_table, direct_bounds
from certsynth.domain import Schema
from certsynth.domain.possible import check_rules
from certsynth.errors import CertsynthError, InputError
from certsynth.fitting import Fitting, fitted
from certsynth.layers import measure_layers
from certsynth.limits import check_grid, check_lattice, check_program, check_size
from certsynth.mechanisms import Guarantee, Measurement, Neighbours, Sensitivity
from certsynth.mechanisms.guarantee import decimal_text
from certsynth.mechanisms.ledger import Account
from certsynth.mechanisms.samplers import Noise
from certsynth.mechanisms.scalars import NoisyScalars, measure_scalars
from certsynth.mechanisms.sparse import SparseMeasurement
from certsynth.mechanisms.spending import Spending
from certsynth.planning.choice import RESOLUTIONS, Choice, choose, tables_at
from certsynth.progress import Progress
from certsynth.projection.support import check_full_grid
from certsynth.queries.displacement import Displacement, farthest
from certsynth.queries.fine import LATTICE_COLUMNS, PLACING, FineMarginals
from certsynth.request import usable
from certsynth.settings import DIRECT_BETA, HIDDEN_ROWS, MOST_ROWS, Settings
from certsynth.sources import Source, cleaned, how_many, open_source, rows_of

COUNTING, DISPLACED = "counting rows", "measuring how far rows are from their cells"


@takes(ReleaseOptions)
def release(data: Any, schema: Schema, **options: Unpack[ReleaseOptions]) -> Release:
    """A synthetic table for `data` under differential privacy, with its certificate; written to `out` if given.

    Args:
        data: The private table: the path of a CSV or Parquet file, a DuckDB relation, or a frame of pandas, polars,
            pyarrow or Spark. Columns that the schema does not name are ignored.
        schema: What a row may hold; not a draft.

    Raises:
        InputError: something in the arguments, the schema, the table or the place to write cannot be used. Where
            budget was at stake, a note on the error says what became of it.
        CheckFailed: the ledger has not enough left, or was changed.

    Paper: Algorithm 1 [algorithm], Definition 1 [differential-privacy]
    """
    schema = usable(schema, options["columns"], options["subsets"])
    settings = Settings.of(schema, options)
    out, memory, signer = options["out"], options["memory"], as_signer(options["sign"])
    if out is not None:
        check_target(Path(out))
    elif signer:
        raise InputError("only a folder can be signed: give `out` as well, or sign with Release.save.")
    check_rules(schema)
    _check(schema, settings, memory)
    fine = _fine(schema, settings, memory)
    spending = Spending(
        settings.privacy.charge(settings.neighbours),
        settings.privacy.budget,
        what="release" if out is None else f"release {Path(out).name}",
        account=Account.of(options["ledger"], cap=options["cap"], dataset=options["dataset"], table=schema.name),
        noise=options["noise"],
    )
    with spending:
        made = _made(
            data,
            schema,
            settings,
            fine,
            options["public"],
            seed=options["seed"],
            memory=memory,
            spending=spending,
            progress=options["progress"],
        )
        if out is not None:
            made = made.save(out, sign=signer)
        _commit(spending, made)
    return made


def _commit(spending: Spending, made: Release) -> None:
    """Tell the ledger that a release is out."""
    try:
        spending.commit(None if made.folder is None else manifest(made.folder))
    except CertsynthError as error:
        there = "the release is made" if made.folder is None else f"{made.folder} is written"
        raise type(error)(f"{there}, but its ledger was not told: {error}") from None


def _made(
    data: Any,
    schema: Schema,
    settings: Settings,
    fine: FineMarginals,
    public: Any,
    *,
    seed: int | None,
    memory: int | None,
    spending: Spending,
    progress: Progress,
) -> Release:
    """The release itself, in memory: all that reads rows or draws noise."""
    rng = np.random.default_rng(seed)
    public_rows = None if public is None else read_public(public, schema)

    sys.audit("certsynth.data.open")
    source = open_source(data, what="data")
    source.batches(schema.names)  # reads nothing yet, and tells at once if a column is not there
    hidden = settings.neighbours is Neighbours.ADD_REMOVE

    counting, placing, again = (
        rows_of(source, schema, phase, hidden=hidden, progress=progress) for phase in (COUNTING, PLACING, DISPLACED)
    )
    counted = _counted(source, schema, settings, spending) if settings.count_share else None
    spent: list[tuple[str, Guarantee]] = [] if counted is None else [(COUNTED, counted.cost)]
    known_rows, dimension = _known_rows(source, schema, counted), None
    if settings.low_dimensional:
        found = adapted(counting, schema, settings, known_rows, spending=spending)
        choice, dimension = found.choice, found.grid.dimension
        if found.cost is not None:
            spent.append((ADAPTING, found.cost))
    else:
        choice = choose(schema, settings, known_rows, memory=memory, progress=progress)
    layers = choice.layers
    measurements = measure_layers(counting, schema, layers, noise=spending)
    spending.reserve()  # also where nothing needed noise: it is a release of these rows all the same
    measurement = measurements[-1]

    sys.audit("certsynth.rows.fit")
    tables, cleaned_tables, supports = [], [], []
    for j in range(settings.candidates):
        table, support = fitted(
            measurements,
            schema,
            Fitting.asked(settings, measurement),
            _rows(settings, measurement),
            rng,
            public=public_rows,
            other_loss=j % 2 == 1,
            progress=progress,
        )
        tables.append(table)
        cleaned_tables.append(cleaned_table(schema, table))
        supports.append(support)
        if settings.candidates > 1:
            progress("candidates", j + 1, settings.candidates)
    spent += [(measuring(layer.ways, settings.sparsity), m.cost) for layer, m in zip(layers, measurements, strict=True)]
    chosen = 0
    if settings.candidates > 1:
        share = settings.privacy.budget.share(settings.selection_share)
        spending.take(share)
        chosen, cost = choose_table(
            fine,
            placing,
            cleaned_tables,
            budget=share,
            neighbours=settings.neighbours,
            memory=memory,
            progress=progress,
        )
        spent.append((choosing(settings.candidates), cost))
    table, emitted, support = tables[chosen], cleaned_tables[chosen], supports[chosen]

    displaced = None
    if settings.displacement_share and (most := farthest(schema, measurement.marginals)):
        displaced = measure_scalars(
            [again(Displacement(schema, measurement.marginals))],
            sensitivity=Sensitivity(most, most**2),
            budget=settings.privacy.budget.share(settings.displacement_share),
            neighbours=settings.neighbours,
            noise=spending,
        )
        spent.append((DISPLACEMENT, displaced.cost))

    sys.audit("certsynth.certificate.compute")
    draws_seed = secrets.randbits(128)
    proxies = settings.proxies(layers[-1].resolution)
    plugged: Mapping[Proxy, PlugIn] = {}
    direct_beta = settings.beta
    if not isinstance(measurement, SparseMeasurement):
        direct_beta *= DIRECT_BETA
        plugged = plug_in(
            measurements,
            schema,
            emitted,
            subsets=settings.subsets,
            beta=settings.plug_in_beta,
            draws=settings.draws,
            seed=draws_seed,
            displaced=displaced,
            proxies=proxies,
            progress=progress,
        )
    whole = single = None
    if settings.certificate_share:
        whole, single = direct_bounds(
            fine,
            placing,
            lambda: [emitted],
            budget=settings.privacy.budget.share(settings.certificate_share),
            beta=direct_beta,
            neighbours=settings.neighbours,
            two_sided=False,
            counted=counted,
            noise=spending,
            memory=memory,
            progress=progress,
        )
    certificate = Certificate(confidence=float(settings.confidence), plug_in=plugged, direct=whole, single=single)
    spent += [(what, d.cost) for what, d in ((LOSS_OF_ROWS, whole), (LOSS_OF_SINGLES, single)) if d]
    document = _document(
        schema, settings, choice, measurements, certificate, spent, len(emitted[0]), support, dimension
    )
    document["recompute"] = {
        "plug_in_failure_probability": str(settings.plug_in_beta),
        "draws": settings.draws,
        "seed": f"{draws_seed:032x}",
        "hub": None if proxies.hub is None else str(proxies.hub),
        "end": str(proxies.end),
        "displacement": None
        if displaced is None
        else {
            "value": displaced.values[0],
            "scale": displaced.scale.hex(),
            str(displaced.cost.spent.unit): str(displaced.cost.spent.amount),
        },
    }
    document["ledger"] = spending.reservation
    if not spending.releasable:
        document["releasable"] = False
    return Release(schema=schema, document=document, measurements=tuple(measurements), table=table)


def _check(schema: Schema, settings: Settings, memory: int | None) -> None:
    """Refuse what cannot fit, before the data is opened."""
    if settings.low_dimensional:
        check_grid(schema, settings.resolution)
        return
    least = settings.resolution or min(RESOLUTIONS)
    marginals = tables_at(schema, settings, least, rows=0)
    check_size(marginals, draws=settings.draws, memory=memory)
    if settings.loss is not None:
        check_program(marginals, loss=settings.loss)
    if settings.projection == "full-grid":
        check_full_grid(marginals)


def _fine(schema: Schema, settings: Settings, memory: int | None) -> FineMarginals:
    # Rows at the centres of few cells are compared on a net of these, which is finer than a lattice of three columns.
    lattice_columns = 2 if settings.low_dimensional else LATTICE_COLUMNS
    fine = FineMarginals.of(schema, settings.subsets, lattice_columns=lattice_columns)
    if settings.certificate_share or settings.candidates > 1:
        check_lattice(fine, memory=memory)
    return fine


def _counted(source: Source, schema: Schema, settings: Settings, noise: Noise) -> NoisyScalars:
    """A noisy number of rows: one row more or less changes it by 1."""
    return measure_scalars(
        [how_many(source, schema, COUNTING)],
        sensitivity=Sensitivity(1, 1),
        budget=settings.privacy.budget.share(settings.count_share),
        neighbours=settings.neighbours,
        noise=noise,
    )


def _known_rows(source: Source, schema: Schema, counted: NoisyScalars | None) -> int:
    """How many rows to plan for. Of a noisy number two digits are enough, and plans for it are found again."""
    if counted is None:
        return how_many(source, schema, COUNTING)
    rows = max(counted.values[0], 1)
    return round(rows, 2 - len(str(rows)))


def read_public(public: Any, schema: Schema) -> list[np.ndarray]:
    """Cleaned public rows, read before any budget is spent."""
    batches = list(cleaned(open_source(public, what="public data"), schema))
    if not sum(len(batch[0]) for batch in batches):
        raise InputError("the public data has no rows: leave `public` out.")
    return [np.concatenate(columns) for columns in zip(*batches, strict=True)]


def _rows(settings: Settings, measurement: Measurement) -> int:
    if settings.rows is not None:
        return settings.rows
    if settings.neighbours is Neighbours.ADD_REMOVE or measurement.total is None:
        return HIDDEN_ROWS
    return min(max(measurement.total, 1), MOST_ROWS)


def _document(
    schema: Schema,
    settings: Settings,
    choice: Choice,
    measurements: Sequence[Measurement],
    certificate: Certificate,
    spent: Sequence[tuple[str, Guarantee]],
    rows: int,
    support: str,
    dimension: int | None,
) -> dict[str, Any]:
    """certificate.json: what was done, what it cost, and what can be promised. Nothing else of the rows is in it."""
    guarantee = Guarantee.composed(cost for _, cost in spent)
    measurement, layers = measurements[-1], choice.layers
    return {
        "format": FORMAT,
        "certsynth": importlib.metadata.version("certsynth"),
        "table": {"name": schema.name, "unit": schema.unit, "columns": list(schema.names)},
        "privacy": {
            **settings.privacy.told(guarantee.spent),
            "neighbours": str(guarantee.neighbours),
            "rows": measurement.total if guarantee.neighbours is Neighbours.REPLACE_ONE else None,
            "spent": [{"on": what, str(cost.spent.unit): str(cost.spent.amount)} for what, cost in spent],
        },
        "release": {
            "sparsity": settings.sparsity,
            "workload": settings.workload(schema),
            "resolution": layers[-1].resolution,
            "dimension": dimension,
            "mechanism": measurement.strategy.name,
            "growth": decimal_text(measurement.strategy.growth),
            "order": measurement.strategy.order,
            "path_length": path_length(measurement),
            "measured": [
                {"columns_at_once": layer.ways, "cells": layer.cells, "resolution": layer.resolution}
                for layer in layers
            ],
            "projection": support,
            "loss": settings.loss,
            "detail": settings.detail,
            "candidates": settings.candidates,
            "preset": settings.preset,
            "rows": rows,
        },
        "compared": [
            {
                "mechanism": candidate.strategy.name,
                "resolution": candidate.resolution,
                "discretisation": candidate.discretisation,
                "privatisation": candidate.privatisation,
                "predicted_loss": candidate.predicted,
                "rehearsals": len(candidate.rehearsed),
                "chosen": candidate is choice.best,
            }
            for candidate in choice.candidates
        ],
        "certificate": certificate.to_json(),
    }
