"""Certify any synthetic table: compare the private rows with it, and add noise to the result."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Unpack

import numpy as np

from certsynth.algorithm.declaration import takes
from certsynth.algorithm.exceptions import (
    ExceptionChoice,
    number_of_exceptions,
    scores_of,
    scoring_query,
    share_for_all,
    share_for_each,
)
from certsynth.algorithm.options import CertifyOptions
from certsynth.algorithm.request import DEFAULT_CONFIDENCE, checked_budget, checked_subsets, select_final_columns
from certsynth.algorithm.sizes import check_lattice
from certsynth.artefact.certificate import exceptions_record, statistics_record
from certsynth.artefact.persons import persons_record
from certsynth.base.memory import allowed_memory
from certsynth.base.progress import Progress, silent
from certsynth.certificate.bands import band_errors
from certsynth.certificate.coverage import statistic_queries
from certsynth.certificate.direct import (
    Direct,
    SingleColumns,
    bounds_single_columns,
    choice_sensitivity,
    direct_certificate,
    exact_query,
    flow_losses,
    single_columns,
)
from certsynth.certificate.passes import (
    TABLE_CHANGES,
    Batches,
    Comparison,
    collect_statistics,
    compare_tables,
    part_of,
)
from certsynth.certificate.statistics import StatisticMaxima
from certsynth.domain import Schema
from certsynth.errors import InputError
from certsynth.mechanisms import Budget, Guarantee, Neighbours
from certsynth.mechanisms.concentrated import Privacy, pure_epsilon
from certsynth.mechanisms.ledger import Account
from certsynth.mechanisms.protection import Protection
from certsynth.mechanisms.samplers import Noise
from certsynth.mechanisms.scalars import NoisyScalars
from certsynth.mechanisms.selection import choose_least, cost_of_choice
from certsynth.mechanisms.spending import Spending
from certsynth.queries.fine import PLACING_PHASE, LatticeQuery
from certsynth.queries.tally import Rows, T, Tally, in_memory, tally_batches
from certsynth.record.form import to_json
from certsynth.record.record import ExceptionsRecord, StatisticsRecord
from certsynth.sources import cleaned, is_same_table, open_source
from certsynth.sources.persons import private_rows


@dataclass(frozen=True, slots=True)
class Certification:
    """Bounds on the distance of a synthetic table from the private one, all valid with probability `confidence`."""

    direct: Direct
    confidence: Fraction
    privacy: Privacy
    protection: Protection
    choice: Guarantee | None = None
    """The part of the cost for choosing exceptions, for a single row."""

    @property
    def cost(self) -> Guarantee:
        """The privacy cost of this certification for the protected unit."""
        of_row = self.direct.cost if self.choice is None else Guarantee.composed([self.choice, self.direct.cost])
        return Guarantee(self.protection.per_unit(of_row.spent), self.protection.neighbours)

    @property
    def bound(self) -> float:
        """Upper bound on the error of every smooth statistic of the covered subsets."""
        return self.direct.bound

    @property
    def lower(self) -> float:
        """Lower bound on the loss."""
        return self.direct.lower

    @property
    def single_column_bound(self) -> float:
        """Upper bound for statistics of one column, which is no further off than any subset that contains it."""
        single = self.direct.single
        return self.bound if single is None else min(self.bound, single.bound)

    @property
    def statistics(self) -> StatisticsRecord:
        """Upper bounds on the errors of shares, group totals and moments."""
        return statistics_record(self.direct)

    @property
    def exceptions(self) -> ExceptionsRecord | None:
        """Subsets of columns with a bound of their own, and the bound of all others."""
        return exceptions_record(self.direct)

    def to_json(self) -> dict[str, Any]:
        """The output of `certsynth certify --json`, with the budget as exact texts."""
        direct, exceptions, persons = self.direct, self.exceptions, self.protection.persons
        return {
            "bound": self.bound,
            "lower": min(self.lower, self.bound),
            "confidence": float(self.confidence),
            **self.privacy.describe(self.cost.spent),
            "neighbours": str(self.cost.neighbours),
            **({} if persons is None else {"persons": to_json(persons_record(persons))}),
            "single_column_bound": self.single_column_bound,
            "statistics": {
                name: {"bound": figure.bound, "lower": min(figure.lower, figure.bound)}
                for name, figure in direct.statistics.items()
            },
            "subsets": [
                {"columns": list(columns), "bound": loss.bound, "lower": loss.lower}
                for columns, loss in zip(direct.subsets, direct.of_each_subset, strict=True)
            ],
            **({} if exceptions is None else {"exceptions": to_json(exceptions)}),
        }


@takes(CertifyOptions)
def certify(data: Any, synthetic: Any, schema: Schema, **options: Unpack[CertifyOptions]) -> Certification:
    """Bound the loss of any `synthetic` table, with differential privacy for the rows of `data`.

    The synthetic table must be public, or produced from `data` by a private mechanism whose ε adds to this one.

    Args:
        data: The private table: the path of a CSV, JSON lines, Excel or Parquet file, a DuckDB relation, or a frame of
            pandas, polars, pyarrow or Spark. Columns that the schema does not name are ignored.
        synthetic: The table to be certified, in any of the same forms.
        schema: The schema of the rows; not a draft.
    """
    schema = select_final_columns(schema, options)
    given: Mapping[str, Any] = options
    privacy = checked_budget(given["epsilon"], given["delta"], given["rho"])
    confidence = DEFAULT_CONFIDENCE if given["confidence"] is None else given["confidence"]
    protection = Protection(Neighbours(options["neighbours"]), schema.persons)
    neighbours, budget = protection.of_rows, protection.per_row(privacy.budget)
    subsets = checked_subsets(schema, options["sparsity"], options["subsets"])
    fine = LatticeQuery.of(schema, subsets, steps=options["lattice"])
    memory, progress = options["memory"], options["progress"]
    check_lattice(fine, memory=memory)
    exceptions = number_of_exceptions(options["exceptions"], subsets, default=False)
    if exceptions and options["per_subset"]:
        raise InputError("with `per_subset` every subset has a bound of its own already: leave `exceptions` out.")
    if is_same_table(data, synthetic):
        raise InputError(
            "the private data and the synthetic table are the same: `certify` compares private rows with a table that "
            "is public, or was made with a privacy budget of its own. Give that table; nothing was spent."
        )
    spending = Spending(
        privacy.charge(protection),
        budget,
        what="certify",
        account=Account.of(options["ledger"], cap=options["cap"], dataset=options["dataset"], table=schema.name),
        noise=options["noise"],
    )
    choice = None
    if exceptions:
        choice = ExceptionChoice(exceptions, budget.share(share_for_each(exceptions)), neighbours, spending)
    with spending:
        sys.audit("certsynth.data.open")
        theirs = open_source(synthetic, what="synthetic table")
        ours = open_source(data, what="private data", persons=schema.persons)
        direct = direct_bounds(
            fine,
            private_rows(
                ours,
                schema,
                PLACING_PHASE,
                hidden=neighbours is Neighbours.ADD_REMOVE,
                memory=memory,
                progress=progress,
            ),
            lambda: cleaned(theirs, schema),
            budget=budget.share(1 - share_for_all(exceptions)),
            beta=1 - confidence,
            neighbours=neighbours,
            per_subset=options["per_subset"],
            exceptions=choice,
            noise=spending,
            memory=memory,
            progress=progress,
        )
        found = Certification(direct, confidence, privacy, protection, None if choice is None else choice.cost)
        spending.commit(hashlib.sha256(json.dumps(found.to_json(), sort_keys=True).encode()).hexdigest())
    return found


def direct_bounds(
    fine: LatticeQuery,
    private: Rows,
    synthetic: Batches,
    *,
    budget: Budget,
    beta: Fraction,
    neighbours: Neighbours,
    per_subset: bool = False,
    exceptions: ExceptionChoice | None = None,
    two_sided: bool = True,
    counted: NoisyScalars | None = None,
    noise: Noise | None = None,
    memory: int | None = None,
    progress: Progress = silent,
) -> Direct:
    """The direct certificate for the subsets of `fine`, for single columns, and for shares, totals and moments.

    `counted` is the noisy number of rows, if it is hidden and was measured earlier. `exceptions` are chosen first, by
    losses on a coarse lattice and errors of shares; then the losses of all other subsets are compared, and theirs.
    """
    table, memory = _public(synthetic), allowed_memory(memory)
    statistics = StatisticMaxima(by_pair=None if exceptions is None else {})
    wanted = list(statistic_queries(fine.schema, fine.marginals.subsets))
    compare_with_table = partial(
        compare_tables, private=private, tables=[table], memory=memory, purpose="certify", progress=progress
    )

    def compare(query: LatticeQuery, *parts: Sequence[int], every: bool = False) -> list[Comparison]:
        """Losses of the parts of a query, and in the same passes the statistics on its lattice."""
        shared = next((each for each in wanted if each.counts_like(query)), None)
        if shared is not None:
            wanted.remove(shared)
        collected = statistics if shared is not None else None
        return [compare_with_table(part_of(query, part), every=every, statistics=collected) for part in parts]

    fine = fine.with_nets(synthetic())  # never the private rows
    positions = range(len(fine.marginals.subsets))
    chosen: tuple[int, ...] = ()
    scored = []
    if exceptions is not None:
        scored = [compare_with_table(scoring_query(fine), every=True)]
        _refuse_no_rows(scored[0].rows, neighbours)
        for query in [each for each in wanted if len(each.marginals.subsets[0]) == 2]:
            wanted.remove(query)
            collect_statistics(query, private, table, statistics, memory=memory, progress=progress)
        flows = flow_losses(scored[0].found[0], scored[0].rows)
        chosen = exceptions.choose(flows, scores_of(fine.marginals.subsets, flows, statistics.by_pair or {}))
    parts = [[j for j in positions if j not in chosen], *([sorted(chosen)] if chosen else [])]
    compared = compare(fine, *parts, every=per_subset)
    rows = compared[0].rows
    _refuse_no_rows(rows, neighbours)
    if any(each.rows != rows for each in scored + compared):
        raise InputError(TABLE_CHANGES)
    found = {j: d for part, each in zip(parts, compared, strict=True) for j, d in zip(part, each.found[0], strict=True)}
    single = None
    if bounds_single_columns(fine.marginals.subsets):
        columns = single_columns(fine)
        (alone,) = compare(columns, range(len(columns.marginals.subsets)))
        single = SingleColumns(columns, alone.found[0])
    for query in wanted:
        collect_statistics(query, private, table, statistics, memory=memory, progress=progress)
    apart = {fine.marginals.subsets[j] for j in chosen}
    errors = statistics.losses if exceptions is None else statistics.losses_with(apart)
    return direct_certificate(
        fine,
        [found[j] for j in positions],
        rows,
        budget=budget,
        beta=beta,
        neighbours=neighbours,
        single=single,
        statistics=errors | band_errors(fine.schema, fine.marginals.subsets, private, table),
        per_subset=per_subset,
        exceptions=chosen,
        two_sided=two_sided,
        counted=counted,
        noise=noise,
    )


def _refuse_no_rows(rows: int, neighbours: Neighbours) -> None:
    """Refuse an empty private table where the number of rows is public. Where it is hidden, it is a table like any
    other."""
    if not rows and neighbours is Neighbours.REPLACE_ONE:
        raise InputError("the private data has no rows, so there is nothing to certify.")


def _public(batches: Batches) -> Rows:
    """Return a function that evaluates tallies over a public table."""

    def ask(tally: Tally[Any, T]) -> T:
        return tally_batches(batches(), tally)

    return ask


def choose_table(
    fine: LatticeQuery,
    private: Rows,
    tables: Sequence[Sequence[np.ndarray]],
    *,
    budget: Budget,
    neighbours: Neighbours,
    memory: int | None = None,
    progress: Progress = silent,
) -> tuple[int, Guarantee, int]:
    """Privately choose a table with a small loss; return its index, the cost, and the sensitivity used.

    The sensitivity is determined by the schema: under add/remove it assumes the largest possible distance of the
    tables' rows to the lattice, since only one of the tables is published.
    """
    compared = compare_tables(
        fine,
        private,
        [in_memory(table) for table in tables],
        memory=allowed_memory(memory),
        progress=progress,
    )
    queries = [exact_query(fine, found, compared.rows, neighbours=neighbours) for found in compared.found]
    sensitivity = choice_sensitivity(fine, neighbours)
    best = choose_least([query.losses[0] for query in queries], sensitivity=sensitivity, epsilon=pure_epsilon(budget))
    return best, Guarantee(cost_of_choice(budget), neighbours), sensitivity
