"""An independent auditor judges mechanisms and releases: it gets their outputs, and not their code.

    python audits/auditor.py [--quick] [--effort X] [--processes P]

Grey box: the noisy integers that single mechanisms give out, many at a time. Black box: figures of whole releases that
anybody can read off the synthetic table and the certificate. Judging happens in `judge.py`, in an environment without
certsynth that is made in build/audits/venv when it is not there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from certsynth.certificate.direct import LOSS_UNITS
from certsynth.domain import Schema
from certsynth.mechanisms import Budget, Neighbours, Sensitivity, Unit, measure, strategy_named
from certsynth.mechanisms.concentrated import rho_of
from certsynth.mechanisms.samplers import ExactNoise, NoisyIntegers
from certsynth.mechanisms.scalars import measure_scalars
from certsynth.mechanisms.selection import choose_least
from certsynth.queries import Marginals
from distinguish import BROKEN, SOUND
from evidence import ALARM, TOTAL_ALARM
from releases import _one_marginal, sample
from writing import RESULTS, say_versions, table, write

Pair = tuple[np.ndarray, np.ndarray]
VENV = RESULTS / "venv"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
REPLACE, HIDDEN = Neighbours.REPLACE_ONE, Neighbours.ADD_REMOVE


class ManyAtOnce:
    """The real noise, on many copies of the same integers: as many independent runs of a mechanism."""

    releasable = False

    def __init__(self, copies: int, *, width: Fraction = Fraction(1)) -> None:
        self.copies, self.width = copies, width
        self.drawn = np.zeros((0, 0), dtype=np.int64)

    def add(self, values: np.ndarray, *, sensitivity: Sensitivity, budget: Budget) -> NoisyIntegers:
        """`width` below 1 is for controls: noise that is so much narrower than it should be."""
        more = budget.share(1 / self.width if budget.unit is Unit.EPSILON else 1 / self.width**2)
        noised = ExactNoise().add(np.tile(values, self.copies), sensitivity=sensitivity, budget=more)
        self.drawn = noised.values.reshape(self.copies, len(values))
        return NoisyIntegers(values=self.drawn[0], scale=noised.scale, spent=budget)


def marginals(columns: int, cells: int, ways: int) -> Marginals:
    """Of columns with so many values each."""
    text = "".join(
        f'[[column]]\nname = "c{j}"\nkind = "integer"\nlow = 0\nhigh = {cells - 1}\n\n' for j in range(columns)
    )
    schema = Schema.parse(text)
    subsets = [(i, j) for j in range(columns) for i in range(j)] if ways == 2 else [(j,) for j in range(columns)]
    return Marginals(cells=tuple(column.cells(cells) for column in schema), subsets=tuple(subsets))


def measured(
    asked: Marginals,
    mechanism: str,
    neighbours: Neighbours,
    budget: Budget,
    copies: int,
    *,
    width: Fraction = Fraction(1),
) -> Pair:
    """Noisy integers of two rows in the lowest cells, and of the same with the second moved or taken away."""
    strategy = strategy_named(mechanism, neighbours=neighbours)
    low, high = (np.array([0]), np.array([asked.cells[0].size - 1]))
    ends = ([low, low], [low, high]) if neighbours is REPLACE else ([low, high], [low])
    made = []
    for rows in ends:
        noise = ManyAtOnce(copies, width=width)
        counts = asked.count([[np.concatenate(rows)] * len(asked.cells)])
        measure(counts, strategy, budget=budget, noise=noise)
        made.append(noise.drawn)
    return made[0], made[1]


def noisy_loss(budget: Budget, copies: int) -> Pair:
    """The loss of a direct certificate, of tables between which it differs by all that it can."""
    made = []
    for value in (0, LOSS_UNITS):
        noise = ManyAtOnce(copies)
        most = Sensitivity(LOSS_UNITS, LOSS_UNITS**2)
        measure_scalars([value], sensitivity=most, budget=budget, neighbours=REPLACE, noise=noise)
        made.append(noise.drawn)
    return made[0], made[1]


def choices(epsilon: Fraction, copies: int) -> Pair:
    """Of two candidates, where the row makes one better and the other worse."""
    first, second = (
        np.array([[choose_least(losses, sensitivity=10, epsilon=epsilon)] for _ in range(copies)])
        for losses in ([0, 10], [10, 0])
    )
    return first, second


def pure(epsilon: int) -> Budget:
    return Budget(Fraction(epsilon))


def gaussian(epsilon: int, delta: str) -> Budget:
    return Budget(rho_of(Fraction(epsilon), Fraction(delta)), Unit.RHO)


def _forgetful(copies: int) -> Pair:
    with mock.patch("certsynth.mechanisms.measure.sensitivity", _one_marginal):
        return measured(marginals(6, 2, 1), "haar", REPLACE, pure(1), copies)


def _narrow(budget: Budget, times: int, copies: int) -> Pair:
    return measured(marginals(1, 2, 1), "haar", REPLACE, budget, copies, width=Fraction(1, times))


Grey = tuple[str, str | None, float, float, Callable[[int], Pair]]
ONE, PAIRS, LONG, GRID = marginals(1, 2, 1), marginals(3, 2, 2), marginals(1, 8, 1), marginals(2, 4, 2)
GREY: tuple[Grey, ...] = (
    ("identity, pairs", None, 1, 0, lambda n: measured(PAIRS, "identity", REPLACE, pure(1), n)),
    ("haar, one column", None, 1, 0, lambda n: measured(ONE, "haar", REPLACE, pure(1), n)),
    ("haar-weighted, hidden n", None, 2, 0, lambda n: measured(LONG, "haar-weighted", HIDDEN, pure(2), n)),
    ("quad-tree, pairs", None, 2, 0, lambda n: measured(GRID, "quad-tree", REPLACE, pure(2), n)),
    ("Gaussian, pairs", None, 2, 0.001, lambda n: measured(PAIRS, "identity", REPLACE, gaussian(2, "0.001"), n)),
    ("Gaussian, hidden n", None, 2, 0.01, lambda n: measured(ONE, "haar", HIDDEN, gaussian(2, "0.01"), n)),
    ("direct certificate", None, 1, 0, lambda n: noisy_loss(pure(1), n)),
    ("choice of 2", None, 2, 0, lambda n: choices(Fraction(2), 4 * n)),
    ("haar, one column", "half the noise", 1, 0, lambda n: _narrow(pure(1), 2, n)),
    ("Gaussian, one column", "a quarter of the noise", 2, 0.01, lambda n: _narrow(gaussian(2, "0.01"), 4, n)),
    ("haar, six columns", "sensitivity of one marginal", 1, 0, _forgetful),
    ("choice of 2", "no factor 2", 2, 0, lambda n: choices(Fraction(4), 4 * n)),
)


PERFECT = ("no noise on the direct certificate", "as many rows as there are", "seeded noise")
"""What can be seen at once, if one looks at the right thing."""


def samples(copies: int, effort: float, processes: int) -> Iterator[tuple[dict[str, Any], Pair]]:
    """What is claimed, and numbers from both tables."""
    for name, broken, epsilon, delta, make in GREY:
        about = {"box": "grey", "case": name, "broken": broken, "claimed epsilon": epsilon, "delta": delta}
        yield about, make(copies)
    chosen = {"one column, direct certificate", "pairs, particles, hidden n"}
    wholes = [case for case in SOUND if case.name in chosen]
    perfect = [case for case in BROKEN if case.broken in PERFECT]
    for case in (*wholes, *perfect):
        seen = sample(case, round(400 * effort), processes=processes)
        epsilon, delta = float(seen.privacy["epsilon"]), float(seen.privacy["delta"] or 0)
        about = {"case": case.name, "broken": case.broken, "claimed epsilon": epsilon, "delta": delta}
        grey = case.broken == "seeded noise"  # of which the table and the certificate tell little
        yield {"box": "grey" if grey else "black", **about}, seen.integers if grey else seen.outside


def environment() -> Path:
    """Python with the judge's packages."""
    python, done = VENV / "bin" / "python", VENV / ".installed"
    if not done.exists() or done.stat().st_mtime < REQUIREMENTS.stat().st_mtime:
        venv.create(VENV, with_pip=True, clear=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", REQUIREMENTS]
        subprocess.run(list(map(str, install)), check=True)
        done.touch()
    return python


def judged(found: list[tuple[dict[str, Any], Pair]], python: Path) -> dict[str, Any]:
    RESULTS.mkdir(parents=True, exist_ok=True)
    files = [RESULTS / name for name in ("samples.npz", "claims.json", "verdicts.json")]
    arrays = {}
    for number, (_, (first, second)) in enumerate(found):
        arrays |= {f"first-{number}": first, f"second-{number}": second}
    np.savez_compressed(files[0], **arrays)
    files[1].write_text(json.dumps({"alarm": ALARM, "claims": [about for about, _ in found]}), encoding="utf-8")
    judge = Path(__file__).with_name("judge.py")
    # Isolated, so that no path leads to certsynth.
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([str(python), "-I", str(judge), *map(str, files)], check=True, env=alone)
    return json.loads(files[2].read_text(encoding="utf-8"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    parser.add_argument("--effort", type=float, default=1.0, help="times as many whole releases")
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    say_versions("certsynth", "opendp", "numpy", "scipy")
    python = environment()
    copies, effort = (8_000, 0.75) if asked.quick else (40_000, asked.effort)
    verdict = judged(list(samples(copies, effort, asked.processes)), python)
    print("judged by " + ", ".join(f"{name} {version}" for name, version in verdict["judge"].items()))
    rows = [row | {"refuted": row["found at least"] > row["claimed epsilon"]} for row in verdict["rows"]]
    print(table(rows))
    accused = [row for row in rows if row["refuted"] and not row["broken"]]
    missed = [row for row in rows if row["broken"] and not row["refuted"]]
    broken = sum(bool(row["broken"]) for row in rows)
    print(f"\nEach bound is wrong with probability at most {ALARM:g}, any of them with {TOTAL_ALARM:g}.")
    print(f"{len(rows) - broken - len(accused)} sound ones below the claim, {len(accused)} above.")
    print(f"{broken - len(missed)} broken ones CAUGHT, {len(missed)} missed.")
    write("auditor", {"judge": verdict["judge"], "alarm": ALARM, "rows": rows})
    return int(bool(accused or missed))


if __name__ == "__main__":
    sys.exit(main())
