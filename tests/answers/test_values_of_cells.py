"""Points where a condition holds for all values, and for some: compared with the values themselves, one by one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from certsynth.answers import lattices
from certsynth.answers.lattices import codes_of, codes_of_cells, figures_of_codes
from certsynth.domain import Groups, Ordered
from certsynth.queries.statistics import band_cells, share_cells

COLUMNS = [
    Ordered("few", low=1, high=24),
    Ordered("many", low=-40, high=3000, missing=True, weight=Fraction(1, 3)),
    Ordered("days", kind="date", low=10_000, high=12_345),
    Ordered("times", kind="datetime", low=10**9, high=10**9 + 9_000_000, step=Fraction(900)),
    Ordered("rank", kind="ordinal", low=0, high=3, values=("a", "b", "c", "d")),
    Ordered("hundreds", low=0, high=500_000, step=Fraction(100)),
    Ordered("cents", kind="number", low=0, high=30, step=Fraction(1, 100), bands=(0.5,)),
]


def cells_of(column: Ordered, rng: np.random.Generator) -> list[tuple[object, object]]:
    """Lattices, groups of their points, bands and even cells, each with the function that gives codes on it."""
    found = [(lattice, codes_of) for lattice in (column.lattice(256), share_cells(column, column.lattice(1280)))]
    points = column.points().lattice
    for lattice in (points, column.lattice(256)):
        starts = np.unique(np.append(0, rng.integers(len(lattice.places), size=9)))
        found.append((Groups.of(lattice, starts), codes_of_cells))
    return [*found, (band_cells(column), codes_of), (column.cells(7), codes_of_cells)]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
@pytest.mark.parametrize("listed", [True, False], ids=["from all values", "from thresholds"])
def test_every_value_is_among_those_of_its_point(column, listed, monkeypatch):
    """Exactly those, if values can be listed; without a list, no value is missing, and whole numbers are exact."""
    if not listed:
        monkeypatch.setattr(lattices, "MAX_LISTED_VALUES", 0)
    rng, last = np.random.default_rng(0), column.last_index
    every = np.arange(last + 1)
    clean, figures = column.at_index(every), column.figures_at(every)
    for cells, code in cells_of(column, rng):
        codes = code(column, clean, cells)
        first, final = figures_of_codes(column, cells, code)
        assert (first[codes] <= figures).all()
        assert (figures <= final[codes]).all()
        if listed or (column.whole and column.step is None):
            for point in np.unique(codes):
                values = figures[codes == point]
                assert (values.min(), values.max()) == (first[point], final[point])
