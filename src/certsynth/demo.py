"""A fictitious town register, with a schema that a person could have written for it."""

from __future__ import annotations

import csv
import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

Columns = Mapping[str, Sequence[str]]
"""Column names with values as in a CSV file; "" is missing."""

SCHEMA = """\
# What a row may hold, written from public knowledge alone: the register's code book and common sense.
# No bound and no label was looked up in the rows.

[table]
name = "Register of a made-up town"
unit = "one row is one person"

[[column]]
name = "age"
kind = "integer"
low = 16
high = 100

[[column]]
name = "sex"
kind = "category"
values = ["female", "male"]
other = true

[[column]]
name = "education"
kind = "ordinal"
values = ["none", "primary", "secondary", "vocational", "bachelor", "master", "doctorate"]

[[column]]
name = "income"
kind = "number"
low = 0.0
high = 120000.0
missing = true

[[column]]
name = "region"
kind = "category"
values = ["harbour", "old town", "north", "south", "hills"]

[[column]]
name = "registered"
kind = "date"
low = 2010-01-01
high = 2024-12-31

[[column]]
name = "employed"
kind = "boolean"
"""

_EDUCATION = ("none", "primary", "secondary", "vocational", "bachelor", "master", "doctorate")
_REGIONS = ("harbour", "old town", "north", "south", "hills")
_FIRST_DAY, _DAYS = datetime.date(2010, 1, 1), 5478  # to the end of 2024


def people(rows: int, *, seed: int = 1) -> Columns:
    """Generate the town's register, with dependent columns. The same seed gives the same town.

    >>> {name: values[0] for name, values in people(1).items()}["region"] in _REGIONS
    True
    """
    rng = np.random.default_rng(seed)
    age = np.clip(np.round(rng.gamma(6.5, 7.0, rows) + 6), 16, 100).astype(int)
    sex = rng.choice(["female", "male", "other"], rows, p=[0.505, 0.485, 0.01])
    schooling = rng.normal(2.9, 1.3, rows) - 0.015 * np.maximum(age - 45, 0)
    education = np.clip(np.round(np.minimum(schooling, (age - 10) / 3)), 0, 6).astype(int)
    working_age = (age >= 18) & (age <= 66)
    employed = rng.random(rows) < np.where(working_age, 0.62 + 0.05 * education, 0.06)
    experience = np.clip(age - 20 - education, 0, 35)
    earned = np.exp(rng.normal(9.75 + 0.17 * education + 0.012 * experience, 0.38, rows))
    income = np.where(employed, earned, rng.gamma(3.0, 4200.0, rows) * (age >= 18))
    missing = rng.random(rows) < np.where(income > 70_000, 0.25, 0.06)
    wealthy = np.clip(income / 60_000, 0, 1)
    places = np.cumsum([0.24 - 0.15 * wealthy, 0.16 + 0.06 * wealthy, 0.22 + 0 * wealthy, 0.26 - 0.1 * wealthy], axis=0)
    region = (rng.random(rows) > places).sum(axis=0)
    arrival = rng.beta(np.where(age < 35, 3.0, 1.1), 1.2)
    days = np.minimum(arrival * _DAYS, _DAYS).astype(int)
    return {
        "age": [str(a) for a in age],
        "sex": [str(s) for s in sex],
        "education": [_EDUCATION[e] for e in education],
        "income": ["" if absent else f"{x:.2f}" for x, absent in zip(income, missing, strict=True)],
        "region": [_REGIONS[r] for r in region],
        "registered": [(_FIRST_DAY + datetime.timedelta(int(d))).isoformat() for d in days],
        "employed": ["true" if e else "false" for e in employed],
    }


def shuffled(table: Columns, *, seed: int = 2) -> Columns:
    """Shuffle each column independently: every histogram is preserved, and every dependence is destroyed."""
    rng = np.random.default_rng(seed)
    return {name: [values[i] for i in rng.permutation(len(values))] for name, values in table.items()}


def write_csv(table: Columns, path: Path) -> None:
    """Write the table to a new CSV file."""
    with path.open("x", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
