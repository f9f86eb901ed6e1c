"""The tables of `frozen_cases`, made by Python's own generator: its numbers do not depend on any version."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

LETTERS = """
[table]
name = "letters"

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

STAFF = """
[table]
name = "staff"
unit = "one row is one person"

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
values = ["north", "south", "east", "west", "centre"]
other = true

[[column]]
name = "member"
kind = "boolean"
missing = true

[[column]]
name = "job"
kind = "tree"
values = ["farm", "farm/crops", "farm/cattle", "works", "works/steel", "works/steel/wire", "works/cars", "trade"]
other = true
missing = true

[[column]]
name = "colour"
kind = "metric"
values = ["red", "orange", "yellow", "blue"]
distances = [[0, 1, 2, 5], [1, 0, 1, 4.5], [2, 1, 0, 4], [5, 4.5, 4, 0]]
weight = 0.25

[[rule]]
impossible = "age < 16 and hired is not missing"
"""

CURVE = """
[table]
name = "curve"

[[column]]
name = "x"
kind = "number"
low = 0
high = 1

[[column]]
name = "y"
kind = "number"
low = 0
high = 1

[[column]]
name = "z"
kind = "number"
low = 0
high = 1
"""


def letters(rows: int, seed: int) -> list[list[Any]]:
    rng = random.Random(seed)
    made = []
    for _ in range(rows):
        a = sum(rng.random() < 0.4 for _ in range(6))
        made.append([a, "" if rng.random() < 0.1 else min(a, 4), "x" if rng.random() < 0.3 else "y"])
    return [["a", "b", "c"], *made]


def staff(rows: int, seed: int) -> list[list[Any]]:
    rng = random.Random(seed)
    jobs = ["farm", "crops", "cattle", "works", "steel", "wire", "cars", "trade", "unheard of"]
    made = []
    for _ in range(rows):
        age, skill = rng.randrange(91), rng.random()
        made.append(
            [
                age,
                "" if rng.random() < 0.1 else round(0.1 + 0.6 * (skill + rng.random()) / 2, 4),
                "" if age < 16 or rng.random() < 0.05 else f"20{rng.randrange(20):02}-{rng.randrange(1, 13):02}-11",
                ["low", "middle", "high"][int(3 * skill)],
                rng.choice(["north", "north", "south", "east", "west", "abroad"]),
                "" if rng.random() < 0.2 else str(rng.random() < skill).lower(),
                "" if rng.random() < 0.15 else jobs[int(9 * skill**2)],
                ["red", "orange", "yellow", "blue"][rng.randrange(1 + int(4 * skill))],
            ]
        )
    return [["age", "income", "hired", "grade", "region", "member", "job", "colour"], *made]


def curve(rows: int, seed: int) -> list[list[Any]]:
    rng = random.Random(seed)
    made = []
    for _ in range(rows):
        t = rng.random()
        made.append([round(t, 5), round(t * t, 5), round(abs(2 * t - 1), 5)])
    return [["x", "y", "z"], *made]


TABLES: dict[str, tuple[str, Callable[[int, int], list[list[Any]]], int]] = {
    "letters": (LETTERS, letters, 120),
    "staff": (STAFF, staff, 100),
    "curve": (CURVE, curve, 300),
}
"""A schema, a table for it, and how many rows it has unless a case says otherwise."""

QUERIES = {
    "letters": ("mean(a)", "fraction(a > 2 and c = 'x')", "quantile(a, 0.9)", "covariance(a, b)", "sum(a)"),
    "staff": ("mean(age)", "fraction(job in ['farm'])", "mean(income | age > 65)", "median(hired)", "sd(income)"),
    "curve": ("mean(x)", "cdf(y, 0.4)", "correlation(x, y)", "variance(z)", "count(x > 0.5)"),
}

KEY = b"""-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f
-----END PRIVATE KEY-----
"""
"""An Ed25519 key of the bytes 0 to 31, which signs nothing but what is made here."""

WORKLOAD = 'subsets = [["b", "c"], ["a", "b", "c"], ["a"]]\n'


def as_csv(table: list[list[Any]]) -> str:
    return "".join(",".join(str(value) for value in row) + "\n" for row in table)
