"""The plug-in certificate: Eq. (4), evaluated on the emitted rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from certsynth.base.arrays import Floats
from certsynth.base.parallel import run
from certsynth.base.progress import Progress, silent
from certsynth.certificate.quantile import joint_quantiles, rank_quantile
from certsynth.domain import Cells, Schema
from certsynth.domain.column import discretisation
from certsynth.mechanisms import FullMeasurement, Neighbours
from certsynth.mechanisms.scalars import NoisyScalars
from certsynth.queries import Marginals
from certsynth.queries.fine import MOVE_UNITS
from certsynth.queries.marginals import Subset
from certsynth.transport import Network, Path, path_loss, transport_loss
from certsynth.transport.path import Order

Proxy = Literal["transport", "path"]

TRANSPORT_COLUMNS = 3
"""Most columns of a transport network; for larger subsets only the path loss is available."""

DISPLACEMENT_BETA = Fraction(1, 10)
"""Share of the failure probability for a measured discretisation, if there is one."""

PILOT_DRAWS = 20
"""Draws that determine the scales of the joint quantiles; independent of the draws that give the bounds."""

MAX_DRAWN_CELLS = 2**25
"""Cells times draws held in memory at a time: a quarter of a gigabyte, plus temporaries of a few times that."""

_OUTWARD = 1e-9  # exceeds the rounding error of the float sums in a term


@dataclass(frozen=True, slots=True)
class Proxies:
    """Parameters of the two proxy losses: the hub (None: half the diameter) and the end of the path.

    The paper has |f| ≤ 1, so a hub at 1, and keeps the last partial sum in the path loss, at 1/k.
    """

    hub: Fraction | None = None
    end: Fraction = Fraction(0)


DEFAULT_PROXIES = Proxies()


@dataclass(frozen=True, slots=True)
class Terms:
    """The three terms of the certificate for one marginal.

    Paper: Eq. (4) [certificate], Eq. (11) [discretisation]
    """

    discretisation: float
    privatisation: float
    projection: float

    @property
    def bound(self) -> float:
        """Their sum, capped at 1, the diameter of the space."""
        return min(1.0, self.discretisation + self.privatisation + self.projection)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Is further optimisation worthwhile? Compares the loss of the fit to ν with that of the noise, which is the loss
    that the private rows themselves would have.

    Paper: section 5.3 [diagnostic]
    """

    fit: float
    noise_mean: float
    noise_low: float
    noise_high: float

    @property
    def worth_optimising(self) -> bool:
        """Whether the fit is further from the measurement than the real rows are likely to be."""
        return self.fit > self.noise_high


@dataclass(frozen=True, slots=True, eq=False)
class PlugIn:
    """One certificate: the terms of each subset of columns, all valid simultaneously at `confidence`."""

    proxy: Proxy
    confidence: Fraction
    subsets: tuple[tuple[str, ...], ...]
    terms: tuple[Terms, ...]
    diagnostic: Diagnostic

    @property
    def bound(self) -> float:
        return max(terms.bound for terms in self.terms)

    @property
    def worst(self) -> Terms:
        """The terms of the subset with the largest bound."""
        return max(self.terms, key=lambda terms: terms.bound)


def plug_in(
    measurements: Sequence[FullMeasurement],
    schema: Schema,
    table: Sequence[np.ndarray],
    *,
    subsets: Sequence[Subset] | None = None,
    beta: Fraction,
    draws: int,
    seed: int,
    displaced: NoisyScalars | None = None,
    proxies: Proxies = DEFAULT_PROXIES,
    progress: Progress = silent,
) -> dict[Proxy, PlugIn]:
    """Certify cleaned rows `table` on `subsets` of columns, once for each proxy that can be computed.

    Each subset is read off the last measurement that contains it, by summing a table over its other columns: a linear
    map, so the distribution of its error is known as well. By default the subsets are those of the last measurement.

    `displaced` is the noisy sum of distances of private rows to the centres of their cells. If given, it determines the
    discretisation, capped by the worst case. It requires a single measurement, since it refers to its cells.

    `seed` seeds the Monte Carlo draws of the noise and nothing else. A release uses `seed.seed_of` its measurements: if
    the seed could be chosen, so could the certificate.

    Paper: Definition 2 [proxy-loss], Lemma 1 [certificate-holds], appendix C [projections]
    """
    if displaced and len(measurements) > 1:
        raise ValueError("a displacement refers to the cells of a single measurement")
    subsets = measurements[-1].marginals.subsets if subsets is None else subsets
    possible: list[Proxy] = ["transport", "path"]
    if max(map(len, subsets)) > TRANSPORT_COLUMNS:
        possible.remove("transport")
    drawn = _simulate(measurements, schema, table, subsets, possible, proxies, draws, seed, progress)
    hidden = measurements[-1].strategy.neighbours is Neighbours.ADD_REMOVE
    return {
        proxy: _certificate(
            proxy,
            drawn.tables,
            schema,
            drawn.losses[proxy],
            draws,
            drawn.rows,
            drawn.rows_error if hidden else None,
            displaced,
            beta,
        )
        for proxy in possible
    }


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """One measured subset of columns, with the inputs of its certificate.

    Rows of `fixed` are signed measures: the measurement minus the emitted rows, and the emitted rows alone. `away` is
    the mean distance of emitted rows from the centres of their cells. `layer` is 0 for measurements on fixed cells and
    1 for those whose cells may depend on the first measurement.
    """

    subset: Subset
    layer: int
    cells: tuple[Cells, ...]
    order: Order
    fixed: Floats
    away: float

    @property
    def shape(self) -> tuple[object, ...]:
        """Key of tables that share a scale: never across layers, since later cells may depend on the first noise."""
        return self.layer, *((c.size, c.span, c.off_line, c.weight, id(c.label_metric)) for c in self.cells)


@dataclass(frozen=True, slots=True, eq=False)
class _Simulation:
    """A `_Table` for each subset; by proxy, the losses of its noise draws, pilot draws and fixed measures, one column
    per subset; and the estimated number of rows with draws of its error, both from the last measurement.
    """

    tables: list[_Table]
    losses: dict[Proxy, Floats]
    rows: float
    rows_error: Floats


def _simulate(
    measurements: Sequence[FullMeasurement],
    schema: Schema,
    table: Sequence[np.ndarray],
    subsets: Sequence[Subset],
    possible: Sequence[Proxy],
    proxies: Proxies,
    draws: int,
    seed: int,
    progress: Progress,
) -> _Simulation:
    pilot, final = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(2))
    found: dict[Subset, _Table] = {}
    losses: dict[Proxy, dict[Subset, Floats]] = {proxy: {} for proxy in possible}
    total: tuple[float, Floats] | None = None
    for at, measurement in reversed(list(enumerate(measurements))):
        marginals = measurement.marginals
        own = [s for s in subsets if s not in found and marginals.find_holder(s) is not None]
        if not own:
            continue
        estimate, rows = measurement.estimate()
        rows_used = rows if total is None else total[0]
        tables = _tables(measurement, schema, table, own, estimate, rows_used, min(at, 1))
        errors = []
        costs: dict[Proxy, list[Floats]] = {proxy: [] for proxy in possible}
        batches = [(final, size) for size in draw_batches(marginals, draws)]
        batches += [(pilot, size) for size in draw_batches(marginals, PILOT_DRAWS)]
        done, measures = 0, draws + PILOT_DRAWS + len(tables[0].fixed)
        for rng, size in [*batches, (None, len(tables[0].fixed))]:
            if rng is None:
                blocks = [each.fixed for each in tables]
            else:
                drawn, error = measurement.simulate(rng, size)
                errors.append(error)
                blocks = [_marginal(marginals, drawn, s) for s in own]
                del drawn
            report = _scaled_progress(progress, done, size, measures)
            for proxy in possible:
                costs[proxy].append(_losses(proxy, tables, blocks, proxies, report))
            done += size
        for proxy in possible:
            losses[proxy] |= zip(own, np.concatenate(costs[proxy]).T, strict=True)
        total = total or (rows, np.concatenate(errors)[:draws])
        found |= zip(own, tables, strict=True)
    if total is None or len(found) < len(set(subsets)):
        raise ValueError("a subset of columns was not measured")
    return _Simulation(
        tables=[found[subset] for subset in subsets],
        losses={proxy: np.column_stack([each[s] for s in subsets]) for proxy, each in losses.items()},
        rows=total[0],
        rows_error=total[1],
    )


def draw_batches(marginals: Marginals, draws: int) -> list[int]:
    """Batch sizes that sum to `draws` and fit into memory. They depend on the measurement alone, since verification
    must repeat the same draws.

    >>> draw_batches(Marginals(cells=(Cells(np.arange(1000), 999, 0),), subsets=((0,),)), 200)
    [200]
    """
    most = max(1, MAX_DRAWN_CELLS // sum(marginals.sizes()))
    return [min(most, draws - start) for start in range(0, draws, most)]


def _scaled_progress(progress: Progress, before: int, measures: int, all_measures: int) -> Progress:
    """Report progress on some of the measures as progress on all of them."""

    def tell(phase: str, done: int, total: int | None) -> None:
        progress(phase, before * (total or 0) + measures * done, None if total is None else all_measures * total)

    return tell


def _marginal(marginals: Marginals, blocks: Sequence[Floats], subset: Subset) -> Floats:
    found = marginals.marginal_on(blocks, subset)
    assert found is not None
    return found


def _tables(
    measurement: FullMeasurement,
    schema: Schema,
    table: Sequence[np.ndarray],
    own: Sequence[Subset],
    estimate: Sequence[Floats],
    rows: float,
    layer: int,
) -> list[_Table]:
    """A `_Table` for each subset read off one measurement; `rows` is the total of its estimate."""
    marginals = measurement.marginals
    codes = [c.to_cells(x, cells) for c, x, cells in zip(schema, table, marginals.cells, strict=True)]
    emitted = Marginals(cells=marginals.cells, subsets=tuple(own)).count([codes])
    away = [c.distance_to_centre(x, grid) for c, x, grid in zip(schema, table, marginals.cells, strict=True)]
    found = []
    for subset, counts in zip(own, emitted, strict=True):
        shares = counts / len(table[0])
        found.append(
            _Table(
                subset=subset,
                layer=layer,
                cells=marginals.of(subset),
                order=measurement.strategy.order,
                fixed=np.vstack([_marginal(marginals, estimate, subset) - rows * shares, shares]),
                away=float(np.max([away[j] for j in subset], axis=0).mean()),
            )
        )
    return found


def _certificate(
    proxy: Proxy,
    tables: Sequence[_Table],
    schema: Schema,
    losses: Floats,
    draws: int,
    rows: float,
    rows_error: Floats | None,
    displaced: NoisyScalars | None,
    beta: Fraction,
) -> PlugIn:
    r"""Assemble the terms. Rows of `losses`: draws, pilot draws, the fit, and the emitted rows alone.

    Replace-one: n is known, and the terms are those of Eq. (4) divided by n. Add/remove: with n̂ the estimate of n,

    .. math:: n\,U(c_D/n, \mu) \le U(0, \eta) + U(\nu, \hat n\mu) + |n - \hat n|\,U(\mu, 0)

    and n ≥ n̂ − t, where t bounds |n − n̂| at the cost of half of β. A measured discretisation takes its share of β
    first. Cells of later measurements may depend on the noise of the first, so joint draws of both would not follow
    their joint distribution: if tables of the first and of later measurements are certified, each kind gets its own
    share of β.
    """
    noise, pilot, fit, alone = losses[:draws], losses[draws:-2], losses[-2], losses[-1]
    hidden = rows_error is not None
    for_moved = beta * DISPLACEMENT_BETA if displaced else Fraction(0)
    share = (beta - for_moved) / (2 if hidden else 1)
    error = 0.0 if rows_error is None else rank_quantile(np.abs(rows_error), share)
    least = rows - error
    scales, layers = _shared_scales(tables, pilot), np.array([table.layer for table in tables])
    quantiles = np.empty(len(tables))
    for layer in (kinds := np.unique(layers)):
        own = layers == layer
        quantiles[own] = joint_quantiles(noise[:, own], scales[own], share / len(kinds))
    quantiles[[table.fixed.shape[-1] == 1 for table in tables]] = 0.0  # one cell holds everything, whatever the noise
    moved = 1.0
    if displaced and least >= 1:
        moved = max(0, displaced.values[0] + displaced.slack(for_moved)) / MOVE_UNITS / least
    terms = []
    for j, table in enumerate(tables):
        widest = max(discretisation(schema.columns[c], g) for c, g in zip(table.subset, table.cells, strict=True))
        coarse = min(moved, float(widest))
        if least >= 1 and np.isfinite(quantiles[j]):
            privatisation = quantiles[j] / least
            projection = (fit[j] + (error * alone[j] if hidden else 0.0)) / least + table.away
        else:  # no bound follows if the table may be empty or the draws are too few
            privatisation, projection = 1.0, 0.0
        terms.append(Terms(_up(coarse), _up(privatisation), _up(projection)))
    names = schema.names
    largest, scale = np.max(noise, axis=1), max(rows, 1.0)
    return PlugIn(
        proxy=proxy,
        confidence=1 - beta,
        subsets=tuple(tuple(names[c] for c in table.subset) for table in tables),
        terms=tuple(terms),
        diagnostic=Diagnostic(
            fit=float(np.max(fit)) / scale,
            noise_mean=float(np.mean(largest)) / scale,
            noise_low=float(np.quantile(largest, 0.05)) / scale,
            noise_high=float(np.quantile(largest, 0.95)) / scale,
        ),
    )


def _losses(
    proxy: Proxy, tables: Sequence[_Table], blocks: Sequence[Floats], proxies: Proxies, progress: Progress
) -> Floats:
    """Losses of signed measures relative to 0: a column for each table, a row for each row of its block."""
    tasks = [(t.cells, block, proxies, t.order) for t, block in zip(tables, blocks, strict=True)]
    if proxy == "path":
        return np.column_stack([_path_losses(*task) for task in tasks])
    work = sum(block.size for block in blocks)
    return np.column_stack(run(_transport_losses, tasks, work=work, phase="simulating the noise", progress=progress))


def _transport_losses(cells: Sequence[Cells], block: Floats, proxies: Proxies, order: Order) -> Floats:
    return transport_loss(block, np.zeros_like(block), Network.of(cells, hub=proxies.hub))


def _path_losses(cells: Sequence[Cells], block: Floats, proxies: Proxies, order: Order) -> Floats:
    return path_loss(block, np.zeros_like(block), Path.along(cells, order, end=float(proxies.end)))


def _shared_scales(tables: Sequence[_Table], pilot: Floats) -> Floats:
    """Scale of the noise's loss in each table, from the pilot draws; tables of the same shape share it."""
    means = pilot.mean(axis=0)
    groups: dict[tuple[object, ...], list[float]] = {}
    for table, mean in zip(tables, means, strict=True):
        groups.setdefault(table.shape, []).append(float(mean))
    return np.array([np.mean(groups[table.shape]) for table in tables])


def _up(value: float) -> float:
    return value + _OUTWARD if value > 0 else 0.0
