"""How wide the certified intervals of common questions are, and whether the truth is in them.

Called by `python benchmarks/run.py answers`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from certsynth import Schema, release
from many.run import MODES
from many.tables import TABLES, Table

RUNS = 5


@dataclass(frozen=True, slots=True)
class Question:
    """A query, its true value, and the full width that its interval should have at most."""

    query: str
    truth: Callable[[pd.DataFrame], float]
    at_most: float


def share(holds: Callable[[pd.DataFrame], pd.Series]) -> Callable[[pd.DataFrame], float]:
    return lambda rows: float(holds(rows).mean())


FULL_TIME_GRADUATES = "fraction(WKHP >= 40 and SCHL >= 21)"
GRADUATES_WHO_WORK = share(lambda rows: (rows.WKHP >= 40) & (rows.SCHL >= 21))

CALIFORNIA = (
    Question("fraction(AGEP > 65)", share(lambda rows: rows.AGEP > 65), 0.022),
    Question("fraction(SCHL >= 21)", share(lambda rows: rows.SCHL >= 21), 0.022),
    Question("fraction(AGEP between 25 and 34)", share(lambda rows: rows.AGEP.between(25, 34)), 0.022),
    Question(FULL_TIME_GRADUATES, GRADUATES_WHO_WORK, 0.034),
    Question("mean(WKHP | SCHL >= 21)", lambda rows: float(rows.WKHP[rows.SCHL >= 21].mean()), 4),
    Question("median(AGEP | SCHL >= 22)", lambda rows: float(rows.AGEP[rows.SCHL >= 22].median()), 9),
    Question("quantile(AGEP, 0.9)", lambda rows: float(rows.AGEP.quantile(0.9, interpolation="inverted_cdf")), 2),
    Question("correlation(AGEP, WKHP)", lambda rows: float(rows.AGEP.corr(rows.WKHP)), 0.35),
)
IN_BANDS = (Question(FULL_TIME_GRADUATES, GRADUATES_WHO_WORK, 0.025),)
BANDS = {"SCHL": [21], "WKHP": [40]}

ADULT = (
    Question("fraction(age >= 48)", share(lambda rows: rows["age"] >= 48), 0.03),
    Question("fraction(`marital-status` = 2)", share(lambda rows: rows["marital-status"] == 2), 0.015),
    Question(
        "fraction(sex = 1 and `income>50K` = 1)",
        share(lambda rows: (rows["sex"] == 1) & (rows["income>50K"] == 1)),
        0.04,
    ),
    Question(
        "mean(`hours-per-week` | sex = 0)", lambda rows: float(rows["hours-per-week"][rows["sex"] == 0].mean()), 7
    ),
)


def with_bands(toml: str) -> str:
    """A schema file with borders that matter publicly."""
    for name, bands in BANDS.items():
        toml = toml.replace(f'name = "{name}"', f'name = "{name}"\nbands = {bands}')
    return toml


def answers(_: Path) -> None:
    """Full widths of certified intervals at ε = 1, means over runs, and how often the truth is in them."""
    california, adult = TABLES["california-5"], TABLES["adult"]
    cases: list[tuple[str, Table, str, dict[str, Any], tuple[Question, ...]]] = [
        ("California, 5", california, california.toml, MODES["pure-replace"], CALIFORNIA),
        ("with bands", california, with_bands(california.toml), MODES["pure-replace"], IN_BANDS),
        ("Adult, δ", adult, adult.toml, MODES["delta-add"], ADULT),
    ]
    print(f"{'':>14} {'width':>8} {'at most':>8} {'truth inside':>13}   {RUNS} runs")
    for name, table, toml, asked, questions in cases:
        rows, schema = table.rows().training, Schema.parse(toml)
        made = [release(rows, schema, epsilon=1, **asked) for _ in range(RUNS)]
        for question in questions:
            found = [each.answer(question.query) for each in made]
            width = np.mean([each.high - each.low for each in found])
            inside = sum(each.low <= question.truth(rows) <= each.high for each in found)
            print(
                f"{name:>14} {width:8.4g} {question.at_most:8.4g} {inside:>9} of {RUNS}   {question.query}", flush=True
            )
