"""The largest errors of shares, group totals and moments over all columns and pairs of a certificate.

For a fixed synthetic table each of these maxima, times the number of private rows, changes by at most 1 when one
private row changes (docs/explanation/proofs/statistics.md), so each can be released with noise for one row. That holds
for exact maxima only: a box is skipped only if it cannot have the largest error.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial

from certsynth.base.progress import Progress, silent
from certsynth.base.threads import in_threads
from certsynth.certificate.shares import largest_box_error, largest_share_error
from certsynth.certificate.skipping import LOSS_UNITS
from certsynth.certificate.totals import largest_moment_error, largest_total_error, product_moment_error
from certsynth.queries.fine import LatticeCounts, LatticeQuery
from certsynth.queries.marginals import Subset
from certsynth.queries.statistics import UNITS, is_line, merge_points, share_cells
from certsynth.transport import difference

STATISTICS_PHASE = "comparing shares, group totals and moments"
"""Progress message while these are compared."""

SUBSETS_PER_ROUND = 64
"""Subsets compared between two updates of the maxima, by all cores."""


MAXIMA = ("share_of_one_column", "share_of_two_columns", "group_total", "moment")
"""Names of these errors, in the order in which they are measured."""

OF_EXCEPTIONS = {"share_of_two_columns": "share_in_exceptions", "group_total": "group_total_in_exceptions"}
"""Errors of pairs of columns that are measured twice if there are exceptions: under their own name those of all other
pairs, and under this one those of the pairs that are exceptions."""


@dataclass(slots=True)
class StatisticMaxima:
    """The largest errors so far, in multiples of 1/LOSS_UNITS rows, rounded up: the integers that receive noise.

    A maximum over nothing is None; whether it is depends on the schema and the subsets alone. With `by_pair`, errors of
    pairs are kept one by one as well, and none is skipped.
    """

    share_of_one_column: int | None = None
    share_of_two_columns: int | None = None
    group_total: int | None = None
    moment: int | None = None
    by_pair: dict[Subset, dict[str, int]] | None = field(default=None, repr=False)
    done: int = field(default=0, repr=False)

    @property
    def losses(self) -> dict[str, int]:
        """All maxima that are not None, by name."""
        return {name: loss for name in MAXIMA if (loss := getattr(self, name)) is not None}

    def losses_with(self, exceptions: Collection[Subset]) -> dict[str, int]:
        """The same maxima, those of pairs without the exceptions, and after these the maxima of the exceptions. A
        maximum over no pairs is 0."""
        assert self.by_pair is not None
        found, of_exceptions = self.losses, {}
        for name, in_exceptions in OF_EXCEPTIONS.items():
            if name in found:
                errors = {pair: each[name] for pair, each in self.by_pair.items() if name in each}
                found[name] = max((error for pair, error in errors.items() if pair not in exceptions), default=0)
                of_exceptions[in_exceptions] = max((errors.get(pair, 0) for pair in exceptions), default=0)
        return found | of_exceptions

    def update(
        self,
        fine: LatticeQuery,
        private: LatticeCounts,
        synthetic: LatticeCounts,
        *,
        total: int | None = None,
        progress: Progress = silent,
    ) -> None:
        """Compare two tables in a group of single columns or of pairs, each counted on its own default lattice.

        `total` is the number of subsets in all groups. Every subset is one step of progress, whatever the rows.
        """
        count, sizes = len(fine.marginals.subsets), fine.marginals.sizes()
        total = count if total is None else total
        progress(STATISTICS_PHASE, self.done, total)
        for start in range(0, count, SUBSETS_PER_ROUND):
            part = range(start, min(start + SUBSETS_PER_ROUND, count))
            compare = partial(self._compare, fine, private, synthetic)
            for j, found in zip(part, in_threads(compare, part, rows=sum(sizes[j] for j in part)), strict=True):
                if self.by_pair is not None and len(subset := fine.marginals.subsets[j]) == 2:
                    self.by_pair[subset] = found
                for name, loss in found.items():
                    setattr(self, name, max(loss, getattr(self, name) or 0))
                self.done += 1
                progress(STATISTICS_PHASE, self.done, total)

    def _compare(self, fine: LatticeQuery, private: LatticeCounts, synthetic: LatticeCounts, j: int) -> dict[str, int]:
        """The losses of the j-th subset by name. A share of two columns may be that of an earlier subset if larger."""
        cells = fine.marginals.of(fine.marginals.subsets[j])
        blocks = private.counts.blocks[j], synthetic.counts.blocks[j]
        measure, _ = difference(*blocks)
        share_unit = LOSS_UNITS * math.gcd(private.rows, synthetic.rows)
        lines = sum(map(is_line, cells))
        errors: dict[str, int] = {}
        totals: dict[str, int | Fraction] = {}
        if len(cells) == 1:
            sets = share_cells(list(fine.schema)[fine.marginals.subsets[j][0]], cells[0])
            errors["share_of_one_column"] = largest_share_error(sets, merge_points(sets, measure))
            if lines:
                totals["moment"] = largest_moment_error(*cells, *blocks)
        elif len(cells) == 2:
            known = 0 if self.by_pair is not None else self.share_of_two_columns or 0
            least = known * synthetic.rows // share_unit
            errors["share_of_two_columns"] = largest_box_error(*cells, measure, least=least)
            if lines:
                totals["group_total"] = largest_total_error(*cells, *blocks)
            if lines == 2:
                totals["moment"] = product_moment_error(*cells, *blocks)
        else:
            raise ValueError("shares, group totals and moments are of one or two columns")
        return {name: -(-share_unit * error // synthetic.rows) for name, error in errors.items()} | {
            name: -(-LOSS_UNITS * error // (synthetic.rows * UNITS)) for name, error in totals.items()
        }
