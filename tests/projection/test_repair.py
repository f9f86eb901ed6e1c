"""Rows obey the rules, stay in the schema, and are changed no more than it takes."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certsynth.artefact.table import decoded_table
from certsynth.domain import Category, Ordered, Rule, Schema
from certsynth.projection import repair
from certsynth.projection.repair import repair_rows
from work import calls_made

LABELS = ("never", "married", "widowed")
SCHEMA = Schema(
    (
        Ordered("age", kind="integer", low=0, high=99),
        Category("status", values=LABELS, missing=True),
        Ordered("arrival", kind="date", low=19_000, high=19_365),
        Ordered("departure", kind="date", low=19_000, high=19_365, missing=True),
        Category("employed", kind="boolean", values=("false", "true")),
        Ordered("hours", kind="integer", low=0, high=80, missing=True),
        Ordered("income", kind="number", low=-10.0, high=1e5 / 3),
        Ordered("grade", kind="ordinal", low=0, high=3, values=("a", "b", "c", "d")),
        Category("town", values=("x", "y", "z"), other=True),
        Category("home", values=("z", "y")),
    )
)

Row = dict[str, Any]

# Each rule with what it means of one row of written values, in plain Python: whether it is violated.
KNOWN: list[tuple[Rule, Callable[[Row], bool]]] = [
    (
        Rule(impossible="age < 16 and status in ['married', 'widowed']"),
        lambda r: r["age"] < 16 and r["status"] in ("married", "widowed"),
    ),
    (
        Rule(require="departure >= arrival"),
        lambda r: r["departure"] is not None and r["departure"] < r["arrival"],
    ),
    (
        Rule(when="employed = false", require="hours = 0 and income between 0 and 100"),
        lambda r: not r["employed"] and ((r["hours"] is not None and r["hours"] != 0) or not 0 <= r["income"] <= 100),
    ),
    (Rule(require="hours <= age - 10 or hours = 0"), lambda r: bool(r["hours"]) and r["hours"] > r["age"] - 10),
    (Rule(require="hours is not missing"), lambda r: r["hours"] is None),
    (Rule(impossible="grade = 'd' and income < 0.1"), lambda r: r["grade"] == "d" and r["income"] < 0.1),
    (
        Rule(when="grade >= 'b' and grade != 'd'", require="income = 0.1"),
        lambda r: r["grade"] in ("b", "c") and r["income"] != 0.1,
    ),
    (Rule(require="town = home"), lambda r: r["town"] != r["home"]),
    (
        Rule(impossible="departure - arrival > 30 and town = 'y'"),
        lambda r: r["departure"] is not None and (r["departure"] - r["arrival"]).days > 30 and r["town"] == "y",
    ),
]


def some_clean(rows: int, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    columns = []
    for column in SCHEMA:
        points = column.on_lattice(column.detail())
        few = rng.choice(len(points), min(len(points), int(rng.integers(1, 40))), replace=False)
        columns.append(points[rng.choice(few, rows)])
    return columns


def as_rows(table: repair.Table) -> list[Row]:
    columns = [column.tolist() for column in table.values()]
    return [dict(zip(table, values, strict=True)) for values in zip(*columns, strict=True)]


def in_schema(table: repair.Table) -> bool:
    """Every value is one that the column's own cleaning leaves as it is; numbers lie between their ends."""
    for column in SCHEMA:
        values = table[column.name]
        if column.name == "income":
            if not ((values.data >= column.low) & (values.data <= column.high)).all():  # type: ignore[attr-defined]
                return False
        elif values.tolist() != column.decode(column.clean(values)).tolist():
            return False
    return True


@settings(max_examples=80, deadline=None)
@given(st.sets(st.integers(0, len(KNOWN) - 1), max_size=5), st.integers(0, 300), st.integers(0, 2**32 - 1))
def test_no_row_violates_any_rule_and_all_values_are_in_the_schema(chosen: set[int], rows: int, seed: int) -> None:
    known = [KNOWN[i] for i in sorted(chosen)]
    schema = replace(SCHEMA, rules=tuple(rule for rule, _ in known))
    table = decoded_table(schema, some_clean(rows, seed))
    wrong = [any(violated(row) for _, violated in known) for row in as_rows(table)]
    made = repair_rows(schema, table, np.random.default_rng(seed))
    assert not [row for row in as_rows(made) if any(violated(row) for _, violated in known)]
    assert in_schema(made)
    assert list(made) == list(table)
    assert all(len(column) == rows for column in made.values())
    touched = {name for constraint in schema.constraints for name in constraint.columns}
    assert all(made[name] is table[name] for name in table if name not in touched)
    if not any(wrong):
        assert made is table


def test_a_table_without_rules_is_left_alone() -> None:
    table = decoded_table(SCHEMA, some_clean(50, 0))
    rng = np.random.default_rng(1)
    assert repair_rows(SCHEMA, table, rng) is table
    assert rng.random() == np.random.default_rng(1).random(), "not even a random number is drawn"


def test_the_same_seed_gives_the_same_rows() -> None:
    schema = replace(SCHEMA, rules=tuple(rule for rule, _ in KNOWN[:4]))
    table = decoded_table(schema, some_clean(400, 3))
    first, second = (as_rows(repair_rows(schema, table, np.random.default_rng(7))) for _ in range(2))
    assert first == second


# ------------------------------------------------------------ how much is changed


def shuffled_stays(rows: int) -> tuple[Schema, repair.Table]:
    """Stays that obey, but for pairs of like rows that gave each other their departures: exchanges put all right."""
    rng = np.random.default_rng(5)
    clean = some_clean(rows, 5)
    clean[2] = rng.integers(0, 300, rows).astype(float)
    clean[3] = clean[2] + rng.integers(0, 60, rows)
    mixed = rng.choice(rows, rows // 10, replace=False)
    one, other = mixed[np.argsort(clean[2][mixed])].reshape(-1, 2).T
    clean[3][one], clean[3][other] = clean[3][other], clean[3][one]
    schema = replace(SCHEMA, rules=(Rule(require="departure >= arrival"),))
    return schema, decoded_table(schema, clean)


def spread(table: repair.Table) -> dict[str, Counter[Any]]:
    return {name: Counter(values.tolist()) for name, values in table.items()}


def test_single_columns_stay_exactly_where_exchanges_suffice() -> None:
    schema, table = shuffled_stays(4_000)
    assert any(KNOWN[1][1](row) for row in as_rows(table))
    made = repair_rows(schema, table, np.random.default_rng(0))
    assert spread(made) == spread(table)
    assert not any(KNOWN[1][1](row) for row in as_rows(made))


def test_without_exchanges_single_columns_would_change(monkeypatch: pytest.MonkeyPatch) -> None:
    """Control of the test above."""
    schema, table = shuffled_stays(4_000)
    monkeypatch.setattr(repair, "_exchange", lambda *_: None)
    assert spread(repair_rows(schema, table, np.random.default_rng(0))) != spread(table)


def moved(schema: Schema, first: repair.Table, second: repair.Table) -> float:
    """Mean over rows of the summed distances of their values: a bound on how far the tables are."""
    total = 0.0
    for column in schema:
        a, b = (column.clean(table[column.name]).astype(float) for table in (first, second))
        reach = column.reach if isinstance(column, Ordered) else 0
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        away = np.abs(a - b) / reach if reach else np.ones(len(a))
        total += float(np.where(same, 0.0, np.where(np.isnan(away), 1.0, away)).mean())
    return total


def test_rows_that_are_nearly_right_are_changed_a_little() -> None:
    """One row in 50 departs two days too early: a swap or two of a few days' length each, of 365."""
    rng = np.random.default_rng(2)
    clean = some_clean(5_000, 2)
    clean[2] = rng.integers(0, 300, 5_000).astype(float)
    clean[3] = clean[2] + rng.integers(0, 60, 5_000)
    early = rng.random(5_000) < 0.02
    clean[3][early] = np.maximum(clean[2][early] - 2, 0)
    schema = replace(SCHEMA, rules=(Rule(require="departure >= arrival"),))
    table = decoded_table(schema, clean)
    made = repair_rows(schema, table, np.random.default_rng(0))
    assert 0 < moved(schema, table, made) < 0.02 * 2 * 10 / 365


def test_a_value_that_no_row_holds_is_made_at_the_border() -> None:
    """Nobody works 0 hours, and everybody must: exchanges and other rows are of no help."""
    clean = some_clean(200, 1)
    clean[5] = np.full(200, 7.0)
    schema = replace(SCHEMA, rules=(Rule(require="hours < 5"),))
    made = repair_rows(schema, decoded_table(schema, clean), np.random.default_rng(0))
    assert set(made["hours"].tolist()) == {4}


def test_an_equation_of_numbers_holds_to_the_last_bit() -> None:
    schema = Schema(
        (Ordered("x", kind="number", low=0.0, high=1e5 / 3), Ordered("y", kind="number", low=-1.0, high=7e4)),
        rules=(Rule(require="y = 2*x + 0.1"), Rule(require="x != 0.3")),
    )
    rng = np.random.default_rng(0)
    made = repair_rows(schema, decoded_table(schema, [rng.random(500), rng.random(500)]), rng)
    assert (made["y"].data == 2 * made["x"].data + 0.1).all()
    assert len(set(made["x"].tolist())) > 400, "x need not change"


def test_an_empty_table_and_a_single_row() -> None:
    schema = replace(SCHEMA, rules=tuple(rule for rule, _ in KNOWN))
    for rows in (0, 1, 2):
        made = repair_rows(schema, decoded_table(schema, some_clean(rows, rows)), np.random.default_rng(0))
        assert not any(violated(row) for row in as_rows(made) for _, violated in KNOWN)


def test_work_grows_no_faster_than_the_rows() -> None:
    """About seven calls for each row, nearly all of them for its dates."""
    calls = []
    for rows in (3_000, 30_000):
        schema, table = shuffled_stays(rows)
        schema = replace(schema, rules=(*schema.rules, KNOWN[0][0]))
        calls.append(calls_made(functools.partial(repair_rows, schema, table, np.random.default_rng(0))))
    assert calls[1] < 10 * calls[0]
    assert calls[1] < 15 * 30_000


def test_repaired_values_are_steps_of_the_column() -> None:
    columns = (
        Ordered("price", kind="number", low=0.0, high=9.99, step=Fraction(1, 100)),
        Ordered("income", kind="integer", low=0, high=5_000, step=Fraction(50)),
    )
    rules = (Rule(require="price >= 0.333"), Rule(impossible="income > 120 and income < 260"))
    schema = Schema(columns, rules=rules)
    rng = np.random.default_rng(5)
    clean = [c.clean(rng.uniform(c.low, c.high / 10, 400)) for c in columns]
    table = repair_rows(schema, decoded_table(schema, clean), rng)
    assert table["price"].min() == 0.34
    assert not set(table["income"].tolist()) & {150, 200, 250}
    for column in columns:
        assert (column.decode(column.clean(table[column.name])) == table[column.name]).all()
