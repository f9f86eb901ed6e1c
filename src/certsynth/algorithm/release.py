"""`release`: check what is asked, open the table, run Algorithm 1, write the folder, tell the ledger."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from certsynth.algorithm.declaration import takes
from certsynth.algorithm.method import Run, checked_settings, method_named
from certsynth.algorithm.options import ReleaseOptions
from certsynth.algorithm.request import omitted_rules, select_released_columns
from certsynth.algorithm.settings import Settings
from certsynth.algorithm.sizes import check_lattice
from certsynth.algorithm.steps import run
from certsynth.algorithm.values import Means, PrivateTable
from certsynth.artefact import Release
from certsynth.artefact.folder import check_target, manifest
from certsynth.artefact.signature import as_signer
from certsynth.base.progress import Progress
from certsynth.domain import Schema
from certsynth.domain.possible import check_rules
from certsynth.errors import CertsynthError, InputError
from certsynth.mechanisms import Neighbours
from certsynth.mechanisms.ledger import Account
from certsynth.mechanisms.spending import Spending
from certsynth.queries.fine import PLACING_PHASE, LatticeQuery
from certsynth.sources import cleaned, count_rows, open_source, rows_of
from certsynth.sources.persons import keep_rows

COUNTING, DISPLACED = "counting rows", "measuring how far rows are from their cells"


@takes(ReleaseOptions)
def release(data: Any, schema: Schema, **options: Unpack[ReleaseOptions]) -> Release:
    """A synthetic table for `data` under differential privacy, with its certificate; written to `out` if given.

    Args:
        data: the private table: the path of a CSV, JSON lines, Excel or Parquet file, a DuckDB relation, or a frame of
            pandas, polars, pyarrow or Spark. Columns that the schema does not name are ignored.
        schema: what a row may hold; not a draft.

    Raises:
        InputError: something in the arguments, the schema, the table or the place to write cannot be used. Where
            budget was at stake, a note on the error says what became of it.
        CheckFailed: the ledger has not enough left, or was changed.

    Paper: Algorithm 1 [algorithm], Definition 1 [differential-privacy]
    """
    given, schema = schema, select_released_columns(schema, options)
    settings = checked_settings(schema, options)
    out, memory, progress = options["out"], options["memory"], options["progress"]
    signer = as_signer(options["sign"])
    if out is not None:
        check_target(Path(out))
    elif signer:
        raise InputError("only a folder can be signed: give `out` as well, or sign with Release.save.")
    check_rules(schema)
    lattice = _checked_lattice(schema, settings, memory)
    spending = Spending(
        settings.privacy.charge(settings.protection),
        settings.budget,
        what="release" if out is None else f"release {Path(out).name}",
        account=Account.of(options["ledger"], cap=options["cap"], dataset=options["dataset"], table=schema.name),
        noise=options["noise"],
    )
    with spending:
        made = run(
            Run(
                method=method_named(settings.method),
                asked=options,
                schema=schema,
                settings=settings,
                lattice=lattice,
                means=Means(np.random.default_rng(options["seed"]), spending, memory, progress),
                public=None if options["public"] is None else read_public(options["public"], schema),
                private=_private_table(data, schema, settings, memory, progress),
                omitted_rules=omitted_rules(given, schema),
            )
        )
        if out is not None:
            made = made.save(out, sign=signer)
        _commit(spending, made)
    return made


def _checked_lattice(schema: Schema, settings: Settings, memory: int | None) -> LatticeQuery:
    """The query of the direct certificate. What cannot fit is refused, before the data is opened."""
    method_named(settings.method).check(schema.measured, settings, memory=memory)
    lattice = LatticeQuery.of(schema, settings.covered, lattice_columns=settings.lattice_columns)
    if settings.certificate_share or settings.candidates > 1:
        check_lattice(lattice, memory=memory)
    return lattice


def _private_table(
    data: Any, schema: Schema, settings: Settings, memory: int | None, progress: Progress
) -> PrivateTable:
    sys.audit("certsynth.data.open")
    source = open_source(data, what="data", persons=schema.persons)
    source.batches(schema.names)  # reads nothing yet, and tells at once if a column is not there
    passes = (schema.measured, COUNTING), (schema, PLACING_PHASE), (schema.measured, DISPLACED)
    if schema.persons is not None:
        kept = keep_rows(source, schema, schema.persons, memory=memory, progress=progress)
        counting, placing, displacing = (kept.rows_of(columns, phase) for columns, phase in passes)
        return PrivateTable(counting, placing, displacing, count=kept.count, contributions=kept.contributions)
    hidden = settings.neighbours is Neighbours.ADD_REMOVE
    counting, placing, displacing = (
        rows_of(source, columns, phase, hidden=hidden, progress=progress) for columns, phase in passes
    )
    return PrivateTable(counting, placing, displacing, count=lambda: count_rows(source, schema, COUNTING))


def read_public(public: Any, schema: Schema) -> list[np.ndarray]:
    """Cleaned public rows of the measured columns, read before any budget is spent."""
    batches = list(cleaned(open_source(public, what="public data"), schema.measured))
    if not sum(len(batch[0]) for batch in batches):
        raise InputError("the public data has no rows: leave `public` out.")
    return [np.concatenate(columns) for columns in zip(*batches, strict=True)]


def _commit(spending: Spending, made: Release) -> None:
    """Tell the ledger that a release is out."""
    try:
        spending.commit(None if made.folder is None else manifest(made.folder))
    except CertsynthError as error:
        there = "the release is made" if made.folder is None else f"{made.folder} is written"
        raise type(error)(f"{there}, but its ledger was not told: {error}") from None
