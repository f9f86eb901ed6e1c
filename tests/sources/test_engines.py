"""The same counts from every engine, whoever counts: the nasty table by every reader, and by SQL where it is pushed."""

from __future__ import annotations

import sqlite3
import traceback
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from everything import KINDS, Together, clean_rows, mixed_schema, nasty_schema, shown, tallies
from nasty import CANARY, FORMS, NESTED, SKEWED, TABLE, arrow, columns, parquet_file, polars_frame, relation

from certsynth.domain import Column, Ordered, Schema
from certsynth.domain.cells import Groups
from certsynth.errors import InputError
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.marginals import CellCounts, Marginals, all_subsets
from certsynth.queries.tally import tally_batches
from certsynth.sources import Unopened, cleaned, codes, duck, open_source, pushdown, pushed_down, rows_of
from certsynth.sources.pushdown import PushedDown

SOURCES = {
    **{name: lambda folder, form=form: open_source(form(folder)) for name, form in FORMS.items()},
    "query": lambda folder: open_source(Unopened(f"SELECT * FROM read_parquet('{parquet_file(folder)}')")),
    "relation, pushed down": lambda folder: pushed_down(relation(folder)),
    "polars, pushed down": lambda folder: pushed_down(polars_frame(folder).lazy()),
}


def is_accepted(source: Any, column: Column) -> bool:
    """Types of a frame are refused where they cannot tell labels apart: `test_neighbouring_tables.py` has those."""
    try:
        rows_of(source, Schema(columns=(column,)), "counting")
    except InputError:
        return False
    return True


def ask(source: Any, schema: Schema, tally: Any) -> Any:
    return rows_of(source, schema, "counting")(tally)


@pytest.mark.parametrize("name", SOURCES)
def test_every_tally_says_the_same_wherever_rows_come_from(name: str, tmp_path: Path) -> None:
    source = SOURCES[name](tmp_path)
    for first in (0, 5, 8):
        schema = mixed_schema(first)
        if name.startswith("csv"):  # a text has no such values
            schema = schema.select([n for n in schema.names if n not in NESTED])
        if name == "excel":  # its calendar begins in 1900, and earlier days are texts, which a format does not read
            schema = schema.select([c.name for c in schema if c.name != "days" or not c.reading.format])
        schema = schema.select([column.name for column in schema if is_accepted(source, column)])
        assert len(schema) >= 5
        rows = clean_rows(schema, as_text=name.startswith("csv"), as_json=name == "json lines")
        assert ask(source, schema, Together.of(schema)) == tally_batches([rows], Together.of(schema))


def test_rows_that_are_read_ahead_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duck, "MIN_PREFETCH_ROWS", 0)
    test_every_tally_says_the_same_wherever_rows_come_from("parquet", tmp_path)


def sayable(source: PushedDown, schema: Schema) -> Schema:
    """The columns that an engine can code."""

    def one(column: Column) -> bool:
        alone = Schema(columns=(column,))
        return source.answers(CellCounts(alone, Marginals.even(alone, [(0,)], resolution=5)), alone)

    return Schema(columns=tuple(filter(one, schema)))


PUSHED = {"duckdb": relation, "polars": lambda folder: polars_frame(folder).lazy()}


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("engine", PUSHED)
@pytest.mark.parametrize("kind", KINDS)
def test_grouped_counts_of_an_engine_are_those_of_the_rows(engine: str, kind: int, tmp_path: Path) -> None:
    source = pushed_down(PUSHED[engine](tmp_path))
    assert isinstance(source, PushedDown)
    schema = sayable(source, nasty_schema(kind))
    assert len(schema) >= 3, schema.names
    said = 0
    for name, tally in tallies(schema).items():
        if source.answers(tally, schema):
            assert shown(source.tallied(tally, schema)) == shown(tally_batches([clean_rows(schema)], tally)), name
            said += 1
    assert said >= 3


def test_what_can_be_said_in_sql(tmp_path: Path) -> None:
    """Rows of these columns stay where they are; a change of this list is one of what can be promised."""
    source = pushed_down(relation(tmp_path))
    kinds = {"integer": 0, "number": 1, "date": 2, "ordinal": 3, "category": 4, "boolean": 6}
    found = {kind: set(sayable(source, nasty_schema(k)).names) for kind, k in kinds.items()}
    numbers, texts = {"integers", "small", "floats", "decimals"}, {"texts", "huge", "labels", *NESTED, "nothing"}
    assert found["integer"] == {*numbers, "truths"}
    assert found["number"] == {*numbers, "truths"}
    assert found["date"] == {"days", "times", "truths"}
    assert found["ordinal"] == found["category"] == {*numbers, *texts, "truths"}
    assert found["boolean"] == {*numbers, "truths"}


def edges(column: Ordered, seed: int) -> np.ndarray:
    """Numbers where codes change, their neighbours among floats, and what is far away."""
    rng = np.random.default_rng(seed)
    low, high = float(column.low), float(column.high)
    even = np.concatenate([np.linspace(low, high, 4 * k + 1) for k in (5, 100, 256)])
    whole = np.concatenate([np.arange(low, high + 1), np.arange(low, high + 1) + 0.5]) if high - low < 5000 else []
    near = np.concatenate([even, whole, rng.uniform(low, high, 500)])
    far = [0.0, -0.0, 5e-324, 1e308, -1e308, np.inf, -np.inf, np.nan, 2.0**53 + 2, low - 1e-9, high + 1e-9]
    return np.concatenate([near, np.nextafter(near, -np.inf), np.nextafter(near, np.inf), far])


LINES = [
    Ordered(name="x", kind="number", low=0.1, high=0.7, missing=True, weight=Fraction(1, 3)),
    Ordered(name="x", kind="number", low=-1e-300, high=1e300),
    Ordered(name="x", kind="number", low=-3, high=1000),
    Ordered(name="x", kind="integer", low=-5, high=3000, missing=True, weight=Fraction(2, 7)),
    Ordered(name="x", kind="integer", low=0, high=10**12),
    Ordered(name="x", kind="integer", low=7, high=250),
    Ordered(name="x", kind="integer", low=3, high=4, weight=Fraction(1, 100)),
    Ordered(name="x", kind="integer", low=-100, high=4_900, step=Fraction(100), missing=True, weight=Fraction(2, 7)),
    Ordered(name="x", kind="number", low=-0.3, high=49.7, step=Fraction(1, 100), weight=Fraction(1, 3)),
    Ordered(name="x", kind="number", low=0.0, high=7.5, step=Fraction(3, 100)),
    Ordered(name="x", kind="number", low=0.5, high=1e9, grid=SKEWED, missing=True, weight=Fraction(1, 3)),
    Ordered(name="x", kind="integer", low=-9, high=1000, grid=(-9.0, 0.0, 1.0, 2.0, 3.0, 50.0, 1000.0)),
]


def line_tallies(schema: Schema) -> list[Any]:
    (column,) = schema
    lattice = column.detail()
    starts = np.unique(np.append(0, np.random.default_rng(2).integers(0, len(lattice.places), 40)))
    detail = Marginals(cells=(Groups.of(lattice, starts),), subsets=((0,),))
    even = [CellCounts(schema, Marginals.even(schema, [(0,)], resolution=k)) for k in (5, 100)]
    listed = [
        Marginals(cells=(cells,), subsets=((0,),)) for cells in (column.points(), column.values_below_points()) if cells
    ]
    points = [CellCounts(schema, each) for each in listed]
    return [
        *even,
        CellCounts(schema, detail),
        *points,
        *(LatticeQuery.of(schema, [(0,)], steps=k) for k in (None, 7, 256)),
    ]


def differences(column: Ordered, engine: str, seed: int = 1) -> list[str]:
    """Tallies whose counts in an engine are not those of the rows, and tallies that it cannot answer."""
    values, schema = edges(column, seed), Schema(columns=(column,))
    table = pa.table({"x": pa.array(values, mask=np.arange(len(values)) % 97 == 5)})
    native = duckdb.connect().from_arrow(table) if engine == "duckdb" else pl.DataFrame(pl.from_arrow(table)).lazy()
    source, rows = pushed_down(native), open_source(table)
    assert isinstance(source, PushedDown)
    found = []
    for j, tally in enumerate(line_tallies(schema)):
        if not source.answers(tally, schema):
            found.append(f"{j} unsaid")
        elif shown(source.tallied(tally, schema)) != shown(ask(rows, schema, tally)):
            found.append(f"{j} differs")
    return found


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("engine", PUSHED)
@pytest.mark.parametrize("column", LINES, ids=lambda c: f"{c.kind} {c.low} to {c.high}")
def test_codes_change_at_the_same_float(column: Ordered, engine: str) -> None:
    """By arithmetic in DuckDB; polars rounds otherwise, so that only comparisons are left, and some tallies unsaid."""
    found = differences(column, engine)
    assert [each for each in found if "differs" in each] == []
    assert engine == "polars" or found == []


def test_polars_rounds_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Why it is not asked to compute; and a control, since nothing is wrong but the last bit of some quotients."""
    monkeypatch.setattr(pushdown, "_rounds_alike", lambda frame: True)
    assert any("differs" in each for each in differences(LINES[0], "polars"))


def test_one_float_off_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: codes that begin one float later, and rows that are moved one float further."""
    right = codes.least_floats
    monkeypatch.setattr(codes, "least_floats", lambda *asked: np.nextafter(right(*asked), np.inf))
    assert "0 differs" in differences(LINES[2], "duckdb")


def test_large_integers_are_rounded_alike(tmp_path: Path) -> None:
    near = [2**53 + k for k in range(-3, 4)] + [2**63 - 1, -(2**63), 2**62 + 1]
    column = Ordered(name="x", kind="number", low=float(2**53 - 4), high=float(2**53 + 4))
    schema = Schema(columns=(column,))
    table = pa.table({"x": pa.array(near, pa.int64())})
    for native in (duckdb.connect().from_arrow(table), pl.DataFrame(pl.from_arrow(table)).lazy()):
        for tally in line_tallies(schema):
            assert shown(ask(pushed_down(native), schema, tally)) == shown(ask(open_source(table), schema, tally))


@pytest.mark.parametrize("rows", [0, 1])
def test_a_table_of_hardly_a_row_is_counted(rows: int, tmp_path: Path) -> None:
    pq.write_table(arrow().slice(0, rows), tmp_path / "few.parquet")
    source = pushed_down(duckdb.connect().read_parquet(str(tmp_path / "few.parquet")))
    assert isinstance(source, PushedDown)
    schema = sayable(source, nasty_schema(11))
    for name, tally in tallies(schema).items():
        assert shown(ask(source, schema, tally)) == shown(
            tally_batches([[x[:rows] for x in clean_rows(schema)]], tally)
        ), name


def test_a_table_that_changes_meanwhile_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    con = duckdb.connect()
    con.execute("CREATE TABLE t AS SELECT 1 AS a, 2 AS b FROM range(9)")
    schema = Schema(columns=tuple(Ordered(name=n, kind="integer", low=0, high=9) for n in "ab"))
    fetched = PushedDown._fetch

    def grown(self: PushedDown, frame: Any) -> Any:
        con.execute("INSERT INTO t VALUES (3, 4)")
        return fetched(self, frame)

    monkeypatch.setattr(PushedDown, "_fetch", grown)
    with pytest.raises(InputError, match="changes while it is read"):
        ask(pushed_down(con.table("t")), schema, CellCounts(schema, Marginals.even(schema, [(0,), (1,)], resolution=3)))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_table_of_ibis_is_counted_in_its_database(tmp_path: Path) -> None:
    ibis = pytest.importorskip("ibis", reason="Ibis is not among what tests install")
    source = open_source(ibis.duckdb.connect().read_parquet(str(parquet_file(tmp_path))))
    assert isinstance(source, PushedDown)
    for kind in (1, 7, 9, 11):
        schema = sayable(source, nasty_schema(kind))
        tally = CellCounts(schema, Marginals.even(schema, all_subsets(schema, 2), resolution=5))
        assert shown(source.tallied(tally, schema)) == shown(tally_batches([clean_rows(schema)], tally))


def test_only_an_engine_can_be_asked_to_count() -> None:
    with pytest.raises(InputError, match=r"data: only a DuckDB relation, a Spark DataFrame or a lazy frame"):
        pushed_down(pa.table({"x": [1]}))
    lazy = pl.LazyFrame({"x": [1]})
    assert not isinstance(open_source(lazy), PushedDown)  # its rows are here: reading them is quicker


# --------------------------------------------------------------------------------------------------- queries


REFUSED = {
    "": "it is empty, and only a single SELECT is run. Write one",
    "SELECT 1 AS a; SELECT 2 AS a": "only a single SELECT is run. Remove the other statements",
    f"PIVOT (SELECT '{CANARY}' AS a) ON a": "a PIVOT must list its values",
    "DROP TABLE t": "this is another statement. Select rows, and change nothing",
    "COPY (SELECT 1) TO 'out.csv'": "only a single SELECT",
    "WITH x AS (COPY (SELECT 1) TO 'out.csv') SELECT * FROM x": "nothing in it that writes",
    "SELECT * FROM (WITH x AS (COPY (SELECT 1) TO 'out.csv') SELECT * FROM x)": "nothing in it that writes",
    "WITH x AS (INSERT INTO t VALUES (1) RETURNING *) SELECT * FROM x": "nothing in it that writes",
    "CREATE TABLE out AS SELECT 1 AS a": "only a single SELECT",
    "ATTACH 'out.db'": "only a single SELECT",
    "PRAGMA version": "only a single SELECT",
    "SET temp_directory = 'out.tmp'": "only a single SELECT",
    "EXPLAIN ANALYZE SELECT 1": "only a single SELECT",
    "EXPORT DATABASE 'out'": "only a single SELECT",
    "LOAD sqlite": "only a single SELECT",
    "SELECT $1 AS a": "a parameter without a value",
    "SELEC 1": 'syntax error at or near "SELEC". Check the query',
    "SELECT a FROM nowhere": "Table with name nowhere does not exist. Check the query",
    "SELECT a FROM 'nowhere.parquet'": "(a SQL query): no file 'nowhere.parquet'. Check the path.",
    "SELECT a FROM 'https://nowhere.example/a.parquet'": "needs an extension of DuckDB that is not loaded. Fetch the",
    f"SELECT b FROM (SELECT '{CANARY}' AS a)": "no column 'b' in what it reads. Check the query.",
    f"SELECT * EXCLUDE b FROM (SELECT '{CANARY}' AS a)": "no column 'b' in what it reads",
    f"SELECT t.b FROM (SELECT '{CANARY}' AS a) AS t": "no column 'b' in that table",
    f"SELECT u.a FROM (SELECT '{CANARY}' AS a) AS t": "no table 'u' after its FROM",
    f"SELECT a FROM (SELECT '{CANARY}' AS a) AS t, (SELECT 1 AS a) AS u": "it has a join, and one private row could",
    f"SELECT a, count(*) FROM (SELECT '{CANARY}' AS a)": "it has the aggregate count, and one private row",
    f"SELECT a + 1 FROM (SELECT '{CANARY}'::VARCHAR AS a)": "DuckDB cannot run the query. Try it in DuckDB itself",
    "SELECT text FROM tables_of_ours": "does not exist",
    "SELECT 1 AS a, 2 AS a": "private data (a SQL query): two columns are called 'a'",
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_query_that_does_not_just_read_is_refused(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tables_of_ours = pl.DataFrame({"text": [CANARY]})  # noqa: F841 (DuckDB could find it by its name)
    with pytest.raises(InputError) as caught:
        open_source(Unopened(text), what="private data")
    assert REFUSED[text] in str(caught.value)
    assert str(caught.value).startswith("private data")
    assert "\n" not in str(caught.value)
    assert CANARY not in f"{caught.value!r}{''.join(traceback.format_exception(caught.value))}".replace(text, "")
    assert list(tmp_path.iterdir()) == []


def test_a_query_that_fails_while_it_runs_quotes_no_cell() -> None:
    source = open_source(Unopened(f"SELECT x::INTEGER AS x FROM (VALUES ('{CANARY}')) AS t(x)"))
    whole = Schema.parse('[[column]]\nname = "x"\nkind = "integer"\nlow = 0\nhigh = 9')
    for read in (lambda: source.batches(["x"]), lambda: cleaned(source, whole)):
        with pytest.raises(InputError, match="the query fails while it runs") as caught:
            list(read())
        assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_names_that_may_be_cells_are_not_told() -> None:
    """A table that somebody made of a CSV without a header has its first row for names."""
    source = open_source(Unopened(f"SELECT 1 AS \"{CANARY}\", 'red' AS other"))
    schema = Schema.parse('[[column]]\nname = "x"\nkind = "integer"\nlow = 0\nhigh = 9')
    for read in (lambda: source.batches(["x"]), lambda: cleaned(source, schema)):
        with pytest.raises(InputError, match=r"no column 'x', nor any other of the schema\. Check what") as told:
            read()
        assert CANARY not in str(told.value)


def test_a_file_in_place_of_a_query_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("x\n1\n")
    with pytest.raises(InputError, match="That is a file: leave out --sql"):
        open_source(Unopened("people.csv"))


@pytest.mark.parametrize("names", [("town", "Town"), ("main",), ("temp",)])
def test_the_name_of_a_database_is_its_own(names: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "town.duckdb"
    duckdb.connect(str(path)).close()
    with pytest.raises(InputError, match=rf"--attach {names[-1]}: this name is already taken\. Choose another\."):
        open_source(Unopened("SELECT 1 AS a", attached=tuple((name, str(path)) for name in names)))


READ = ["SELECT 1 AS a;", "-- why\nFROM (VALUES (1)) AS t(a)", "WITH t AS (SELECT 1 AS a) TABLE t"]


@pytest.mark.parametrize("text", READ)
def test_every_query_that_just_reads_is_run(text: str) -> None:
    (batch,) = open_source(Unopened(text)).batches(["a"])
    assert set(batch[0].tolist()) == {1}


def test_an_attached_database_is_read_and_not_written(tmp_path: Path) -> None:
    path = tmp_path / "it's.duckdb"
    with duckdb.connect(str(path)) as con:
        con.execute("CREATE TABLE t AS SELECT 7 AS a")
    before = path.read_bytes()
    source = open_source(Unopened("SELECT a FROM town.t", attached=(("town", str(path)),)))
    assert [x.tolist() for (x,) in source.batches(["a"])] == [[7]]
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_sqlite_is_read_where_duckdb_can(tmp_path: Path) -> None:
    """The same corpus once more, as far as SQLite can hold it."""
    path = tmp_path / "town.sqlite"
    with sqlite3.connect(path) as con:
        con.execute("CREATE TABLE t (integers BIGINT, floats DOUBLE, texts TEXT)")
        rows = zip(TABLE["integers"], [x if x == x else None for x in TABLE["floats"]], TABLE["texts"], strict=True)
        con.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    con.close()
    asked_for = Unopened("SELECT * FROM town.t", attached=(("town", str(path)),))
    try:
        duckdb.connect(config={"autoinstall_known_extensions": "false"}).execute("LOAD sqlite")
    except duckdb.Error:
        with pytest.raises(InputError, match=r"extension sqlite is not installed here\. Install it once, with: python"):
            open_source(asked_for)
        pytest.skip("DuckDB's extension sqlite is not installed here")
    schema = Schema(columns=tuple(columns(n)[k] for n, k in (("integers", 7), ("floats", 8), ("texts", 4))))
    tally = CellCounts(schema, Marginals.even(schema, all_subsets(schema, 2), resolution=5))
    assert shown(ask(open_source(asked_for), schema, tally)) == shown(tally_batches([clean_rows(schema)], tally))


@pytest.mark.parametrize(
    ("name", "database", "says"),
    [
        ("a b", "x", "needs NAME=DATABASE with a name like town"),
        ('x" (TYPE sqlite); --', "x", "with a name like town"),
        ("town", "none.duckdb", r"--attach town: cannot be read \(No such file"),
        ("town", "note.txt", "neither a DuckDB nor a SQLite file"),
        ("town", ".", "not a regular file"),
        ("town", f"postgres:password={CANARY}", "(extension postgres is not installed here|cannot open this database)"),
    ],
)
def test_databases_that_cannot_be_attached(
    name: str, database: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("note.txt").write_text(CANARY)
    with pytest.raises(InputError, match=says) as caught:
        open_source(Unopened("SELECT 1 AS a", attached=((name, database),)))
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_a_query_writes_no_temporary_file() -> None:
    source = open_source(Unopened("SELECT 1 AS a"))
    assert isinstance(source, duck.Query)
    assert source.con.execute("SELECT current_setting('temp_directory')").fetchall() == [("",)]
