"""Rows on few points, a curve, a surface, or in the whole cube: which grid is chosen, and how fast the loss falls.

    python experiments/dimension.py          all points, docs/dimensions.md and its figures; half an hour of one core
    python experiments/dimension.py --quick  few and small ones into build/dimension-quick, in a minute
    python experiments/dimension.py --draw   figures and page once more, from the results that are kept

Points that are done are kept in build/dimension/points.jsonl: what was interrupted goes on from there. The tables come
from seeds; the noise has none.

Paper: Theorem 3 [low-dimensional]
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from scipy.stats import linregress
from scipy.stats import t as student

import drawing
import results
from certsynth import Schema, release
from certsynth.algorithm.declaration import checked
from certsynth.algorithm.low_dimensional.grids import possible_grids
from certsynth.algorithm.method import checked_settings
from certsynth.algorithm.options import ReleaseOptions
from certsynth.algorithm.task import Task
from certsynth.certificate.comparison import distances
from certsynth.domain import Ordered
from certsynth.queries.fine import LatticeQuery
from points import Points

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "dimensions.md"
KEPT = ROOT / "build" / "dimension"
EPSILON = 1

METHODS = {
    "adaptive": "`low-dimensional`: the grid is chosen by the rows",
    "plain": "the grid for rows that fill the cube, with all of the budget for its counts",
    "paper": "`low-dimensional-l1`: as in appendix D, with d + 2 equal parts of the budget",
    "tables": "the default mechanism with `--sparsity` d: noisy tables of one to d columns, and particles",
}
MOST_TABLES = 4
"""Columns up to which the last is tried."""


def _points(rows: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    return rng.random((7, columns))[rng.choice(7, rows, p=[0.3, 0.2, 0.15, 0.15, 0.1, 0.06, 0.04])]


def _curve(rows: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    turns = np.arange(1, columns + 1)
    return 0.5 + 0.45 * np.sin(2 * np.pi * (rng.random((rows, 1)) * turns / 2 + 0.13 * turns))


def _surface(rows: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    (u, v), j = rng.random((2, rows, 1)), np.arange(columns)
    return 0.5 + 0.4 * np.sin(np.pi * (u * (1 + j % 2) + 0.7 * v * (j % 3) + 0.3 * j))


def _cube(rows: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    return rng.random((rows, columns))


KINDS: dict[str, tuple[int | None, Callable[[int, int, np.random.Generator], np.ndarray]]] = {
    "points": (0, _points),
    "curve": (1, _curve),
    "surface": (2, _surface),
    "cube": (None, _cube),
}
"""By name: the dimension (None for all columns), and what draws the rows."""


@dataclass(frozen=True, slots=True)
class Question:
    """One table and one method."""

    kind: str
    columns: int
    rows: int
    repetition: int
    method: str

    @property
    def schema(self) -> Schema:
        columns = tuple(Ordered(name=f"x{j}", kind="number", low=0.0, high=1.0) for j in range(self.columns))
        return Schema(columns, name="cube")

    def table(self) -> pl.DataFrame:
        """The same for all methods."""
        seed = [self.repetition, list(KINDS).index(self.kind), self.columns, self.rows]
        values = KINDS[self.kind][1](self.rows, self.columns, np.random.default_rng(seed))
        return pl.DataFrame({f"x{j}": column for j, column in enumerate(values.T)})


def questions(*, quick: bool) -> list[Question]:
    """Small tables first, so that there is something to see early."""
    columns, rows, repetitions = ((3, 4, 5), (1_000, 4_000, 16_000, 64_000), 2)
    if quick:
        columns, rows, repetitions = (3,), (500, 2_000), 1
    return [
        Question(kind, d, n, repetition, method)
        for repetition in range(repetitions)
        for n in rows
        for d in columns
        for kind in KINDS
        for method in METHODS
        if method != "tables" or d <= MOST_TABLES
    ]


def answer(question: Question) -> dict[str, Any]:
    """A release, and its true loss: W1 in all columns, exact for rows moved to points of both tables near them."""
    schema, table = question.schema, question.table()
    asked: dict[str, Any] = {"mechanism": "low-dimensional"}
    if question.method == "tables":
        asked = {"sparsity": question.columns}
    if question.method == "paper":
        asked["mechanism"] = "low-dimensional-l1"
    if question.method == "plain":
        asked["resolution"] = full_resolution(schema, question.rows)
    made = release(table, schema, epsilon=EPSILON, seed=question.repetition, **asked)
    private = [table[name].to_numpy() for name in schema.names]
    bare = LatticeQuery.of(schema, [tuple(range(question.columns))], lattice_columns=0)
    fine = bare.with_nets([made.rows], [private])
    (found,) = distances(fine, fine.count([private]), fine.count([made.rows]))
    return {
        **asdict(question),
        "dimension": made.document["release"]["dimension"],
        "resolution": made.document["release"]["resolution"],
        "loss": float(found.upper),
        "moved": float(found.first_moved + found.second_moved),
        "bound": made.certificate.bound,
    }


def full_resolution(schema: Schema, rows: int) -> int:
    """Of the grid that is best for rows that fill the cube, without anything to be chosen."""
    settings = checked_settings(schema, checked(ReleaseOptions, {"epsilon": EPSILON, "mechanism": "low-dimensional"}))
    return possible_grids(Task(schema, settings, rows))[-1].resolution


def answered(asked: Iterable[Question], folder: Path) -> list[dict[str, Any]]:
    """All points: those that are kept, and the others as they are made."""
    kept = Points(folder / "points.jsonl")
    return kept.answers(map(asdict, asked), lambda task: answer(Question(**task)), print)


# What it says.


def chosen(found: Iterable[dict[str, Any]], **which: Any) -> list[dict[str, Any]]:
    return [point for point in found if all(point[key] == value for key, value in which.items())]


def slope(found: Sequence[dict[str, Any]]) -> tuple[float, float, float]:
    """Of log loss against log n by least squares, with its 95 % interval from Student's t over all points."""
    n, loss = (np.log([point[key] for point in found]) for key in ("rows", "loss"))
    line = linregress(n, loss)
    half = float(student.ppf(0.975, max(len(n) - 2, 1))) * float(line.stderr)
    return -float(line.slope), -float(line.slope) - half, -float(line.slope) + half


def theory(kind: str, columns: int) -> float:
    """Theorem 3: 1/(s + 1)."""
    dimension = KINDS[kind][0]
    return 1 / ((columns if dimension is None else dimension) + 1)


def mean(found: Sequence[dict[str, Any]], key: str = "loss") -> float:
    return float(np.mean([point[key] for point in found]))


def page(kept: dict[str, Any]) -> str:
    """docs/dimensions.md."""
    found = kept["points"]
    columns = sorted({p["columns"] for p in found})
    rows = sorted({p["rows"] for p in found})
    repetitions = len({p["repetition"] for p in found})
    text = [
        "# Measured: rows of low dimension",
        "",
        "Rows on seven points, on a curve, on a surface and in the whole cube, of three to five columns, released for "
        f"statistics of all columns at once at ε = {EPSILON}; tables of each kind: {repetitions}. "
        "[Low-dimensional rows](explanation/low-dimensional.md) says what the mechanism does. Made by "
        "`python experiments/dimension.py`, with " + ", ".join(f"{k} {v}" for k, v in kept["versions"].items()) + ".",
        "",
        *(f"- **{name}**: {what}" for name, what in METHODS.items()),
        "",
        "The loss is W1 in all columns at once, exact for rows that are moved to the nearest of 10,000 points of both "
        "tables. What they are moved is in brackets: the loss of the rows where they are differs by no more.",
        "",
        "![Loss against the number of rows, for three to five columns](images/dimensions.svg)",
        "",
        f"## Loss at {rows[-1]:,} rows",
        "",
        "| rows lie on | columns | adaptive | plain | paper | tables | plain over adaptive | certificate of adaptive |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for kind in KINDS:
        for d in columns:
            each = {m: chosen(found, kind=kind, columns=d, rows=rows[-1], method=m) for m in METHODS}
            cells = [f"{mean(e):.4f} (± {mean(e, 'moved'):.4f})" if e else "not tried" for e in each.values()]
            ratio = mean(each["plain"]) / mean(each["adaptive"])
            bound = mean(each["adaptive"], "bound")
            text.append(f"| {kind} | {d} | {' | '.join(cells)} | {ratio:.2f} | {bound:.4f} |")
    text += [
        "",
        "## The dimension that was chosen",
        "",
        "Of the adaptive releases, how many chose the grid of which dimension (of several that one grid suits, the "
        "largest is named).",
        "",
        f"| rows lie on | columns | {' | '.join(f'{n:,} rows' for n in rows)} |",
        f"|---|---|{'---|' * len(rows)}",
    ]
    for kind in KINDS:
        for d in columns:
            cells = []
            for n in rows:
                seen = Counter(p["dimension"] for p in chosen(found, kind=kind, columns=d, rows=n, method="adaptive"))
                cells.append(", ".join(f"{s} ({many}×)" if many > 1 else str(s) for s, many in sorted(seen.items())))
            text.append(f"| {kind} | {d} | {' | '.join(cells)} |")
    text += [
        "",
        "## How fast the loss falls",
        "",
        "Exponent a of loss ∝ n^(−a), by least squares over all tables, with its 95 % interval (Student's t); beside "
        "it 1/(s + 1) of theorem 3, which is an upper bound: its logarithm of n takes a tenth off at these n, and "
        "where rows are few the choice of the grid is noisy.",
        "",
        "| rows lie on | columns | theory | adaptive | plain | paper | tables |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind in KINDS:
        for d in columns:
            fits = []
            for method in METHODS:
                points = chosen(found, kind=kind, columns=d, method=method)
                fits.append("{:.2f} ({:.2f} to {:.2f})".format(*slope(points)) if points else "not tried")
            text.append(f"| {kind} | {d} | {theory(kind, d):.2f} | {' | '.join(fits)} |")
    text += ["", *verdicts(found, columns, rows), ""]
    return "\n".join(text)


def verdicts(found: Sequence[dict[str, Any]], columns: Sequence[int], rows: Sequence[int]) -> list[str]:
    """What the tables say, in words that follow from them."""
    ratio = {
        (kind, d): mean(chosen(found, kind=kind, columns=d, rows=rows[-1], method="plain"))
        / mean(chosen(found, kind=kind, columns=d, rows=rows[-1], method="adaptive"))
        for kind in KINDS
        for d in columns
    }
    low = [value for (kind, _), value in ratio.items() if kind != "cube"]
    full = [1 / value for (kind, _), value in ratio.items() if kind == "cube"]
    better = sum(value > 1 for value in low)
    steeper = sum(
        slope(chosen(found, kind=kind, columns=d, method="adaptive"))[0] >= theory(kind, d)
        for kind in KINDS
        for d in columns
    )
    paper = [
        mean(chosen(found, kind=kind, columns=d, rows=rows[-1], method="paper"))
        / mean(chosen(found, kind=kind, columns=d, rows=rows[-1], method="adaptive"))
        for kind in KINDS
        for d in columns
    ]
    tables = {
        (kind, d): mean(chosen(found, kind=kind, columns=d, rows=rows[-1], method="tables"))
        / mean(chosen(found, kind=kind, columns=d, rows=rows[-1], method="adaptive"))
        for kind in KINDS
        for d in columns
        if d <= MOST_TABLES
    }
    worse = [f"{kind} in {d} columns ({value:.2f})" for (kind, d), value in tables.items() if value < 1]
    return [
        "## In short",
        "",
        f"- With {rows[-1]:,} rows on points, curves and surfaces the adaptive grid loses less than the plain one in "
        f"{better} of {len(low)} cases: by a factor of {min(low):.2f} to {max(low):.2f}.",
        f"- In the whole cube it loses {min(full):.2f} to {max(full):.2f} times as much: what the choice costs.",
        f"- The paper's split of the budget, its constants and its ball lose {min(paper):.1f} to {max(paper):.1f} "
        "times as much as the adaptive grid.",
        "- Noisy tables of all sizes with particles, which know nothing of dimensions, lose "
        f"{min(tables.values()):.2f} to {max(tables.values()):.2f} times as much as the adaptive grid"
        + (f"; less for: {', '.join(worse)}." if worse else "."),
        f"- The loss falls at least as fast as n^(−1/(s+1)) in {steeper} of {len(KINDS) * len(columns)} cases.",
    ]


def draw(kept: dict[str, Any], folder: Path) -> None:
    found = kept["points"]
    columns = sorted({p["columns"] for p in found})
    rows = sorted({p["rows"] for p in found})
    colours = dict(zip(KINDS, (drawing.GREEN, drawing.BLUE, drawing.ORANGE, drawing.BLACK), strict=True))
    styles = {"adaptive": ("-", "o"), "plain": ("--", "s"), "paper": (":", "^"), "tables": ("-.", "x")}
    figure, axes = plt.subplots(1, len(columns), figsize=(3.6 * len(columns), 3.9), sharey=True, squeeze=False)
    for axis, d in zip(axes[0], columns, strict=True):
        for kind, colour in colours.items():
            for method, (line, mark) in styles.items():
                if not chosen(found, columns=d, method=method):
                    continue
                losses = [mean(chosen(found, kind=kind, columns=d, rows=n, method=method)) for n in rows]
                axis.loglog(rows, losses, line, marker=mark, markersize=3.5, color=colour, linewidth=1.3)
        axis.set_title(f"{d} columns")
        axis.set_xlabel("rows n")
    axes[0][0].set_ylabel("loss: W1 in all columns")
    lines = [plt.Line2D([], [], color=colour, label=f"rows on: {kind}") for kind, colour in colours.items()]
    lines += [
        plt.Line2D([], [], color="grey", linestyle=line, marker=mark, markersize=3.5, label=method)
        for method, (line, mark) in styles.items()
    ]
    figure.legend(handles=lines, loc="outside lower center", ncols=len(lines), fontsize=8, handlelength=1.8)
    drawing.write(figure, "dimensions", folder=folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few and small points, into build/dimension-quick")
    parser.add_argument("--draw", action="store_true", help="figures and page from the results that are kept")
    asked = parser.parse_args()
    home = KEPT.with_name("dimension-quick") if asked.quick else None
    if not asked.draw:
        todo = questions(quick=asked.quick)
        settings = {
            "epsilon": EPSILON,
            "kinds": list(KINDS),
            "seeds": "repetition, kind, columns, rows; noise has none",
        }
        results.save("dimensions", settings, answered(todo, home or KEPT), folder=home or results.FOLDER)
    kept = results.load("dimensions", folder=home or results.FOLDER)
    draw(kept, home or drawing.FOLDER)
    target = home / "dimensions.md" if home else PAGE
    target.write_text(page(kept), encoding="utf-8")
    print(target)


if __name__ == "__main__":
    main()
