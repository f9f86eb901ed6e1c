"""Arguments, checked: each rule is written once, with the sentence that explains it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from certsynth.domain import Schema
from certsynth.errors import InputError, did_you_mean
from certsynth.mechanisms import Budget, Neighbours, Unit, exact_epsilon
from certsynth.mechanisms.concentrated import Privacy, delta_of, epsilon_of, rho_of
from certsynth.mechanisms.guarantee import MOST_DELTA, exact_rational
from certsynth.queries.marginals import Subset, all_subsets

MAX_RESOLUTION = 1024
MAX_ROWS = 50_000_000

DEFAULT_DELTA = Fraction(1, 10**6)
"""The δ at which ρ is told in terms of ε unless said otherwise."""


def checked_sparsity(sparsity: Any, schema: Schema, *, call: str) -> int:
    """How many columns a statistic may look at: 2, or 1 where there is only one column, unless said otherwise."""
    columns = len(schema)
    if sparsity is None:
        return min(2, columns)
    if isinstance(sparsity, bool) or not isinstance(sparsity, int) or not 1 <= sparsity <= columns:
        possible = " or ".join(map(str, range(1, columns + 1))) if columns < 4 else f"1 to {columns}"
        raise InputError(
            f"`{call}(sparsity={sparsity!r:.20})`: the table has {columns} column{'s' * (columns > 1)}, so sparsity "
            f"can be {possible}. Add columns to the schema or change sparsity."
        )
    return sparsity


Named = Sequence[Sequence[str]]
"""Subsets of columns by their names: a workload."""


def checked_subsets(schema: Schema, sparsity: Any, named: Named | None, *, call: str) -> tuple[Subset, ...]:
    """The subsets of columns that matter: the named ones, each once, or all of `sparsity` columns.

    Paper: appendix C [projections]
    """
    if named is None:
        return all_subsets(schema, checked_sparsity(sparsity, schema, call=call))
    if sparsity is not None:
        raise InputError(
            "sparsity and a workload exclude each other, since named subsets have sizes of their own: leave one out."
        )
    return _named_subsets(schema, named)


def _named_subsets(schema: Schema, named: Named) -> tuple[Subset, ...]:
    place = {name: j for j, name in enumerate(schema.names)}
    subsets = []
    for names in named:
        if isinstance(names, str):
            raise InputError(f"a subset is a list of column names: write [[{names!r:.60}]] for a column alone.")
        for name in names:
            if name not in place:
                raise InputError(
                    f"the workload names {name!r:.60}, which is no column of the schema: choose from "
                    f"{', '.join(schema.names)}.{did_you_mean(name, schema.names)}"
                )
        if not names or len(set(names)) < len(names):
            raise InputError("a subset of the workload names at least one column, and each column once.")
        subsets.append(tuple(sorted(place[name] for name in names)))
    if not subsets:
        raise InputError("no subset of columns is named: leave the workload out to take all of them.")
    return tuple(dict.fromkeys(subsets))


def named_columns(schema: Schema, named: Named | None) -> Schema:
    """The schema of the columns that some subset names: the others have neither measurement nor certificate."""
    if named is None:
        return schema
    columns = {j for subset in _named_subsets(schema, named) for j in subset}
    return schema.select([schema.names[j] for j in sorted(columns)])


def usable(schema: Schema, columns: Sequence[str] | None, named: Named | None = None) -> Schema:
    """The schema that private rows may be read with: not a draft, and of the chosen columns that subsets name."""
    if schema.draft:
        raise InputError(
            "the schema is a draft made from rows: check every bound and label against public knowledge, then remove "
            "the line draft = true."
        )
    return named_columns(schema.select(columns) if columns else schema, named)


def checked_resolution(resolution: Any) -> int | None:
    """Cells to the unit length; None for "auto"."""
    if resolution in (None, "auto"):
        return None
    if isinstance(resolution, bool) or not isinstance(resolution, int) or not 1 <= resolution <= MAX_RESOLUTION:
        raise InputError(
            f"resolution must be auto or a whole number from 1 to {MAX_RESOLUTION}; got {resolution!r:.20}."
        )
    return resolution


def checked_share(value: Any, *, name: str, low: Fraction, high: Fraction, rule: str) -> Fraction:
    """A number between two others, exclusive at the top, as the rational that its text says."""
    share = exact_rational(value)
    if share is None or not low <= share < high:
        raise InputError(f"{name} must be {rule}; got {value!r:.20}.")
    if share.denominator > 10**9:
        raise InputError(f"{name} may have at most 9 decimals; got {value!r:.20}.")
    return share


def checked_confidence(value: Any) -> Fraction:
    rule = "at least 0.5 and below 1, for example 0.95"
    return checked_share(value, name="confidence", low=Fraction(1, 2), high=Fraction(1), rule=rule)


def checked_budget(epsilon: Any, delta: Any = None, rho: Any = None) -> Privacy:
    """What may be spent: ε alone is pure; two of ε, δ and ρ give the third; ρ alone is told at DEFAULT_DELTA."""
    if epsilon is None and rho is None:
        beside = "delta needs epsilon or rho beside it" if delta is not None else "give a privacy budget"
        raise InputError(f"{beside}: epsilon 1, or epsilon 1 and delta 1e-6, or rho 0.02, for example.")
    if None not in (epsilon, delta, rho):
        raise InputError("epsilon, delta and rho are one too many: any two of them give the third.")
    told = None if epsilon is None else exact_epsilon(epsilon)
    given = None if delta is None else _checked_delta(delta)
    if rho is not None:
        amount = exact_epsilon(rho, name="rho")
        given = given or (DEFAULT_DELTA if told is None else delta_of(amount, told))
        if given > MOST_DELTA:
            raise InputError("so large a rho means no such epsilon at any delta worth having: raise epsilon.")
        return Privacy(
            Budget(amount, Unit.RHO), epsilon=told or epsilon_of(amount, given), delta=given, asked_in=Unit.RHO
        )
    assert told is not None
    if given is None:
        return Privacy(Budget(told), epsilon=told)
    if not (amount := rho_of(told, given)):
        raise InputError("nothing can be measured with so small an epsilon and delta: raise one of them.")
    return Privacy(Budget(amount, Unit.RHO), epsilon=told, delta=given)


def _checked_delta(delta: Any) -> Fraction:
    exact = exact_rational(delta)
    if exact is None or not 0 < exact <= MOST_DELTA or (exact * 10**12).denominator > 1:
        rule = "delta must be above 0 and at most 0.01, in at most 12 decimals, like 1e-6"
        raise InputError(f"{rule}; got {delta!r:.40}.")
    return exact


def checked_neighbours(value: Any) -> Neighbours:
    try:
        return Neighbours(value)
    except ValueError:
        choices = " or ".join(Neighbours)
        raise InputError(f"neighbours must be {choices}; got {value!r:.20}.") from None


def checked_rows(rows: Any) -> int | None:
    if rows is None:
        return None
    if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= MAX_ROWS:
        raise InputError(f"rows must be a whole number from 1 to {MAX_ROWS:,}; got {rows!r:.20}.")
    return rows


def checked_choice(value: Any, *, name: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}; got {value!r:.40}.")
    return str(value)
