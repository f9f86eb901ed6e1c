"""What to expect of a release, before a row is read or any budget spent: `plan`."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

from certsynth.algorithm.declaration import takes
from certsynth.algorithm.method import checked_settings, method_named
from certsynth.algorithm.options import PlanOptions
from certsynth.algorithm.request import select_released_columns
from certsynth.algorithm.settings import Settings
from certsynth.algorithm.sizes import check_lattice, comparing_seconds
from certsynth.algorithm.task import Task
from certsynth.domain import Schema
from certsynth.domain.persons import Persons
from certsynth.domain.possible import check_rules
from certsynth.errors import InputError
from certsynth.planning.cache import load_or_make
from certsynth.planning.contributions import Table, compare_contributions
from certsynth.planning.plan import Plan, Planned
from certsynth.planning.share import settle_share
from certsynth.queries.fine import LatticeQuery


@takes(PlanOptions)
def plan(schema: Schema, **options: Unpack[PlanOptions]) -> Plan:
    """What certificate to expect for a table with this schema and this many rows, per mechanism and resolution.

    No row is read. The choice is the one that `release` makes with the same arguments for a table of as many rows;
    where that number is private, `release` plans for a noisy one. Answers are remembered in a folder of the user's
    cache.

    Args:
        schema: what a row may hold; not a draft.
    """
    schema = select_released_columns(schema, options)
    check_rules(schema)
    memory, progress = options["memory"], options["progress"]
    public = True if options["projection"] == "public" else None
    settings = checked_settings(schema, {**options, "rows": None, "candidates": 1, "public": public})

    def planned() -> Plan:
        if settings.certificate_share:
            check_lattice(LatticeQuery.of(schema, settings.covered), memory=memory)
        method, asked = method_named(settings.method), Task(schema.measured, settings, _weight(schema.persons, options))
        made = method.plan(settle_share(asked), memory=memory, progress=progress)
        if schema.persons is not None and options["persons"] is not None:
            table = Table(options["rows"], options["persons"])
            compared = compare_contributions(asked, table, made.choice.predicted_bound, method.predict)
            made = replace(made, contributions=tuple(compared))
        return _with_derived(made, schema, settings) if schema.derivations else made

    question = {"plan": 15, "schema": schema.to_toml()}
    question |= {name: None if value is None else str(value) for name, value in options.items() if name != "progress"}
    found = load_or_make(question, lambda: planned().to_json())
    try:
        return Plan.from_json(found)
    except (KeyError, TypeError):  # somebody else wrote that
        return planned()


def _weight(persons: Persons | None, options: PlanOptions) -> int:
    """The number of rows to plan for, in the parts in which they are counted."""
    rows, number = options["rows"], options["persons"]
    if persons is None:
        if number is not None:
            raise InputError("`persons` is for tables that name persons: write [table] person in the schema.")
        return rows
    if number is None:
        return Table(rows, -(-rows // persons.rows)).weight(persons)
    if number > rows:
        raise InputError("`persons` is larger than `rows`: every person has a row at least.")
    return Table(rows, number).weight(persons)


def _with_derived(made: Plan, schema: Schema, settings: Settings) -> Plan:
    """The plan of the measured columns as one of all: derived columns are compared for the certificate, too."""
    fine = LatticeQuery.of(schema, settings.covered)
    own = LatticeQuery.of(schema.measured, settings.subsets)
    longer = comparing_seconds(fine.on_lattices.sizes()) - comparing_seconds(own.on_lattices.sizes())

    def whole(each: Planned) -> Planned:
        return replace(each, seconds=round(each.seconds + max(longer, 0.0), 1))

    names, named = schema.names, settings.named
    return replace(
        made,
        columns=len(schema),
        sparsity=max(map(len, settings.covered)),
        workload=[[names[j] for j in subset] for subset in settings.covered] if named else None,
        choice=whole(made.choice),
        candidates=tuple(map(whole, made.candidates)),
    )
