"""The three tables of PrivPGD's benchmark that are at hand, prepared as that benchmark prepares them.

Every number is cut into 32 cells of equal width between the smallest and the largest value of the table, closed on the
right; a class has one cell for each label. The bounds therefore come from the public copy of the table. To certsynth
they are public bounds of the schema: a private table would need bounds from another source. Classes of electricity are
balanced: as many rows of the larger class are drawn as the smaller one has. Four fifths of the rows are released, and
models are tested on the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from race.tables import Column
from survey import DATA

CELLS = 32  # for a column of numbers
TEST_SHARE = 0.2
SPLIT_SEED = 42  # that of the benchmark; our files have another order of rows, so the rows differ
DRAW_SEED = 29


@dataclass(frozen=True, slots=True)
class Prepared:
    """Rows as cell numbers, one array of shape (rows, columns) each, with the target in the last column."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    training: np.ndarray
    test: np.ndarray

    @property
    def toml(self) -> str:
        """The schema: every column is an integer from 0 to its last cell."""
        columns = (Column(name, 0, size - 1) for name, size in zip(self.names, self.sizes, strict=True))
        return '[table]\nname = "cells"\n\n' + "\n".join(column.to_toml() for column in columns)


@dataclass(frozen=True, slots=True)
class Table:
    """A table by its key. `is_class` says whether the target, the last column, has two labels."""

    key: str
    title: str
    file: str
    load: Callable[[pd.DataFrame], pd.DataFrame]
    is_class: bool

    @property
    def exists(self) -> bool:
        return (DATA / self.file).exists()

    def prepared(self) -> Prepared:
        return prepare(self.load(pd.read_parquet(DATA / self.file)), is_class=self.is_class)


def prepare(frame: pd.DataFrame, *, is_class: bool) -> Prepared:
    """Cut the columns into cells, then split the rows."""
    target = frame.columns[-1]
    sizes = tuple(2 if is_class and name == target else CELLS for name in frame.columns)
    columns = [
        pd.factorize(frame[name], sort=True)[0] if size == 2 else in_cells(frame[name].to_numpy(float))
        for name, size in zip(frame.columns, sizes, strict=True)
    ]
    training, test = train_test_split(np.stack(columns, axis=1), test_size=TEST_SHARE, random_state=SPLIT_SEED)
    return Prepared(tuple(frame.columns), sizes, training, test)


def in_cells(values: np.ndarray) -> np.ndarray:
    """The cell of each value, 0 … 31. A value on a border belongs to the lower cell."""
    low, high = values.min(), values.max()
    borders = np.linspace(low, high, CELLS + 1)
    return np.clip(np.searchsorted(borders, values, side="left") - 1, 0, CELLS - 1)


def balanced(frame: pd.DataFrame) -> pd.DataFrame:
    """As many rows of each class as the smaller one has; the class is the last column."""
    classes = frame.groupby(frame.columns[-1])
    return classes.sample(int(classes.size().min()), random_state=DRAW_SEED)


def _diamonds(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(**{"log price": np.log(frame["price"])})[["depth", "table", "x", "y", "z", "log price"]]


TABLES = {
    table.key: table
    for table in (
        Table("diamonds", "Diamonds", "diamonds.parquet", _diamonds, is_class=False),
        Table("electricity", "Electricity", "electricity.parquet", balanced, is_class=True),
        Table("california", "California income", "acs_income_ca2018.parquet", lambda frame: frame, is_class=True),
    )
}
