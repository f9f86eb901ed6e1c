"""Made-up tables: rows that the schema allows, the same for a seed, with columns that depend on each other."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from certsynth.domain import Category, Column, Ordered, Schema
from certsynth.planning.tables import (
    KINDS,
    LOOSE,
    MAX_MISSING_SHARE,
    ORDINARY,
    SHAPE_PROBABILITIES,
    STRONG,
    TIED,
    TableKind,
    earlier_namesakes,
    kinds,
    make_up_table,
)

FAR = 2**40  # the most that a schema may reach


def ranks(count: int) -> tuple[str, ...]:
    return tuple(f"rank {i}" for i in range(count))


COLUMNS: dict[str, Column] = {
    "an integer of two values": Ordered("x", low=-1, high=0),
    "an integer of few values": Ordered("x", low=3, high=9),
    "an integer of a hundred values": Ordered("x", low=-50, high=50),
    "an integer of 1025 values": Ordered("x", low=0, high=1024),
    "an integer of 1026 values": Ordered("x", low=0, high=1025),
    "an integer of very many values": Ordered("x", low=-(2**53), high=-(2**53) + FAR),
    "a number": Ordered("x", kind="number", low=-2.5, high=1000.0),
    "a tiny number": Ordered("x", kind="number", low=0.0, high=1e-300),
    "a huge number": Ordered("x", kind="number", low=-5e299, high=5e299),
    "a date of two days": Ordered("x", kind="date", low=-1, high=0),
    "a date of a year": Ordered("x", kind="date", low=18262, high=18627),
    "a date of all years": Ordered("x", kind="date", low=-719162, high=2932896),
    "a time of two seconds": Ordered("x", kind="datetime", low=-1, high=0),
    "a time of a day in quarters": Ordered("x", kind="datetime", low=0, high=85_500, step=Fraction(900)),
    "a time of all years": Ordered("x", kind="datetime", low=-62_135_596_800, high=253_402_300_799),
    "an ordinal of one value": Ordered("x", kind="ordinal", low=0, high=0, values=ranks(1)),
    "an ordinal of two values": Ordered("x", kind="ordinal", low=0, high=1, values=ranks(2)),
    "an ordinal of very many values": Ordered("x", kind="ordinal", low=0, high=2999, values=ranks(3000)),
    "a category of one label": Category("x", values=("only",)),
    "a category of one label and others": Category("x", values=("only",), other=True),
    "a category of four labels": Category("x", values=ranks(4)),
    "a category of four labels and others": Category("x", values=ranks(4), other=True),
    "a category of very many labels": Category("x", values=ranks(3000), other=True),
    "a boolean": Category("x", kind="boolean", values=("false", "true")),
}


def with_missing(column: Column, missing: bool) -> Column:
    fields = {name: getattr(column, name) for name in type(column).__dataclass_fields__}
    return type(column)(**(fields | {"missing": missing}))


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", COLUMNS)
def test_values_are_those_of_the_schema(name: str, missing: bool) -> None:
    """Written and read back they are what they were; only numbers between others may change in their last bits."""
    column = with_missing(COLUMNS[name], missing)
    schema = Schema((column,))
    assert Schema.parse(schema.to_toml()) == schema
    for seed, rows in itertools.product(range(12), (0, 1, 60)):
        (values,) = make_up_table(schema, rows, kind=ORDINARY, rng=np.random.default_rng(seed))
        assert values.shape == (rows,)
        again = column.clean(column.decode(values))
        assert again.dtype == values.dtype
        exact = not isinstance(column, Ordered) or column.whole
        np.testing.assert_allclose(again, values, rtol=0, atol=0 if exact else 1e-12)


def test_a_value_that_the_schema_does_not_allow_is_seen() -> None:
    """Control of the test above: cleaning changes what does not belong."""
    column = Ordered("x", low=3, high=9)
    for wrong in (7.0, -1.0, 0.5, np.nan):
        values = np.array([0.0, wrong])
        assert not np.array_equal(column.clean(np.ma.masked_invalid(values + 3)), values)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_table(kind: TableKind) -> None:
    columns = (
        with_missing(COLUMNS["a number"], True),
        Ordered("y", low=0, high=100),
        Category("z", values=ranks(4), other=True),
    )
    first, again, other = (
        make_up_table(Schema(columns), 200, kind=kind, rng=np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    for mine, same, another in zip(first, again, other, strict=True):
        assert np.array_equal(mine, same, equal_nan=True)
        assert not np.array_equal(mine, another, equal_nan=True)


def test_some_values_are_missing_where_they_may_be() -> None:
    column = with_missing(COLUMNS["a category of four labels"], True)
    shares = []
    for seed in range(40):
        (values,) = make_up_table(Schema((column,)), 2_000, kind=ORDINARY, rng=np.random.default_rng(seed))
        shares.append(np.mean(values == 4))
    assert max(shares) < 1.3 * MAX_MISSING_SHARE
    assert np.mean(shares) == pytest.approx(MAX_MISSING_SHARE / 2, rel=0.4)


def test_tables_are_of_all_kinds() -> None:
    """Over seeds a column of a hundred values is even or lumpy, and falls on many of them or on few."""
    column = COLUMNS["an integer of a hundred values"]
    largest, used = [], []
    for seed in range(60):
        (values,) = make_up_table(Schema((column,)), 3_000, kind=ORDINARY, rng=np.random.default_rng(seed))
        counts = np.bincount(values.astype(int), minlength=101)
        largest.append(counts.max() / 3_000)
        used.append((counts > 0).sum())
    assert sum(SHAPE_PROBABILITIES) == 1
    assert min(largest) < 0.05 < 0.2 < max(largest)
    assert min(used) < 40 < 90 < max(used)


PAIR = Schema((Ordered("x", low=0, high=100), Ordered("y", low=0, high=100)))


def told(first: np.ndarray, second: np.ndarray) -> float:
    """What one column tells about the other, in nats: their mutual information in a table of six by six."""
    ends = [np.unique(np.quantile(x, np.arange(1, 6) / 6)) for x in (first, second)]
    codes = [np.searchsorted(e, x, side="right") for e, x in zip(ends, (first, second), strict=True)]
    joint = np.zeros((6, 6))
    np.add.at(joint, tuple(codes), 1 / len(first))
    apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    here = joint > 0
    return float(np.sum(joint[here] * np.log(joint[here] / apart[here])))


def mean_told(kind: TableKind, *, shuffled: bool = False) -> float:
    found = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        first, second = make_up_table(PAIR, 2_000, kind=kind, rng=rng)
        found.append(told(first, rng.permutation(second) if shuffled else second))
    return float(np.mean(found))


def test_columns_depend_on_each_other_the_more_the_stronger() -> None:
    """At strength 0, and after a shuffle, two columns tell nothing beyond chance: 25 degrees of freedom at most."""
    chance = 25 / (2 * 2_000)
    none, weak, middle, strong, tied = (
        mean_told(kind) for kind in (TableKind(0.0, 0.0, 0.0), LOOSE, ORDINARY, STRONG, TIED)
    )
    shuffled = mean_told(LOOSE, shuffled=True)
    assert max(none, shuffled) < chance
    assert none == pytest.approx(shuffled, rel=0.1)
    assert 1.1 * none < weak < middle < strong < tied
    assert middle > 1.8 * none
    assert tied > 50 * none


def test_a_tied_column_is_almost_a_function_of_another() -> None:
    """The most frequent value given the other column is the value of most rows; without ties it is not."""
    schema = Schema(tuple(Category(name, values=ranks(6)) for name in "xy"))

    def predicted(tied: float) -> float:
        found = []
        for seed in range(30):
            table = make_up_table(
                schema, 2_000, kind=TableKind(0.6, tied=tied, lumped=0.0), rng=np.random.default_rng(seed)
            )
            joint = np.zeros((6, 6))
            np.add.at(joint, tuple(table), 1 / 2_000)
            found.append(joint.max(axis=1).sum())
        return float(np.median(found))

    assert predicted(tied=0.0) < 0.6 < 0.65 < predicted(tied=1.0)


def test_a_column_is_often_tied_to_one_whose_name_shares_a_word() -> None:
    """Half of the time even where no columns are tied otherwise; labels of other names depend on each other less."""

    def ties(*names: str) -> float:
        schema, found = Schema(tuple(Category(name, values=ranks(6)) for name in names)), []
        for seed in range(60):
            first, second = make_up_table(schema, 2_000, kind=LOOSE, rng=np.random.default_rng(seed))[:2]
            found.append(told(first, second) > 0.25)
        return float(np.mean(found))

    assert ties("grade", "purpose", "term") == 0
    assert 0.25 < ties("grade", "sub_grade", "term") < 0.75


def test_namesakes_share_a_word_that_is_not_in_every_name() -> None:
    assert earlier_namesakes(["sub_grade", "term", "Grade", "gradeOfLoan", "DtTm in", "out DtTm"]) == [
        *([], [], [0], [0, 2], [], [4]),
    ]
    assert earlier_namesakes(["cust_age", "cust_sex", "cust_income"]) == [[], [], []]
    assert earlier_namesakes(["a1", "a2", "b1"]) == [[], [], []]
    assert earlier_namesakes([]) == []


def test_shares_of_labels_are_about_even_or_fall_fast() -> None:
    """The number of equally frequent labels that would be as uneven, as a power of the number of labels: in public
    tables it was from 0.01 to 0.9, and 0.75 at the median of columns of nine or more labels that are not lumped."""

    def power(lumped: float) -> list[float]:
        column, kind, found = Category("x", values=ranks(30)), TableKind(0.6, tied=0.0, lumped=lumped), []
        for seed in range(100):
            (codes,) = make_up_table(Schema((column,)), 3_000, kind=kind, rng=np.random.default_rng(seed))
            shares = np.bincount(codes, minlength=30) / 3_000
            found.append(-math.log((shares**2).sum()) / math.log(30))
        return sorted(found)

    some, few = power(lumped=0.0), power(lumped=1.0)
    assert some[10] < 0.55 < 0.65 < some[50] < 0.85 < some[-10]
    assert few[50] < 0.2 < few[-1] < some[50]


@pytest.mark.parametrize("name", ["an integer of a hundred values", "a number", "a category of four labels"])
def test_in_a_lumped_column_most_rows_have_few_values(name: str) -> None:
    """The share of rows in the fullest tenth of the range, or with the most frequent label."""

    def fullest(lumped: float) -> float:
        found = []
        for seed in range(60):
            column, kind = COLUMNS[name], TableKind(0.6, tied=0.0, lumped=lumped)
            (values,) = make_up_table(Schema((column,)), 1_000, kind=kind, rng=np.random.default_rng(seed))
            whole = isinstance(column, Category)
            counts = np.bincount(values) if whole else np.histogram(values, bins=10, range=(0, column.reach))[0]
            found.append(counts.max() / 1_000)
        return float(np.mean(found))

    assert fullest(1.0) > 1.1 * fullest(0.0)


def test_kinds_are_handed_out_in_turn() -> None:
    assert kinds(0) == []
    assert kinds(5) == [*KINDS, KINDS[0]]
