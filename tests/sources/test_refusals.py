"""Files that cannot be read: one line, with the path, the place and the remedy, and no cell in it (P8)."""

from __future__ import annotations

import gzip
import io
import os
import traceback
import zipfile
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from nasty import CANARY, arrow

from certsynth.errors import InputError
from certsynth.sources import open_source
from certsynth.sources.files import open_file


def write(folder: Path, data: bytes, name: str) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def parquet_bytes(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="none", use_dictionary=False)
    return sink.getvalue()


def not_utf8() -> bytes:
    texts = pa.Array.from_buffers(pa.string(), 1, pa.array([CANARY.encode() + b"\xff\xfe"]).buffers())
    return parquet_bytes(pa.table({"x": texts}))


def damaged() -> bytes:
    whole = parquet_bytes(pa.table({"x": [CANARY] * 1000}))
    return whole[:4] + bytes(byte ^ 0x55 for byte in whole[4:600]) + whole[600:]


def zipped(**members: str) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return sink.getvalue()


def encrypted() -> bytes:
    """An archive that says of its member that it has a password: the lowest bit of the flags, in both headers."""
    whole = bytearray(zipped(**{"a.csv": f"x\n{CANARY}\n"}))
    whole[6] |= 1
    whole[whole.index(b"PK\x01\x02") + 8] |= 1
    return bytes(whole)


LONG = "z" * 200_000
REFUSED: dict[str, tuple[str, bytes, str]] = {
    "an empty file": ("t.csv", b"", "empty, or without a header. The first line must name the columns"),
    "a blank header": ("t.csv", b"\n\nx\n1\n", "empty, or without a header"),
    "a header of blanks": ("t.csv", b",,\n1,2,3\n", "empty, or without a header"),
    "two columns of one name": ("t.csv", b"x,y,x\n1,2,3\n", "columns 1 and 3 have the same name. Rename or drop one"),
    "a quote in the header": ("t.csv", b'"x\n' + CANARY.encode(), "header line has a quote out of place"),
    "a row that is too long": (
        "t.csv",
        f"x,y\n1,2\n3,4,{CANARY}\n".encode(),
        "line 3 has more or fewer fields",
    ),
    "a row with one delimiter more": (
        "t.csv",
        f"x,y\n1,2\n3,{CANARY},\n".encode(),
        "line 3 has more or fewer",
    ),
    "a row that is too short": ("t.csv", f"x,y\n1,2\n{CANARY}\n".encode(), "line 3 has more or fewer fields"),
    "a short row after line breaks": ("t.csv", f'x,y\n"1\n\n2",2\n\n{CANARY}\n'.encode(), "line 6 has more"),
    "a short row far down": ("t.csv", b"x,y\n" + b"1,2\n" * 5_000 + CANARY.encode(), "line 5002 has more"),
    "a quote that is never closed": ("t.csv", f'x,y\n1,2\n3,"{CANARY}\n5,6\n'.encode(), "line 3 has a quote"),
    "a quote closed too early": (
        "t.csv",
        f'x,y\n"1" {CANARY},2\n'.encode(),
        "line 2 has a quote out of place",
    ),
    "a field without end": (
        "t.csv",
        f"x,y\n1,{CANARY}{LONG}\n".encode(),
        "or a field of over 131,072 characters",
    ),
    "text in another encoding": (
        "t.csv",
        f"x\n{CANARY}\xe9\n".encode("latin-1"),
        "column 'x' is not text in UTF-8. Save the file as UTF-8, or convert it: iconv -f WINDOWS-1252 -t UTF-8.",
    ),
    "UTF-16": ("t.csv", f"x,y\n{CANARY},2\n".encode("utf-16"), "text in UTF-16. Save it as UTF-8."),
    "UTF-16 without its mark": ("t.csv", f"x,y\n{CANARY},2\n".encode("utf-16-le"), "the header is not text in UTF-8"),
    "an old spreadsheet": ("t.xls", CANARY.encode(), "a spreadsheet. Save the sheet as CSV in UTF-8."),
    "a spreadsheet called CSV": (
        "t.csv",
        b"PK\x03\x04" + CANARY.encode(),
        "a zip archive or a spreadsheet. Give it the suffix of its format, .zip or .xlsx.",
    ),
    "an old spreadsheet called CSV": (
        "t.csv",
        b"\xd0\xcf\x11\xe0" + CANARY.encode(),
        "an old spreadsheet. Save the sheet as CSV in UTF-8.",
    ),
    "Parquet called CSV": ("t.csv", b"PAR1" + CANARY.encode(), "a Parquet file. Give it the suffix .parquet."),
    "SAS": ("t.sas7bdat", CANARY.encode(), "a table of SAS. Save it as CSV in UTF-8 or as Parquet, with codes"),
    "Stata": ("t.DTA", CANARY.encode(), "a table of Stata. Save it as CSV in UTF-8 or as Parquet"),
    "SPSS": ("t.sav", CANARY.encode(), "a table of SPSS. Save it as CSV in UTF-8 or as Parquet"),
    "R": ("t.rds", CANARY.encode(), "a table of R. Save it as Parquet, or as CSV in UTF-8."),
    "Arrow": ("t.feather", CANARY.encode(), "an Arrow file. Save it as Parquet, or give `pyarrow.feather.read_table"),
    "a database": ("t.sqlite", CANARY.encode(), "a database. Select from one of its tables with --sql and --attach"),
    "a tarball": ("t.csv.tar.gz", CANARY.encode(), "packed. Unpack it, or pack it as .gz."),
    "JSON": ("t.json", b"[]", "JSON as a whole. Write one object in each line (.jsonl): jq -c '.[]'."),
    "a JSON array in lines": ("t.jsonl", f'[{{"x": "{CANARY}"}}]\n'.encode(), "line 1 is not a JSON object, has a key"),
    "a JSON text in lines": ("t.jsonl", f'{{"x": 1}}\n"{CANARY}"\n'.encode(), "line 2 is not a JSON object"),
    "CSV called JSON lines": ("t.ndjson", f"x\n{CANARY}\n".encode(), "line 1 is not a JSON object"),
    "half a line of JSON": ("t.jsonl", f'{{"x": 1}}\n\n{{"x": "{CANARY}\n'.encode(), "line 3 is not a JSON object"),
    "a key twice": (
        "t.jsonl",
        f'{{"x": 1, "x": "{CANARY}"}}\n'.encode(),
        "line 1 is not a JSON object, has a key twice",
    ),
    "JSON without end": ("t.jsonl", b'{"x": ' + b"[" * 200_000, "line 1 is not a JSON object"),
    "a number without end": ("t.jsonl", b'{"x": 1' + b"0" * 2**24 + b"}", "line 1 is not a JSON object"),
    "JSON in another encoding": (
        "t.jsonl",
        f'{{"x": "{CANARY}\xe9"}}\n'.encode("latin-1"),
        "'x' is not text in UTF-8. Save the file as UTF-8, or convert it: iconv -f WINDOWS-1252 -t UTF-8.",
    ),
    "half a character in JSON": ("t.jsonl", rb'{"x": "\ud800"}', "'x' is not text in UTF-8"),
    "JSON lines, half a gzip": (
        "t.jsonl.gz",
        gzip.compress(f'{{"x": "{CANARY}"}}\n'.encode() * 99)[:30],
        "cannot be read (it is damaged)",
    ),
    "an archive of two tables": (
        "t.zip",
        zipped(**{"a.csv": f"x\n{CANARY}\n", "b/c.tsv": "x\n1\n"}),
        "the archive has 2 tables in it. Pack exactly one file (.csv, .tsv, .jsonl, .ndjson), or unpack it.",
    ),
    "an archive of none": ("t.csv.zip", zipped(**{CANARY: "x\n1\n"}), "the archive has no table in it. Pack exactly"),
    "no archive": ("t.zip", f"x\n{CANARY}\n".encode(), "cannot be read (it is damaged)"),
    "a damaged archive": (
        "t.zip",
        zipped(**{"a.csv": f"x\n{CANARY}\n"}).replace(b"\n", b"\t", 1),
        "cannot be read (it is damaged)",
    ),
    "an archive with a password": ("t.zip", encrypted(), "has a password, or a compression that cannot be read."),
    "a broken row in an archive": ("t.zip", zipped(**{"a.csv": f"x,y\n1,{CANARY},\n"}), "line 2 has more or fewer"),
    "a broken row after a declaration": ("t.csv", f"sep=;\nx;y\n1;{CANARY};\n".encode(), "line 3 has more or fewer"),
    "gzip called CSV": ("t.csv", gzip.compress(CANARY.encode()), "compressed. Add .gz to its name."),
    "a schema": ("t.toml", CANARY.encode(), "this is a schema or a workload, not a table. Give a CSV or Parquet file"),
    "a comma in a name among semicolons": (
        "t.csv",
        f"x;y, net\n{CANARY};2,5\n".encode(),
        "its fields seem to be separated by semicolons, with commas in a name of a column. Rename that column",
    ),
    "names in capitals": (
        "t.csv",
        f"X,y\n{CANARY},2\n".encode(),
        "no column 'x', but one that differs in case or in blanks. Write it alike in both.",
    ),
    "a header in another encoding": (
        "t.csv",
        "é,x\n1,2\n".encode("latin-1"),
        "the header is not text in UTF-8",
    ),
    "no gzip": ("t.csv.gz", f"x\n{CANARY}\n".encode(), "not compressed. Remove .gz from its name."),
    "half a gzip": (
        "t.csv.gz",
        gzip.compress(f"x\n{CANARY}\n".encode() * 99)[:30],
        "cannot be read (it is damaged)",
    ),
    "a missing column": (
        "t.csv",
        f"y,z\n{CANARY},2\n".encode(),
        "no column 'x', nor any other of the schema. Its first line must name the columns",
    ),
    "no header": (
        "t.csv",
        f"{CANARY},34\na,35\n".encode(),
        "no column 'x', and the first line looks like a row",
    ),
    "no header and texts": ("t.csv", f"{CANARY},a\nb,c\n".encode(), "nor any other of the schema"),
    "no header and a text twice": (
        "t.csv",
        f"{CANARY},a,{CANARY}\nb,c,d\n".encode(),
        "columns 1 and 3 have the same name",
    ),
    "no header and a value twice": (
        "t.csv",
        b"777,777\na,35\n",
        "two columns have the same name, and the first line looks",
    ),
    "an unknown suffix": (
        "t.txt",
        CANARY.encode(),
        "unknown suffix. Convert it to one of .csv, .tsv, .jsonl, .ndjson, .xlsx, .xlsm, .parquet, .pq; text may",
    ),
    "no suffix": ("t", CANARY.encode(), "unknown suffix"),
    "no Parquet": ("t.parquet", f"x\n{CANARY}\n".encode(), "not a Parquet file"),
    "an empty Parquet": ("t.pq", b"", "not a Parquet file"),
    "a short Parquet": ("t.pq", b"PAR1", "DuckDB cannot read it"),
    "half a Parquet": ("t.parquet", parquet_bytes(arrow())[:500], "not a Parquet file"),
    "a Parquet of nothing": ("t.parquet", b"PAR1" + CANARY.encode() + b"PAR1", "DuckDB cannot read it"),
    "a damaged Parquet": ("t.parquet", damaged(), "DuckDB cannot read it"),
    "a Parquet that is not UTF-8": ("t.parquet", not_utf8(), "DuckDB cannot read it"),
    "a Parquet without the column": (
        "t.parquet",
        parquet_bytes(pa.table({"y": [CANARY]})),
        "no column 'x'; it has 'y'",
    ),
    "two columns of a Parquet": (
        "t.parquet",
        parquet_bytes(pa.table([[1], [2]], names=["x", "x"])),
        "called 'x'",
    ),
    "a path with wildcards and backslashes": ("t\\[1].parquet", parquet_bytes(arrow()), "Rename the file"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses(case: str, tmp_path: Path) -> None:
    name, data, says = REFUSED[case]
    path = write(tmp_path, data, name)
    with pytest.raises(InputError) as caught:
        list(open_source(path).batches(["x"]))
    message = str(caught.value)
    assert says in message
    assert str(path) in message
    assert "\n" not in message
    shown = f"{message}{caught.value!r}{''.join(traceback.format_exception(caught.value))}"
    assert CANARY not in shown
    assert "777" not in shown.replace(str(path), "")
    assert LONG[:99] not in shown


def test_the_canary_can_be_seen_where_it_is_not_hidden(tmp_path: Path) -> None:
    """The scan above would find a leak: DuckDB's own message for the same file has one."""
    path = write(tmp_path, f"x,y\n1,2\n3,4,{CANARY}\n".encode(), "t.csv")
    sql = "FROM read_csv(?, auto_detect = false, header = true, columns = {'x': 'VARCHAR', 'y': 'VARCHAR'})"
    with pytest.raises(duckdb.Error, match=CANARY):
        duckdb.execute(sql, [str(path)]).fetchall()


def test_refuses_paths_that_are_no_files(tmp_path: Path) -> None:
    fifo = tmp_path / "pipe.csv"
    os.mkfifo(fifo)
    for path, says in [
        (tmp_path, "this folder has no Parquet file in it. Give a CSV or Parquet file"),
        (tmp_path / "none.csv", "no such file. Check the path"),
        ("", "this folder has no Parquet file"),
        ("none/such/table.parquet", "no such file"),
        ("a\0b.csv", "(no such file|cannot be used)"),
        ("x" * 5_000 + ".csv", "(no such file|cannot be used)"),
        (fifo, "not a regular file"),
    ]:
        with pytest.raises(InputError, match=rf"^public data .*{says}"):
            open_source(path, what="public data")


def test_refuses_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    paths = [write(tmp_path, b"x\n1\n", "x.csv"), tmp_path / "x.parquet"]
    pq.write_table(pa.table({"x": [1]}), paths[1])
    monkeypatch.setattr(Path, "open", denied)  # by hand: for root every file may be read
    for path in paths:
        with pytest.raises(InputError, match=r"cannot be read \(Permission denied\)"):
            open_file(path, "data")
