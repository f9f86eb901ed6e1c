"""The largest errors of shares between the borders that a schema names: its bands.

Sets of a column with bands are intervals of bands, which are few, so that their largest error is smaller than that of
all intervals. An ordered column without bands is taken as a whole; labels have all sets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from certsynth.certificate.shares import largest_box_error, largest_share_error
from certsynth.certificate.skipping import LOSS_UNITS
from certsynth.domain import Schema
from certsynth.queries.marginals import CellCounts, Counts, Marginals, Subset, subsets_within
from certsynth.queries.statistics import band_cells, has_bands
from certsynth.queries.tally import Rows
from certsynth.transport import difference

NAMES = ("band_of_one_column", "band_of_two_columns")
"""Names of these errors, by the number of columns less 1."""


def band_tables(schema: Schema, subsets: Sequence[Subset]) -> tuple[Subset, ...]:
    """The single columns and the pairs in the subsets that have a column with bands."""
    banded = [has_bands(column) for column in schema]
    return tuple(table for ways in (1, 2) for table in subsets_within(subsets, ways) if any(banded[j] for j in table))


def band_names(schema: Schema, subsets: Sequence[Subset]) -> tuple[str, ...]:
    """The errors that exist for these subsets."""
    widths = {len(table) for table in band_tables(schema, subsets)}
    return tuple(name for ways, name in enumerate(NAMES, start=1) if ways in widths)


def band_errors(schema: Schema, subsets: Sequence[Subset], private: Rows, synthetic: Rows) -> dict[str, int]:
    """The largest errors in multiples of 1/LOSS_UNITS rows, rounded up: one row changes each by at most LOSS_UNITS."""
    tables = band_tables(schema, subsets)
    if not tables:
        return {}
    marginals = Marginals(cells=tuple(map(band_cells, schema)), subsets=tables)
    tally = CellCounts(schema, marginals)
    ours, theirs = private(tally), synthetic(tally)
    found = dict.fromkeys(band_names(schema, subsets), 0)
    for j, table in enumerate(tables):
        name = NAMES[len(table) - 1]
        found[name] = max(found[name], _error(marginals, ours, theirs, j))
    return found


def _error(marginals: Marginals, private: Counts, synthetic: Counts, j: int) -> int:
    cells = marginals.of(marginals.subsets[j])
    measure, _ = difference(private.blocks[j], synthetic.blocks[j])
    if len(cells) == 1:
        error = largest_share_error(cells[0], measure)
    else:
        error = largest_box_error(cells[0], cells[1], measure)
    return -(-LOSS_UNITS * math.gcd(private.rows, synthetic.rows) * error // synthetic.rows)
