"""The tables of the experiments: the code book's bounds, area codes on one scale, and the paper's own rows."""

from __future__ import annotations

import sys
import types

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import data
from made_up_survey import pairs, write_tables

PEOPLE = """AGEP,SCHL,OCCP,POBP,WKHP,PINCP,PWGTP,ESR,PUMA,POVPIP
40,21,1020,6,40,50000,10,1,3701,450
16,12,4720,6,10,2000,10,1,3701,300
17,16,4720,6,10,101,1,1,101,
40,21,1020,6,40,100,10,1,4114,501
40,21,1020,6,,50000,10,6,100,12
40,21,1020,6,40,50000,0,1,100,12
55,24,9920,554,99,,5,1,200,0
"""
"""In the form of the survey's person file. Of these, income keeps the first and the third row."""


@pytest.fixture
def people(tmp_path):
    (tmp_path / "people.csv").write_text(PEOPLE, encoding="utf-8")
    return pd.read_csv(tmp_path / "people.csv")


def test_income_keeps_those_who_earned_and_worked(people):
    kept = data.income_rows(people)
    assert list(kept.columns) == ["AGEP", "SCHL", "OCCP", "POBP", "WKHP"]
    assert kept["AGEP"].tolist() == [40, 17]
    assert kept["OCCP"].tolist() == [1020, 4720]


def test_travel_keeps_those_at_work_and_reads_a_missing_ratio_as_zero(people):
    kept = data.travel_rows(people)
    assert list(kept.columns) == ["AGEP", "SCHL", "PUMA", "POVPIP"]
    assert kept["PUMA"].tolist() == [3701, 101, 4114, 200]
    assert kept["POVPIP"].tolist() == [450, 0, 501, 0]


class Downloads:
    """In place of folktables: keeps what it was asked for."""

    def __init__(self, people: pd.DataFrame) -> None:
        self.people, self.asked = people, []

    def module(self) -> types.ModuleType:
        outer = self

        class ACSDataSource:
            def __init__(self, survey_year: str, horizon: str, survey: str, root_dir: str) -> None:
                self.year = survey_year, horizon, survey

            def get_data(self, states: list[str], download: bool) -> pd.DataFrame:
                outer.asked.append((*self.year, *states, download))
                return outer.people

        made = types.ModuleType("folktables")
        made.ACSDataSource = ACSDataSource
        return made


@pytest.fixture
def downloads(people, monkeypatch):
    made = Downloads(people)
    monkeypatch.setitem(sys.modules, "folktables", made.module())
    return made


def test_the_papers_tables_are_fetched_once_and_can_be_read(downloads, tmp_path):
    for _ in range(2):
        data.fetch(data.FULL["income-al"].private, tmp_path)
        data.fetch(data.FULL["income-al"].public, tmp_path)
    years = ("2018", "1-Year", "person")
    assert downloads.asked == [(*years, "CA", True), (*years, "AL", True)]
    private, public = data.FULL["income-al"].tables(tmp_path)
    assert private.column_names == list(data.INCOME)
    assert len(private) == len(public) == 2
    assert all(field.type == pa.int64() for field in private.schema)


def test_area_codes_that_the_code_book_does_not_have_are_refused(downloads, tmp_path):
    downloads.people.loc[0, "PUMA"] = 9999
    with pytest.raises(data.NoData, match="area codes"):
        data.fetch(data.FULL["travel-ma"].private, tmp_path)
    assert not list(tmp_path.glob("*.parquet"))


def test_without_folktables_one_is_told_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "folktables", None)
    with pytest.raises(data.NoData, match="pip install folktables"):
        data.fetch(data.FULL["income-al"].private, tmp_path)


def test_the_papers_tables_are_those_of_section_5_2():
    tables = {(s.task, s.state, s.year) for pair in data.FULL.values() for s in (pair.private, pair.public)}
    income = {("ACSIncome", "CA", 2018), ("ACSIncome", "AL", 2018), ("ACSIncome", "CA", 2014)}
    travel = {("ACSTravelTime", "NY", 2018), ("ACSTravelTime", "MA", 2018), ("ACSTravelTime", "NY", 2014)}
    assert tables == income | travel
    assert set(data.FULL) == set(data.PAIRS)


def test_a_states_area_codes_are_stretched_onto_the_private_ones(tmp_path):
    private, public = pairs()["income-al"].tables(write_tables(tmp_path))
    raw = pq.read_table(tmp_path / "public.parquet")["PUMA"].to_numpy()
    assert public["PUMA"].to_numpy().tolist() == (100 + 4 * raw).tolist()
    assert private["PUMA"].equals(pq.read_table(tmp_path / "private.parquet")["PUMA"])
    assert private.column_names == public.column_names == ["a", "PUMA", "b"]


def test_ends_of_a_range_become_ends():
    assert data.stretch(np.array([100, 1301]), (100, 1301), (100, 4503)).tolist() == [100, 4503]


@pytest.mark.parametrize("pair", [*data.PAIRS.values(), *data.FULL.values()], ids=lambda pair: pair.title)
def test_schemas_have_the_bounds_of_the_code_book(pair):
    assert [(c.name, (c.low, c.high)) for c in pair.schema] == list(pair.bounds)
    assert not pair.schema.draft
    if pair.private.puma:
        assert dict(pair.bounds)["PUMA"] == pair.private.puma


def test_notes_say_what_stands_in_for_what():
    notes = {key: pair.note for key, pair in data.PAIRS.items()}
    assert all("40 %" in notes[key] for key in ("income-al", "income-nv"))
    assert all("2024" in notes[key] and "PUMA" in notes[key] for key in ("travel-ma", "travel-pa"))
    assert [key for key, note in notes.items() if "in place of" not in note] == ["income-al"]


def test_draws_are_nested_and_differ_between_seeds():
    table = pa.table({"x": range(100)})
    few, many, other = data.draw(table, 5, seed=1), data.draw(table, 50, seed=1), data.draw(table, 5, seed=2)
    assert few.equals(many.slice(0, 5))
    assert not few.equals(other)
    assert len(set(many["x"].to_pylist())) == 50


def test_a_missing_table_is_told_by_name(tmp_path):
    with pytest.raises(data.NoData, match=r"acs_income_ca2018\.parquet.*CERTSYNTH_DATA"):
        data.PAIRS["income-al"].tables(tmp_path)
