"""Plans of many columns look at some of them, and at as much noise as all would have."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from certsynth import Schema
from certsynth.algorithm.layers import LayerSpec
from certsynth.mechanisms import Budget, Neighbours, Sensitivity, Unit, strategy_named
from certsynth.mechanisms.concentrated import Privacy
from certsynth.mechanisms.samplers import calibrated_scale, standard_deviation
from certsynth.planning.choice import blank_layers
from certsynth.planning.plan import other_noise
from certsynth.planning.subsample import MAX_PLANNED_TABLES, subsample
from certsynth.queries.marginals import all_subsets

LINE = '[[column]]\nname = "line {}"\nkind = "integer"\nlow = 0\nhigh = {}\n'
LABELS = '[[column]]\nname = "labels {}"\nkind = "category"\nvalues = {}\n'


def schema(columns: int) -> Schema:
    text = [LINE.format(j, 9 + j) for j in range(0, columns, 2)]
    text += [LABELS.format(j, [f"v{i}" for i in range(2 + j % 5)]).replace("'", '"') for j in range(1, columns, 2)]
    return Schema.parse("\n".join(text))


def layers(of: Schema, unit: Unit) -> tuple[LayerSpec, ...]:
    plain = strategy_named("identity", neighbours=Neighbours.REPLACE_ONE)
    budget = Budget(Fraction(1), unit)
    single = LayerSpec(all_subsets(of, 1), "points", None, plain, budget.share(Fraction(1, 4)))
    return single, LayerSpec(all_subsets(of, 2), "groups", 4, plain, budget.share(Fraction(3, 4)))


def test_few_columns_are_planned_as_they_are():
    small = schema(8)
    asked = layers(small, Unit.RHO)
    assert subsample(small, asked, all_subsets(small, 2)) == (small, asked, all_subsets(small, 2))


def test_some_of_many_columns_have_the_noise_of_all():
    wide = schema(60)
    for unit in Unit:
        asked = layers(wide, unit)
        few, thin, subsets = subsample(wide, asked, all_subsets(wide, 2))
        assert len(subsets) == len(thin[-1].subsets) <= 1.3 * MAX_PLANNED_TABLES
        assert {column.kind for column in few} == {column.kind for column in wide}
        for mine, whole in zip(blank_layers(few, thin, 1000), blank_layers(wide, asked, 1000), strict=True):
            assert 0.8 < mine.scale / whole.scale < 1.25
    names = set(few.names)
    assert names < set(wide.names)
    assert {"line 58", "labels 59"} & names  # the largest is there


def test_a_workload_without_what_lies_in_some_columns_is_planned_as_it_is():
    wide = schema(60)
    chain = tuple((j, (j + 31) % 60) if j < 29 else ((j + 31) % 60, j) for j in range(58))
    chain = tuple(tuple(sorted(pair)) for pair in chain) * 3
    plain = strategy_named("identity", neighbours=Neighbours.REPLACE_ONE)
    asked = [LayerSpec(chain, "groups", 4, plain, Budget(Fraction(1)))]
    few, thin, subsets = subsample(wide, asked, chain)
    assert subsets
    assert all(max(subset) < len(few) for subset in subsets)
    assert np.isclose(float(thin[0].budget.amount), len(thin[0].subsets) / len(chain))


def test_theother_noise_is_told_where_there_are_many_tables():
    """Gaussian noise grows with the root of the number of tables: where there are many it helps, and plans say so."""
    pure = Privacy(Budget(Fraction(1)), epsilon=Fraction(1))
    change, gaussian = other_noise(pure)
    assert change == "delta 1e-06"
    assert gaussian is not None
    assert other_noise(gaussian) == ("without delta", pure)
    for columns, least in ((50, 15), (100, 30)):
        tables = columns * (columns - 1) // 2
        scales = [calibrated_scale(Sensitivity(2 * tables, 2 * tables), p.budget) for p in (pure, gaussian)]
        deviations = [standard_deviation(s, p.budget.unit) for s, p in zip(scales, (pure, gaussian), strict=True)]
        assert deviations[0] > least * deviations[1]
