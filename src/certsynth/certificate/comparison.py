"""Two tables on one lattice or net: exact transport for every subset of columns, in parallel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from certsynth.arrays import Ints
from certsynth.domain import Cells
from certsynth.parallel import run
from certsynth.progress import Progress, silent
from certsynth.queries.fine import MOVE_UNITS, FineCounts, FineMarginals
from certsynth.queries.net import Net
from certsynth.transport import Network, complete_bounds, transport_bounds


@dataclass(frozen=True, slots=True)
class Distance:
    """How far two tables are in one subset of columns: exact bounds on the lattice, and how far rows are from it.

    `upper` and `lower` bound the cheapest flow (equal if optimality was proved), `stretch` is that of the network, and
    `rounded` how much too long distances may be besides.
    """

    upper: Fraction
    lower: Fraction
    stretch: Fraction
    first_moved: Fraction
    second_moved: Fraction
    rounded: Fraction = Fraction(0)

    @property
    def proved(self) -> bool:
        return self.upper == self.lower


def distances(
    fine: FineMarginals, first: FineCounts, second: FineCounts, *, progress: Progress = silent
) -> list[Distance]:
    """One `Distance` for each subset. Both tables must have rows."""
    subsets, grounds = fine.marginals.subsets, fine.grounds()
    tasks: list[tuple[Net | Sequence[Cells], Ints, Ints]] = [
        (fine.marginals.of(subset) if net is None else net, a, b)
        for subset, net, a, b in zip(subsets, grounds, first.counts, second.counts, strict=True)
    ]
    work = sum(20 * size for size in fine.on_lattices.sizes()) + sum(1000 * len(net.nodes) for net in fine.nets)
    answers = run(_distance, tasks, work=work, phase="comparing the tables", progress=progress)
    return [
        Distance(
            upper, lower, stretch, _mean(a, first.rows), _mean(b, second.rows), Fraction(net is not None, MOVE_UNITS)
        )
        for (upper, lower, stretch), a, b, net in zip(answers, first.moved, second.moved, grounds, strict=True)
    ]


def _distance(ground: Net | Sequence[Cells], first: Ints, second: Ints) -> tuple[Fraction, Fraction, Fraction]:
    if isinstance(ground, Net):
        upper, lower, per = complete_bounds(ground.ruler, ground.nodes, ground.ways(), first, second)
        return Fraction(upper, per), Fraction(lower, per), Fraction(1)
    network = Network.of(ground)
    upper, lower, per = transport_bounds(network, first, second)
    return Fraction(upper, per), Fraction(lower, per), network.stretch


def _mean(moved: int, rows: int) -> Fraction:
    return Fraction(moved, MOVE_UNITS * rows)
