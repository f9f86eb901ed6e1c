"""Before any row is read: what the work will take, and which mechanism and resolution promise most."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from certsynth.certificate.plug_in import PILOT_DRAWS, TRANSPORT_COLUMNS
from certsynth.domain import Schema
from certsynth.errors import TooLarge
from certsynth.mechanisms import Guarantee, Measurement, Neighbours, Strategy
from certsynth.mechanisms.measure import sensitivity
from certsynth.mechanisms.strategy import strategy_named
from certsynth.queries import Marginals
from certsynth.queries.fine import FineMarginals
from certsynth.transport import Network, Path, path_loss, transport_loss

RESOLUTIONS = (4, 6, 8, 12, 16, 24, 32)
MECHANISMS = ("identity", "haar")
_REHEARSAL_DRAWS = 6
_REHEARSAL_SUBSETS = 4
PROGRAM_CELLS = {"transport": 50_000, "path": 300_000}
"""Cells beyond which the linear programs of Step 3 take more than about ten minutes on two cores."""

PROMPT_CELLS, PARTICLE_CELLS = 12_000, 2_000_000
"""Cells up to which a resolution is chosen without being asked for: by programs, or particles, more take minutes."""

WORST_INSIDE, TYPICAL_INSIDE = Fraction(1, 2), Fraction(1, 8)
"""What putting rows at the centre of cells of unit width costs at worst; and twice what it cost on survey tables to
forget no more than how columns hang together inside cells (docs/explanation/projection.md)."""


@dataclass(frozen=True, slots=True)
class Size:
    """What counting, noise and certificate will take."""

    cells: int
    bytes: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.cells:,} cells, about {self.bytes / 2**30:.2g} GB and {self.seconds:,.0f} s"


def size_of(marginals: Marginals, *, draws: int) -> Size:
    """Estimated from the schema alone. The seconds are those of two cores, and only rough."""
    sizes = marginals.sizes()
    cells = sum(sizes)
    copies = 8 + (draws + PILOT_DRAWS) * 3  # counts, coefficients and estimates, and the draws with their images
    network = 40 * max(sizes) * 30 * (os.cpu_count() or 1)  # nodes × arcs, in each worker
    nodes = [float(size) for size in sizes]
    seconds = (draws + PILOT_DRAWS) * sum(1e-6 * n * (1 + n / 500) ** 0.5 for n in nodes) / 1.5
    return Size(cells=cells, bytes=8 * cells * copies + network, seconds=seconds)


def check_size(marginals: Marginals, *, draws: int, memory: int | None = None) -> None:
    """Refuse what cannot fit, with the numbers, before the data is opened."""
    size = size_of(marginals, draws=draws)
    limit = default_memory() if memory is None else memory
    if size.bytes > limit:
        raise TooLarge(
            f"{len(marginals.subsets):,} marginals need {size}, more than the {limit / 2**30:.2g} GB at hand: lower "
            "the resolution or the sparsity, name fewer columns, or merge labels of large categories."
        )


def check_program(marginals: Marginals, *, loss: str) -> None:
    """Refuse a program of Step 3 that would take hours."""
    cells, most = sum(marginals.sizes()), PROGRAM_CELLS[loss]
    if cells > most:
        other = " or choose --loss path" if loss == "transport" and cells <= PROGRAM_CELLS["path"] else ""
        raise TooLarge(
            f"fitting {cells:,} cells with the {loss} loss would take hours; up to {most:,} are allowed: lower the "
            f"resolution, name fewer columns{other}."
        )


def check_lattice(fine: FineMarginals, *, memory: int | None = None) -> None:
    """Refuse a lattice that cannot fit, before the data is opened."""
    sizes = fine.marginals.sizes()
    needed = 16 * sum(sizes) + 1500 * max(sizes) * min(len(sizes), os.cpu_count() or 1)  # counts, networks in workers
    limit = default_memory() if memory is None else memory
    if needed > limit:
        raise TooLarge(
            f"{len(sizes):,} marginals of up to {max(sizes):,} lattice points need about {needed / 2**30:.2g} GB, more "
            f"than the {limit / 2**30:.2g} GB at hand: choose a coarser --lattice, a lower sparsity or fewer columns."
        )


def default_memory() -> int:
    """Half of the machine's memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def rehearse(marginals: Marginals, strategy: Strategy, *, epsilon: Fraction, rows: int) -> float:
    """Mean loss of the noise alone, max over some marginals: a draw of its law, no data."""
    scale = sensitivity(marginals, strategy) / float(epsilon)
    if not scale:
        return 0.0
    blank = Measurement(
        marginals=marginals,
        strategy=strategy,
        coefficients=tuple(np.zeros(strategy.length(size), np.int64) for size in marginals.sizes()),
        total=0,
        scale=scale,
        cost=Guarantee(epsilon, strategy.neighbours),
    )
    noise, _ = blank.simulate(np.random.default_rng(0), _REHEARSAL_DRAWS)
    largest = np.argsort([-size for size in marginals.sizes()], kind="stable")[:_REHEARSAL_SUBSETS]
    losses = []
    for j in largest:
        cells, block = marginals.of(marginals.subsets[j]), noise[j] / max(rows, 1)
        if len(cells) > TRANSPORT_COLUMNS:
            losses.append(path_loss(block, np.zeros_like(block), Path.along(cells, strategy.order)))
        else:
            losses.append(transport_loss(block, np.zeros_like(block), Network.of(cells)))
    return float(np.max(losses, axis=0).mean())


def best_mechanism(
    marginals: Marginals, mechanisms: Sequence[str], neighbours: Neighbours, *, epsilon: Fraction, rows: int
) -> str:
    """The mechanism whose noise costs least on these marginals."""
    if len(mechanisms) == 1:
        return mechanisms[0]
    strategies = [strategy_named(name, neighbours=neighbours) for name in mechanisms]
    losses = [rehearse(marginals, strategy, epsilon=epsilon, rows=rows) for strategy in strategies]
    return mechanisms[int(np.argmin(losses))]


@dataclass(frozen=True, slots=True)
class Choice:
    """A mechanism and a resolution, with what they promise: what a cell loses, plus twice the loss of the noise.

    Paper: Eq. (15) [expected-loss]
    """

    mechanism: str
    resolution: int
    predicted: float


def choose(
    schema: Schema,
    *,
    sparsity: int,
    rows: int,
    epsilon: Fraction,
    neighbours: Neighbours,
    mechanisms: Sequence[str] = MECHANISMS,
    resolutions: Sequence[int] = RESOLUTIONS,
    draws: int,
    inside: Fraction = WORST_INSIDE,
    most_cells: int = PROMPT_CELLS,
    memory: int | None = None,
) -> Choice:
    """The mechanism and resolution with the smallest expected loss. `rows` must be public.

    `inside` is what a cell of unit width loses; more than `most_cells` cells are taken only if nothing else is left.
    """
    best: Choice | None = None
    too_large: TooLarge | None = None
    for resolution in resolutions:
        marginals = Marginals.all_subsets(schema, sparsity=sparsity, resolution=resolution)
        try:
            check_size(marginals, draws=draws, memory=memory)
        except TooLarge as error:
            too_large = error
            break
        if best and sum(marginals.sizes()) > most_cells:
            break
        losses = {
            name: rehearse(marginals, strategy_named(name, neighbours=neighbours), epsilon=epsilon, rows=rows)
            for name in mechanisms
        }
        for mechanism, loss in losses.items():
            candidate = Choice(mechanism, resolution, float(inside / resolution) + 2 * loss)
            if best is None or candidate.predicted < best.predicted:
                best = candidate
        if best and 2 * min(losses.values()) > best.predicted:
            break  # more cells have more noise
    if best is None:
        raise too_large or TooLarge("no resolution fits")
    return best
