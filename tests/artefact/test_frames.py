"""Rows as frames: the same as in the Parquet file, in types that say what the schema says."""

from __future__ import annotations

import sys
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from certsynth import Ledger, Release, Schema, certify, evaluate, release
from certsynth.artefact.frames import FRAMES, to_frame
from certsynth.errors import InputError
from small import EVERY_KIND, MIXED, REGIONS, people, workers

QUICK = {"epsilon": 20, "resolution": 4, "mechanism": "identity", "seed": 5}


@pytest.fixture(scope="module")
def every(tmp_path_factory: pytest.TempPathFactory) -> Release:
    made = release(workers(300), EVERY_KIND, out=tmp_path_factory.mktemp("frames") / "out", **QUICK)
    assert any(np.ma.getmaskarray(values).any() for values in made.table.values())
    return made


def written(made: Release) -> dict[str, list[object]]:
    return pl.read_parquet(made.folder / "synthetic.parquet").to_dict(as_series=False)


def of_pandas(frame: pd.DataFrame) -> dict[str, list[object]]:
    plain = {}
    for name in frame.columns:
        values = [None if pd.isna(x) else x for x in frame[name].astype(object)]
        days = EVERY_KIND.columns[EVERY_KIND.names.index(name)].kind == "date"  # pandas has no type for them
        plain[name] = [x.date() if days and x is not None else x for x in values]
    return plain


def test_frames_are_the_rows_of_the_file(every):
    rows = written(every)
    assert every.to_polars().to_dict(as_series=False) == rows
    assert every.to_arrow().to_pydict() == rows
    assert of_pandas(every.to_pandas()) == rows
    again = Release.load(every.folder)  # whose arrays come from the file
    assert again.to_polars().equals(every.to_polars())
    assert again.to_arrow().equals(every.to_arrow())
    pd.testing.assert_frame_equal(again.to_pandas(), every.to_pandas())


def test_types_of_pandas_follow_the_schema(every):
    frame = every.to_pandas()
    kinds = {name: str(kind) for name, kind in frame.dtypes.items()}
    assert {name: kinds[name] for name in ("age", "income", "hired", "member", "shift")} == {
        "age": "int64",
        "income": "float64",
        "hired": "datetime64[s]",
        "member": "boolean",
        "shift": "datetime64[s]",
    }
    assert frame["grade"].cat.ordered
    assert list(frame["grade"].cat.categories) == ["low", "middle", "high"]
    assert not frame["region"].cat.ordered
    assert list(frame["region"].cat.categories) == [*REGIONS, "other"]
    assert str(release(people(50), MIXED, **QUICK).to_pandas()["employed"].dtype) == "bool"


def test_whole_numbers_that_may_be_missing_stay_whole():
    schema = Schema.parse('[[column]]\nname = "n"\nkind = "integer"\nlow = 0\nhigh = 3\nmissing = true\n')
    made = release(pl.DataFrame({"n": [1, None, 3, None] * 50}), schema, **QUICK)
    assert str(made.to_pandas()["n"].dtype) == "Int64"
    assert made.to_polars().schema["n"] == pl.Int64
    assert made.to_arrow().schema.field("n").type == pa.int64()
    absent = made.to_polars()["n"].null_count()
    assert made.to_pandas()["n"].isna().sum() == made.to_arrow()["n"].null_count == absent > 0


def test_types_of_polars_and_arrow_follow_the_schema(every):
    kinds = every.to_polars().schema
    assert kinds["hired"] == pl.Date
    assert kinds["shift"] == pl.Datetime("us")
    assert kinds["member"] == pl.Boolean
    assert kinds["grade"] == pl.Enum(["low", "middle", "high"])
    arrow = every.to_arrow().schema
    assert arrow.field("hired").type == pa.date32()
    assert arrow.field("shift").type == pa.timestamp("us")
    assert arrow.field("grade").type.ordered
    assert not arrow.field("job").type.ordered


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_frames_are_tables_that_certsynth_reads(every, kind):
    frame = to_frame(kind, every.schema, every.table, every.rows)
    assert evaluate(every.folder / "synthetic.parquet", frame, EVERY_KIND, sparsity=1).value == 0
    certify(every.folder / "synthetic.csv", frame, EVERY_KIND, epsilon=1, sparsity=1)


def test_what_is_done_to_a_frame_does_not_change_the_release(every):
    before = {name: values.copy() for name, values in every.table.items()}
    frame = every.to_pandas()
    frame.loc[:, "age"] = 0
    frame.loc[:, "member"] = True
    frame["income"].array[:] = 0.5
    rows = to_frame("dict", every.schema, every.table, every.rows)
    rows["age"][:] = 1
    for name, values in before.items():
        assert np.ma.allequal(every.table[name], values, fill_value=True)
        assert np.array_equal(np.ma.getmaskarray(every.table[name]), np.ma.getmaskarray(values))


@pytest.mark.parametrize(("kind", "package"), [("pandas", "pandas"), ("polars", "polars"), ("arrow", "pyarrow")])
def test_a_library_that_is_not_there_is_named_in_one_line(every, monkeypatch, kind, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        InputError, match=rf"^a frame of {package} needs the package {package}: pip install {package}\.$"
    ):
        getattr(every, f"to_{kind}")()


def test_left_open_it_is_a_frame_of_pandas_or_a_dict(every, monkeypatch):
    parts = every.schema, every.table, every.rows
    assert isinstance(to_frame(None, *parts), pd.DataFrame)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert set(to_frame(None, *parts)) == set(EVERY_KIND.names)
    with pytest.raises(InputError, match="frame must be one of pandas, polars, arrow, dict"):
        to_frame("excel", *parts)
    assert len(FRAMES) == 4


# ------------------------------------------------------------------------------------------------ what notebooks show


class Elements(HTMLParser):
    """Tags that are opened, and whether each is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        assert not attrs
        self.seen.append(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def tags(page: str) -> set[str]:
    read = Elements()
    read.feed(page)
    read.close()
    assert read.open == []
    return set(read.seen)


PLAIN = {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td"}


def test_a_release_shows_its_promise_and_what_it_means_of_each_column(every):
    page = every._repr_html_()
    assert tags(page) <= PLAIN
    for said in (
        "workers",
        "300 synthetic rows × 9 columns",
        "ε = 20",
        "With 95% confidence",
        "mean",
        " days",
        " points",
    ):
        assert said in page
    assert f"{every.folder}/report.html" in page
    assert "report.html" not in release(people(50), MIXED, **QUICK)._repr_html_()
    assert tags(every.certificate._repr_html_()) <= PLAIN
    for text in (repr(every), repr(every.certificate), repr(every.schema)):
        assert "\n" not in text
    assert len(repr(every.schema)) < 200


def test_nothing_that_a_schema_names_becomes_markup(tmp_path):
    evil = "<script>alert(1)</script>"
    schema = Schema.parse(
        f'[table]\nname = "{evil}"\n[[column]]\nname = "{evil}"\nkind = "category"\nvalues = ["<b>", "&amp;"]\n'
        '[[column]]\nname = "n"\nkind = "integer"\nlow = 0\nhigh = 3\n'
    )
    rows = pl.DataFrame({evil: ["<b>", "&amp;"] * 20, "n": [0, 1, 2, 3] * 10})
    spent = {"ledger": tmp_path / "x.ledger", "cap": 100}
    made = release(rows, schema, out=tmp_path / "<i>", **spent, **QUICK)
    ledger = Ledger.load(tmp_path / "x.ledger")
    for page in (made._repr_html_(), made.certificate._repr_html_(), ledger._repr_html_()):
        assert tags(page) <= PLAIN
        assert "&lt;" in page
    assert repr(ledger).startswith("Ledger(")
    assert "20 of 100" in repr(ledger)
    assert "80 left" in ledger._repr_html_()
    assert "\n" not in repr(ledger)
