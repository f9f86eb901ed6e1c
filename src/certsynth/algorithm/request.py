"""Rules that relate options to each other and to the schema, with their error messages."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from certsynth.algorithm.checks import MAX_DELTA
from certsynth.domain import Schema
from certsynth.domain.persons import entries_among, refuse_person_column
from certsynth.domain.workload import MAX_SUBSETS
from certsynth.errors import InputError, did_you_mean
from certsynth.mechanisms import Budget, Unit
from certsynth.mechanisms.concentrated import Privacy, delta_of, epsilon_of, rho_of
from certsynth.queries.marginals import Subset, all_subsets
from certsynth.record.record import OmittedRuleRecord

DEFAULT_CONFIDENCE = Fraction(19, 20)

DEFAULT_DELTA = Fraction(1, 10**6)
"""The δ at which a budget of ρ alone is also stated as (ε, δ)."""


def checked_sparsity(sparsity: Any, schema: Schema) -> int:
    """The number of columns that a statistic may use: by default 2, or 1 if there is only one column."""
    columns = len(schema)
    if sparsity is None:
        return min(2, columns)
    if isinstance(sparsity, bool) or not isinstance(sparsity, int) or not 1 <= sparsity <= columns:
        possible = " or ".join(map(str, range(1, columns + 1))) if columns < 4 else f"1 to {columns}"
        raise InputError(
            f"`sparsity` can be {possible}, since the table has {columns} column{'s' * (columns > 1)}; got "
            f"{sparsity!r:.20}. Add columns to the schema, or change `sparsity`."
        )
    return sparsity


Named = Sequence[Sequence[str]]
"""A workload: subsets of columns by their names."""


def checked_subsets(schema: Schema, sparsity: Any, named: Named | None) -> tuple[Subset, ...]:
    """The subsets of columns to certify: the named ones without duplicates, or all of `sparsity` columns.

    Paper: appendix C [projections]
    """
    if named is None:
        return all_subsets(schema, checked_sparsity(sparsity, schema))
    if sparsity is not None:
        raise InputError(
            "`sparsity` and `subsets` exclude each other, since named subsets have sizes of their own: leave one out."
        )
    return _named_subsets(schema, named)


def _named_subsets(schema: Schema, named: Named) -> tuple[Subset, ...]:
    place = {name: j for j, name in enumerate(schema.names)}
    subsets = []
    for names in named:
        for name in names:
            if name not in place:
                refuse_person_column(schema.persons, name)
                raise InputError(
                    f"the workload names {name!r:.60}, which is not a column of the schema: choose from "
                    f"{', '.join(schema.names)}.{did_you_mean(name, schema.names)}"
                )
        if not names or len(set(names)) < len(names):
            raise InputError("a subset of the workload names at least one column, and each column once.")
        subsets.append(tuple(sorted(place[name] for name in names)))
    if not subsets:
        raise InputError("no subset of columns is named: leave the workload out to take all of them.")
    return tuple(dict.fromkeys(subsets))


def named_columns(schema: Schema, named: Named | None) -> Schema:
    """The schema restricted to columns in some subset: the others are neither measured nor certified."""
    if named is None:
        return schema
    columns = {j for subset in _named_subsets(schema, named) for j in subset}
    return schema.select([schema.names[j] for j in sorted(columns)])


def asked_schema(schema: Schema, options: Mapping[str, Any]) -> Schema:
    """The schema restricted to the chosen columns that occur in subsets, with the persons that options name."""
    columns, person = options["columns"], options["person"]
    if columns and person in columns:
        raise InputError(f"column {person!r:.60} names persons and is never released: leave it out of `columns`.")
    kept = named_columns(schema.select(columns) if columns else schema, options["subsets"])
    return kept.with_persons(**entries_among(options))


def select_final_columns(schema: Schema, options: Mapping[str, Any]) -> Schema:
    """As `asked_schema`; also refuse a draft and a schema without a unit."""
    if schema.draft:
        raise InputError(
            "the schema is a draft made from rows: check every bound and label against public knowledge, then remove "
            "the line draft = true."
        )
    if schema.unit.startswith("?"):
        raise InputError(
            "the unit of the schema is still a question: say what one row stands for, like "
            'unit = "one row is one person".'
        )
    return asked_schema(schema, options)


def select_released_columns(schema: Schema, options: Mapping[str, Any]) -> Schema:
    """As `select_final_columns`; also refuse derived columns without the columns that they are computed from."""
    kept, columns = select_final_columns(schema, options), options["columns"]
    for formula in schema.formulas:
        name, lacking = formula.column.name, [each for each in formula.sources if each not in kept.names]
        if name in kept.names and lacking:
            where = "`columns`" if columns and lacking[0] not in columns else "a subset of the workload"
            raise InputError(
                f"{name!r} is derived from {lacking[0]!r}, which is left out: add {lacking[0]!r} to {where}, or leave "
                f"{name!r} out."
            )
    return kept


def omitted_rules(schema: Schema, kept: Schema) -> tuple[OmittedRuleRecord, ...]:
    """The rules that a restricted schema no longer has, by their numbers in the whole one."""
    found = []
    for constraint in schema.constraints:
        absent = tuple(name for name in dict.fromkeys(constraint.columns) if name not in kept.names)
        if absent:
            found.append(OmittedRuleRecord(constraint.number, absent))
    return tuple(found)


def measured_options(schema: Schema, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a release for the measured columns of its schema alone."""
    sparsity, named = options["sparsity"], options["subsets"]
    return {
        **options,
        "sparsity": None if sparsity is None else min(sparsity, len(schema.measured)),
        "subsets": None if named is None else measured_subsets(schema, named),
    }


def measured_subsets(schema: Schema, named: Named) -> list[list[str]]:
    """The subsets of measured columns for a workload: a derived column is replaced by those that determine it.

    If these make a subset larger, all its parts of the former size are taken.
    """
    roots = {name: {name} for name in schema.names if name not in schema.derived}
    for formula in schema.formulas:
        roots[formula.column.name] = set().union(*(roots[source] for source in formula.sources))
    found: dict[tuple[str, ...], None] = {}
    for names in named:
        needed = sorted(set().union(*(roots[name] for name in names)), key=schema.names.index)
        size = min(len(names), len(needed))
        if math.comb(len(needed), size) > MAX_SUBSETS:
            raise InputError(
                f"a subset of the workload has derived columns that depend on {len(needed)} others, too many to "
                "measure together: name fewer columns in it."
            )
        found.update(dict.fromkeys(itertools.combinations(needed, size)))
    return [list(names) for names in found]


def checked_budget(epsilon: Fraction | None, delta: Fraction | None = None, rho: Fraction | None = None) -> Privacy:
    """The privacy budget: ε alone is pure; two of ε, δ and ρ determine the third; ρ alone is stated at
    DEFAULT_DELTA."""
    if epsilon is None and rho is None:
        missing = "`delta` needs `epsilon` or `rho` as well" if delta is not None else "give a privacy budget"
        raise InputError(f"{missing}: `epsilon=1`, or `epsilon=1` and `delta=1e-6`, or `rho=0.02`, for example.")
    if None not in (epsilon, delta, rho):
        raise InputError("give at most two of `epsilon`, `delta` and `rho`: any two of them determine the third.")
    if rho is not None:
        given = delta or (DEFAULT_DELTA if epsilon is None else delta_of(rho, epsilon))
        if given > MAX_DELTA:
            raise InputError("so large a `rho` and so small an `epsilon` imply a δ above 0.01: raise `epsilon`.")
        return Privacy(Budget(rho, Unit.RHO), epsilon=epsilon or epsilon_of(rho, given), delta=given, asked_in=Unit.RHO)
    assert epsilon is not None
    if delta is None:
        return Privacy(Budget(epsilon), epsilon=epsilon)
    if not (amount := rho_of(epsilon, delta)):
        raise InputError("nothing can be measured with so small an `epsilon` and `delta`: raise one of them.")
    return Privacy(Budget(amount, Unit.RHO), epsilon=epsilon, delta=delta)
