"""The largest errors of shares, group totals and moments over all columns and pairs of a certificate.

For a fixed synthetic table each of these maxima, times the number of private rows, changes by at most 1 when one
private row changes (docs/explanation/proofs/statistics.md), so each can be released with noise for one row. That holds
for exact maxima only: a box is skipped only if it cannot have the largest error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial

from certsynth.base.progress import Progress, silent
from certsynth.base.threads import in_threads
from certsynth.certificate.shares import largest_box_error, largest_set_error, largest_share_error
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

SCORE = "score"
"""Name of the number by which exceptions are chosen, among the losses of one subset."""


@dataclass(slots=True)
class StatisticMaxima:
    """The largest errors so far, in multiples of 1/LOSS_UNITS rows, rounded up: the integers that receive noise.

    A maximum over nothing is None; whether it is depends on the schema and the subsets alone. If `scores` is a dict, it
    collects a number in the same units for each subset, which changes by at most one row as well: the largest error of
    a share over a set or box, or over any set of cells if both columns have labels, which comes closer to their loss.
    Then no box is skipped because of other subsets.
    """

    share_of_one_column: int | None = None
    share_of_two_columns: int | None = None
    group_total: int | None = None
    moment: int | None = None
    scores: dict[Subset, int] | None = None
    done: int = field(default=0, repr=False)

    @property
    def losses(self) -> dict[str, int]:
        """All maxima that are not None, by name."""
        names = ("share_of_one_column", "share_of_two_columns", "group_total", "moment")
        return {name: loss for name in names if (loss := getattr(self, name)) is not None}

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
                if self.scores is not None:
                    self.scores[fine.marginals.subsets[j]] = found.pop(SCORE)
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
        errors, totals = {}, {}
        if len(cells) == 1:
            sets = share_cells(list(fine.schema)[fine.marginals.subsets[j][0]], cells[0])
            errors["share_of_one_column"] = largest_share_error(sets, merge_points(sets, measure))
            if lines:
                totals["moment"] = largest_moment_error(*cells, *blocks)
        elif len(cells) == 2:
            least = 0
            if self.scores is None:
                least = (self.share_of_two_columns or 0) * synthetic.rows // share_unit
            errors["share_of_two_columns"] = largest_box_error(*cells, measure, least=least)
            if lines:
                totals["group_total"] = largest_total_error(*cells, *blocks)
            if lines == 2:
                totals["moment"] = product_moment_error(*cells, *blocks)
        else:
            raise ValueError("shares, group totals and moments are of one or two columns")
        if self.scores is not None:
            errors[SCORE] = largest_set_error(measure) if len(cells) == 2 and not lines else max(errors.values())
        return {name: -(-share_unit * error // synthetic.rows) for name, error in errors.items()} | {
            name: -(-LOSS_UNITS * error // (synthetic.rows * UNITS)) for name, error in totals.items()
        }
