"""What the paper's figures show, measured: its algorithm and ours, on pairs of a private and a public table.

Claims and settings are those of sections 5.2 to 5.4 and appendix A of the paper: ε = 1, certificates that hold with
probability 0.9 (the paper's δ = 0.1), 200 draws of the noise, 4,000 public rows that are drawn anew in each of ten
runs, and losses bounded on the lattice k = 30. The paper's algorithm is `release(preset="paper")`, ours is `release`
with its defaults at the same confidence: what is shown is what users get.

A series is one method on one pair of tables, and becomes one file of results. Figures share series: 1a, 2a, 2b and the
first panel of 3 are the same runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from certsynth import Release, evaluate, release
from certsynth.algorithm.evaluate import Evaluation
from certsynth.domain import Schema
from certsynth.sources import cleaned, open_source
from certsynth.transport import Path as CellPath
from certsynth.transport import path_loss
from data import Pair, draw
from points import Point, Task

EPSILON = 1
CONFIDENCE = "0.9"
LATTICE = 30
"""Appendix A bounds the loss on the centres of 30 cells to a column. `evaluate` has steps of 1/30 from end to end."""

SHARP = {"paper": 128, "ours": 256}
"""Finer lattices, for the losses that are quoted. Ours is smaller than what k = 30 can tell from 0."""

DIAGNOSTIC_K = 25
"""Figure 1b has this resolution."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much is run. `own_ks` are resolutions of ours, where None is the one that it chooses itself."""

    ks: tuple[int, ...] = (4, 6, 8, 12, 16, 20, 25, 30)
    own_ks: tuple[int | None, ...] = (None, 4, 8, 16, 30)
    diagnostic_k: int = DIAGNOSTIC_K
    public_rows: int = 4000
    public_counts: tuple[int, ...] = (10, 30, 100, 300, 1000, 2000, 4000)
    runs: int = 10
    private_rows: int | None = None


PAPER = Size()
QUICK = Size(
    ks=(4, 12),
    own_ks=(None, 8),
    diagnostic_k=12,
    public_rows=500,
    public_counts=(30, 500),
    runs=2,
    private_rows=20_000,
)


@dataclass(frozen=True, slots=True)
class Series:
    """One method on one pair, and what it is run for: all of `Size.ks`, or all of `Size.public_counts`."""

    method: str
    pair: str
    against: str = "k"

    def tasks(self, size: Size) -> list[Task]:
        """Run after run, so that a part of them is a few runs of everything."""
        if self.method == "ours":
            settings: list[tuple[int | None, int | None]] = [(k, None) for k in size.own_ks]
        elif self.against == "k":
            settings = [(k, size.public_rows) for k in size.ks]
        else:
            settings = [(size.diagnostic_k, count) for count in size.public_counts]
        return [
            {"method": self.method, "pair": self.pair, "k": k, "public_rows": rows, "run": run}
            for run in range(size.runs)
            for k, rows in settings
        ]


SERIES = {
    "paper-income-al": Series("paper", "income-al"),
    "paper-ours-income": Series("ours", "income-al"),
    "paper-public-rows": Series("paper", "income-al", "public_rows"),
    "paper-income-nv": Series("paper", "income-nv"),
    "paper-travel-ma": Series("paper", "travel-ma"),
    "paper-travel-pa": Series("paper", "travel-pa"),
    "paper-ours-travel": Series("ours", "travel-ma"),
}
"""By the names of their results, the most important first. Ours needs no public rows, so its pair names the private."""


@dataclass(frozen=True, slots=True)
class Measuring:
    """Does tasks: the tables of pairs are read once."""

    pairs: dict[str, Pair]
    folder: Path
    size: Size
    _tables: dict[str, tuple[pa.Table, pa.Table]]

    @classmethod
    def of(cls, pairs: dict[str, Pair], folder: Path, size: Size) -> Measuring:
        return cls(pairs, folder, size, {})

    def __call__(self, task: Task) -> Point:
        pair = self.pairs[task["pair"]]
        if pair.key not in self._tables:
            private, public = pair.tables(self.folder)
            if self.size.private_rows is not None:
                private = draw(private, self.size.private_rows, seed=0)
            self._tables[pair.key] = private, public
        private, public = self._tables[pair.key]
        start = time.perf_counter()
        if task["method"] == "ours":
            found = ours(private, pair.schema, task["k"])
        else:
            drawn = draw(public, task["public_rows"], seed=task["run"])
            found = papers(private, drawn, pair.schema, task["k"], seed=task["run"])
        return {**{name: rounded(value) for name, value in found.items()}, "seconds": time.perf_counter() - start}


def rounded(value: Any) -> Any:
    return round(float(value), 7) if isinstance(value, float | np.floating) else value


def papers(private: pa.Table, public: pa.Table, schema: Schema, k: int, *, seed: int) -> Point:
    """The paper's algorithm at resolution k on public rows.

    `tight` and `path` are its certificates with Eq. (17) and Eq. (10), followed by their terms. `fit` is the distance
    of its rows to the noisy marginals in the path loss, `truth` that of the private rows, beside the law of the latter.
    """
    made = release(
        private, schema, epsilon=EPSILON, preset="paper", confidence=CONFIDENCE, public=public, resolution=k, seed=seed
    )
    point: Point = {}
    for name, proxy in (("tight", "transport"), ("path", "path")):
        plug_in = made.certificate.details["plug_in"][proxy]
        point[name] = plug_in["bound"]
        point |= {f"{name}_{term}": value for term, value in plug_in["terms"].items()}
    diagnostic = made.certificate.details["plug_in"]["path"]["diagnostic"]
    point |= {name: diagnostic[name] for name in ("fit", "noise_mean", "noise_low", "noise_high")}
    point["truth"] = distance_of_truth(made, private, k)
    point |= losses("raw_", evaluate(private, public, schema, lattice=LATTICE))
    return point | _losses_of(made, private, schema, SHARP["paper"])


def ours(private: pa.Table, schema: Schema, k: int | None) -> Point:
    """A release with its defaults, at resolution k or at the one that it chooses, and its direct certificate."""
    made = release(private, schema, epsilon=EPSILON, confidence=CONFIDENCE, resolution=k)
    certificate = made.certificate
    point: Point = {"bound": certificate.bound, "kind": certificate.kind, **certificate.details["direct"]["terms"]}
    point["chosen_k"] = made.document["release"]["resolution"]
    return point | _losses_of(made, private, schema, SHARP["ours"])


def _losses_of(made: Release, private: pa.Table, schema: Schema, sharp: int) -> Point:
    rows = made.to_arrow()
    return {
        **losses("", evaluate(private, rows, schema, lattice=LATTICE)),
        **losses("sharp_", evaluate(private, rows, schema, lattice=sharp)),
    }


def losses(prefix: str, found: Evaluation) -> Point:
    """Bounds of the true loss, and between them the loss of the rows moved to the lattice."""
    return {f"{prefix}{name}": getattr(found, name) for name in ("upper", "value", "lower")}


def distance_of_truth(made: Release, private: pa.Table, k: int) -> float:
    """How far the private rows are from their own noisy marginals, in the path loss: the noise that was drawn."""
    measurement, schema = made.measurement, made.schema
    marginals = measurement.marginals

    def codes(rows: list[np.ndarray]) -> list[np.ndarray]:
        return [c.to_cells(x, cells) for c, x, cells in zip(schema, rows, marginals.cells, strict=True)]

    counts = marginals.count(codes(rows) for rows in cleaned(open_source(private), schema))
    noisy, total = measurement.estimate()
    return (
        max(
            float(path_loss(v, c.astype(float), CellPath.along(marginals.of(s), measurement.strategy.order, end=1 / k)))
            for s, v, c in zip(marginals.subsets, noisy, counts, strict=True)
        )
        / total
    )


Average = tuple[np.ndarray, np.ndarray, np.ndarray]


def curve(
    points: list[Point], name: str, *, against: str = "k", keep: Callable[[Point], bool] = bool
) -> tuple[list, Average]:
    """What `name` is at each place along the axis: the places, then means, smallest and largest over the runs."""
    kept = [p for p in points if p[against] is not None and keep(p)]
    places = sorted({p[against] for p in kept})
    values = [np.array([p[name] for p in kept if p[against] == place]) for place in places]
    return places, tuple(np.array([f(v) for v in values]) for f in (np.mean, np.min, np.max))


def mean(points: list[Point], name: str, *, k: int | None) -> float:
    """The mean over the runs at one resolution; None is what ours chooses itself."""
    return float(np.mean([p[name] for p in points if p["k"] == k]))


def runs_text(points: list[Point], *, against: str = "k") -> str:
    """How many runs there are, in words: the same number everywhere, or from the least to the most."""
    counts = [sum(p[against] == place for p in points) for place in {p[against] for p in points}]
    least, most = min(counts), max(counts)
    plural = "" if most == 1 else "s"
    return f"{most} run{plural}" if least == most else f"{least} to {most} runs"
