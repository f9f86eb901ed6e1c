"""How fast the loss falls with rows and grows with columns, beside the paper's rates.

    python experiments/rates.py          all points, docs/rates.md and its figures; an hour of one core
    python experiments/rates.py --quick  few and small ones into build/rates-quick, in a minute
    python experiments/rates.py --draw   figures and page once more, from the results that are kept

Points that are done are kept in build/rates/points.jsonl: what was interrupted goes on from there. The tables come from
seeds; the noise has none.

Paper: Theorem 1 [rates], and the lower bound beneath it
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student

import drawing
import results
from certsynth import Schema, evaluate
from certsynth.algorithm.declaration import checked
from certsynth.algorithm.fitting import FitRequest, Fitting, fit_table
from certsynth.algorithm.layers import measure_layers
from certsynth.algorithm.method import checked_settings
from certsynth.algorithm.options import ReleaseOptions
from certsynth.algorithm.task import Task
from certsynth.domain import Ordered
from certsynth.mechanisms import Budget, Neighbours, measure, strategy_named
from certsynth.planning.choice import choose
from certsynth.projection.emit import emit
from certsynth.projection.path_program import PathProgram
from certsynth.projection.support import full_grid
from certsynth.projection.target import Target, as_probabilities
from certsynth.queries import Marginals
from certsynth.sources import cleaned, open_source, rows_of
from certsynth.transport import Path as CellPath
from certsynth.transport import path_loss
from points import Points

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "rates.md"
KEPT = ROOT / "build" / "rates"

EPSILON = 1
CLUMP = 8
EMITTED = 500_000
"""Theorem 1 speaks of a measure. It is written as so many rows, so that rounding to whole rows is not seen."""

CONFIDENCE = 0.95


# Which tables.


def _uniform(rows: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    return rng.random((rows, columns))


def _clumps(rows: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    return np.repeat(rng.random((math.ceil(rows / CLUMP), columns)), CLUMP, axis=0)[:rows]


def _skewed(rows: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    return rng.random((rows, 1)) * rng.random((rows, columns))


KINDS: dict[str, Callable[[int, int, np.random.Generator], np.ndarray]] = {
    "uniform": _uniform,
    "clumps": _clumps,
    "skewed": _skewed,
}


@dataclass(frozen=True, slots=True)
class Question:
    """One table and one method. Columns are whole numbers from 0 to `steps`, where losses are computed exactly."""

    sweep: str
    sparsity: int
    kind: str
    columns: int
    rows: int
    steps: int
    repetition: int
    method: str

    @property
    def schema(self) -> Schema:
        return Schema(tuple(Ordered(name=f"x{j}", low=0, high=self.steps) for j in range(self.columns)), name="cube")

    def table(self) -> pd.DataFrame:
        """The same for all methods."""
        seed = [self.repetition, list(KINDS).index(self.kind), self.columns, self.rows]
        values = KINDS[self.kind](self.rows, self.columns, np.random.default_rng(seed))
        return pd.DataFrame(np.rint(values * self.steps).astype(np.int64), columns=list(self.schema.names))

    @property
    def resolution(self) -> int:
        return theorem_resolution(self.rows, self.columns, self.sparsity)


# What theory says.


def _noise(rows: float) -> float:
    return math.log(EPSILON * rows) ** 2 / (EPSILON * rows)


def theorem_resolution(rows: int, columns: int, sparsity: int) -> int:
    r"""The k of Theorem 1, with 1 for the constant that it leaves open.

    .. math:: k \asymp d^{-1} \bigl(\log(\varepsilon n)^2 / (n\varepsilon)\bigr)^{-1/s}
    """
    return max(1, round(_noise(rows) ** (-1 / sparsity) / columns))


def upper_rate(rows: int, columns: int, sparsity: int) -> float:
    r"""Theorem 1, with 1 for its constant.

    .. math:: d \bigl(\log(\varepsilon n)^2 / (n\varepsilon)\bigr)^{1/s}
    """
    return columns * _noise(rows) ** (1 / sparsity)


def lower_rate(rows: int, columns: int, sparsity: int) -> float:
    r"""No private mechanism falls faster than this in the worst case; again with 1 for the constant.

    .. math:: \bigl(\lfloor d/s \rfloor / (n\varepsilon)\bigr)^{1/s}
    """
    return float((columns // sparsity) / (EPSILON * rows)) ** (1 / sparsity)


# What is run.


def theorem(question: Question, table: pd.DataFrame, rng: np.random.Generator) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Algorithm 1 as Theorem 1 has it: Haar noise, and the measure on the whole grid that is least in path loss.

    With `proved`, the right side of the proof's inequality for the noise that was drawn: 1/2k + 2·U(0, η).

    Paper: Theorem 1 [rates], Eq. (12) [step-3]
    """
    schema, k, s = question.schema, question.resolution, question.sparsity
    marginals = Marginals.all_subsets(schema, sparsity=s, resolution=k)
    rows = next(iter(cleaned(open_source(table, what="data"), schema)))
    counts = marginals.count([[c.to_cells(x, g) for c, x, g in zip(schema, rows, marginals.cells, strict=True)]])
    strategy = strategy_named("haar-noisy-total", neighbours=Neighbours.REPLACE_ONE)
    measurement = measure(counts, strategy, budget=Budget(Fraction(EPSILON)))
    target, end = Target.of(measurement), 1 / k
    noise = max(
        float(path_loss(block, true / len(table), CellPath.along(marginals.of(subset), strategy.order, end=end)))
        for subset, block, true in zip(marginals.subsets, target.blocks, counts, strict=True)
    )
    program = PathProgram(strategy.order, end)
    columns: list[np.ndarray] = []
    # Marginals of one column can be had in any combination: each is a program of its own.
    parts = [range(len(schema))] if s > 1 else [[j] for j in range(len(schema))]
    for part in parts:
        cells = tuple(marginals.cells[j] for j in part)
        alone = marginals if s > 1 else Marginals(cells=cells, subsets=((0,),))
        aim = Target(alone, target.blocks if s > 1 else (target.blocks[part[0]],))
        points = full_grid(alone)
        weights = as_probabilities(program.weights(aim, points), len(points))
        some = Schema(tuple(schema.columns[j] for j in part), name="part")
        columns += emit(points, weights, EMITTED, schema=some, cells=cells, detail="centre", rng=rng)
    made = pd.DataFrame({name: x.astype(np.int64) for name, x in zip(schema.names, columns, strict=True)})
    return made, {"resolution": k, "mechanism": strategy.name, "noise": noise, "proved": 1 / (2 * k) + 2 * noise}


def default(question: Question, table: pd.DataFrame, rng: np.random.Generator) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The rows that `release` makes unless told otherwise, at the ε that it spends on them; no certificate."""
    schema = question.schema
    settings = checked_settings(schema, checked(ReleaseOptions, {"epsilon": EPSILON, "sparsity": question.sparsity}))
    layers = choose(Task(schema, settings, len(table))).layers
    source = open_source(table, what="data")
    measurements = measure_layers(rows_of(source, schema, "counting rows"), schema, layers, noise=None)
    how = Fitting.from_settings(settings, measurements[-1])
    made, _ = fit_table(FitRequest(tuple(measurements), schema, how, len(table), rng))
    told = {"resolution": layers[-1].resolution, "mechanism": measurements[-1].strategy.name}
    return pd.DataFrame({name: np.asarray(x) for name, x in made.items()}), told


METHODS = {"theorem": theorem, "default": default}


def answer(question: Question) -> dict[str, Any]:
    """The point of one question: its true loss, from `evaluate`, which is exact for whole numbers."""
    table = question.table()
    rng = np.random.default_rng([question.repetition, 1])
    made, told = METHODS[question.method](question, table, rng)
    loss = evaluate(
        table, made, question.schema, sparsity=question.sparsity, lattice=max(question.steps, 256 // question.sparsity)
    )
    return {**asdict(question), **told, "loss": loss.value, "lower": loss.lower, "upper": loss.upper}


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is run."""

    kinds: tuple[str, ...]
    column_kinds: tuple[str, ...]
    repetitions: int
    rows: dict[int, tuple[int, ...]]
    columns: int
    many_columns: tuple[int, ...]
    fixed_rows: int
    steps: dict[int, int]
    many_steps: dict[int, int]
    native: int

    def questions(self) -> Iterator[Question]:
        for kind, r, s in itertools.product(self.kinds, range(self.repetitions), (1, 2)):
            for n, method in itertools.product(self.rows[s], METHODS):
                yield Question("rows", s, kind, self.columns, n, self.steps[s], r, method)
                if s == 1 and method == "default":
                    yield Question("rows", s, kind, self.columns, n, self.native, r, method)
            for d, method in itertools.product(self.many_columns, METHODS):
                if kind in self.column_kinds:
                    yield Question("columns", s, kind, d, self.fixed_rows, self.many_steps[s], r, method)


FULL = Scale(
    kinds=("uniform", "clumps", "skewed"),
    column_kinds=("uniform",),
    repetitions=5,
    rows={1: (1_000, 3_162, 10_000, 31_623, 100_000, 316_228), 2: (1_000, 3_162, 10_000, 31_623, 100_000)},
    columns=3,
    many_columns=(2, 3, 4, 5, 6, 8),
    fixed_rows=100_000,
    steps={1: 4096, 2: 128},
    many_steps={1: 4096, 2: 64},
    native=1024,
)
QUICK = Scale(
    kinds=("uniform", "clumps", "skewed"),
    column_kinds=("uniform",),
    repetitions=2,
    rows={1: (300, 1_000, 3_000), 2: (300, 1_000, 3_000)},
    columns=3,
    many_columns=(2, 3),
    fixed_rows=2_000,
    steps={1: 512, 2: 32},
    many_steps={1: 512, 2: 32},
    native=64,
)


def points(questions: Iterable[Question], kept: Path) -> list[dict[str, Any]]:
    """Answers to all questions; those in the file `kept` are not asked again."""
    return Points(kept).answers(map(asdict, questions), lambda task: answer(Question(**task)), print)


# What comes out.


@dataclass(frozen=True, slots=True)
class Series:
    """Losses of one method on one kind of table, over rows or over columns: `losses[repetition, place]`."""

    sweep: str
    sparsity: int
    kind: str
    method: str
    steps: int
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    losses: np.ndarray
    proved: np.ndarray | None
    resolutions: tuple[int | None, ...]

    @property
    def places(self) -> tuple[int, ...]:
        return self.rows if self.sweep == "rows" else self.columns

    def theory(self, rate: Callable[[int, int, int], float]) -> np.ndarray:
        return np.array([rate(n, d, self.sparsity) for n, d in zip(self.rows, self.columns, strict=True)])

    def slope_of(self, values: np.ndarray) -> float:
        """Of the line of least squares through the logarithms."""
        return float(np.polyfit(np.log(self.places), np.log(values), 1)[0])

    def slope(self) -> tuple[float, float]:
        """The mean slope over repetitions, each of which has tables and noise of its own, and half its t-interval."""
        each = np.array([self.slope_of(losses) for losses in self.losses])
        deviation = each.std(ddof=1) / math.sqrt(len(each))
        return float(each.mean()), float(student.ppf((1 + CONFIDENCE) / 2, len(each) - 1) * deviation)


def series(found: Iterable[dict[str, Any]]) -> list[Series]:
    """The points of a sweep, method by method."""
    names, made = ["sweep", "sparsity", "kind", "method", "steps"], []
    for key, part in pd.DataFrame(list(found)).groupby(names, sort=False):
        part = part.sort_values(["repetition", "rows", "columns"])
        first = part[part.repetition == 0]
        repetitions = part.repetition.nunique()
        made.append(
            Series(
                **dict(zip(names, key, strict=True)),
                rows=tuple(first.rows.tolist()),
                columns=tuple(first["columns"].tolist()),
                losses=part.loss.to_numpy().reshape(repetitions, -1),
                proved=part.proved.to_numpy().reshape(repetitions, -1) if key[3] == "theorem" else None,
                resolutions=tuple(None if math.isnan(k) else int(k) for k in first.resolution.astype(float)),
            )
        )
    return made


def verdict(each: Series) -> str:
    """Where the interval lies beside the slope that Theorem 1's formula has over the same places."""
    (slope, half), theory = each.slope(), each.slope_of(each.theory(upper_rate))
    if abs(slope - theory) <= half:
        return "as the formula"
    grows = each.sweep == "columns"
    return ("steeper" if (slope > theory) == grows else "flatter") + " than the formula"


def write(*, folder: Path, images: Path, target: Path) -> None:
    """Figures and page from the results in `folder`."""
    import rates_page  # which needs what is defined here

    rows, columns = (results.load(f"rates-{sweep}", folder=folder) for sweep in ("rows", "columns"))
    for sweep, found in (("rows", rows), ("columns", columns)):
        native = found["settings"]["native"]
        rates_page.draw(series(found["points"]), f"rates-{sweep}", native=native, folder=images)
    target.write_text(rates_page.page(rows, columns), encoding="utf-8")


def run(scale: Scale, *, kept: Path, folder: Path) -> None:
    """All points, kept one by one, and both files of results."""
    found = points(scale.questions(), kept / "points.jsonl")
    settings = {
        "epsilon": EPSILON,
        "repetitions": scale.repetitions,
        "clump": CLUMP,
        "emitted": EMITTED,
        "native": scale.native,
        "seeds": "tables: default_rng([repetition, place of the kind among uniform, clumps, skewed, columns, rows])",
        "noise": "has no seed",
    }
    for sweep, steps in (("rows", scale.steps), ("columns", scale.many_steps)):
        told = settings | {"steps": {str(s): count for s, count in steps.items()}}
        results.save(f"rates-{sweep}", told, [p for p in found if p["sweep"] == sweep], folder=folder)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few and small tables, into build/rates-quick")
    parser.add_argument("--draw", action="store_true", help="only figures and page, from the results that are kept")
    asked = parser.parse_args(arguments)
    os.environ.setdefault("LOKY_MAX_CPU_COUNT", "1")  # leaves the machine usable
    os.environ.setdefault("CERTSYNTH_CACHE", str(KEPT / "cache"))
    if asked.quick:
        here = ROOT / "build" / "rates-quick"
        run(QUICK, kept=here, folder=here)
        write(folder=here, images=here / "images", target=here / "rates.md")
        return
    if not asked.draw:
        run(FULL, kept=KEPT, folder=results.FOLDER)
    write(folder=results.FOLDER, images=drawing.FOLDER, target=PAGE)


if __name__ == "__main__":
    main()
