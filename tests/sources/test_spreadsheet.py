"""Rows from Excel workbooks: cell by cell, as each is stored."""

from __future__ import annotations

import datetime
import itertools
import traceback
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nasty import CANARY
from workbook import BUILT_IN_DAY, DAY, FIRST, MAIN, TIME_OF_DAY, sheet_of, workbook_of, write_workbook

from certsynth.domain import Ordered, Schema
from certsynth.errors import InputError
from certsynth.sources import cleaned, count_rows, open_source


def rows_of(path: Path, names: list[str]) -> list[tuple[Any, ...]]:
    batches = open_source(path).batches(names)
    return [row for batch in batches for row in zip(*(column.tolist() for column in batch), strict=True)]


def xml(*rows: str) -> str:
    """A sheet with a header x, y."""
    header = '<row><c t="inlineStr"><is><t>x</t></is></c><c t="inlineStr"><is><t>y</t></is></c></row>'
    return f'<worksheet xmlns="{MAIN}"><cols/><sheetData>{header}{"".join(rows)}</sheetData></worksheet>'


def book(folder: Path, *rows: str, **options: Any) -> Path:
    return write_workbook(folder / "t.xlsx", {"first": xml(*rows)}, **options)


@pytest.mark.parametrize("inline", [False, True])
def test_values_come_back_as_they_were_stored(inline: bool, tmp_path: Path) -> None:
    table = {
        "text": ["a", "", " a ", "é", "two\nlines", "00123", "_x0041_", "\x01", "1.50"],
        "number": [1, 2.5, -0.1, 1e300, 2**53 - 1, 0, 7.0, 0.1 + 0.2, 1e-9],
        "truth": [True, False] * 4 + [None],
        "day": [datetime.date(2020, 2, 29), datetime.date(1901, 1, 1), datetime.date(9999, 12, 31)] * 3,
        "moment": [datetime.datetime(2020, 2, 29, 10, 30, 15), datetime.datetime(1969, 12, 31, 23, 59, 59)] * 4
        + [None],
        "time": [datetime.time(10), datetime.time(23, 59, 59), datetime.time(0, 0, 1)] * 3,
    }
    path = workbook_of(tmp_path / "t.xlsx", table, inline=inline)
    assert open_source(path).names == tuple(table)
    names = list(table)[::-1]
    assert rows_of(path, names) == list(zip(*(table[name] for name in names), strict=True))


def test_cells_need_no_references_and_may_be_left_out(tmp_path: Path) -> None:
    path = book(tmp_path, "<row><c><v>1</v></c><c><v>2</v></c></row>", '<row r="9"><c r="B9"><v>3</v></c></row>')
    assert rows_of(path, ["x", "y"]) == [(1.0, 2.0), (None, 3.0)]


def test_blank_rows_are_no_rows(tmp_path: Path) -> None:
    """Excel keeps rows that have nothing but a format."""
    path = book(tmp_path, '<row><c s="1"/></row>', "<row/>", "<row><c><v>1</v></c></row>", '<row r="99"/>')
    assert rows_of(path, ["x", "y"]) == [(1.0, None)]


def test_errors_and_runs_of_text_are_texts(tmp_path: Path) -> None:
    runs = "<is><r><rPr/><t>bo</t></r><r><t>ld</t></r><rPh><t>no</t></rPh></is>"
    path = book(tmp_path, f'<row><c t="e"><v>#N/A</v></c><c t="inlineStr">{runs}</c></row>')
    assert rows_of(path, ["x", "y"]) == [("#N/A", "bold")]


@pytest.mark.parametrize(
    ("style", "serial", "value"),
    [
        (DAY, "1", datetime.date(1900, 1, 1)),
        (DAY, "59", datetime.date(1900, 2, 28)),
        (DAY, "60", None),
        (DAY, "61", datetime.date(1900, 3, 1)),
        (BUILT_IN_DAY, "43890", datetime.date(2020, 2, 29)),
        (2, "43890.5", datetime.datetime(2020, 2, 29, 12)),
        (DAY, "2958466", None),
        (DAY, "-1", None),
        (TIME_OF_DAY, "0.75", datetime.time(18)),
        (0, "43890", 43890.0),
        (4, "1.5", 1.5),
        (5, "3", 3.0),
        (6, "0.07", 0.07),
        (99, "3", 3.0),
    ],
)
def test_the_format_of_a_cell_says_whether_its_number_is_a_date(
    style: int, serial: str, value: Any, tmp_path: Path
) -> None:
    cell = f'<c s="{style}"><v>{serial}</v></c>'
    path = book(tmp_path, f"<row>{cell}<c><v>1</v></c></row>")
    assert rows_of(path, ["x", "y"]) == [(value, 1.0)]


def test_days_are_counted_from_1904_where_the_workbook_says_so(tmp_path: Path) -> None:
    serial = (datetime.datetime(2020, 2, 29) - datetime.datetime(1904, 1, 1)).days
    path = book(tmp_path, f'<row><c s="{DAY}"><v>{serial}</v></c></row>', about='date1904="1"')
    assert rows_of(path, ["x"]) == [(datetime.date(2020, 2, 29),)]
    assert (datetime.datetime(2020, 2, 29) - FIRST).days == serial + 1462


def test_the_first_sheet_that_is_not_hidden_is_read(tmp_path: Path) -> None:
    sheets = {name: sheet_of([["x"], [name]]) for name in ("lists", "people", "notes")}
    path = write_workbook(tmp_path / "t.xlsx", sheets, hidden=["lists"])
    assert rows_of(path, ["x"]) == [("people",)]


def test_a_small_workbook_is_parsed_once_and_shows_no_cell(tmp_path: Path) -> None:
    path = workbook_of(tmp_path / "t.xlsx", {"x": [3, 4, None, 5], "note": ["a", "b", CANARY, "d"]})
    schema = Schema(columns=(Ordered(name="x", kind="integer", low=0, high=9, missing=True),))
    source = open_source(path)
    assert CANARY not in repr(source)
    assert count_rows(source, schema, "counting") == 4
    path.unlink()
    ((clean,),) = cleaned(source, schema)
    assert clean.tolist()[:2] == [3, 4]


FORMULA = "column 'x' has a formula in row 3, which may depend on other rows. Paste the column as values."
SPILLED = '<row r="3"><c r="B3"><f t="array" ref="A3:B9">SUM(C:C)</f><v>1</v></c></row>'
SHEETS: dict[str, tuple[str, str]] = {
    "a formula": (xml('<row r="3"><c r="A3"><f>SUM(B:B)</f><v>7</v></c></row>'), FORMULA),
    "a shared formula": (xml('<row r="3"><c r="A3"><f t="shared" si="0"/><v>7</v></c></row>'), FORMULA),
    "a formula that fills other columns": (xml(SPILLED), FORMULA),
    "a formula that begins at the header": (
        f'<worksheet xmlns="{MAIN}"><sheetData><row><c t="str"><f t="array" ref="A1:A9">SORT(D:D)</f><v>x</v></c></row>'
        "<row><c><v>7</v></c></row></sheetData></worksheet>",
        FORMULA.replace("row 3", "row 1"),
    ),
    "no rows at all": (f'<worksheet xmlns="{MAIN}"><sheetData/></worksheet>', "empty, or without a header."),
    "no header": (sheet_of([[CANARY, 34], ["a", 35]]), "no column 'x', and the first line looks like a row."),
    "two columns of one name": (sheet_of([["x", "y", "x"]]), "columns 1 and 3 have the same name."),
    "another column": (sheet_of([["y", "z"], [CANARY, 1]]), "no column 'x', nor any other of the schema."),
    "another name": (sheet_of([["X"], [CANARY]]), "no column 'x', but one that differs in case or in blanks."),
    "XML that ends": (xml(f"<row><c><v>{CANARY}"), "cannot be read (it is damaged, or has a password). Save the"),
    "no number": (xml(f"<row><c><v>{CANARY}</v></c></row>"), "cannot be read (it is damaged"),
    "no such text": (xml('<row><c t="s"><v>7</v></c></row>'), "cannot be read (it is damaged"),
    "no such cell": (xml('<row><c r="ZZZZ1"><v>7</v></c></row>'), "cannot be read (it is damaged"),
}


def refused(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        list(open_source(path).batches(["x"]))
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    assert "\n" not in str(caught.value)
    return str(caught.value).removeprefix(f"data {path}: ")


@pytest.mark.parametrize("case", SHEETS)
def test_refuses_a_sheet(case: str, tmp_path: Path) -> None:
    content, says = SHEETS[case]
    assert refused(write_workbook(tmp_path / "t.xlsx", {"first": content})).startswith(says)


def test_refuses_what_is_no_workbook(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    for content in (b"", CANARY.encode(), b"\xd0\xcf\x11\xe0" + CANARY.encode(), b"PK\x03\x04"):
        path.write_bytes(content)
        assert refused(path).startswith("cannot be read (it is damaged, or has a password)")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("xl/other.xml", CANARY)
    assert refused(path).startswith("cannot be read (it is damaged, or has a password)")


def test_nothing_that_is_put_into_a_sheet_fills_the_memory(tmp_path: Path) -> None:
    """One text of 20 MB in a small archive, and entities that stand for a hundred million letters."""
    long = xml(f'<row><c t="inlineStr"><is><t>{"z" * 20_000_000}</t></is></c></row>')
    entities = "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in itertools.pairwise("abcdefghi"))
    many = f'<!DOCTYPE x [<!ENTITY a "z">{entities}]>{xml("<row><c><v>&i;</v></c></row>")}'
    for content in (long, many):
        path = write_workbook(tmp_path / "t.xlsx", {"first": content})
        assert path.stat().st_size < 50_000
        assert refused(path).startswith("cannot be read (it is damaged")


@settings(max_examples=80, deadline=None)
@given(
    place=st.integers(0, 1_500), cut=st.integers(0, 40), put=st.sampled_from(["", "<", "</c>", "&", "9", '"', "A", " "])
)
def test_any_sheet_is_read_or_refused(place: int, cut: int, put: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    moments = [datetime.date(2020, 2, 29), datetime.datetime(2020, 2, 29, 12), None]
    content = sheet_of([["x", "y", "z"], *zip(["a", "é", CANARY], [True, 2.5, 7], moments, strict=True)])
    content = content[:place] + put + content[place + cut :]
    path = write_workbook(tmp_path_factory.mktemp("any") / "t.xlsx", {"first": content})
    said = ""
    try:
        assert len(rows_of(path, ["x"])) <= 3
    except InputError as error:
        said = "".join(traceback.format_exception(error))
    assert CANARY not in said


def test_a_formula_in_another_column_is_no_matter(tmp_path: Path) -> None:
    path = book(tmp_path, "<row><c><v>1</v></c><c><f>SUM(A:A)</f><v>1</v></c></row>")
    assert rows_of(path, ["x"]) == [(1.0,)]
