"""What to expect of a release, before a row is read or any budget spent: `plan`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from certsynth.algorithm.request import MAX_ROWS, usable
from certsynth.algorithm.registry import METHODS, checked_settings
from certsynth.algorithm.settings import Request
from certsynth.algorithm.sizes import check_lattice
from certsynth.algorithm.task import Task
from certsynth.base.progress import Progress, silent
from certsynth.domain import Schema
from certsynth.domain.possible import check_rules
from certsynth.errors import InputError
from certsynth.mechanisms import Neighbours
from certsynth.planning.cache import remembered
from certsynth.planning.plan import Plan
from certsynth.queries.fine import FineMarginals


def plan(
    schema: Schema,
    *,
    rows: int,
    epsilon: Any = None,
    delta: Any = None,
    rho: Any = None,
    sparsity: int | None = None,
    subsets: Sequence[Sequence[str]] | None = None,
    resolution: int | Literal["auto"] | None = None,
    mechanism: str | None = None,
    projection: str = "auto",
    loss: str | None = None,
    certificate_share: Any = None,
    confidence: Any = None,
    neighbours: str = Neighbours.REPLACE_ONE,
    preset: str | None = None,
    columns: Sequence[str] | None = None,
    memory: int | None = None,
    progress: Progress = silent,
) -> Plan:
    """What certificate to expect for a table with this schema and so many rows, per mechanism and resolution.

    No row is read. The choice is the one that `release` makes with the same arguments for a table of so many rows;
    where their number is private it takes `--rows` for it. Answers are remembered in a folder of the user's cache.

    Args:
        schema: what a row may hold; not a draft.
        rows: how many rows the private table has, or will have: a number.
        epsilon: the budget, above 0 and at most 100. Alone it is pure ε-differential privacy.
        delta: with this, (ε, δ)-differential privacy and Gaussian noise: above 0, at most 0.01.
        rho: the budget of zero-concentrated differential privacy, alone or in place of one of the two.
        sparsity: how many columns a statistic may look at: 2, or 1 if there is only one column.
        subsets: in place of `sparsity`, the subsets of columns that matter, of any sizes, as lists of names.
        resolution: how many cells a column is cut into, or "auto".
        mechanism: how counts get their noise, or "auto".
        projection: how rows are fitted: "particles", "public", "full-grid", "drawn" or "auto".
        loss: fit by a linear program, and make this small: "transport" or "path".
        certificate_share: share of the budget for the direct certificate, by default 0.05; 0 for none.
        confidence: how sure the certificate is: at least 0.5 and below 1, by default 0.95.
        neighbours: "replace-one" (the number of rows is public) or "add-remove" (it is not).
        preset: "paper" does all as the paper does.
        columns: use only these columns of the schema.
        memory: the most bytes that may be used; by default what the machine has free.
        progress: told what is being done; silent by default.
    """
    schema = usable(schema, columns, subsets)
    check_rules(schema)
    if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= MAX_ROWS:
        raise InputError(f"rows must be the number of private rows, from 1 to {MAX_ROWS:,}; got {rows!r:.20}.")
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
        "certificate_share": certificate_share,
        "confidence": confidence,
        "neighbours": neighbours,
        "preset": preset,
    }
    asked = {**options, "rows": None, "candidates": 1}
    settings = checked_settings(Request(schema, asked, has_public=projection == "public", call="plan"))
    task = Task(schema, settings, rows)

    def planned() -> Plan:
        if settings.share:
            check_lattice(FineMarginals.of(schema, settings.subsets), memory=memory)
        return METHODS[settings.method].plan(task, memory=memory, progress=progress)

    question = {"plan": 10, "schema": schema.to_toml(), "rows": rows, "memory": memory}
    question |= {key: None if value is None else str(value) for key, value in options.items()}
    found = remembered(question, lambda: planned().to_json())
    try:
        return Plan.from_json(found)
    except (KeyError, TypeError):  # somebody else wrote that
        return planned()
