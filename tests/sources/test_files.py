"""Rows from files: every row once, in order, as text until the schema says otherwise."""

from __future__ import annotations

import csv
import gzip
import io
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nasty import NESTED, ROWS, TABLE, csv_file, parquet_file

from certsynth.domain import Category, Ordered, Schema
from certsynth.errors import InputError
from certsynth.sources import caching, cleaned, count_rows, open_source
from certsynth.sources.duck import connection


def write(folder: Path, data: bytes | str, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


def rows_of(path: Path, names: list[str], *, rows: int = 500_000) -> list[tuple[object, ...]]:
    batches = open_source(path).batches(names, rows=rows)
    return [row for batch in batches for row in zip(*(column.tolist() for column in batch), strict=True)]


READ = {
    "plain": (b"a,b\n1,2\n3,4\n", [("1", "2"), ("3", "4")]),
    "no newline at the end": (b"a,b\n1,2\n3,4", [("1", "2"), ("3", "4")]),
    "CRLF": (b"a,b\r\n1,2\r\n3,4\r\n", [("1", "2"), ("3", "4")]),
    "old Macintosh": (b"a,b\r1,2\r3,4\r", [("1", "2"), ("3", "4")]),
    "mixed line ends": (b"a,b\n1,2\r\n3,4\n", [("1", "2"), ("3", "4")]),
    "byte order mark": (b"\xef\xbb\xbfa,b\n1,2\n", [("1", "2")]),
    "byte order mark and quotes": (b'\xef\xbb\xbf"a","b"\n1,2\n', [("1", "2")]),
    "line breaks in quotes": (b'a,b\n"x\ny","q""q"\n"r\r\ns",4\n', [("x\ny", 'q"q'), ("r\r\ns", "4")]),
    "nothing is what it looks like": (b"a,b\nNA,00123\nnull,1e5\n", [("NA", "00123"), ("null", "1e5")]),
    "empty fields": (b'a,b\n,""\n"",\n', [("", ""), ("", "")]),
    "spaces stay": (b"a,b\n 1 , x\n", [(" 1 ", " x")]),
    "a quote after a space is a quote": (b'a,b\n "1, 2\n', [(' "1', " 2")]),
    "a quote inside": (b'a,b\n5" pipe,2\n', [('5" pipe', "2")]),
    "backslashes": (b'a,b\n\\n,"\\"\n', [("\\n", "\\")]),
    "blank lines": (b"a,b\n\n1,2\n\n\n3,4\n\n", [("1", "2"), ("3", "4")]),
    "NUL": (b"a,b\n1,x\x00y\n", [("1", "x\x00y")]),
    "comment": (b"a,b\n#1,2\n", [("#1", "2")]),
    "no rows": (b"a,b\n", []),
    "no rows and no newline": (b"a,b", []),
    "more columns": (b"c,a,,b\n0,1,8,2\n", [("1", "2")]),
    "several blank names": (b"a,b,,\n1,2,,\n", [("1", "2")]),
    "a header of two lines": (b'"x\ny",a,b\n0,1,2\n', [("1", "2")]),
    "bytes that are no text in another column": (b"a,x,b\n1,\xff\xe9,2\n", [("1", "2")]),
}


@pytest.mark.parametrize("case", READ)
def test_reads_csv(case: str, tmp_path: Path) -> None:
    data, expected = READ[case]
    assert rows_of(write(tmp_path, data), ["a", "b"]) == expected
    for packed in (write(tmp_path, gzip.compress(data), "packed.CSV.gz"), zipped(tmp_path, **{"a.csv": data})):
        assert rows_of(packed, ["b", "a"]) == [row[::-1] for row in expected]


SEPARATED = {
    "semicolons": ("x.csv", "a;b\n1,5;2\n3;\n"),
    "semicolons and a comma in quotes": ("x.csv", '"a";"b"\n"1,5";2\n3;""\n'),
    "semicolons and a name with a comma in front": ("x.csv", '"c, net";a;b\n0;1,5;2\n0;3;\n'),
    "semicolons, stated": ("x.csv", "sep=;\r\na;b\r\n1,5;2\r\n3;\r\n"),
    "semicolons stated, and a name with a comma": ("x.csv", "SEP=;\nc, net;a;b\n0;1,5;2\n0;3;\n"),
    "tabs": ("x.csv", "a\tb\n1,5\t2\n3\t\n"),
    "vertical bars": ("x.csv", "a|b\n1,5|2\n3|\n"),
    "commas in a TSV": ("x.tsv", 'a,b\n"1,5",2\n3,\n'),
    "semicolons in a TSV": ("x.tsv", "a;b\n1,5;2\n3;\n"),
    "tabs in a TSV": ("x.tsv", "a\tb\n1,5\t2\n3\t\n"),
}


@pytest.mark.parametrize("case", SEPARATED)
def test_the_header_line_decides_the_delimiter(case: str, tmp_path: Path) -> None:
    name, text = SEPARATED[case]
    assert rows_of(write(tmp_path, text, name), ["a", "b"]) == [("1,5", "2"), ("3", "")]


def test_rows_decide_nothing_about_the_delimiter(tmp_path: Path) -> None:
    """Semicolons or tabs in every row, but commas in the header; and a name in quotes is one name."""
    assert rows_of(write(tmp_path, "a,b\n1;2;3,4;5\n"), ["a", "b"]) == [("1;2;3", "4;5")]
    assert rows_of(write(tmp_path, "a\n1;2\n3\t4\n"), ["a"]) == [("1;2",), ("3\t4",)]
    assert rows_of(write(tmp_path, '"a;b"\n1;2\n'), ["a;b"]) == [("1;2",)]
    for body in ("1\n", '1"\n', '1";2\n', '"1;2"\n'):
        assert open_source(write(tmp_path, f'x;"y\n{body}')).names == ('x;"y',)


def zipped(folder: Path, **members: bytes) -> Path:
    path = folder / "packed.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def test_what_systems_add_to_an_archive_is_ignored(tmp_path: Path) -> None:
    added = {"__MACOSX/._a.csv": b"x", "d/": b"", ".DS_Store": b"x", "d/.hidden.csv": b"y", "README.txt": b"z"}
    for name, text in {"d/a.CSV": b"a;b\n1;2\n", "a.tsv": b"a\tb\n1\t2\n", "ü.jsonl": b'{"b":2,"a":1}'}.items():
        assert rows_of(zipped(tmp_path, **added, **{name: text}), ["a", "b"]) == [("1", "2")]


JSON_LINES: dict[str, tuple[str, list[tuple[str | None, str | None]]]] = {
    "plain": ('{"a": "x", "b": "y"}\n{"b": 2, "a": 1}\n', [("x", "y"), ("1", "2")]),
    "no newline at the end": ('{"a": 1, "b": 2}', [("1", "2")]),
    "CRLF": ('{"a": 1, "b": 2}\r\n{"a": 3, "b": 4}\r\n', [("1", "2"), ("3", "4")]),
    "blank lines": ('\n{"a": 1, "b": 2}\n \n\n{"a": 3, "b": 4}\n\n', [("1", "2"), ("3", "4")]),
    "byte order mark": ('\ufeff{"a": 1, "b": 2}\n', [("1", "2")]),
    "numbers as they are written": (
        '{"a": 007.50, "b": 1}'.replace("007", "7") + '\n{"a": 1E5, "b": -0}\n{"a": 9007199254740993, "b": 1e999}',
        [("7.50", "1"), ("1E5", "-0"), ("9007199254740993", "1e999")],
    ),
    "truths": ('{"a": true, "b": false}\n', [("true", "false")]),
    "absent": ('{"a": null}\n{"b": ""}\n{}\n', [(None, None), (None, ""), (None, None)]),
    "nested": ('{"a": [1], "b": {"a": 7}}\n{"a": [], "b": {}}\n', [(None, None), (None, None)]),
    "what Python writes": ('{"a": NaN, "b": -Infinity}\n{"a": 1, "b": Infinity}\n', [(None, "-inf"), ("1", "inf")]),
    "escapes": (r'{"a": "q\"\u00e9\ud83d\ude00", "b": "two\nlines"}', [('q"é😀', "two\nlines")]),
    "other separators of lines": ('{"a": "x\u2028y", "b": "\x85"}\n', [("x\u2028y", "\x85")]),
    "more keys": ('{"c": "\ud800", "a": 1, "": 0, "b": 2}'.replace("\ud800", r"\ud800"), [("1", "2")]),
    "no rows": ("", []),
}


@pytest.mark.parametrize("case", JSON_LINES)
def test_reads_json_lines(case: str, tmp_path: Path) -> None:
    text, expected = JSON_LINES[case]
    data = text.encode()
    assert rows_of(write(tmp_path, data, "x.jsonl"), ["a", "b"]) == expected
    assert rows_of(write(tmp_path, gzip.compress(data), "x.NDJSON.gz"), ["b", "a"]) == [row[::-1] for row in expected]


def test_keys_of_json_lines_are_no_header(tmp_path: Path) -> None:
    """A column that no line has is absent everywhere: no line may decide whether a table is refused."""
    path = write(tmp_path, '{"b": 1}\n{"a": 2, "b": {"d": 4}}\n', "x.jsonl")
    assert rows_of(path, ["a", "c"]) == [(None, None), ("2", None)]
    assert open_source(path).names == ("b", "a")


def test_reads_tabs(tmp_path: Path) -> None:
    assert rows_of(write(tmp_path, "a\tb\n1,5\t\n", "x.tsv"), ["b", "a"]) == [("", "1,5")]


def test_a_blank_line_of_one_column_is_a_row(tmp_path: Path) -> None:
    assert rows_of(write(tmp_path, 'a\n1\n\n""\n2\n'), ["a"]) == [("1",), ("",), ("",), ("2",)]


def test_odd_names_of_columns_are_names(tmp_path: Path) -> None:
    names = [
        'q"u',
        "a,b",
        "a b",
        "A",
        "a",
        "select",
        "ü",
        "'",
        "two\nlines",
        "x; DROP TABLE y",
        "file_row_number",
    ]
    line = io.StringIO()
    csv.writer(line).writerows([names, list(range(len(names)))])
    text = write(tmp_path, line.getvalue())
    parquet = tmp_path / "x.parquet"
    pq.write_table(pa.table([[i] for i in range(len(names))], names=names), parquet)
    for i, name in enumerate(names):
        assert rows_of(text, [name]) == [(str(i),)]
        assert rows_of(parquet, [name, names[0]]) == [(i, 0)]


def test_a_wide_file_is_read(tmp_path: Path) -> None:
    names = [f"c{i}" for i in range(3_000)]
    path = write(tmp_path, ",".join(names) + "\n" + ",".join(map(str, range(3_000))) + "\n")
    assert rows_of(path, ["c2999", "c7"]) == [("2999", "7")]


@pytest.mark.parametrize("name", ["a[1]", "a*", "**", "a?", "it's", "a{b,c}", "x=1", "[!a]", "a b", "ü", "a;b", "%s"])
def test_signs_in_a_path_stand_for_themselves(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "year=2020"  # for Hive's partitions a column, for us a folder
    folder.mkdir()
    for decoy in ("a1", "ab", "aX", "b"):
        pq.write_table(pa.table({"x": [0]}), folder / f"{decoy}.parquet")
    pq.write_table(pa.table({"x": [7]}), folder / f"{name}.parquet")
    write(folder, "x\n7\n", f"{name}.csv")
    source = open_source(folder / f"{name}.parquet")
    assert (source.names, source.size_hint()) == (("x",), 1)
    assert rows_of(folder / f"{name}.parquet", ["x"]) == [(7,)]
    assert rows_of(folder / f"{name}.csv", ["x"]) == [("7",)]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch") / "x.csv"


@settings(max_examples=150, deadline=None)
@given(body=st.text(alphabet='ab1,,""\n\n ', max_size=30), width=st.integers(1, 3), rows=st.integers(1, 3))
def test_csv_is_a_table_of_the_width_of_its_header_or_refused(scratch: Path, body: str, width: int, rows: int) -> None:
    """Never a row more or less than Python's parser finds, however broken the quotes are."""
    names = list("xyz"[:width])
    scratch.write_text(",".join(names) + "\n" + body, newline="")
    try:
        parsed = list(csv.reader(io.StringIO(body), strict=True))
        table = [row for row in parsed if row] if width > 1 else [row or [""] for row in parsed]
        broken = any(len(row) != width for row in table)
    except csv.Error:
        broken = True
    if broken:
        with pytest.raises(InputError, match=r"line [0-9]+ has "):
            rows_of(scratch, names, rows=rows)
    else:
        assert rows_of(scratch, names, rows=rows) == [tuple(row) for row in table]


def test_columns_that_nobody_asks_for_are_not_parsed(tmp_path: Path) -> None:
    bad = pa.Array.from_buffers(pa.string(), 2, pa.array([b"\xff", b"\xfe"]).buffers())
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"bad": bad, "x": [1, 2]}), path)
    assert rows_of(path, ["x"]) == [(1,), (2,)]


def test_a_file_can_be_read_again_and_left_half_way(tmp_path: Path) -> None:
    text = write(tmp_path, "x\n" + "1\n" * 5_000)
    parquet = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": list(range(5_000)), "file_row_number": [0] * 5_000}), parquet)
    for source in (open_source(text), open_source(parquet)):
        next(source.batches(["x"], rows=10))
        assert sum(len(x) for (x,) in source.batches(["x"], rows=1_234)) == 5_000


AGE = Schema(columns=(Ordered(name="x", missing=True, kind="integer", low=0, high=9),))


def test_a_small_file_is_read_to_its_end_once(tmp_path: Path) -> None:
    path = write(tmp_path, "x\n" + "1\n" * 5_000)
    source = open_source(path)
    next(cleaned(source, AGE))  # left half way: nothing is kept
    path.write_text("x\n" + '2\n""\n' * 5_000)
    assert count_rows(source, AGE, "counting") == 10_000
    path.unlink()
    for _ in range(2):
        (x,) = (column for (column,) in cleaned(source, AGE))
        np.testing.assert_array_equal(x, [2, np.nan] * 5_000)
    assert "2.0" not in repr(source)
    with pytest.raises(InputError, match="cannot be read"):
        list(source.batches(["x"]))


@pytest.mark.parametrize("most", [100, 2_000])
def test_of_a_larger_file_nothing_is_kept(most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the file's size of 1,002 bytes, or by what cleaned rows take."""
    monkeypatch.setattr(caching, "MAX_CACHED_BYTES", most)
    path = write(tmp_path, "x\n" + "1\n" * 500)
    source = open_source(path)
    for digit in (1.0, 2.0):
        path.write_text("x\n" + f"{digit:.0f}\n" * 500)
        assert [set(x.tolist()) for (x,) in cleaned(source, AGE, rows=100)] == [{digit}] * 5
    assert count_rows(source, AGE, "counting") == 500


def test_rows_of_many_groups_come_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": np.arange(50_000)}), path, row_group_size=777)
    batches = list(open_source(path).batches(["x"], rows=7_001))
    assert [len(x) for (x,) in batches] == [7_001] * 7 + [993]
    np.testing.assert_array_equal(np.concatenate([x for (x,) in batches]), np.arange(50_000))


def test_the_schema_decides_what_text_means(tmp_path: Path) -> None:
    """P6: a new label or extreme in the rows leaves the codes of all other rows alone."""
    schema = Schema(
        columns=(
            Category(name="country", missing=True, values=("NA", "CH")),
            Ordered(name="code", kind="ordinal", low=0, high=1, values=("00123", "123")),
            Ordered(name="age", missing=True, kind="integer", low=0, high=120),
        )
    )
    quiet = write(tmp_path, "age,country,code\n34,NA,00123\n,CH,123\n", "quiet.csv")
    loud = write(tmp_path, "age,country,code\n34,NA,00123\n,CH,123\n9e99,XX,124\n", "loud.csv")
    ((*before,), (*after,)) = (next(cleaned(open_source(path), schema)) for path in (quiet, loud))
    for column, old, new in zip(schema, before, after, strict=True):
        np.testing.assert_array_equal(new[:-1], old, err_msg=column.name)
    for new, codes in zip(after, ([0, 1, 2], [0, 1, 0], [34, np.nan, 120]), strict=True):
        np.testing.assert_array_equal(new, codes)


ALONE = """
import sys
foreign = ("pandas", "polars", "pyarrow", "pytz")
sys.modules.update(dict.fromkeys(foreign))  # whoever imports one of them fails
import duckdb
from certsynth.sources import open_source
from certsynth.sources.draft import draft_schema
for data in (sys.argv[1], sys.argv[2], duckdb.sql(f"FROM read_parquet('{sys.argv[2]}')")):
    source = open_source(data)
    print(sum(len(batch[0]) for batch in source.batches(source.names)), len(draft_schema(source)))
"""


def test_files_and_relations_need_no_other_library(tmp_path: Path) -> None:
    paths = [str(csv_file(tmp_path)), str(parquet_file(tmp_path))]
    run = subprocess.run([sys.executable, "-c", ALONE, *paths], capture_output=True, text=True, check=True)
    everything, flat = len(TABLE), len(TABLE) - len(NESTED)
    assert run.stdout.split() == [str(n) for n in (ROWS, flat, ROWS, everything, ROWS, everything)]
    assert run.stderr == ""


FLAT = """
import resource, sys
from certsynth.sources import open_source
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
source = open_source(sys.argv[1])
rows, before = 0, peak()
for batch in source.batches(["number", "label"], rows=20_000):
    rows += len(batch[0])
print(rows, peak() - before)
"""

MAKE: dict[str, Callable[[Path], object]] = {
    "parquet": lambda path: duckdb.execute(
        f"COPY (SELECT i::DOUBLE AS number, 'label ' || i AS label FROM range(2000000) AS t(i)) TO '{path}'"
    ),
    "csv": lambda path: path.write_text("number,label\n" + "".join(f"{i},label {i}\n" for i in range(500_000))),
    "jsonl": lambda path: path.write_text("".join(f'{{"label":"label {i}","number":{i}}}\n' for i in range(200_000))),
    "zip": lambda path: zipped(
        path.parent, **{"a.csv": b"number,label\n" + b"".join(b"%d,label %d\n" % (i, i) for i in range(500_000))}
    ).rename(path),
}


@pytest.mark.quick_cases(1)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss has another unit elsewhere")
@pytest.mark.parametrize("suffix", MAKE)
def test_memory_stays_flat(suffix: str, tmp_path: Path) -> None:
    """Batches of 20,000 rows: all at once take 200 MB (Parquet), and 100,000 at once 30 MB (CSV)."""
    path = tmp_path / f"big.{suffix}"
    MAKE[suffix](path)
    run = subprocess.run([sys.executable, "-c", FLAT, str(path)], capture_output=True, text=True, check=True)
    rows, growth = map(int, run.stdout.split())
    assert rows == {"parquet": 2_000_000, "jsonl": 200_000}.get(suffix, 500_000)
    assert growth < (80 if suffix == "parquet" else 20), f"grew by {growth} MB"


def test_duckdb_has_nowhere_to_spill_private_rows():
    """By default it puts what does not fit into memory into the folder .tmp of wherever one works."""
    with closing(connection()) as con:
        assert con.execute("SELECT current_setting('temp_directory')").fetchall() == [("",)]
    with closing(duckdb.connect()) as con:
        assert con.execute("SELECT current_setting('temp_directory')").fetchall() != [("",)]
