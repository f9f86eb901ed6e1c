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
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from scipy.stats import t as student

import drawing
import results
from certsynth import Schema, evaluate
from certsynth.domain import Ordered
from certsynth.fitting import Fitting, fitted
from certsynth.layers import measure_layers
from certsynth.mechanisms import Budget, Neighbours, measure, strategy_named
from certsynth.planning.choice import choose
from certsynth.projection.emit import emit
from certsynth.projection.path_program import PathProgram
from certsynth.projection.support import full_grid
from certsynth.projection.target import Target, as_probabilities
from certsynth.queries import Marginals
from certsynth.settings import checked_settings
from certsynth.sources import cleaned, open_source
from certsynth.transport import Path as CellPath
from certsynth.transport import path_loss

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
    given = ("epsilon", "delta", "rho", "sparsity", "subsets", "resolution", "mechanism", "loss", "rows", "share")
    asked: dict[str, Any] = dict.fromkeys(given) | {"confidence": None, "preset": None, "candidates": 1}
    asked |= {"epsilon": EPSILON, "sparsity": question.sparsity, "projection": "auto", "neighbours": "replace-one"}
    settings = checked_settings(schema, **asked, public=False)
    layers = choose(schema, settings, len(table)).layers
    source = open_source(table, what="data")
    measurements = measure_layers(lambda: cleaned(source, schema), schema, layers, noise=None)
    made, _ = fitted(measurements, schema, Fitting.asked(settings, measurements[-1]), len(table), rng)
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
    kept.parent.mkdir(parents=True, exist_ok=True)
    known: dict[Question, dict[str, Any]] = {}
    names = list(Question.__dataclass_fields__)
    for line in kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []:
        if line.endswith("}"):  # the last one may have been cut short
            found = json.loads(line)
            known[Question(**{name: found[name] for name in names})] = found
    questions = list(questions)
    for j, question in enumerate(questions):
        if question not in known:
            known[question] = answer(question)
            with kept.open("a", encoding="utf-8") as file:
                file.write("\n" * (not line_ended(kept)) + json.dumps(known[question]) + "\n")
            print(f"{j + 1}/{len(questions)}", json.dumps(known[question]), flush=True)
    return [known[question] for question in questions]


def line_ended(path: Path) -> bool:
    text = path.read_bytes() if path.exists() else b""
    return not text or text.endswith(b"\n")


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


TITLES = {"uniform": "uniform rows", "clumps": "rows in clumps", "skewed": "skewed rows"}
LOOKS = {
    "theorem": (drawing.BLUE, "o"),
    "default": (drawing.RED, "s"),
    "native": (drawing.ORANGE, "^"),
}


def look(each: Series, native: int) -> str:
    return "native" if each.method == "default" and each.sparsity == 1 and each.steps == native else each.method


def label(each: Series, native: int) -> str:
    words = {"theorem": "Theorem 1", "default": "default", "native": f"default, columns of {native:,} steps"}
    return words[look(each, native)]


def draw(found: Sequence[Series], name: str, *, native: int, folder: Path) -> None:
    """Losses and theory, s by kind of table."""
    sweep = found[0].sweep
    kinds, sparsities = list(dict.fromkeys(e.kind for e in found)), sorted({e.sparsity for e in found})
    over_rows = sweep == "rows"
    shape = (len(sparsities), len(kinds)) if over_rows else (1, len(sparsities))
    figure, axes = plt.subplots(
        *shape, figsize=(3.1 * shape[1] + 0.4, 2.9 * shape[0] + 0.9), sharex=over_rows, sharey="row", squeeze=False
    )
    handles: dict[str, Any] = {}
    for i, s in enumerate(sparsities):
        for j, kind in enumerate(kinds):
            ax = axes[i, j] if over_rows else axes[0, i]
            part = [e for e in found if (e.sparsity, e.kind) == (s, kind)]
            handles |= _panel(ax, part, native)
            ax.set_title(f"s = {s}, {TITLES[kind]}" if over_rows else f"s = {s}")
            ax.set_xlabel(f"rows n (d = {part[0].columns[0]})" if over_rows else f"columns d (n = {part[0].rows[0]:,})")
    for row in axes:
        row[0].set_ylabel("loss")
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3)
    drawing.write(figure, name, folder=folder)


def _panel(ax: Axes, part: Sequence[Series], native: int) -> dict[str, Any]:
    handles: dict[str, Any] = {}
    ax.set_xscale("log")
    ax.set_yscale("log")
    for each in part:
        colour, marker = LOOKS[look(each, native)]
        middle = each.losses.mean(axis=0)
        (handles[label(each, native)],) = ax.plot(each.places, middle, color=colour, marker=marker, markersize=4)
        ax.fill_between(each.places, each.losses.min(axis=0), each.losses.max(axis=0), color=colour, alpha=0.2, lw=0)
        if each.proved is not None:
            proved = each.proved.mean(axis=0)
            (handles["1/2k + 2 E U(0, η)"],) = ax.plot(each.places, proved, color=colour, ls="--", lw=1)
            for rate, style, words in (
                (upper_rate, "-.", "formula of Theorem 1, constant 1"),
                (lower_rate, ":", "formula of the lower bound, constant 1"),
            ):
                (handles[words],) = ax.plot(each.places, each.theory(rate), color="0.4", ls=style, lw=1)
    if part[0].sweep == "columns":
        ax.set_xticks(part[0].places, [str(d) for d in part[0].places])
        ax.minorticks_off()
    return handles


def slopes_table(found: Sequence[Series], native: int) -> str:
    lines = [
        "| s | rows are | method | slope | formula of Theorem 1 | lower bound | verdict |",
        "|---|---|---|---|---|---|---|",
    ]
    for each in sorted(found, key=lambda e: e.sparsity):
        slope, half = each.slope()
        lines.append(
            f"| {each.sparsity} | {each.kind} | {label(each, native)} | {slope:.2f} ± {half:.2f} | "
            f"{each.slope_of(each.theory(upper_rate)):.2f} | {each.slope_of(each.theory(lower_rate)):.2f} | "
            f"{verdict(each)} |"
        )
    return "\n".join(lines).replace("-", "−").replace("|−−−", "|---")


def losses_table(found: Sequence[Series], native: int) -> str:
    """Mean losses, one line for each place, of one s and one kind of rows."""
    proved = next(e for e in found if e.proved is not None)
    what = "rows" if proved.sweep == "rows" else "columns"
    heads = [label(each, native) for each in found]
    lines = [
        f"| {what} | k | {' | '.join(heads)} | 1/2k + 2 E U(0, η) |",
        "|" + "---|" * (len(heads) + 3),
    ]
    for j, place in enumerate(proved.places):
        losses = " | ".join(f"{each.losses[:, j].mean():.4f}" for each in found)
        assert proved.proved is not None
        bound = proved.proved[:, j].mean()
        lines.append(f"| {place:,} | {proved.resolutions[j]} | {losses} | {bound:.4f} |")
    return "\n".join(lines)


INTRODUCTION = """\
# How fast the loss falls

<!-- Made by experiments/rates.py: change that. -->

**The claim** (Theorem 1 of the paper, and the lower bound beneath it). With k ≍ d⁻¹(log²(εn)/nε)^(−1/s) cells to a
column, the expected loss of Algorithm 1 is at most of order d·(log²(εn)/nε)^(1/s). No ε-private mechanism has a loss
below the order of (⌊d/s⌋/nε)^(1/s) on every table. Both leave a constant open, so slopes are what can be compared:
those of log loss over log n, and over log d.

**The data** are generated, ε = 1, and each point is the mean of {repetitions} repetitions, each with a table and noise
of its own.

- *uniform*: independent columns that fill the cube evenly;
- *clumps*: {clump} rows each at places that fill the cube evenly. More rows mean more places, not more rows to a place.
  Tables like these are what the lower bound is proved with;
- *skewed*: u₀·uⱼ with uniform u. Columns depend on each other and crowd at 0.

Values are whole steps, {steps_1:,} to a column for s = 1 and {steps_2} for s = 2 ({many_2} where columns are many).
On whole steps `evaluate` is exact, its `lower` and `upper` are the same number, and so no lattice of the evaluator
limits what is seen.

**The methods.** *Theorem 1* is Algorithm 1 as the theorem has it: that k with 1 for the constant, Haar noise along the
snake, the measure on the whole grid that is least in path loss, values at the centres of cells, no public rows. For
s = 1 the program falls apart into one for each column. *Default* is the rows that `release` makes, with the share of ε
that it spends on them.

```text
python experiments/rates.py          # all of it: half an hour of one core; goes on where it was stopped
python experiments/rates.py --quick  # the same in small, in a minute, into build/rates-quick
python experiments/rates.py --draw   # this page and its figures, from experiments/results
```

**How slopes are told.** In each repetition a line is laid through the logarithms by least squares. The mean of the
{repetitions} slopes is given, with its 95 % t-interval. Beside it is the slope that the formula of the theorem has over
the same places, computed in the same way: its logarithms make it flatter than −1/s. "Steeper" and "flatter" mean that
the formula's slope is outside of the interval.
"""

ROWS = """\
## Against the number of rows

![Loss against rows, for s = 1 and 2 and three kinds of rows](images/rates-rows.svg)

{slopes}

As n grows without end the formula's slope goes to −1 for s = 1 and to −1/2 for s = 2, which is that of the lower bound.

Uniform rows, s = 1:

{losses_1}

Uniform rows, s = 2:

{losses_2}

{findings}
"""

COLUMNS = """\
## Against the number of columns

![Loss against columns, for s = 1 and 2](images/rates-columns.svg)

{slopes}

s = 1:

{losses_1}

s = 2:

{losses_2}

{findings}
"""

ROWS_FINDINGS = """\
**Theorem 1 is in line with its formula.** No loss is above 1/2k + 2·U(0, η), which the proof promises for each draw of
the noise; the closest comes to {closest:.0%} of it. For s = 1 slopes are those of the formula with its logarithms, near
−0.8 rather than −1. For s = 2 they are flatter by {flatter:.2f}, and that is rounding: k is a whole number ({ks}), and
1/k has the slope {whole:.2f} over these n, where the formula has {formula:.2f}. Nearly all of the loss is what values
lose to the centres of their cells; the noise itself, U(0, η), is {noise:.0%} of it at {last:,} uniform rows. The k of
the theorem suits a bound that counts noise twice and cells at their worst, and leaves room for more cells.

**The default falls faster for s = 2.** It spreads rows over the values of a cell as single columns say, so that what is
lost inside of a cell is much less than its width. On uniform and skewed rows, which are smooth, its slope is steeper
than −1/2. That does not contradict the lower bound, which speaks of the worst table for each n. On clumps, where there
is something to be lost at every scale, the slope is {clumps:.2f}, a little steeper than −1/2, and the loss at {last:,}
rows is {ratio:.1f} times that on uniform rows.

**For s = 1 the default has a floor.** Columns of more than 1,024 values are written on a grid of 256 steps, so that
values are off by 1/1024 on average, however many rows there are. The red lines end there, and their slopes over this
range are flatter for it; on skewed rows a large loss at 1,000 rows hides it. At {most:,} uniform rows Theorem 1, which
has finer cells, is at {theorem:.4f} and the default at {default:.4f}. With columns of {native:,} steps, every one of
which it measures, there is no floor: {without:.4f} there, and slopes between that of the formula and −1.
"""

COLUMNS_FINDINGS = """\
**The theorem's mechanism grows in proportion to d, as its formula does.** For s = 2 the slope is above 1 because k is a
whole number ({ks}): 1/k has the slope {whole:.2f} over these d.

**The default grows more slowly.** For s = 2 its slope lies between those of the two formulas, whose gap in d is an open
problem of the paper. For s = 1 the floor of about 0.001 is all of the loss of few columns, so that little growth is
seen.
"""


def findings(found: Sequence[Series], native: int) -> dict[str, Any]:
    """The numbers that the words quote."""
    of = {(e.sparsity, e.kind, look(e, native)): e for e in found}
    pairs, single = of[2, "uniform", "theorem"], of[1, "uniform", "theorem"]
    proofs = [e.losses / e.proved for e in found if e.proved is not None]
    whole = pairs.slope_of(1 / np.array(pairs.resolutions, dtype=float))
    formula = pairs.slope_of(pairs.theory(upper_rate))
    assert pairs.proved is not None
    assert pairs.resolutions[-1]
    noise = (pairs.proved[:, -1] - 0.5 / pairs.resolutions[-1]) / 2
    told = {
        "closest": max(float(ratio.max()) for ratio in proofs),
        "flatter": pairs.slope()[0] - formula,
        "ks": ", ".join(map(str, pairs.resolutions)),
        "whole": whole,
        "formula": formula,
        "noise": float(noise.mean() / pairs.losses[:, -1].mean()),
        "native": native,
        "last": pairs.places[-1],
        "most": single.places[-1],
        "theorem": single.losses[:, -1].mean(),
        "default": of[1, "uniform", "default"].losses[:, -1].mean(),
    }
    if found[0].sweep == "rows":
        told["without"] = of[1, "uniform", "native"].losses[:, -1].mean()
        clumps = of.get((2, "clumps", "default"), of[2, "uniform", "default"])
        told["clumps"] = clumps.slope()[0]
        told["ratio"] = clumps.losses[:, -1].mean() / of[2, "uniform", "default"].losses[:, -1].mean()
    return told


def page(rows: dict[str, Any], columns: dict[str, Any]) -> str:
    """docs/rates.md, from the results alone."""
    settings = rows["settings"]
    native = settings["native"]
    said = [
        INTRODUCTION.format(
            repetitions=settings["repetitions"],
            clump=settings["clump"],
            steps_1=settings["steps"]["1"],
            steps_2=settings["steps"]["2"],
            many_2=columns["settings"]["steps"]["2"],
        )
    ]
    for swept, text, words in ((rows, ROWS, ROWS_FINDINGS), (columns, COLUMNS, COLUMNS_FINDINGS)):
        found = series(swept["points"])
        of = {s: [e for e in found if (e.sparsity, e.kind) == (s, "uniform")] for s in (1, 2)}
        said.append(
            text.format(
                slopes=slopes_table(found, native),
                losses_1=losses_table(of[1], native),
                losses_2=losses_table(of[2], native),
                findings=re.sub(r"-(?=\d)", "−", words.strip().format(**findings(found, native))),
            )
        )
    versions = ", ".join(f"{name} {version}" for name, version in rows["versions"].items())
    said.append(f"Made with {versions}. Tables come from seeds; noise has none, so that figures differ in each run.\n")
    return "\n".join(said).replace("\n\n\n", "\n\n")


def write(*, folder: Path, images: Path, target: Path) -> None:
    """Figures and page from the results in `folder`."""
    rows, columns = (results.load(f"rates-{sweep}", folder=folder) for sweep in ("rows", "columns"))
    for sweep, found in (("rows", rows), ("columns", columns)):
        native = found["settings"]["native"]
        draw(series(found["points"]), f"rates-{sweep}", native=native, folder=images)
    target.write_text(page(rows, columns), encoding="utf-8")


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
