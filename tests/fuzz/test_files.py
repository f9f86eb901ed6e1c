"""Any bytes are a table, or are refused in one line without a cell: CSV and Parquet, cut, flipped, or made to harm."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fuzzing import CANARY, LENGTHS, check_refusal, hunt
from hypothesis import strategies as st

from certsynth.domain import Schema
from certsynth.errors import CertsynthError, InputError
from certsynth.sources import cleaned, open_source
from certsynth.sources.draft import draft_schema
from small import NATIVE


def parquet(table: pa.Table, **options: object) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


ROWS = 30
TABLE = pa.table(
    {"a": [*range(ROWS - 1), None], "b": [0.5] * ROWS, "c": [CANARY, "x", "y"] * (ROWS // 3), "d": [[CANARY]] * ROWS}
)
PARQUETS = [
    parquet(TABLE),
    parquet(TABLE, compression="none", use_dictionary=False),
    parquet(TABLE, row_group_size=7, version="1.0", data_page_version="2.0"),
]
CSVS = [
    b"a,b,c\n" + b"".join(b"%d,0.5,%s\n" % (i, CANARY.encode()) for i in range(ROWS)),
    b'\xef\xbb\xbfa,b,c\r\n1,"2",x\r\n"%s\n",,"q""q"\r\n' % CANARY.encode(),
    b"b,c,a\n\n\n1,2,%s\n" % CANARY.encode(),
]
BITS = [
    b"\x00",
    b'"',
    b"\n",
    b"\r",
    b",",
    b"\xff",
    b"\xef\xbb\xbf",
    b"PAR1",
    CANARY.encode(),
    b"=1+1",
    b"'",
    b"\\",
    b"9" * 400,
]


@st.composite
def mutated(draw: st.DrawFn, contents: list[bytes]) -> bytes:
    """A file with bytes changed, cut out, doubled or put in."""
    content = draw(st.sampled_from(contents))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.integers(0, 50)))
        how = draw(st.sampled_from(["flip", "cut", "double", "put", "end"]))
        if how == "flip" and start < len(content):
            content = content[:start] + bytes([content[start] ^ draw(st.integers(1, 255))]) + content[start + 1 :]
        elif how == "cut":
            content = content[:start] + content[end:]
        elif how == "double":
            content = content[:end] + content[start:end] + content[end:]
        elif how == "put":
            content = content[:start] + draw(st.sampled_from(BITS) | st.binary(max_size=4)) + content[start:]
        else:
            content = content[:start]
    return content


def check_file(path: Path) -> bool:
    """All rows, each in a cell of each column, or a refusal without a cell; whether it could be read."""
    try:
        source = open_source(path)
        batches = list(cleaned(source, NATIVE))
    except CertsynthError as error:
        if CANARY not in path.read_bytes().split(b"\n")[0].decode(errors="replace"):  # a header is no cell
            check_refusal(error, hidden=CANARY)
        return False
    for batch in batches:
        for column, clean in zip(NATIVE, batch, strict=True):
            codes = column.to_cells(clean, column.cells(4))
            assert ((codes >= 0) & (codes < column.cells(4).size)).all()
    return True


@LENGTHS
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz"])
def test_any_bytes_are_csv_or_are_refused(name, scratch, times):
    seen = {True: 0, False: 0}

    def check(content: bytes) -> None:
        packed = gzip.compress(content) if name.endswith(".gz") and len(content) % 2 else content
        (scratch / name).write_bytes(packed)
        seen[check_file(scratch / name)] += 1

    hunt(check, examples=60, times=times, content=mutated(CSVS) | st.binary(max_size=60))
    assert seen[False] > 20, seen
    assert seen[True] > 5 or name != "t.csv", seen


JSON_LINES = [
    b"".join(b'{"a": %d, "b": 0.5, "c": "%s"}\n' % (i, CANARY.encode()) for i in range(ROWS)),
    b'\n{"c": [{"a": "%s"}], "d": {}, "a": null}\r\n{"a": "x", "b": true, "c": "\\ud83d\\ude00"}' % CANARY.encode(),
]


def zipped(content: bytes) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        archive.writestr("t.csv", content)
    return sink.getvalue()


@LENGTHS
@pytest.mark.parametrize("name", ["t.jsonl", "t.zip"])
def test_any_bytes_are_json_lines_or_an_archive_or_are_refused(name, scratch, times):
    contents = JSON_LINES if name == "t.jsonl" else [zipped(content) for content in CSVS]
    seen = {True: 0, False: 0}

    def check(content: bytes) -> None:
        (scratch / name).write_bytes(content)
        seen[check_file(scratch / name)] += 1

    hunt(check, examples=60, times=times, content=mutated(contents) | st.binary(max_size=60))
    assert min(seen.values()) > 0, seen


@LENGTHS
def test_any_bytes_are_parquet_or_are_refused(scratch, times):
    seen = {True: 0, False: 0}

    def check(content: bytes) -> None:
        (scratch / "t.parquet").write_bytes(content)
        seen[check_file(scratch / "t.parquet")] += 1

    framed = st.binary(max_size=60).map(lambda content: b"PAR1" + content + b"PAR1")
    hunt(check, examples=50, times=times, content=mutated(PARQUETS) | framed)
    assert seen[False] > 20, seen


@LENGTHS
def test_a_draft_of_any_bytes_is_a_schema_or_is_refused(scratch, times):
    def check(content: bytes) -> None:
        (scratch / "d.csv").write_bytes(content)
        try:
            drafted = draft_schema(scratch / "d.csv")
        except CertsynthError as error:
            check_refusal(error)
            return
        assert Schema.parse(drafted.to_toml()) == drafted

    hunt(check, examples=50, times=times, content=mutated(CSVS))


def _footer(content: bytes, length: int) -> bytes:
    """A Parquet file that claims a footer of another length."""
    return content[:-8] + struct.pack("<I", length) + b"PAR1"


GOOD = PARQUETS[1]
_MANY = struct.pack("<q", ROWS)
HOSTILE = {
    "no footer": GOOD[:-8] + b"PAR1",
    "a footer of 4 GB": _footer(GOOD, 2**32 - 1),
    "a footer of 2 GB": _footer(GOOD, 2**31 - 1),
    "a footer of nothing": _footer(GOOD, 0),
    "a footer of the file": _footer(GOOD, len(GOOD)),
    "half of it": GOOD[: len(GOOD) // 2] + GOOD[-8:],
    "nothing between": b"PAR1PAR1",
    "encrypted": b"PARE" + GOOD[4:-4] + b"PARE",
    "two columns of one name": parquet(pa.table([[1], [2], [3]], names=["a", "b", "b"])),
    "names that differ in case": parquet(pa.table([[1], [2], [3]], names=["a", "B", "b"])),
    "no column": parquet(pa.table({"z": [CANARY]})),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_parquet_is_refused_in_one_line(case, scratch):
    (scratch / "h.parquet").write_bytes(HOSTILE[case])
    with pytest.raises(InputError) as caught:
        list(cleaned(open_source(scratch / "h.parquet"), NATIVE))
    check_refusal(caught.value, hidden=CANARY)


def _varint(number: int) -> bytes:
    zigzag, out = number << 1, bytearray()
    while zigzag > 127:
        out.append(zigzag & 127 | 128)
        zigzag >>= 7
    return bytes([*out, zigzag])


@pytest.mark.parametrize("claimed", [2**31, 2**40, 2**62])
def test_rows_that_are_claimed_and_not_there_fill_no_memory(claimed, scratch):
    """The number of rows stands in the footer, in the compact form of Thrift: each place where it could be is tried."""
    length = struct.unpack("<I", GOOD[-8:-4])[0]
    body, footer = GOOD[: -8 - length], GOOD[-8 - length : -8]
    wanted, tried = _varint(ROWS), 0
    for place in range(len(footer)):
        if footer[place : place + 1] != wanted:
            continue
        lie = footer[:place] + _varint(claimed) + footer[place + 1 :]
        (scratch / "h.parquet").write_bytes(body + lie + struct.pack("<I", len(lie)) + b"PAR1")
        check_bounded(scratch / "h.parquet")
        tried += 1
    assert tried >= 2  # of the file, and of its group of rows


def check_bounded(path: Path) -> None:
    """At most as many batches as a small file fills; the claim itself costs nothing."""
    rows = 0
    try:
        for batch in open_source(path).batches(NATIVE.names):
            rows += len(batch[0])
            assert rows <= 10 * ROWS
    except InputError as error:
        check_refusal(error, hidden=CANARY)
