"""The loss caused by noise alone, drawn from its law: no rows are needed."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from certsynth.algorithm.layers import noise_costs
from certsynth.base.arrays import Floats
from certsynth.base.parallel import MIN_PROCESS_WORK, run
from certsynth.certificate.plug_in import TRANSPORT_COLUMNS
from certsynth.domain import Cells, Groups
from certsynth.domain.label_metric import LabelMetric
from certsynth.mechanisms import Budget, FullMeasurement, Guarantee, Neighbours, Strategy, strategy_named
from certsynth.mechanisms.measure import sensitivity, simulate_all
from certsynth.mechanisms.registry import WEIGHT_GROWTHS
from certsynth.mechanisms.samplers import calibrated_scale
from certsynth.queries import Marginals
from certsynth.transport import Network, Path, path_loss, transport_loss

_MAX_DRAWS, _MAX_TABLES = 4, 3  # noise draws averaged, and tables on which noise costs most, compared
_MIN_LINE_DRAWS = 16  # noise draws for single columns, which are quick
_MAX_SOLVED_CELLS = 30_000  # cells × draws × tables: losses on many cells vary little
_LINE_DRAWS_PER_SOLVE = 8  # noise is drawn for all tables at once: fewer draws if a table has very many cells


def blank_measurement(marginals: Marginals, strategy: Strategy, budget: Budget) -> FullMeasurement:
    """A measurement of an empty table, to draw its noise from."""
    change = sensitivity(marginals, strategy)
    return FullMeasurement(
        marginals=marginals,
        strategy=strategy,
        coefficients=tuple(np.zeros(strategy.length(marginals.of(s)), np.int64) for s in marginals.subsets),
        total=0,
        scale=calibrated_scale(change, budget) if change else 1.0,
        cost=Guarantee(budget, strategy.neighbours),
    )


def noise_losses(
    measurements: Sequence[FullMeasurement], *, rows: int, draws: int | None = None, most: int | None = None
) -> list[Floats]:
    """For each measurement, the losses of joint noise draws: for each draw the largest over some tables.

    These are the `most` tables on which noise should cost most, and the one on which it should cost least. Measurements
    of single columns may have more draws than others.
    """
    solved = _MAX_SOLVED_CELLS // max(max(m.marginals.sizes()) for m in measurements)
    most = max(1, min(_MAX_TABLES, solved)) if most is None else most
    draws = max(1, min(_MAX_DRAWS, solved // most)) if draws is None else draws
    line_draws = max(draws, min(_MIN_LINE_DRAWS, max(_MAX_DRAWS, _LINE_DRAWS_PER_SOLVE * solved)))
    noise, _ = simulate_all(measurements, np.random.default_rng(0), line_draws)
    found = []
    for measurement, blocks in zip(measurements, noise, strict=True):
        marginals = measurement.marginals
        costs = noise_costs(marginals.cells, marginals.subsets)
        weights = np.array([marginals.weight(j) for j in range(len(costs))])
        by_cost = np.argsort(-costs / weights, kind="stable")
        order = np.union1d(by_cost[:most], by_cost[-1:])  # the last as well, in case the estimated costs mislead
        used = line_draws if max(map(len, marginals.subsets)) == 1 else draws
        losses = [_losses(blocks[j][:used] / max(rows, 1), marginals, int(j), measurement.strategy) for j in order]
        found.append(np.max(losses, axis=0))
    return found


def _losses(block: Floats, marginals: Marginals, j: int, strategy: Strategy) -> Floats:
    """Losses of signed measures on one table. Groups are treated as equally wide, which is faster."""
    cells = [_evenly_spaced(c) for c in marginals.of(marginals.subsets[j])]
    if _balanced_on_a_line(block, cells):
        return path_loss(block, np.zeros_like(block), Path.along(cells))
    if len(cells) > TRANSPORT_COLUMNS:
        return path_loss(block, np.zeros_like(block), Path.along(cells, strategy.order))
    return transport_loss(block, np.zeros_like(block), network_of(cells))


def _balanced_on_a_line(block: Floats, cells: Sequence[Cells]) -> bool:
    """Whether the cells form a line and the block sums to 0: then running sums give the loss without a solver."""
    line = len(cells) == 1 and not cells[0].off_line
    return line and bool((np.abs(block.sum(axis=-1)) <= 1e-12 * np.abs(block).sum(axis=-1)).all())


def network_of(cells: Sequence[Cells]) -> Network:
    """The network of some cells, cached, since designs are compared on the same ones."""
    return _network(tuple((c.places.tobytes(), c.steps, c.off_line, c.weight, c.label_metric) for c in cells))


@functools.lru_cache(maxsize=16)
def _network(shape: tuple[tuple[bytes, int, int, Fraction, LabelMetric | None], ...]) -> Network:
    return Network.of([Cells(np.frombuffer(p, np.int64), *rest) for p, *rest in shape])  # type: ignore[arg-type]


def _evenly_spaced(cells: Cells) -> Cells:
    if not isinstance(cells, Groups):
        return cells
    line = len(cells.places)
    steps = max(round(line / cells.weight), 1)
    return Cells(
        places=np.arange(line),
        steps=steps,
        off_line=cells.off_line,
        weight=cells.weight,
        label_metric=cells.label_metric,
    )


def best_strategy(
    marginals: Marginals, names: Sequence[str], neighbours: Neighbours, *, budget: Budget, rows: int
) -> Strategy:
    """The strategy, with the growth of its weights, whose noise causes the least loss on these marginals."""
    strategies = [
        strategy_named(name, neighbours=neighbours, growth=growth)
        for name in names
        for growth in WEIGHT_GROWTHS.get(name, (None,))
    ]
    if len(strategies) == 1:
        return strategies[0]
    tasks = [(marginals, strategy, budget, rows) for strategy in strategies]
    work = 50 * len(tasks) * max(marginals.sizes())
    threads = min(
        work, MIN_PROCESS_WORK - 1
    )  # threads, not processes, however many cells: the work on draws is bounded
    losses = run(_mean_loss, tasks, work=threads, phase="comparing mechanisms")
    return strategies[int(np.argmin(losses))]


def _mean_loss(marginals: Marginals, strategy: Strategy, budget: Budget, rows: int) -> float:
    return float(noise_losses([blank_measurement(marginals, strategy, budget)], rows=rows)[0].mean())
