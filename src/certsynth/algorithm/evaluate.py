"""The true loss of a synthetic table: for the data owner only, since it is not private."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Unpack

from certsynth.algorithm.declaration import takes
from certsynth.algorithm.options import EvaluateOptions
from certsynth.algorithm.request import asked_schema, checked_subsets
from certsynth.algorithm.sizes import check_lattice
from certsynth.artefact.persons import persons_record
from certsynth.base.memory import allowed_memory
from certsynth.certificate.passes import compare_tables
from certsynth.domain import Schema
from certsynth.domain.persons import Persons
from certsynth.errors import InputError
from certsynth.queries.fine import PLACING_PHASE, LatticeQuery
from certsynth.record.form import to_json
from certsynth.sources import cleaned, open_source, rows_of
from certsynth.sources.persons import private_rows


@dataclass(frozen=True, slots=True)
class SubsetLoss:
    """W1 in one subset of columns lies between `lower` and `upper`; `value` is W1 of the rows rounded to the
    lattice, or None if the subset was skipped."""

    columns: tuple[str, ...]
    value: float | None
    upper: float
    lower: float


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The utility loss: the largest W1 over all subsets.

    Subsets that were skipped do not have the largest loss. Of these only an upper bound is known, and it is loose.

    Paper: Eq. (1) [utility-loss], Eq. (19) [upper-loss], Eq. (20) [lower-loss], Eq. (21) [displacement]
    """

    subsets: tuple[SubsetLoss, ...]
    persons: Persons | None = None
    """The persons whose rows were kept; None if all rows were compared."""

    @property
    def value(self) -> float:
        """The largest loss of the rows rounded to the lattice, among the subsets that were not skipped."""
        return max(s.value for s in self.subsets if s.value is not None)

    @property
    def upper(self) -> float:
        """Upper bound on the largest loss."""
        return max(s.upper for s in self.subsets)

    @property
    def lower(self) -> float:
        """Lower bound on the largest loss."""
        return max(s.lower for s in self.subsets)

    @property
    def mean_upper(self) -> float:
        """Upper bound on the mean loss over the subsets."""
        return sum(s.upper for s in self.subsets) / len(self.subsets)

    def to_json(self) -> dict[str, Any]:
        """The output of `certsynth evaluate --json`."""
        return {
            "private": False,
            "value": self.value,
            "upper": self.upper,
            "lower": self.lower,
            "mean_upper": self.mean_upper,
            **({} if self.persons is None else {"persons": to_json(persons_record(self.persons))}),
            "subsets": [
                {"columns": list(s.columns), "value": s.value, "upper": s.upper, "lower": s.lower} for s in self.subsets
            ],
        }


@takes(EvaluateOptions)
def evaluate(data: Any, synthetic: Any, schema: Schema, **options: Unpack[EvaluateOptions]) -> Evaluation:
    """Compute the true loss of `synthetic`. NOT PRIVATE: the result must not leave your organisation.

    The rows of both tables are rounded to a lattice or, for more than three columns, to points of the two tables. There
    W1 is computed exactly; the distances by which rows were moved widen the bounds. With `largest`, subsets that cannot
    have the largest loss are skipped. If the schema or the options name persons, the rows of `data` are those that a
    release keeps.

    Args:
        data: The private table, in any form that `release` takes.
        synthetic: The synthetic table, in any of the same forms.
        schema: The schema of the rows.
    """
    memory, progress = options["memory"], options["progress"]
    schema = asked_schema(schema, options)
    subsets = checked_subsets(schema, options["sparsity"], options["subsets"])
    bare = LatticeQuery.of(schema, subsets, steps=options["lattice"])
    check_lattice(bare, memory=memory)
    ours = open_source(data, what="private data", persons=schema.persons)
    theirs = open_source(synthetic, what="synthetic table")
    fine = bare.with_nets(cleaned(ours, schema), cleaned(theirs, schema))
    compared = compare_tables(
        fine,
        rows_of(theirs, schema, PLACING_PHASE, progress=progress),
        [private_rows(ours, schema, PLACING_PHASE, memory=memory, progress=progress)],
        memory=allowed_memory(memory),
        every=not options["largest"],
        what="private data",
        progress=progress,
    )
    if not compared.rows:
        raise InputError("the synthetic table has no rows, so there is nothing to compare.")
    losses = []
    names = schema.names
    for subset, d in zip(fine.marginals.subsets, compared.found[0], strict=True):
        moved = d.first_moved + d.second_moved
        losses.append(
            SubsetLoss(
                columns=tuple(names[j] for j in subset),
                value=None if d.skipped else min(1.0, float(d.upper)),
                upper=min(1.0, float(d.upper + moved)),
                lower=max(0.0, float(d.lower / d.stretch - moved - d.rounded)),
            )
        )
    return Evaluation(tuple(losses), schema.persons)
