"""Small tables with every kind of column, and noise that is not noise, for tests of whole releases."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl

from certsynth import Release, Schema
from certsynth.algorithm.declaration import checked
from certsynth.algorithm.layers import LayerSpec
from certsynth.algorithm.method import checked_settings
from certsynth.algorithm.options import ReleaseOptions
from certsynth.algorithm.settings import Settings
from certsynth.algorithm.task import Task
from certsynth.cli.progress import PREFIX
from certsynth.mechanisms import Budget, Sensitivity, Unit
from certsynth.mechanisms.rare import Tail
from certsynth.mechanisms.samplers import NoisyIntegers, SimulatedNoise, calibrated_scale
from certsynth.planning.choice import choose

TINY = Schema.parse(
    """
[[column]]
name = "a"
kind = "integer"
low = 0
high = 3

[[column]]
name = "b"
kind = "category"
values = ["x", "y"]
"""
)
"""Two columns of few values, for tests of all tables."""

VISITS = """
[[column]]
name = "age"
kind = "integer"
low = 0
high = 9

[[column]]
name = "ward"
kind = "category"
values = ["north", "south"]
"""
"""The columns of a table of visits, of which a person may have several: age and ward."""

MIXED = Schema.parse(
    """
[table]
name = "people"

[[column]]
name = "age"
kind = "integer"
low = 0
high = 20

[[column]]
name = "sex"
kind = "category"
values = ["f", "m"]
other = true

[[column]]
name = "income"
kind = "number"
low = 0
high = 1000
missing = true

[[column]]
name = "education"
kind = "ordinal"
values = ["low", "middle", "high"]

[[column]]
name = "employed"
kind = "boolean"

[[column]]
name = "since"
kind = "date"
low = 2020-01-01
high = 2020-12-31
"""
)

NATIVE = Schema.parse(
    """
[[column]]
name = "a"
kind = "integer"
low = 0
high = 6

[[column]]
name = "b"
kind = "integer"
low = 0
high = 4
missing = true

[[column]]
name = "c"
kind = "category"
values = ["x", "y"]
"""
)
"""All values lie on every lattice used, so that the true loss is known exactly."""

DERIVED = Schema.parse(
    """
[[column]]
name = "kind"
kind = "category"
values = ["p", "q"]
derived = { from = "c", map = { x = "q", y = "p" } }

[[column]]
name = "sum"
kind = "integer"
low = 0
high = 10
missing = true
derived = { expression = "a + b" }
"""
    + NATIVE.to_toml().partition("\n\n")[2]
)
"""The columns of `NATIVE`, with two that are derived from them in front."""


REGIONS = [f"region {i}" for i in range(40)]
CODES = ["farm", "farm/crops", "farm/cattle", "works", "works/steel", "works/steel/wire", "works/cars", "trade"]
COLOURS = ["red", "orange", "yellow", "blue"]

EVERY_KIND = Schema.parse(
    f"""
[table]
name = "workers"

[[column]]
name = "age"
kind = "integer"
low = 0
high = 90

[[column]]
name = "income"
kind = "number"
low = 0.1
high = 0.7
missing = true
weight = 0.4

[[column]]
name = "hired"
kind = "date"
low = 2000-01-01
high = 2019-12-31
missing = true

[[column]]
name = "grade"
kind = "ordinal"
values = ["low", "middle", "high"]

[[column]]
name = "region"
kind = "category"
values = {REGIONS}
other = true

[[column]]
name = "member"
kind = "boolean"
missing = true

[[column]]
name = "job"
kind = "tree"
values = {CODES}
other = true
missing = true

[[column]]
name = "colour"
kind = "metric"
values = {COLOURS}
distances = [[0, 1, 2, 5], [1, 0, 1, 4.5], [2, 1, 0, 4], [5, 4.5, 4, 0]]
weight = 0.25

[[column]]
name = "shift"
kind = "datetime"
low = 2019-12-30T22:00:00
high = 2020-01-05T21:45:00
step = 900
missing = true

[[rule]]
impossible = "age < 16 and hired is not missing"
""".replace("'", '"')
)
"""Every kind of column, weights and a rule."""

WOVEN = EVERY_KIND.select(["job", "colour"])
"""A tree, and a metric with a weight: all values lie on every lattice."""


def people(rows: int, *, seed: int = 0) -> pl.DataFrame:
    """A table of the `MIXED` schema whose columns depend on each other."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 21, rows)
    income = np.clip(40.0 * age + rng.normal(0, 80, rows), 0, 1000)
    since = np.datetime64("2020-01-01") + rng.integers(0, 366, rows).astype("timedelta64[D]")
    frame = pl.DataFrame(
        {
            "age": age,
            "sex": rng.choice(["f", "m", "unlisted"], rows, p=[0.5, 0.4, 0.1]),
            "income": income,
            "education": np.array(["low", "middle", "high"])[np.minimum(age // 7, 2)] if rows else [],
            "employed": rng.random(rows) < 0.6,
            "since": since,
        }
    )
    return frame.with_columns(pl.when(pl.col("age") < 3).then(None).otherwise(pl.col("income")).alias("income"))


def native(rows: int, *, seed: int = 0) -> pl.DataFrame:
    """A table of the `NATIVE` schema."""
    rng = np.random.default_rng(seed)
    a = rng.binomial(6, 0.4, rows)
    b = np.where(rng.random(rows) < 0.1, -1, np.minimum(a, 4))
    frame = pl.DataFrame({"a": a, "b": b, "c": np.where(rng.random(rows) < 0.3, "x", "y") if rows else []})
    return frame.with_columns(pl.when(pl.col("b") < 0).then(None).otherwise(pl.col("b")).alias("b"))


def derived(rows: int, *, seed: int = 0) -> pl.DataFrame:
    """A table of the `DERIVED` schema that obeys its map and its expression."""
    frame = native(rows, seed=seed)
    kind = pl.col("c").replace_strict({"x": "q", "y": "p"}, return_dtype=pl.String)
    return frame.with_columns(kind=kind, sum=pl.col("a") + pl.col("b"))


def workers(rows: int, *, seed: int = 0) -> pl.DataFrame:
    """A table of the `EVERY_KIND` schema whose columns depend on each other; some rows hold what it does not list."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 91, rows)
    skill = rng.random(rows)
    hired = np.datetime64("2000-01-01") + rng.integers(0, 7000, rows).astype("timedelta64[D]")
    codes = np.array([code.split("/")[-1] for code in CODES] + ["unheard of"])
    frame = pl.DataFrame(
        {
            "age": age,
            "income": 0.1 + 0.6 * np.clip(skill + rng.normal(0, 0.1, rows), 0, 1),
            "hired": hired,
            "grade": np.array(["low", "middle", "high"])[(3 * skill).astype(int)],
            "region": np.array([*REGIONS, "abroad"])[rng.binomial(41, 0.3, rows) % 41],
            "member": rng.random(rows) < skill,
            "job": codes[np.minimum(rng.poisson(8 * skill), 8)],
            "colour": np.array(COLOURS)[rng.integers(0, 1 + (4 * skill).astype(int))],
        }
    )
    since = np.datetime64("2019-12-30T21", "us")  # some are an hour early
    frame = frame.with_columns(
        shift=since + (1e6 * 86_400 * 6 * np.random.default_rng([seed, 1]).random(rows) ** 2).astype("timedelta64[us]")
    )
    absent = {"income": 0.1, "hired": 0.05, "member": 0.2, "job": 0.15, "shift": 0.1}
    frame = frame.with_columns(
        pl.when(pl.Series(rng.random(rows) < share)).then(None).otherwise(pl.col(name)).alias(name)
        for name, share in absent.items()
    )
    return frame.with_columns(hired=pl.when(pl.col("age") < 16).then(None).otherwise(pl.col("hired")))


def cube(columns: int) -> Schema:
    """Numbers between 0 and 1."""
    return Schema.parse(
        "\n".join(f'[[column]]\nname = "x{j}"\nkind = "number"\nlow = 0\nhigh = 1' for j in range(columns))
    )


def raising(error: BaseException) -> Callable[..., Any]:
    """A function that raises it whatever it is given."""

    def fail(*arguments: object, **options: object) -> Any:
        raise error

    return fail


def emitted(made: Release) -> pl.DataFrame:
    """The rows of a release as a data frame."""
    return pl.DataFrame({name: column.tolist() for name, column in made.table.items()})


def settled(schema: Schema, **asked: Any) -> Settings:
    """Settings of a release with ε = 2, or as asked; all else is left open."""
    given = {"epsilon": None if "rho" in asked else 2} | asked
    return checked_settings(schema, checked(ReleaseOptions, given))


def planned(schema: Schema, settings: Settings, rows: int) -> list[LayerSpec]:
    """The layers that a release would measure."""
    return list(choose(Task(schema, settings, rows)).layers)


class FixedOutput:
    """Gives the same noisy vector whatever the exact one was: what an onlooker can see must then be the same, too."""

    releasable = False

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def add(self, values: np.ndarray, *, sensitivity: Sensitivity, budget: Budget) -> NoisyIntegers:
        fixed = np.random.default_rng([self.seed, len(values)]).integers(0, 9, len(values))
        return NoisyIntegers(values=fixed, scale=calibrated_scale(sensitivity, budget), spent=budget)

    def rare(self, cells: int, tail: Tail) -> tuple[np.ndarray, np.ndarray]:
        return SimulatedNoise(np.random.default_rng([self.seed, tail.above])).rare(cells, tail)


class NoNoise:
    """Adds nothing."""

    releasable = False

    def add(self, values: np.ndarray, *, sensitivity: Sensitivity, budget: Budget) -> NoisyIntegers:
        return NoisyIntegers(values=values, scale=calibrated_scale(sensitivity, budget), spent=budget)

    def rare(self, cells: int, tail: Tail) -> tuple[np.ndarray, np.ndarray]:
        return np.empty(0, np.int64), np.empty(0, np.int64)


class SeededNoise(SimulatedNoise):
    """Noise of the stated law from a seed: what holds in one run of a test holds in all. Its releases can be saved."""

    releasable = True

    def __init__(self, seed: int = 0) -> None:
        super().__init__(np.random.default_rng(seed))


class LyingNoise(SimulatedNoise):
    """Noise `factor` times as wide as it says: certificates that rely on its law must fail.

    It comes from a seed, so that no control fails by chance.
    """

    def __init__(self, factor: int, seed: int = 0) -> None:
        super().__init__(np.random.default_rng(seed))
        self.factor = factor

    def add(self, values: np.ndarray, *, sensitivity: Sensitivity, budget: Budget) -> NoisyIntegers:
        less = self.factor if budget.unit is Unit.EPSILON else self.factor**2
        wide = super().add(values, sensitivity=sensitivity, budget=budget.share(Fraction(1, less)))
        return NoisyIntegers(values=wide.values, scale=calibrated_scale(sensitivity, budget), spent=budget)


SURE = "0.999999999"
"""The confidence of certificates that a test compares with the truth: one in 10⁹ is wrong by chance."""


def failures_allowed(runs: int, beta: float, *, alarm: float = 1e-9) -> int:
    """The most failures in `runs` that a failure probability of β explains: more have a chance of at most `alarm`."""
    from scipy.stats import binom

    return int(binom.isf(alarm, runs, beta))


def without_progress(stderr: str) -> str:
    """What a command wrote to stderr besides its progress, part of which depends on the time."""
    return "".join(line for line in stderr.splitlines(keepends=True) if not line.startswith(PREFIX))
