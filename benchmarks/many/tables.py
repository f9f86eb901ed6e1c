"""The tables of this benchmark: the schema as a user would write it, and the rows.

Code books. Coded tables (adult, fire, loans) hold codes 0 … m − 1; their domain files give m. Columns with an order are
`integer` (grades: `ordinal`), all others `category`. The files of diamonds and electricity have no code book: the
smallest and largest value of the public copy stand for it, as in the PrivPGD benchmark.

Missing values. In loans and fire the last code of some ordered columns means "missing" or "outside of the coded
range". The histograms of the public copy show which: the code stands apart from the others (29 rows after a run of
empty codes, or most of the table). In these columns, listed in `LAST_CODE_IS_MISSING`, the last code is written as a
missing value and the schema says `missing = true`. Where the last code continues the histogram (annual_inc,
last_pymnt_amnt) or never occurs it is a value like the others. Two columns of loans are constant (revol_util,
earliest_cr_line); they are left as they are.

Codes in alphabetical order. The dates of loans are coded by the name of the month first ("Apr", "Aug", "Dec", …), then
by year: they are recoded as months since the first January. emp_length is coded as "1 year", "10+ years", "2 years", …,
so its codes are labels.

zip_code and addr_state. The first three digits of a zip code determine the state: 1,001 labels that are almost a
function of 51 others. This one pair sets the largest loss of loans, so loans-47 leaves zip_code out.

Every draw of rows has a fixed seed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
import pandas as pd

from race.tables import TABLES as SURVEY_TABLES
from survey import DATA

DRAW_SEED = 24

ADULT_ORDERED = {"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"}
ADULT_TRAINING_ROWS = 36_000

FIRE_ORDERED_PARTS = ("DtTm", "Date", "Lat", "Lng", "Number of Alarms", "Unit sequence")

LOANS_ORDINAL = {"grade", "sub_grade"}
LOANS_LABELS = {
    *("term", "emp_length", "home_ownership", "verification_status", "loan_status", "purpose", "zip_code"),
    *("addr_state", "debt_settlement_flag", "settlement_status"),
}

LOANS_DATES = {
    *("issue_d", "last_pymnt_d", "next_pymnt_d", "last_credit_pull_d", "debt_settlement_flag_date", "settlement_date"),
}
MONTH_OF_NAME = dict(enumerate((3, 7, 11, 1, 0, 6, 5, 2, 4, 10, 9, 8)))
"""Month of the year, from 0, by the place of its name in alphabetical order."""

LAST_CODE_IS_MISSING = {
    "fire": {"Available DtTm", "Hospital DtTm", "On Scene DtTm", "Response DtTm", "Transport DtTm"},
    "loans": {
        *("delinq_2yrs", "inq_last_6mths", "mths_since_last_delinq", "mths_since_last_record", "open_acc", "pub_rec"),
        *("total_acc", "delinq_amnt", "pub_rec_bankruptcies", "last_pymnt_d", "next_pymnt_d", "last_credit_pull_d"),
        *("debt_settlement_flag_date", "settlement_date", "settlement_amount", "settlement_percentage"),
        "settlement_term",
    },
}

CUTS = ("Fair", "Good", "Very Good", "Premium", "Ideal")
COLORS = ("J", "I", "H", "G", "F", "E", "D")
CLARITIES = ("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF")


@dataclass(frozen=True, slots=True)
class Column:
    """A column as the schema declares it: on a line from `low` to `high`, or labels (`category`, `ordinal`)."""

    name: str
    kind: Literal["integer", "number", "category", "ordinal"]
    low: float = 0
    high: float = 0
    values: tuple[str, ...] = ()
    missing: bool = False

    @property
    def ordered(self) -> bool:
        return self.kind != "category"

    def to_toml(self) -> str:
        lines = ["[[column]]", f'name = "{self.name}"', f'kind = "{self.kind}"']
        if self.values:
            lines.append(f"values = {json.dumps(self.values)}")
        else:
            lines += [f"low = {self.low}", f"high = {self.high}"]
        lines += ["missing = true"] if self.missing else []
        return "\n".join(lines) + "\n"

    def codes(self, frame: pd.DataFrame) -> np.ndarray:
        """Values as numbers: labels by their place in the list; missing values come after all others."""
        if self.values:
            place = {label: float(i) for i, label in enumerate(self.values)}
            return frame[self.name].astype(str).map(place).to_numpy(float)
        return frame[self.name].astype(float).fillna(self.high + 1).to_numpy(float)


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows to release, and the others of the same file (None if all are released)."""

    training: pd.DataFrame
    held_out: pd.DataFrame | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A schema and its rows. `target` is the class that models predict on held-out rows, if any are."""

    key: str
    title: str
    columns: tuple[Column, ...]
    rows: Callable[[], Rows]
    target: str | None = None

    @property
    def toml(self) -> str:
        return f'[table]\nname = "{self.title}"\n\n' + "\n".join(column.to_toml() for column in self.columns)


@cache
def _file(name: str) -> pd.DataFrame:
    return pd.read_parquet(DATA / name)


def _coded_columns(file: str, ordered: Callable[[str], bool], ordinal: set[str] | None = None) -> tuple[Column, ...]:
    """The columns of a coded table by its domain file, in the order of that file."""
    path = DATA / f"{file}-domain.json"
    sizes = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    missing = LAST_CODE_IS_MISSING.get(file, set())
    columns = []
    for name, size in sizes.items():
        if name in (ordinal or ()) or not ordered(name):
            kind: Literal["ordinal", "category"] = "ordinal" if name in (ordinal or ()) else "category"
            columns.append(Column(name, kind, values=tuple(str(code) for code in range(size))))
        else:
            absent = name in missing
            last = size - 1 - (absent or name in LOANS_DATES)  # no date is the last code
            columns.append(Column(name, "integer", 0, last, missing=absent))
    return tuple(columns)


def _coded_frame(file: str, columns: tuple[Column, ...]) -> pd.DataFrame:
    frame = _file(f"{file}.parquet")[[column.name for column in columns]].astype("Int64")
    for column in columns:
        if column.missing:
            frame.loc[frame[column.name] > column.high, column.name] = pd.NA
        if file == "loans" and column.name in LOANS_DATES:
            month, year = divmod(frame[column.name], (column.high + 1) // 12)
            frame[column.name] = (12 * year + month.map(MONTH_OF_NAME)).astype("Int64")
    return frame


def draw_rows(frame: pd.DataFrame, rows: int) -> Rows:
    order = np.random.default_rng(DRAW_SEED).permutation(len(frame))
    training, others = (frame.iloc[np.sort(part)].reset_index(drop=True) for part in (order[:rows], order[rows:]))
    return Rows(training, others)


def _coded(
    key: str, file: str, all_columns: tuple[Column, ...], *, names: list[str] | None = None, rows: int | None = None
) -> Table:
    columns = all_columns if names is None else tuple(column for column in all_columns if column.name in names)
    target = "income>50K" if file == "adult" else None

    def load() -> Rows:
        frame = _coded_frame(file, columns)
        return Rows(frame) if rows is None else draw_rows(frame, rows)

    size = "" if rows is None else f", {rows:,} rows"
    return Table(key, f"{file.capitalize()}, {len(columns)} columns{size}", columns, load, target)


def _survey(key: str) -> Table:
    table = SURVEY_TABLES[key]
    columns = tuple(
        Column(c.name, "category", values=tuple(str(v) for v in range(c.low, c.high + 1)))
        if c.labels
        else Column(c.name, "integer", c.low, c.high)
        for c in table.columns
    )

    def load() -> Rows:
        frame = _file(table.file)[[column.name for column in columns]].fillna(0).astype("Int64")
        return Rows(frame) if table.rows is None else Rows(draw_rows(frame, table.rows).training)

    return Table(key, table.title, columns, load)


def _numbers(bounds: dict[str, tuple[float, float]]) -> tuple[Column, ...]:
    return tuple(Column(name, "number", low, high) for name, (low, high) in bounds.items())


DIAMOND_SIZES = {"depth": (43.0, 79.0), "table": (43.0, 95.0), "x": (0.0, 10.74), "y": (0.0, 58.9), "z": (0.0, 31.8)}
LOG_PRICES = (5.786897381366708, 9.842834910362932)  # of 326 and 18,823
DIAMONDS_SIX = _numbers(DIAMOND_SIZES | {"log price": LOG_PRICES})
DIAMONDS_TEN = (
    Column("carat", "number", 0.2, 5.01),
    Column("cut", "ordinal", values=CUTS),
    Column("color", "ordinal", values=COLORS),
    Column("clarity", "ordinal", values=CLARITIES),
    *_numbers(DIAMOND_SIZES),
    Column("price", "integer", 326, 18_823),
)
ELECTRICITY = (
    *_numbers(dict.fromkeys(("period", "nswprice", "nswdemand", "vicprice", "vicdemand", "transfer"), (0.0, 1.0))),
    Column("class", "category", values=("0", "1")),
)


def _diamonds_six() -> Rows:
    """80 % of the rows, with the logarithm of the price."""
    frame = _file("diamonds.parquet")
    frame = frame.assign(**{"log price": np.log(frame["price"])})[[column.name for column in DIAMONDS_SIX]]
    return draw_rows(frame, int(0.8 * len(frame)))


def _diamonds_ten() -> Rows:
    return Rows(_file("diamonds.parquet")[[column.name for column in DIAMONDS_TEN]])


def _electricity() -> Rows:
    """80 % of as many rows of each class as the smaller one has."""
    frame = _file("electricity.parquet")
    each = frame.groupby("class").sample(frame["class"].value_counts().min(), random_state=DRAW_SEED)
    return draw_rows(each, int(0.8 * len(each)))


def _all_tables() -> tuple[Table, ...]:
    adult = _coded_columns("adult", ADULT_ORDERED.__contains__)
    fire = _coded_columns("fire", lambda name: any(part in name for part in FIRE_ORDERED_PARTS))
    loans = _coded_columns("loans", lambda name: name not in LOANS_LABELS, LOANS_ORDINAL)
    adult_five = ["age", "education-num", "marital-status", "hours-per-week", "income>50K"]
    loans_twelve = [
        *("loan_amnt", "int_rate", "installment", "annual_inc", "dti", "open_acc", "term", "grade", "emp_length"),
        *("home_ownership", "issue_d", "purpose"),
    ]
    fire_eight = [
        *("Call Type", "Battalion", "Station Area", "Unit Type", "Final Priority", "Received DtTm", "On Scene DtTm"),
        "Unit sequence in call dispatch",
    ]
    diamonds = Table("diamonds-6", "Diamonds, 6 columns", DIAMONDS_SIX, _diamonds_six)
    electricity = Table("electricity", "Electricity, 7 columns", ELECTRICITY, _electricity)
    return (
        _coded("adult", "adult", adult, rows=ADULT_TRAINING_ROWS),
        _coded("adult-5", "adult", adult, names=adult_five, rows=ADULT_TRAINING_ROWS),
        _coded("adult-few", "adult", adult, rows=900),
        *(_survey(key) for key in ("california-11", "california-5", "new-york-4", "california-few")),
        _coded("loans", "loans", loans),
        _coded("loans-47", "loans", loans, names=[column.name for column in loans if column.name != "zip_code"]),
        _coded("loans-12", "loans", loans, names=loans_twelve, rows=10_000),
        _coded("fire", "fire", fire),
        _coded("fire-8", "fire", fire, names=fire_eight, rows=20_000),
        diamonds,
        Table("diamonds", "Diamonds, 10 columns", DIAMONDS_TEN, _diamonds_ten),
        electricity,
    )


TABLES = {table.key: table for table in _all_tables()}
