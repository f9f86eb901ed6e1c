"""Pairs of neighbouring tables, whole releases of them, and what an onlooker reads off each; also broken releases.

Everything in an `Observation` comes from what a release publishes, from the pair of tables, and from the code: an
attacker is assumed to know all rows but one, and to wonder which of two tables it was.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any
from unittest import mock

import numpy as np
import polars as pl
from joblib import Parallel, delayed

from certsynth import Release, Schema, release
from certsynth.algorithm.certify import direct_bounds
from certsynth.mechanisms import Budget, Guarantee, Measurement, Sensitivity, Unit
from certsynth.mechanisms.guarantee import Neighbours
from certsynth.mechanisms.measure import coefficients
from certsynth.mechanisms.samplers import ExactNoise, NoisyIntegers, SimulatedNoise, calibrated_scale, simulate
from certsynth.mechanisms.scalars import NoisyScalars
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.marginals import CellCounts, Marginals
from certsynth.queries.tally import tally_batches
from certsynth.sources import cleaned, open_source

BATCH = 25


@dataclass(frozen=True, slots=True)
class Case:
    """Two neighbouring tables and how they are released.

    `columns` booleans, or `number` columns from 0 to 1; tables differ in as many ways as one row can make: all rows
    hold the lowest values, but in the second table one more does, or one holds the highest values instead.
    """

    name: str
    columns: int
    arguments: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "boolean"
    rows: int = 3
    broken: str | None = None
    runs: int = 500

    @property
    def hidden(self) -> bool:
        return self.arguments.get("neighbours") == Neighbours.ADD_REMOVE

    @property
    def schema(self) -> Schema:
        return _schema(self.columns, self.kind)

    def tables(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        low, high = (False, True) if self.kind == "boolean" else (0.0, 1.0)
        first = [low] * self.rows
        second = [*first, high] if self.hidden else [*first[1:], high]
        return tuple(pl.DataFrame(dict.fromkeys(self.schema.names, rows)) for rows in (first, second))  # type: ignore[return-value]


@functools.cache
def _schema(columns: int, kind: str) -> Schema:
    ends = "" if kind == "boolean" else "low = 0.0\nhigh = 1.0\n"
    return Schema.parse("".join(f'[[column]]\nname = "c{j}"\nkind = "{kind}"\n{ends}\n' for j in range(columns)))


# ------------------------------------------------------------ broken on purpose


class NoNoise:
    """The exact integers, for whoever knows the rows."""

    releasable = False

    def add(self, values: np.ndarray, *, sensitivity: Sensitivity, budget: Budget) -> NoisyIntegers:
        return NoisyIntegers(values=values, scale=calibrated_scale(sensitivity, budget), spent=budget)


class NarrowNoise:
    """Noise that is so many times narrower than it says."""

    releasable = False

    def __init__(self, times: int) -> None:
        self.times = times

    def add(self, values: np.ndarray, *, sensitivity: Sensitivity, budget: Budget) -> NoisyIntegers:
        more = budget.share(Fraction(self.times if budget.unit is Unit.EPSILON else self.times**2))
        drawn = ExactNoise().add(values, sensitivity=sensitivity, budget=more)
        return NoisyIntegers(values=drawn.values, scale=calibrated_scale(sensitivity, budget), spent=budget)


def _one_marginal(marginals: Marginals, strategy: Any) -> Sensitivity:
    """Forgets that a row is in every marginal."""
    return strategy.sensitivity(marginals.of(marginals.subsets[0])) * marginals.weight(0)


def _without_noise(values: Sequence[int], *, sensitivity: Any, budget: Any, neighbours: Any, noise: Any) -> Any:
    cost = Guarantee(budget, neighbours)
    return NoisyScalars(tuple(values), calibrated_scale(sensitivity, budget), cost, sensitivity=sensitivity)


@contextlib.contextmanager
def broken(what: str | None, table: pl.DataFrame) -> Iterator[dict[str, Any]]:
    """One thing broken in `release`, and arguments that it takes to do so."""
    with contextlib.ExitStack() as stack:
        match what:
            case None:
                yield {}
            case "half the noise":
                yield {"noise": NarrowNoise(2)}
            case "a third of the noise":
                yield {"noise": NarrowNoise(3)}
            case "sensitivity of one marginal":
                stack.enter_context(mock.patch("certsynth.mechanisms.measure.sensitivity", _one_marginal))
                yield {}
            case "no noise on the direct certificate":
                stack.enter_context(mock.patch("certsynth.certificate.direct.measure_scalars", _without_noise))
                yield {}
            case "as many rows as there are":
                yield {"rows": len(table)}
            case "seeded noise":
                yield {"noise": SimulatedNoise(np.random.default_rng(0))}
            case _:
                raise ValueError(what)


# ------------------------------------------------------------ what an onlooker sees


def released(case: Case, table: pl.DataFrame) -> Release:
    with broken(case.broken, table) as extra:
        return release(table, case.schema, **{**case.arguments, **extra})


@functools.cache
def _cleaned(columns: int, kind: str, rows: int, hidden: bool) -> tuple[list[Any], list[Any]]:
    arguments = {"neighbours": Neighbours.ADD_REMOVE} if hidden else {}
    case = Case("", columns, arguments, kind, rows)
    first, second = (list(cleaned(open_source(table, what="data"), case.schema)) for table in case.tables())
    return first, second


def rows_of(case: Case) -> tuple[list[Any], list[Any]]:
    """Cleaned rows of both tables."""
    return _cleaned(case.columns, case.kind, case.rows, case.hidden)


def pair_of(case: Case, m: Measurement) -> tuple[np.ndarray, np.ndarray]:
    """The integers that get noise, of both tables."""
    first, second = (
        np.concatenate(coefficients(tally_batches(rows, CellCounts(case.schema, m.marginals)), m.strategy))
        for rows in rows_of(case)
    )
    return first, second


def noisy_integers(m: Measurement) -> np.ndarray:
    """As they are stored; the number of rows comes last where it got noise by itself."""
    own = m.strategy.neighbours is Neighbours.ADD_REMOVE and m.total is not None
    return np.concatenate([*m.coefficients, [m.total] if own else []]).astype(np.int64)


def log_ratio(y: np.ndarray, first: np.ndarray, second: np.ndarray, scale: float, unit: Unit) -> float:
    """ln P(y | second) − ln P(y | first) under the law that is stated."""
    if unit is Unit.EPSILON:
        return float((np.abs(y - first) - np.abs(y - second)).sum() / scale)
    return float(((y - first) ** 2 - (y - second) ** 2).sum() / (2 * scale**2))


def observe(case: Case, made: Release) -> dict[str, float]:
    """Scores of a release. None of them needs to be good for the bound to be true; good ones make it large."""
    ratio = sum(log_ratio(noisy_integers(m), *pair_of(case, m), m.scale, m.cost.spent.unit) for m in made.measurements)
    integers = np.concatenate([noisy_integers(m) for m in made.measurements])
    certificate = made.document["certificate"]
    rows = np.array([column.astype(float) for column in made.rows])
    shares = rows.mean(axis=1)
    middle = 0.5 if case.kind == "boolean" else float(np.nanmean([0.0, rows.max(initial=1.0)]))
    scores = {
        "likelihood of the integers": ratio,
        "fingerprint": float(int.from_bytes(hashlib.sha256(integers.tobytes()).digest()[:6], "big")),
        "emitted rows": float(rows.shape[1]),
        "mean of all columns": float(shares.mean()),
        "rows in the far corner": float((rows > middle).all(axis=0).sum()),
        "bound": certificate["bound"],
        "plug-in bound": min(p["bound"] for p in certificate["plug_in"].values()),
    }
    for step in made.document["privacy"]["spent"]:
        if step["on"] in ("mean displacement", "number of rows"):
            scores[step["on"]] = float(step["values"][0])
        elif step["on"] == "errors of the rows":
            scores |= _direct_scores(step, *errors_of(case, made))
    scores["likelihood of all"] = sum(v for k, v in scores.items() if k.startswith("likelihood"))
    return scores


def errors_of(case: Case, made: Release) -> tuple[np.ndarray, np.ndarray]:
    """The integers that get noise in a direct certificate of these synthetic rows, of both tables."""
    rows = tuple(column.tobytes() for column in made.rows)
    return _errors(case.columns, case.kind, case.rows, case.hidden, tuple(made.subsets), rows)


@functools.lru_cache(maxsize=10_000)
def _errors(
    columns: int, kind: str, rows: int, hidden: bool, subsets: tuple[Any, ...], synthetic: tuple[bytes, ...]
) -> tuple[np.ndarray, np.ndarray]:
    schema, tables = _schema(columns, kind), _cleaned(columns, kind, rows, hidden)
    theirs = tuple(np.frombuffer(each, dtype=own.dtype) for each, own in zip(synthetic, tables[0][0], strict=True))
    neighbours = Neighbours.ADD_REMOVE if hidden else Neighbours.REPLACE_ONE
    counted = NoisyScalars((rows,), 1.0, Guarantee(Budget(Fraction(1)), neighbours))
    first, second = (
        direct_bounds(
            LatticeQuery.of(schema, subsets),
            functools.partial(tally_batches, table),
            lambda: [theirs],
            budget=Budget(Fraction(1)),
            beta=Fraction(1, 20),
            neighbours=neighbours,
            two_sided=False,
            counted=counted,
            noise=NoNoise(),
        ).noisy.values
        for table in tables
    )
    return np.array(first), np.array(second)


def _direct_scores(step: Mapping[str, Any], first: np.ndarray, second: np.ndarray) -> dict[str, float]:
    """The noisy errors, which of the two tables' own errors each lies closer to, and all of them together."""
    seen = np.array(step["values"])
    closer = np.abs(seen - first) - np.abs(seen - second)
    unit = Unit.RHO if "rho" in step else Unit.EPSILON
    scale = float.fromhex(step["scale"])
    if step.get("noise") == "sup-norm":
        ratio = float(np.abs(seen - first).max() - np.abs(seen - second).max()) / scale
    else:
        ratio = log_ratio(seen, first, second, scale, unit)
    return {
        **{f"noisy error {j}": float(value) for j, value in enumerate(seen)},
        **{f"closeness of error {j}": float(value) for j, value in enumerate(closer)},
        "likelihood of the errors": ratio,
    }


def black_box(case: Case, made: Release) -> list[float]:
    """For an auditor that knows nothing of the code: figures of the synthetic table and of the certificate."""
    rows = np.array([column.astype(float) for column in made.rows])
    certificate = made.document["certificate"]
    parts = [certificate[key] for key in ("direct", "single_column") if certificate[key]]
    return [
        float(rows.shape[1]),
        *rows.mean(axis=1).tolist(),
        float(rows.min(axis=0).mean()),
        float(rows.max(axis=0).mean()),
        certificate["bound"],
        certificate["single_column_bound"],
        *(p["bound"] for p in certificate["plug_in"].values()),
        *(part["terms"]["measured_loss"] for part in parts),
        *(part["bound"] for part in parts),
        *(bound for bound in certificate.get("statistics", {}).values() if bound is not None),
    ]


@dataclass(frozen=True, slots=True)
class Sample:
    """Many releases of both tables: scores, figures for other auditors, and what is claimed."""

    scores: tuple[dict[str, np.ndarray], dict[str, np.ndarray]]
    outside: tuple[np.ndarray, np.ndarray]
    integers: tuple[np.ndarray, np.ndarray]
    privacy: Mapping[str, Any]


def _some(case: Case, which: int, runs: int) -> list[Any]:
    table = case.tables()[which]
    seen = []
    for _ in range(runs):
        made = released(case, table)
        integers = np.concatenate([noisy_integers(m) for m in made.measurements])
        seen.append((observe(case, made), black_box(case, made), integers, made.document["privacy"]))
    return seen


def sample(case: Case, runs: int, *, processes: int = 1) -> Sample:
    """`runs` releases of each table. Plans are made once: they depend on no row."""
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, CERTSYNTH_CACHE=folder):
        _some(case, 0, 1)
        jobs = [(which, min(BATCH, runs - start)) for start in range(0, runs, BATCH) for which in (0, 1)]
        if processes == 1:
            parts = [_some(case, which, size) for which, size in jobs]
        else:
            parts = Parallel(n_jobs=processes)(delayed(_some)(case, which, size) for which, size in jobs)
    both: list[list[Any]] = [[], []]
    for (which, _), part in zip(jobs, parts, strict=True):
        both[which] += part
    claims = {(p["epsilon"], p["delta"], p["rho"]) for runs_of in both for *_, p in runs_of}
    if len(claims) != 1:
        raise ValueError("what is claimed depends on the table or on chance")
    widest = max(len(integers) for runs_of in both for _, _, integers, _ in runs_of)
    return Sample(
        scores=tuple({key: np.array([s[key] for s, *_ in x]) for key in x[0][0]} for x in both),  # type: ignore[arg-type]
        outside=tuple(np.array([outside for _, outside, _, _ in x]) for x in both),  # type: ignore[arg-type]
        integers=tuple(np.array([np.pad(i, (0, widest - len(i))) for _, _, i, _ in x]) for x in both),  # type: ignore[arg-type]
        privacy=both[0][0][3],
    )


def ideal_ratios(case: Case, made: Release, draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Likelihood ratios of releases, drawn from the stated law of the noise: what the best attack has to go by.

    Parts whose scale is not published count as if the pair were the worst for them: loss ±ε, or that of Gaussian noise.
    """
    rng = np.random.default_rng(0)
    total = [np.zeros(draws), np.zeros(draws)]
    for m in made.measurements:
        first, second = pair_of(case, m)
        shift, unit = (second - first)[second != first], m.cost.spent.unit
        for which in (0, 1):
            z = simulate(rng, unit, m.scale, (draws, len(shift))) + which * shift
            if unit is Unit.EPSILON:
                total[which] += (np.abs(z) - np.abs(z - shift)).sum(axis=1) / m.scale
            else:
                total[which] += (z**2 - (z - shift) ** 2).sum(axis=1) / (2 * m.scale**2)
    for part in made.document["privacy"]["spent"][len(made.measurements) :]:
        for which, sign in ((0, -1), (1, 1)):
            if "epsilon" in part:
                loss = float(Fraction(part["epsilon"]))
                truth = rng.random(draws) < 1 / (1 + np.exp(-loss))
                total[which] += sign * np.where(truth, loss, -loss)
            else:
                rho = float(Fraction(part["rho"]))
                total[which] += sign * rho + np.sqrt(2 * rho) * rng.standard_normal(draws)
    return total[0], total[1]
