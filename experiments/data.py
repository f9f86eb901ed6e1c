"""The four pairs of a private and a public table that the paper's figures are about.

Rows of the American Community Survey are read from the folder CERTSYNTH_DATA (default ../shared/data beside the
project). They are not quite the paper's: what is exact and what stands in for something else is in the `note` of each
pair, which is printed under each figure.

The paper's own tables need a network and the package folktables (`pip install folktables`). `fetch` downloads the
survey's person files through it, keeps the rows that the paper's tasks keep, and writes one small Parquet file for each
table: all 195,665 rows of California 2018 among them. `experiments/run.py --full` works with those.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from certsynth import Schema
from certsynth.domain import Ordered

ROOT = Path(__file__).parents[1]
Bounds = dict[str, tuple[int, int]]

# From the survey's code book, not from the rows.
INCOME: Bounds = {"AGEP": (17, 99), "SCHL": (1, 24), "OCCP": (10, 9920), "POBP": (1, 554), "WKHP": (1, 99)}
TRAVEL: Bounds = {"AGEP": (17, 99), "SCHL": (1, 24), "PUMA": (100, 4503), "POVPIP": (0, 501)}

PUMA_NOTE = "Area codes (PUMA) are scaled by each state's own range of codes."


class NoData(Exception):
    """A table is not there; the message says how to get it."""


@dataclass(frozen=True, slots=True)
class Survey:
    """One table: a file, and where its rows come from. `puma` is the range of the state's area codes in that year."""

    file: str
    task: str
    state: str
    year: int
    puma: tuple[int, int] | None = None

    def path(self, folder: Path) -> Path:
        path = folder / self.file
        if not path.exists():
            raise NoData(f"{self.file} is not in {folder}: set CERTSYNTH_DATA to the folder with the survey tables.")
        return path


@dataclass(frozen=True, slots=True)
class Pair:
    """A private table and a public one. `title` is that of a panel, `note` says what the rows are."""

    key: str
    title: str
    bounds: tuple[tuple[str, tuple[int, int]], ...]
    private: Survey
    public: Survey
    note: str

    @property
    def schema(self) -> Schema:
        """The paper's columns as integers between the bounds of the code book."""
        columns = tuple(Ordered(name=name, low=low, high=high) for name, (low, high) in self.bounds)
        return Schema(columns, name=self.private.task)

    def tables(self, folder: Path) -> tuple[pa.Table, pa.Table]:
        """Private and public rows, with the columns of the schema."""
        return tuple(self._read(survey, folder) for survey in (self.private, self.public))

    def _read(self, survey: Survey, folder: Path) -> pa.Table:
        table = pq.read_table(survey.path(folder), columns=[name for name, _ in self.bounds])
        if survey.puma is None or survey.puma == self.private.puma:
            return table
        stretched = stretch(table["PUMA"].to_numpy(), survey.puma, dict(self.bounds)["PUMA"])
        return table.set_column(table.column_names.index("PUMA"), "PUMA", pa.array(stretched))


def stretch(codes: np.ndarray, own: tuple[int, int], onto: tuple[int, int]) -> np.ndarray:
    """Area codes of one state on the scale of another's: the lowest on the lowest, the highest on the highest.

    Codes are arbitrary numbers. On a common scale, the shift between two states would be that of their code books.
    """
    share = (np.asarray(codes, dtype=np.float64) - own[0]) / (own[1] - own[0])
    return np.rint(onto[0] + share * (onto[1] - onto[0])).astype(np.int64)


def draw(table: pa.Table, count: int, *, seed: int) -> pa.Table:
    """So many rows, drawn without replacement; a smaller draw with the same seed is the beginning of a larger one."""
    return table.take(np.random.default_rng(seed).permutation(len(table))[:count])


# ------------------------------------------------------------ what is there

_CA = Survey("acs_income_ca2018.parquet", "ACSIncome", "CA", 2018)
_AL = Survey("acs_income_al2018.parquet", "ACSIncome", "AL", 2018)
_NV = Survey("acs_income_nv2018.parquet", "ACSIncome", "NV", 2018)
_NY = Survey("acs_travel_ny2024.parquet", "ACSTravelTime", "NY", 2024, (100, 4503))
_MA = Survey("acs_travel_ma2024.parquet", "ACSTravelTime", "MA", 2024, (100, 1301))
_PA = Survey("acs_travel_pa2024.parquet", "ACSTravelTime", "PA", 2024, (100, 4012))

_CALIFORNIA = "Private: 78,266 rows of California 2018, a 40 % random sample of the paper's 195,665."
_NEW_YORK = "Private: 96,024 rows of New York 2024, in place of the paper's 91,200 of 2018."


def _pairs(*pairs: Pair) -> dict[str, Pair]:
    return {pair.key: pair for pair in pairs}


PAIRS = _pairs(
    Pair(
        "income-al",
        "Income, public AL 2018",
        tuple(INCOME.items()),
        _CA,
        _AL,
        f"{_CALIFORNIA} Public: Alabama 2018, as in the paper.",
    ),
    Pair(
        "income-nv",
        "Income, public NV 2018\n(for CA 2014)",
        tuple(INCOME.items()),
        _CA,
        _NV,
        f"{_CALIFORNIA} Public: Nevada 2018 in place of the paper's California 2014: a shift of place, not of time.",
    ),
    Pair(
        "travel-ma",
        "Travel time, public MA 2024\n(for MA 2018)",
        tuple(TRAVEL.items()),
        _NY,
        _MA,
        f"{_NEW_YORK} Public: Massachusetts 2024 in place of 2018. {PUMA_NOTE}",
    ),
    Pair(
        "travel-pa",
        "Travel time, public PA 2024\n(for NY 2014)",
        tuple(TRAVEL.items()),
        _NY,
        _PA,
        f"{_NEW_YORK} Public: Pennsylvania 2024 in place of New York 2014: a shift of place, not of time. {PUMA_NOTE}",
    ),
)
"""What the folder CERTSYNTH_DATA has."""


def folder() -> Path:
    """Where those files are."""
    return Path(os.environ.get("CERTSYNTH_DATA") or ROOT / "../shared/data")


# ------------------------------------------------------------ the paper's own tables

# Area codes of the census of 2010, which the survey used from 2012 to 2021.
_NY_2010, _MA_2010 = (100, 4114), (100, 4903)
_TRAVEL_2018: Bounds = {**TRAVEL, "PUMA": _NY_2010}
_FULL_CA = Survey("income_ca2018.parquet", "ACSIncome", "CA", 2018)
_FULL_NY = Survey("travel_ny2018.parquet", "ACSTravelTime", "NY", 2018, _NY_2010)


def _full(key: str, title: str, bounds: Bounds, private: Survey, public: Survey) -> Pair:
    note = f"Private: {private.state} {private.year}, public: {public.state} {public.year}, all rows, as in the paper."
    return Pair(key, title, tuple(bounds.items()), private, public, note + (f" {PUMA_NOTE}" if private.puma else ""))


FULL = _pairs(
    _full(
        "income-al",
        "Income, public AL 2018",
        INCOME,
        _FULL_CA,
        Survey("income_al2018.parquet", "ACSIncome", "AL", 2018),
    ),
    _full(
        "income-nv",
        "Income, public CA 2014",
        INCOME,
        _FULL_CA,
        Survey("income_ca2014.parquet", "ACSIncome", "CA", 2014),
    ),
    _full(
        "travel-ma",
        "Travel time, public MA 2018",
        _TRAVEL_2018,
        _FULL_NY,
        Survey("travel_ma2018.parquet", "ACSTravelTime", "MA", 2018, _MA_2010),
    ),
    _full(
        "travel-pa",
        "Travel time, public NY 2014",
        _TRAVEL_2018,
        _FULL_NY,
        Survey("travel_ny2014.parquet", "ACSTravelTime", "NY", 2014, _NY_2010),
    ),
)
"""The paper's tables, for people with a network. Keys are those of the stand-ins, so that figures find them."""


def income_rows(people: Any) -> Any:
    """Of a frame of the survey's person file, the rows and columns of ACSIncome: grown-ups who earned and worked.

    What is missing is 0, as folktables has it.
    """
    kept = people[(people["AGEP"] > 16) & (people["PINCP"] > 100) & (people["WKHP"] > 0) & (people["PWGTP"] >= 1)]
    return kept[list(INCOME)].fillna(0)


def travel_rows(people: Any) -> Any:
    """Of a frame of the survey's person file, the rows and columns of ACSTravelTime: grown-ups at work.

    What is missing, as some poverty ratios are, is 0, as folktables has it.
    """
    kept = people[(people["AGEP"] > 16) & (people["PWGTP"] >= 1) & (people["ESR"] == 1)]
    return kept[list(TRAVEL)].fillna(0)


ROWS = {"ACSIncome": income_rows, "ACSTravelTime": travel_rows}


def fetch(survey: Survey, target: Path) -> Path:
    """Write the rows of one of the paper's tables to `target`, unless the file is there."""
    path = target / survey.file
    if path.exists():
        return path
    try:
        import folktables
    except ImportError:
        raise NoData("the paper's own tables need folktables and a network: pip install folktables") from None
    target.mkdir(parents=True, exist_ok=True)
    source = folktables.ACSDataSource(
        survey_year=str(survey.year), horizon="1-Year", survey="person", root_dir=str(target / "folktables")
    )
    rows = ROWS[survey.task](source.get_data(states=[survey.state], download=True)).astype("int64")
    if survey.puma and not rows["PUMA"].between(*survey.puma).all():
        raise NoData(f"{survey.state} {survey.year} has area codes outside {survey.puma}: correct them in data.py.")
    partial = path.with_suffix(".partial")
    pq.write_table(pa.Table.from_pandas(rows, preserve_index=False), partial)
    partial.rename(path)
    return path
