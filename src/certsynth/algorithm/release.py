"""`release`: check what is asked, open the table, run Algorithm 1, write the folder, tell the ledger."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from certsynth.algorithm.request import usable
from certsynth.algorithm.method import Run
from certsynth.algorithm.registry import METHODS, checked_settings
from certsynth.algorithm.settings import Request, Settings
from certsynth.algorithm.sizes import check_lattice
from certsynth.algorithm.steps import run
from certsynth.algorithm.values import Means, PrivateTable
from certsynth.artefact import Release
from certsynth.artefact.folder import check_target, manifest
from certsynth.artefact.signature import Signer, as_signer
from certsynth.base.progress import Progress, silent
from certsynth.domain import Schema
from certsynth.domain.possible import check_rules
from certsynth.errors import CertsynthError, InputError
from certsynth.mechanisms import Neighbours
from certsynth.mechanisms.ledger import Account
from certsynth.mechanisms.samplers import Noise
from certsynth.mechanisms.spending import Spending
from certsynth.queries.fine import PLACING, FineMarginals
from certsynth.sources import cleaned, how_many, open_source, rows_of

COUNTING, DISPLACED = "counting rows", "measuring how far rows are from their cells"


def release(
    data: Any,
    schema: Schema,
    *,
    epsilon: Any = None,
    delta: Any = None,
    rho: Any = None,
    out: str | Path | None = None,
    sparsity: int | None = None,
    subsets: Sequence[Sequence[str]] | None = None,
    resolution: int | Literal["auto"] | None = None,
    mechanism: str | None = None,
    projection: str = "auto",
    loss: str | None = None,
    public: Any = None,
    rows: int | None = None,
    certificate_share: Any = None,
    confidence: Any = None,
    neighbours: str = Neighbours.REPLACE_ONE,
    preset: str | None = None,
    columns: Sequence[str] | None = None,
    candidates: int = 1,
    seed: int | None = None,
    sign: str | Path | Signer | None = None,
    memory: int | None = None,
    ledger: str | Path | None = None,
    cap: Any = None,
    dataset: str | None = None,
    noise: Noise | None = None,
    progress: Progress = silent,
) -> Release:
    """A synthetic table for `data` under differential privacy, with its certificate; written to `out` if given.

    Args:
        data: the private table: the path of a CSV or Parquet file, a DuckDB relation, or a frame of pandas, polars,
            pyarrow or Spark. Columns that the schema does not name are ignored.
        schema: what a row may hold; not a draft.
        epsilon: the budget, above 0 and at most 100. Alone it is pure ε-differential privacy.
        delta: with this, (ε, δ)-differential privacy and Gaussian noise: above 0, at most 0.01.
        rho: the budget of zero-concentrated differential privacy, alone or in place of one of the two.
        out: the folder to write; it must not exist. Without it the release is in memory only, and is written by
            `Release.save`.
        sparsity: how many columns a statistic may look at: 2, or 1 if there is only one column.
        subsets: in place of `sparsity`, the subsets of columns that matter, of any sizes, as lists of names. Columns
            that none of them names are left out.
        resolution: how many cells a column is cut into, or "auto".
        mechanism: how counts get their noise, or "auto".
        projection: how rows are fitted: "particles", "public", "full-grid", "drawn" or "auto".
        loss: fit by a linear program, and make this small: "transport" or "path".
        public: a public table of the same columns, to start from.
        rows: how many rows to make: as many as there are, up to a million; 100,000 if that is private.
        certificate_share: share of the budget for the direct certificate, by default 0.05; 0 for none.
        confidence: how sure the certificate is: at least 0.5 and below 1, by default 0.95.
        neighbours: "replace-one" (the number of rows is public) or "add-remove" (it is not).
        preset: "paper" does all as the paper does.
        columns: use only these columns of the schema.
        candidates: make so many tables from the same noisy counts, and choose one privately.
        seed: steers only what needs no privacy: which public rows are drawn, the order and details of emitted rows.
            The noise has no seed.
        sign: the file of an Ed25519 private key that the folder is signed with.
        memory: the most bytes that may be used; by default half of what there is. With less, rows are read more often.
        ledger: a file that adds up what is spent on a data set, and refuses what would exceed its cap.
        cap: the most that may ever be spent on the data set; the ledger's first use fixes it.
        dataset: the name of the data set; by default that of the schema's table.
        noise: for tests: what is made with noise of one's own cannot be written.
        progress: told what is being done; silent by default.

    Raises:
        InputError: something in the arguments, the schema, the table or the place to write cannot be used. Where
            budget was at stake, a note on the error says what became of it.
        CheckFailed: the ledger has not enough left, or was changed.

    Paper: Algorithm 1 [algorithm], Definition 1 [differential-privacy]
    """
    schema = usable(schema, columns, subsets)
    options = {
        "epsilon": epsilon,
        "delta": delta,
        "rho": rho,
        "sparsity": sparsity,
        "subsets": subsets,
        "resolution": resolution,
        "mechanism": mechanism,
        "projection": projection,
        "loss": loss,
        "rows": rows,
        "certificate_share": certificate_share,
        "confidence": confidence,
        "neighbours": neighbours,
        "preset": preset,
        "candidates": candidates,
    }
    settings = checked_settings(Request(schema, options, has_public=public is not None))
    signer = as_signer(sign)
    if out is not None:
        check_target(Path(out))
    elif signer:
        raise InputError("a folder is what is signed: give out as well, or sign with Release.save.")
    check_rules(schema)
    lattice = _checked_lattice(schema, settings, memory)
    spending = Spending(
        settings.privacy.charge(settings.neighbours),
        settings.privacy.budget,
        what="release" if out is None else f"release {Path(out).name}",
        account=Account.of(ledger, cap=cap, dataset=dataset, table=schema.name),
        noise=noise,
    )
    with spending:
        made = run(
            Run(
                method=METHODS[settings.method],
                schema=schema,
                settings=settings,
                lattice=lattice,
                means=Means(np.random.default_rng(seed), spending, memory, progress),
                public=None if public is None else read_public(public, schema),
                private=_private_table(data, schema, settings, progress),
            )
        )
        if out is not None:
            made = made.save(out, sign=signer)
        _commit(spending, made)
    return made


def _checked_lattice(schema: Schema, settings: Settings, memory: int | None) -> FineMarginals:
    """The query of the direct certificate. What cannot fit is refused, before the data is opened."""
    method = METHODS[settings.method]
    method.check(schema, settings, memory=memory)
    lattice = FineMarginals.of(schema, settings.subsets, lattice_columns=method.lattice_columns)
    if settings.share or settings.candidates > 1:
        check_lattice(lattice, memory=memory)
    return lattice


def _private_table(data: Any, schema: Schema, settings: Settings, progress: Progress) -> PrivateTable:
    sys.audit("certsynth.data.open")
    source = open_source(data, what="data")
    source.batches(schema.names)  # reads nothing yet, and tells at once if a column is not there
    hidden = settings.neighbours is Neighbours.ADD_REMOVE
    counting, placing, displacing = (
        rows_of(source, schema, phase, hidden=hidden, progress=progress) for phase in (COUNTING, PLACING, DISPLACED)
    )
    return PrivateTable(counting, placing, displacing, count=lambda: how_many(source, schema, COUNTING))


def read_public(public: Any, schema: Schema) -> list[np.ndarray]:
    """Cleaned public rows, read before any budget is spent."""
    batches = list(cleaned(open_source(public, what="public data"), schema))
    if not sum(len(batch[0]) for batch in batches):
        raise InputError("the public data has no rows: leave --public out.")
    return [np.concatenate(columns) for columns in zip(*batches, strict=True)]


def _commit(spending: Spending, made: Release) -> None:
    """Tell the ledger that a release is out."""
    try:
        spending.commit(None if made.folder is None else manifest(made.folder))
    except CertsynthError as error:
        there = "the release is made" if made.folder is None else f"{made.folder} is written"
        raise type(error)(f"{there}, but its ledger was not told: {error}") from None
