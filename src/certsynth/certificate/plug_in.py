"""The plug-in certificate: Eq. (4), evaluated on the rows that are emitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from certsynth.arrays import Floats
from certsynth.certificate.quantile import joint_quantiles, rank_quantile
from certsynth.domain import Cells, Schema
from certsynth.domain.column import discretisation
from certsynth.mechanisms import Measurement, Neighbours
from certsynth.mechanisms.scalars import NoisyScalars
from certsynth.parallel import run
from certsynth.progress import Progress, silent
from certsynth.queries.fine import MOVE_UNITS
from certsynth.transport import Network, Path, path_loss, transport_loss
from certsynth.transport.path import Order

Proxy = Literal["transport", "path"]

TRANSPORT_COLUMNS = 3
"""Networks are built for at most this many columns at once; beyond, only the path loss is to be had."""

DISPLACEMENT_BETA = Fraction(1, 10)
"""Of the failure probability, what the measured discretisation gets, where there is one."""

PILOT_DRAWS = 20
_OUTWARD = 1e-9  # more than all rounding of float sums that lead to a term


@dataclass(frozen=True, slots=True)
class Proxies:
    """How the two proxy losses are to be computed: the hub (None: half the diameter) and the end of the path.

    The paper has |f| ≤ 1, so a hub at 1, and keeps the last partial sum in the path loss, at 1/k.
    """

    hub: Fraction | None = None
    end: Fraction = Fraction(0)


PLAIN = Proxies()


@dataclass(frozen=True, slots=True)
class Terms:
    """The three terms of the certificate of one marginal.

    Paper: Eq. (4) [certificate], Eq. (11) [discretisation]
    """

    discretisation: float
    privatisation: float
    projection: float

    @property
    def bound(self) -> float:
        """Their sum; no two distributions on a space of diameter 1 are further apart than 1."""
        return min(1.0, self.discretisation + self.privatisation + self.projection)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Is further optimisation worth it? The loss of the fit to ν beside that of the noise, which is that of the truth.

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
    """One certificate: for each subset of columns its terms, all valid together at `confidence`."""

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
        """The terms of the subset that decides the bound."""
        return max(self.terms, key=lambda terms: terms.bound)


def plug_in(
    measurement: Measurement,
    schema: Schema,
    table: Sequence[np.ndarray],
    *,
    beta: Fraction,
    draws: int,
    seed: int,
    displaced: NoisyScalars | None = None,
    proxies: Proxies = PLAIN,
    progress: Progress = silent,
) -> dict[Proxy, PlugIn]:
    """Certificates for cleaned rows `table`, with each proxy that can be computed.

    `displaced` is the noisy sum of the distances of private rows to the centres of their cells: where it is given, the
    discretisation is what it says, and at most the worst case.

    `seed` starts the Monte Carlo draws of the noise's law, and nothing else. It must come fresh from the operating
    system: whoever chooses it chooses the certificate.

    Paper: Definition 2 [proxy-loss], Lemma 1 [certificate-holds]
    """
    estimate, rows = measurement.estimate()
    pilot, final = (np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(2))
    noise, rows_error = measurement.simulate(final, draws)
    scales, _ = measurement.simulate(pilot, PILOT_DRAWS)
    marginals = measurement.marginals
    codes = [c.to_cells(x, cells) for c, x, cells in zip(schema, table, marginals.cells, strict=True)]
    emitted = [block / len(table[0]) for block in marginals.count([codes])]
    blocks = [
        np.vstack([n, p, v[None] - rows * e, e]) for n, p, v, e in zip(noise, scales, estimate, emitted, strict=True)
    ]
    away = _away_from_centres(schema, table, measurement)
    results: dict[Proxy, PlugIn] = {}
    for proxy in ("transport", "path"):
        if proxy == "transport" and max(map(len, marginals.subsets)) > TRANSPORT_COLUMNS:
            continue
        losses = _losses(proxy, measurement, blocks, proxies, progress)
        results[proxy] = _certificate(
            proxy, measurement, schema, losses, draws, rows, rows_error, away, displaced, beta
        )
    return results


def _certificate(
    proxy: Proxy,
    measurement: Measurement,
    schema: Schema,
    losses: Floats,
    draws: int,
    rows: float,
    rows_error: Floats,
    away: Floats,
    displaced: NoisyScalars | None,
    beta: Fraction,
) -> PlugIn:
    r"""Put the terms together. Rows of `losses`: draws, pilot draws, the fit, and the emitted rows alone.

    Replace-one: n is known, and the terms are those of Eq. (4) divided by n. Add/remove: with n̂ the estimate of n,

    .. math:: n\,U(c_D/n, \mu) \le U(0, \eta) + U(\nu, \hat n\mu) + |n - \hat n|\,U(\mu, 0)

    and n ≥ n̂ − t, where t bounds |n − n̂| and half of β pays for it. A measured discretisation takes its share of β
    first.
    """
    marginals = measurement.marginals
    noise, pilot, fit, alone = losses[:draws], losses[draws:-2], losses[-2], losses[-1]
    hidden = measurement.strategy.neighbours is Neighbours.ADD_REMOVE
    for_moved = beta * DISPLACEMENT_BETA if displaced else Fraction(0)
    share = (beta - for_moved) / (2 if hidden else 1)
    error = rank_quantile(np.abs(rows_error), share) if hidden else 0.0
    least = rows - error
    quantiles = joint_quantiles(noise, _shared_scales(measurement, pilot), share)
    quantiles[np.array(marginals.sizes()) == 1] = 0.0  # one cell holds everything, whatever the noise
    moved = 1.0
    if displaced and least >= 1:
        moved = max(0, displaced.values[0] + displaced.slack(for_moved)) / MOVE_UNITS / least
    terms = []
    for j, subset in enumerate(marginals.subsets):
        coarse = min(moved, float(max(discretisation(schema.columns[c], marginals.cells[c]) for c in subset)))
        if least >= 1 and np.isfinite(quantiles[j]):
            privatisation = quantiles[j] / least
            projection = (fit[j] + (error * alone[j] if hidden else 0.0)) / least + away[j]
        else:  # nothing is known about a table that may be empty, or from too few draws
            privatisation, projection = 1.0, 0.0
        terms.append(Terms(_up(coarse), _up(privatisation), _up(projection)))
    names = schema.names
    largest, scale = np.max(noise, axis=1), max(rows, 1.0)
    return PlugIn(
        proxy=proxy,
        confidence=1 - beta,
        subsets=tuple(tuple(names[c] for c in subset) for subset in marginals.subsets),
        terms=tuple(terms),
        diagnostic=Diagnostic(
            fit=float(np.max(fit)) / scale,
            noise_mean=float(np.mean(largest)) / scale,
            noise_low=float(np.quantile(largest, 0.05)) / scale,
            noise_high=float(np.quantile(largest, 0.95)) / scale,
        ),
    )


def _losses(
    proxy: Proxy, measurement: Measurement, blocks: list[Floats], proxies: Proxies, progress: Progress
) -> Floats:
    """Losses of signed measures to 0: a column for each marginal, a row for each row of its block."""
    marginals = measurement.marginals
    tasks = [
        (marginals.of(s), b, proxies, measurement.strategy.order)
        for s, b in zip(marginals.subsets, blocks, strict=True)
    ]
    if proxy == "path":
        return np.column_stack([_path_losses(*task) for task in tasks])
    work = sum(block.size for block in blocks)
    return np.column_stack(run(_transport_losses, tasks, work=work, phase="how large noise can be", progress=progress))


def _transport_losses(cells: Sequence[Cells], block: Floats, proxies: Proxies, order: Order) -> Floats:
    return transport_loss(block, np.zeros_like(block), Network.of(cells, hub=proxies.hub))


def _path_losses(cells: Sequence[Cells], block: Floats, proxies: Proxies, order: Order) -> Floats:
    return path_loss(block, np.zeros_like(block), Path.along(cells, order, end=float(proxies.end)))


def _shared_scales(measurement: Measurement, pilot: Floats) -> Floats:
    """How large the loss of the noise is in each marginal, from draws of its own; marginals of one shape share it."""
    shapes = [
        tuple((c.size, c.span, c.apart, c.weight, id(c.web)) for c in measurement.marginals.of(s))
        for s in measurement.marginals.subsets
    ]
    means = pilot.mean(axis=0)
    groups: dict[tuple[object, ...], list[float]] = {}
    for shape, mean in zip(shapes, means, strict=True):
        groups.setdefault(shape, []).append(float(mean))
    return np.array([np.mean(groups[shape]) for shape in shapes])


def _away_from_centres(schema: Schema, table: Sequence[np.ndarray], measurement: Measurement) -> Floats:
    """For each subset the mean distance of emitted rows from the centres of their cells: U(T†Tμ, μ) is at most that."""
    cells = measurement.marginals.cells
    away = [c.from_centre(x, grid) for c, x, grid in zip(schema, table, cells, strict=True)]
    return np.array([np.max([away[j] for j in s], axis=0).mean() for s in measurement.marginals.subsets])


def _up(value: float) -> float:
    return value + _OUTWARD if value > 0 else 0.0
