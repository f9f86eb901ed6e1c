"""Sentences on how close the rows are to the noisy tables, for the report and the command line."""

from __future__ import annotations

import math
from collections.abc import Sequence

from certsynth.record.record import FitRecord
from certsynth.report.numerals import text


def closeness(found: FitRecord) -> str:
    """How close the rows are to the noisy tables.

    >>> from certsynth.record.record import FitRecord, MisfitRecord
    >>> closeness(FitRecord(91, (MisfitRecord(("age", "sex"), 1.12),), ()))
    'rows are within 1.2 times the noise of all 91 tables; furthest: age × sex'
    """
    furthest = found.furthest[0]
    times = f"{math.ceil(10 * furthest.misfit) / 10:,.1f}"
    tables = "the only table" if found.tables == 1 else f"all {found.tables:,} tables"
    return f"rows are within {times} times the noise of {tables}; furthest: {table_name(furthest.columns)}"


def table_name(columns: Sequence[str]) -> str:
    return " × ".join(text(name) for name in columns)


def likely_functions(found: FitRecord) -> list[str]:
    """A suggestion for each pair of columns whose noisy counts look like a function.

    >>> from certsynth.record.record import FitRecord, FunctionRecord, MisfitRecord
    >>> furthest, likely = MisfitRecord(("code", "group"), 0.5), FunctionRecord("code", "group", 0.003)
    >>> likely_functions(FitRecord(1, (furthest,), (likely,)))
    ['group looks like a function of code: declare it as derived in a further release, which spends again']
    """
    return [
        f"{text(each.derived)} looks like a function of {text(each.source)}: declare it as derived in a further "
        "release, which spends again"
        for each in found.functions
    ]
