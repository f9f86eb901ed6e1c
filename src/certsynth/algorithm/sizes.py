"""Estimate memory and time from the schema alone, and refuse what cannot fit before any row is read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from certsynth.base.memory import allowed_memory, default_memory
from certsynth.certificate.passes import POINT_BYTES, network_bytes
from certsynth.certificate.plug_in import MAX_DRAWN_CELLS, PILOT_DRAWS
from certsynth.certificate.skipping import COARSE_BOUNDS
from certsynth.domain import Schema
from certsynth.errors import TooLarge
from certsynth.projection.synthesis import max_particles
from certsynth.queries import Marginals
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.marginals import Subset
from certsynth.queries.net import nodes_per_net
from certsynth.queries.occupied import MAX_GRID_CELLS, grid_cells

MAX_LABELLED_POINTS = 600_000
"""Lattice points of a table of labels with a line or a metric, at most: comparing two larger tables takes minutes."""

MAX_OTHER_DRAWS = 16
"""Draws of the noise on all cells that planning, estimation and fitting keep in memory, at most."""

EXPECTED_LARGE_SOLVES = 12
"""Approximate number of subsets with many lattice points that are solved before bounds rule out all others."""

FIT_SECONDS = 4.5e-7
"""Seconds per table and particle to fit rows, at most: where noise exceeds most counts. Elsewhere it is a quarter."""

BYTES_PER_NODE = 20_000
"""Bytes per node of a net while two tables are compared on it, at most."""

MAX_PROGRAM_CELLS = {"transport": 50_000, "path": 300_000}
"""Cells of all tables, at most, by loss: beyond, the linear program of Step 3 takes more than about ten minutes on two
cores."""


@dataclass(frozen=True, slots=True)
class Size:
    """Cells, memory in bytes and time in seconds on two cores."""

    cells: int
    bytes: int
    seconds: float

    def __str__(self) -> str:
        return f"{self.cells:,} cells, about {self.bytes / 2**30:.2g} GB and {self.seconds:,.0f} s"


def size_of(marginals: Marginals, *, draws: int) -> Size:
    """Estimated size of counting, noise and plug-in certificate. The seconds are a rough figure."""
    sizes = marginals.sizes()
    cells = sum(sizes)
    drawn = max(MAX_OTHER_DRAWS * cells, min((draws + PILOT_DRAWS) * cells, MAX_DRAWN_CELLS))
    held = 8 * cells + 3 * drawn  # counts, coefficients and estimates; draws and their images
    network = 40 * max(sizes) * 30 * (os.cpu_count() or 1)  # nodes × arcs, in each worker
    seconds = (draws + PILOT_DRAWS) * sum(3e-5 + 5e-8 * float(size) ** 1.5 for size in sizes) / 1.5
    return Size(cells=cells, bytes=8 * held + network, seconds=seconds)


def size_of_release(
    schema: Schema, marginals: Marginals, fine: LatticeQuery | None, *, rows: int, draws: int, program: bool = False
) -> Size:
    """Estimated size of a whole release: counting, fitting and both certificates.

    `program`: rows are fitted by a linear program rather than by particles.
    """
    tables = len(marginals.subsets)
    plug_in = size_of(marginals, draws=draws)
    counting = 3e-8 * rows * (tables + 10 * len(schema))
    if program:
        fitting = 13 * (plug_in.cells / 10_000) ** 1.5
    else:
        particles = min(rows, max_particles(tables)) if max(map(len, marginals.subsets)) > 1 else 0
        fitting = FIT_SECONDS * tables * particles
    comparing = held = 0.0
    if fine is not None:
        points, nodes = fine.on_lattices.sizes(), nodes_per_net(len(fine.wide))
        comparing = comparing_seconds(points)
        held = float(min(lattice_bytes(points, sum(points)), default_memory())) if points else 0.0
        comparing += len(fine.wide) * 10 * (nodes / 20_000) ** 1.5
        held += BYTES_PER_NODE * nodes if fine.wide else 0
    seconds = 3.0 + counting + fitting + comparing + plug_in.seconds
    return Size(cells=plug_in.cells, bytes=plug_in.bytes + int(held) + 200 * 2**20, seconds=seconds)


def comparing_seconds(points: Sequence[int]) -> float:
    """Seconds to compare two tables: small subsets are solved, large ones bounded, and a few of these also solved."""
    most, small = EXPECTED_LARGE_SOLVES, COARSE_BOUNDS[0][1]
    largest = sorted(points, reverse=True)[:most]
    each = (2e-3 + 4e-6 * p if p < small else 0.012 for p in points)
    return (sum(each) + sum(7e-6 * p for p in largest if p >= small)) / 1.5


def check_size(marginals: Marginals, *, draws: int, memory: int | None = None) -> None:
    """Refuse marginals that do not fit into memory, with the numbers, before the data is opened."""
    size = size_of(marginals, draws=draws)
    limit = allowed_memory(memory)
    if size.bytes > limit:
        raise TooLarge(
            f"{len(marginals.subsets):,} marginals need {size}, more than the {limit / 2**30:.2g} GB at hand: lower "
            "the resolution or the sparsity, name fewer columns or subsets, or merge labels of large categories."
        )


def check_grid(schema: Schema, resolution: int | None) -> None:
    """Refuse a grid of all columns whose cells cannot be numbered."""
    cells = grid_cells(schema, resolution or 1)
    if cells >= MAX_GRID_CELLS:
        raise TooLarge(
            f"a grid of all {len(schema)} columns has {Decimal(cells):.1e} cells, more than can be numbered: lower the "
            "resolution, name fewer columns, or merge labels of large categories."
        )


def check_program(marginals: Marginals, *, loss: str) -> None:
    """Refuse a program of Step 3 that would take hours."""
    cells, most = sum(marginals.sizes()), MAX_PROGRAM_CELLS[loss]
    if cells > most:
        other = ' or choose `loss="path"`' if loss == "transport" and cells <= MAX_PROGRAM_CELLS["path"] else ""
        raise TooLarge(
            f"fitting {cells:,} cells with the {loss} loss would take hours; up to {most:,} are allowed: lower the "
            f"resolution, name fewer columns{other}."
        )


def check_lattice(fine: LatticeQuery, *, memory: int | None = None) -> None:
    """Refuse a lattice that does not fit into memory, before the data is opened.

    Subsets that do not fit together are counted in several passes; the largest must fit by itself.
    """
    sizes = fine.on_lattices.sizes()
    for subset, size in zip(fine.on_lattices.subsets, sizes, strict=True):
        _check_labels(fine, subset, size)
    if not sizes:
        return
    largest = max(sizes)
    needed = lattice_bytes(sizes, largest)
    limit = allowed_memory(memory)
    if needed > limit:
        raise TooLarge(
            f"comparing tables on {largest:,} lattice points needs about {needed / 2**30:.2g} GB, more than the "
            f"{limit / 2**30:.2g} GB at hand: choose a coarser `lattice`, a lower `sparsity` or fewer columns."
        )


def _check_labels(fine: LatticeQuery, subset: Subset, size: int) -> None:
    """Refuse to compare very many labels combined with a line or a metric: no other comparison is as slow."""
    cells = fine.marginals.of(subset)
    lines = [c for c in cells if len(c.places) > 1 or c.label_metric is not None]
    labels = [j for j in subset if not len(fine.marginals.cells[j].places)]
    if size <= MAX_LABELLED_POINTS or not lines or not labels:
        return
    most = max(labels, key=lambda j: fine.marginals.cells[j].size)
    count = fine.marginals.cells[most].size
    raise TooLarge(
        f"column {fine.schema.names[most]!r} has {count:,} labels: with other columns these are {size:,} points, "
        f"and up to {MAX_LABELLED_POINTS:,} are compared. In the schema merge labels that few rows have (other = true "
        "takes what is not listed), or name subsets without it in a workload."
    )


def lattice_bytes(sizes: Sequence[int], points: int) -> int:
    """Bytes for counts on `points` lattice points at a time, and for the networks of all workers."""
    return POINT_BYTES * points + network_bytes(sizes)
