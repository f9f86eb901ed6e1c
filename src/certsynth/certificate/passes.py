"""Compare tables in passes over their rows, each of which counts as many subsets of columns as fit into memory."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from certsynth.base.progress import Progress, silent
from certsynth.certificate.comparison import Distance, distances, report_as_if_solved
from certsynth.certificate.direct import distances_to_empty
from certsynth.certificate.skipping import Largest, largest_distances, report_as_if_compared
from certsynth.certificate.statistics import StatisticMaxima
from certsynth.errors import InputError
from certsynth.queries.fine import LatticeCounts, LatticeQuery
from certsynth.queries.marginals import Marginals
from certsynth.queries.tally import Batch, Rows

POINT_BYTES, NETWORK_BYTES = 40, 1500
"""Bytes per lattice point: for the counts of both tables with temporaries, and for the network of a worker."""

TABLE_CHANGES = "a table changes while it is read. Give a fixed copy."
"""Message if passes see different numbers of rows."""

Batches = Callable[[], Iterable[Batch]]
"""Cleaned rows of a public table, from the start each time it is called."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Distances of several tables from `rows` private rows, one list per table, and the number of subsets solved."""

    rows: int
    found: tuple[tuple[Distance, ...], ...]
    solves: int
    passes: int


def passes_of(fine: LatticeQuery, memory: int) -> list[LatticeQuery]:
    """Split the subsets, in order, into as few groups as possible that each fit into `memory` bytes."""
    blocks = list(zip(fine.marginals.subsets, points_each(fine), fine.nets_by_subset(), strict=True))
    room = memory - network_bytes([points for _, points, _ in blocks])
    groups: list[LatticeQuery] = []
    start, taken = 0, 0
    for j, (_, points, _) in enumerate(blocks):
        if j > start and taken + POINT_BYTES * points > room:
            groups.append(part_of(fine, range(start, j)))
            start, taken = j, 0
        taken += POINT_BYTES * points
    return [*groups, part_of(fine, range(start, len(blocks)))]


def points_each(fine: LatticeQuery) -> list[int]:
    """The number of lattice or net points of each subset."""
    sizes = zip(fine.marginals.sizes(), fine.nets_by_subset(), strict=True)
    return [size if net is None else net.size for size, net in sizes]


def network_bytes(points: Sequence[int]) -> int:
    """Bytes of the networks, one in each worker."""
    return NETWORK_BYTES * max(points, default=0) * min(len(points), os.cpu_count() or 1)


def part_of(fine: LatticeQuery, positions: Sequence[int]) -> LatticeQuery:
    """The query for the subsets at these positions, on the same lattices and nets."""
    subsets, grounds = fine.marginals.subsets, fine.nets_by_subset()
    marginals = Marginals(cells=fine.marginals.cells, subsets=tuple(subsets[j] for j in positions))
    nets = tuple(net for j in positions if (net := grounds[j]) is not None)
    return dataclasses.replace(fine, marginals=marginals, nets=nets)


def compare_tables(
    fine: LatticeQuery,
    private: Rows,
    tables: Sequence[Rows],
    *,
    memory: int,
    every: bool = False,
    statistics: StatisticMaxima | None = None,
    what: str = "synthetic table",
    purpose: str = "compare",
    progress: Progress = silent,
) -> Comparison:
    """Compute exact distances of private rows to tables. Subsets that cannot have the largest distance are skipped
    unless `every` is true. `statistics` collects the largest errors of the last table's statistics from the same
    counts. Messages call the tables `what` and the operation `purpose`.

    Nets must have been built already. Rows are read once in each pass, and all passes must see the same rows. The
    number of passes and the reported progress depend only on `fine`, the number of tables and `memory`.
    """
    groups, subsets = passes_of(fine, memory), len(fine.marginals.subsets)
    largest, rows = [Largest() for _ in tables], 0
    if statistics is not None:
        statistics.done = 0
    found: list[list[Distance]] = [[] for _ in tables]
    for group in groups:
        ours: LatticeCounts | None = None
        for each, best, table in zip(found, largest, tables, strict=True):
            theirs = table(group)
            if not theirs.rows:
                raise InputError(f"the {what} has no rows, so there is nothing to {purpose}.")
            ours = ours or private(group)  # read private rows only if there is something to compare them with
            if group is not groups[0] and ours.rows != rows:
                raise InputError(TABLE_CHANGES)
            rows = ours.rows
            if statistics is not None:
                statistics.update(group, ours, theirs, total=subsets, progress=progress)
            after = _offset_progress(len(each), subsets, progress)
            if not rows:
                each += distances_to_empty(group, theirs)
                if every:
                    report_as_if_solved(group, progress=after)
                else:
                    report_as_if_compared(group, largest=best, total=subsets, progress=progress)
            elif every:
                each += distances(group, ours, theirs, progress=after)
            else:
                each += largest_distances(group, ours, theirs, largest=best, total=subsets, progress=progress)
            del theirs
    return Comparison(
        rows=rows,
        found=tuple(map(tuple, found)),
        solves=sum(best.solves for best in largest),
        passes=len(groups),
    )


def collect_statistics(
    query: LatticeQuery,
    private: Rows,
    table: Rows,
    statistics: StatisticMaxima,
    *,
    memory: int,
    progress: Progress = silent,
) -> None:
    """Collect the largest errors of statistics whose lattice is not that of a loss."""
    statistics.done = 0
    for group in passes_of(query, memory):
        total = len(query.marginals.subsets)
        statistics.update(group, private(group), table(group), total=total, progress=progress)


def _offset_progress(done_before: int, subsets: int, progress: Progress) -> Progress:
    """Report the progress of one group as progress of the whole."""

    def tell(phase: str, done: int, total: int | None) -> None:
        progress(phase, done_before + done, subsets)

    return tell
