"""Columns that are compared by ratios: which values exist, what is cleaned to which, and what a schema may say."""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from certsynth import Schema
from certsynth.artefact.table import with_derived
from certsynth.domain import Ordered
from certsynth.domain.possible import check_rules
from certsynth.domain.ratios import (
    COARSEST_PARTS,
    FINEST_PARTS,
    MAX_VALUES,
    borders,
    largest_gap,
    precision,
    ratio_values,
)
from certsynth.errors import SchemaError

RANGES = [
    ("0", "1000000", "1"),
    ("0", "1200000", "10"),
    ("-20000", "1200000", "1"),
    ("-1000", "1", "1"),
    ("1", "500", "1"),
    ("0.01", "10000", "0.01"),
    ("0.5", "2000", None),
    ("0.0011234567", "1e9", None),
    ("123456", "98765432.1", None),
    ("1", "2", None),
    ("0", "1099511627776", "1"),
    ("1e-20", "1e30", None),
]


def values_of(low: str, high: str, step: str | None, *named: str) -> tuple[float, ...]:
    ends = Fraction(low), Fraction(high), None if step is None else Fraction(step)
    found = ratio_values(*ends, frozenset(map(Fraction, named)))
    assert found is not None
    return found


def parsed(entries: str) -> Ordered:
    (column,) = Schema.parse(f'[[column]]\nname = "x"\n{entries}')
    assert isinstance(column, Ordered)
    return column


INCOME = 'kind = "integer"\nlow = 0\nhigh = 1000000\nscale = "log"\n'


@pytest.mark.parametrize(("low", "high", "step"), RANGES)
def test_values_increase_from_low_to_high_with_gaps_in_proportion(low: str, high: str, step: str | None) -> None:
    values = values_of(low, high, step)
    assert values[0] == float(low)
    assert values[-1] == float(high)
    assert len(values) <= MAX_VALUES
    if step is not None:
        assert all(Fraction(repr(x)) % Fraction(step) == 0 for x in values)
    gaps = [(b - a, min(abs(a), abs(b))) for a, b in pairwise(values)]
    least = float(step) if step is not None else 0.0
    finest = max(gap / size for gap, size in gaps if gap > least * 1.000001) if len(values) > 2 else 0
    assert finest <= 1 / COARSEST_PARTS + 1e-9
    inner = [(gap, size) for gap, size in gaps[1:-1] if gap > least * 1.000001]
    assert all(gap >= finest * size / 2.6 for gap, size in inner)  # 1, 2, 5: gaps are at most 2.5 times too small
    assert len(values) > MAX_VALUES / 3 or finest <= 1 / FINEST_PARTS + 1e-9  # as fine as there is room for


def test_the_values_are_the_same_on_every_machine() -> None:
    text = "\n".join(repr(values_of(*ends)) for ends in RANGES)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "72841b9f637bc40e"


def test_incomes_are_round_numbers() -> None:
    values = values_of("0", "1200000", "1")
    assert {0, 1, 2, 100, 5_000, 12_000, 50_000, 51_000, 75_000, 100_000, 250_000} <= set(values)


def test_what_the_schema_names_is_a_value() -> None:
    values = values_of("0", "1000000", "1", "12345", "54321", "777")
    assert {12_345, 54_321, 777} <= set(values)
    assert len(values) <= MAX_VALUES


@pytest.mark.parametrize(("low", "high", "step"), RANGES)
def test_numbers_become_the_nearest_value_by_ratio(low: str, high: str, step: str | None) -> None:
    values, rng = np.array(values_of(low, high, step)), np.random.default_rng(1)
    column = Ordered("x", kind="number", low=float(low), high=float(high), grid=tuple(values))
    tried = np.concatenate(
        [rng.choice(values, 300) * rng.uniform(0.9, 1.1, 300), rng.uniform(values[0], values[-1], 50)]
    )
    cleaned = values[column.index(column.clean(tried))]
    for number, found in zip(tried.tolist(), cleaned.tolist(), strict=True):
        same = values[np.sign(values) == np.sign(number)]
        if values[0] < number < values[-1] and found * number > 0 and same.min() <= number <= same.max():
            nearest = same[np.argmin(np.abs(np.log(np.abs(same)) - math.log(abs(number))))]
            ratios = [abs(math.log(each / number)) for each in (found, nearest)]
            assert ratios[0] == pytest.approx(ratios[1], abs=1e-12)


@pytest.mark.parametrize(("low", "high", "step"), RANGES)
@pytest.mark.parametrize("kind", ["integer", "number"])
def test_cleaning_is_total_monotone_and_leaves_values_alone(low: str, high: str, step: str | None, kind: str) -> None:
    if kind == "integer" and (step is None or "." in step):
        return
    values = values_of(low, high, step)
    ends = (int(low), int(high)) if kind == "integer" else (float(low), float(high))
    for missing in (False, True):
        column = Ordered("x", missing, Fraction(1, 2), kind=kind, low=ends[0], high=ends[1], grid=values)  # type: ignore[arg-type]
        assert column.decode(column.clean(np.array(values))).tolist() == list(values)
        edges = borders(values)
        near = np.sort(np.concatenate([edges, np.nextafter(edges, -np.inf), [-np.inf, np.inf, -1e308, 1e308]]))
        ranks = column.index(column.clean(near))
        assert (np.diff(ranks) >= 0).all()
        assert set(ranks.tolist()) == set(range(len(values)))  # each of them is reached
        absent = column.clean(np.array([math.nan, "x", None], dtype=object))
        assert np.isnan(absent).all() if missing else (absent == 0).all()
        assert column.covering_radius(column.detail()) == 0
        assert len(column.detail().places) == len(values)


def test_distances_are_differences_of_ranks() -> None:
    column = parsed(INCOME + "weight = 0.5\nmissing = true")
    cells, clean = column.detail(), column.clean(np.array([0.0, 50_000.0, 51_000.0, 1_000_000.0, np.nan]))
    codes, away = column.to_lattice(clean, cells)
    ranks = np.array([column.grid.index(x) for x in (0.0, 50_000.0, 51_000.0, 1_000_000.0)])
    assert (away == 0).all()
    expected = 0.5 * np.abs(np.subtract.outer(ranks, ranks)) / (len(column.grid) - 1)
    assert cells.distance(codes[:4, None], codes[None, :4]) == pytest.approx(expected)
    assert cells.distance(codes[4:], codes[:1])[0] == 0.5


def test_gaps_and_precision_are_those_of_neighbours() -> None:
    values = values_of("0", "1000000", "1")
    assert largest_gap(values) == 10_000
    least, share = precision(values)
    assert least == 1
    assert all(b - a <= max(1, share * a * (1 + 1e-12)) for a, b in pairwise(values))


def test_schemas_are_written_back() -> None:
    for entries in (
        INCOME + "special = [0, 777]\nbands = [12345, 50000]",
        'kind = "number"\nlow = 0.5\nhigh = 2000\nscale = "log"',
        'kind = "number"\nlow = -200\nhigh = 2000\nstep = 0.01\nscale = "log"\nbands = [0.07]',
    ):
        schema = Schema.parse(f'[[column]]\nname = "x"\n{entries}')
        assert Schema.parse(schema.to_toml()) == schema
        assert 'scale = "log"' in schema.to_toml()
    assert parsed('kind = "integer"\nlow = 0\nhigh = 9\nscale = "linear"').grid == ()


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ('kind = "integer"\nlow = 0\nhigh = 1000\nscale = "ratio"', '"linear" or "log"'),
        ('kind = "number"\nlow = 0\nhigh = 1000\nscale = "log"', "needs low above 0, or a step"),
        ('kind = "number"\nlow = 7\nhigh = 9\nscale = "log"', "at least twice low"),
        ('kind = "integer"\nlow = -7\nhigh = 0\nscale = "log"', "high above 0"),
        ('kind = "integer"\nlow = 50\nhigh = 10050\nstep = 100\nscale = "log"', "a multiple of step"),
        ('kind = "integer"\nlow = 0\nhigh = 90\nscale = "log"', "so few values"),
        ('kind = "number"\nlow = 1e-300\nhigh = 1e300\nscale = "log"', "narrower bounds"),
        ('kind = "date"\nlow = 2020-01-01\nhigh = 2020-01-09\nscale = "log"', "no entry 'scale'"),
        (INCOME + "special = [0.5]", "must be a list of numbers"),
        (INCOME + "special = [1000001]", "not a value of the column"),
        (INCOME + 'bands = ["a"]', "must be a list of numbers"),
        (INCOME + "special = 7", "a list of at most 64"),
    ],
)
def test_refuses_scales_that_make_no_sense(entries: str, said: str) -> None:
    with pytest.raises(SchemaError, match=said) as error:
        parsed(entries)
    assert "\n" not in str(error.value)


def test_rules_and_derived_columns_see_the_values() -> None:
    schema = Schema.parse(
        f"""
[[column]]
name = "income"
{INCOME}
missing = true

[[column]]
name = "tax"
kind = "integer"
low = 0
high = 500000
scale = "log"
missing = true
derived = {{ expression = "0.3 * income" }}

[[column]]
name = "rich"
kind = "boolean"
missing = true
derived = {{ expression = "income >= 50000" }}

[[column]]
name = "rent"
kind = "integer"
low = 0
high = 5000

[[rule]]
impossible = "rent > income"

[[rule]]
require = "income > 6000 and income < 6100"
"""
    )
    check_rules(schema)
    income = np.ma.masked_array([0, 50_000, 49_500, 123_000, 0], mask=[0, 0, 0, 0, 1])
    table = with_derived(schema, {"income": income, "rent": np.ma.masked_array(np.zeros(5, np.int64))})
    values = parsed('kind = "integer"\nlow = 0\nhigh = 500000\nscale = "log"').grid
    assert set(table["tax"].compressed().tolist()) <= set(values)
    assert np.abs(table["tax"].compressed() / np.maximum(0.3 * income.compressed(), 1) - 1)[1:].max() < 0.01
    assert table["rich"].tolist() == [False, True, False, True, None]


def test_no_row_obeys_a_rule_that_no_value_does() -> None:
    schema = f'[[column]]\nname = "x"\n{INCOME}\n[[rule]]\nrequire = "x > 6000 and x < HIGH"'
    check_rules(Schema.parse(schema.replace("HIGH", "6051")))
    with pytest.raises(SchemaError, match="rule 1"):
        check_rules(Schema.parse(schema.replace("HIGH", "6050")))


def test_a_map_lists_every_value() -> None:
    values = parsed('kind = "integer"\nlow = 1\nhigh = 300\nscale = "log"').grid
    pairs = ", ".join(f'"{int(x)}" = "{"few" if x < 9 else "many"}"' for x in values)
    text = """
[[column]]
name = "x"
kind = "integer"
low = 1
high = 300
scale = "log"

[[column]]
name = "y"
kind = "category"
values = ["few", "many"]
derived = { from = "x", map = { PAIRS } }
"""
    schema = Schema.parse(text.replace("PAIRS", pairs))
    table = with_derived(schema, {"x": np.ma.masked_array([1, 8, 9, 140])})
    assert table["y"].tolist() == ["few", "few", "many", "many"]
    with pytest.raises(SchemaError, match="lacks the value"):
        Schema.parse(text.replace("PAIRS", pairs.rpartition(",")[0]))
