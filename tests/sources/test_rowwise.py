"""Only row-wise queries over declared types are run: what is not known to be one is refused, in one line (P25)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from certsynth.errors import InputError
from certsynth.sources import Unopened, open_source
from certsynth.sources.rowwise import FUNCTIONS

MADE = """
CREATE TABLE p AS SELECT 1 AS a, 'x' AS b, DATE '2020-01-05' AS d;
CREATE SCHEMA s;
CREATE TABLE s.q AS SELECT 2 AS a;
CREATE VIEW rowwise AS SELECT a + 1 AS a FROM p WHERE a > 0;
CREATE VIEW distinct_ones AS SELECT DISTINCT a FROM p;
CREATE VIEW "an AS SELECT 1" AS FROM distinct_ones;
CREATE VIEW random_ones AS SELECT random() AS a FROM p;
CREATE MACRO noisy(x) AS x + random();
CREATE MACRO lower(x) AS random();
"""


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("town")
    with duckdb.connect(str(folder / "town.duckdb")) as con:
        con.execute(MADE)
        for year in (2019, 2020):
            (folder / f"year={year}").mkdir()
            con.execute(f"COPY (SELECT 1 AS a) TO '{folder}/year={year}/part.parquet'")
        con.execute(f"COPY p TO '{folder}/p.parquet'")
        con.execute(f"COPY p TO '{folder}/p.csv'")
        con.execute(f"COPY p TO '{folder}/p.json'")
    return folder


def opened(query: str, town: Path) -> Any:
    text = query.replace("@", f"{town}/")
    return open_source(Unopened(text, attached=(("town", str(town / "town.duckdb")),)))


ROWWISE = [
    "SELECT * FROM town.p",
    "FROM town.s.q;",
    "SELECT a FROM '@p.parquet' WHERE a >= 1 AND b IS NOT NULL ORDER BY a",
    "SELECT * EXCLUDE (b) REPLACE (a + 1 AS a) FROM read_parquet('@p.parquet')",
    "SELECT a FROM read_parquet(['@p.parquet', '@p.parquet'], binary_as_string = true)",
    "SELECT a, year FROM read_parquet('@year=*/part.parquet', hive_types_autocast = false)",
    "SELECT a FROM read_parquet('@year=*/part.parquet', hive_partitioning = false)",
    "SELECT a FROM town.rowwise",
    "WITH t AS (SELECT a + 1 AS a FROM town.p) SELECT a FROM (SELECT * FROM t) WHERE a IN (1, 2, 3, 4, 5, 6, 7, 8, 9)",
    "SELECT CASE WHEN a BETWEEN 1 AND 2 THEN upper(b) ELSE coalesce(b, 'z') || '!' END AS a FROM town.p",
    "SELECT extract(year FROM d) AS a, date_trunc('month', d) AS m, d + INTERVAL 1 DAY AS n FROM town.p",
    "SELECT TRY_CAST(b AS DECIMAL(9, 2)) AS a, b LIKE 'x%' AS l, regexp_matches(b, 'x') AS r, -a AS n FROM town.p",
    "SELECT a AS first, first * 2 AS a FROM town.p",
    "SELECT COLUMNS('a') FROM town.p",
    "FROM (VALUES (1), (2)) AS t(a)",
    "FROM range(3) AS t(a)",
]


@pytest.mark.parametrize("query", ROWWISE)
def test_a_row_wise_query_is_run(query: str, town: Path) -> None:
    assert next(opened(query, town).batches(["a"]))


MANY = "one private row could change many rows of the result"
OTHERS = {
    "SELECT count(*) AS a FROM town.p": f"it has the aggregate count, and {MANY}. Make a table or Parquet file",
    "SELECT any_value(a) AS a FROM town.p": "the aggregate any_value",
    "SELECT a FROM town.p GROUP BY a": "GROUP BY",
    "SELECT a FROM town.p GROUP BY ALL": "GROUP BY ALL",
    "SELECT max(a) AS a FROM town.p HAVING true": "HAVING",
    "SELECT DISTINCT a FROM town.p": "DISTINCT",
    "SELECT DISTINCT ON (b) a FROM town.p": "DISTINCT",
    "SELECT a FROM town.p UNION ALL SELECT a FROM town.p": "UNION, EXCEPT or INTERSECT",
    "SELECT a FROM town.p EXCEPT SELECT 2": "UNION, EXCEPT or INTERSECT",
    "SELECT p.a FROM town.p AS p, town.p AS q": "a join",
    "SELECT p.a FROM town.p AS p LEFT JOIN town.s.q AS q USING (a)": "a join",
    "SELECT p.a FROM town.p AS p SEMI JOIN town.s.q AS q USING (a)": "a join",
    "FROM town.p POSITIONAL JOIN town.s.q": "a join",
    "SELECT a FROM town.p ORDER BY a LIMIT 1": "LIMIT",
    "SELECT a FROM town.p LIMIT 10%": "LIMIT",
    "SELECT a FROM town.p OFFSET 1": "LIMIT or OFFSET",
    "SELECT a FROM town.p TABLESAMPLE 10%": "a sample",
    "SELECT a FROM town.p USING SAMPLE 3": "a sample",
    "SELECT row_number() OVER () AS a FROM town.p": "a window function",
    "SELECT a FROM town.p QUALIFY row_number() OVER () = 1": "QUALIFY",
    "SELECT a FROM town.p WHERE a > (SELECT avg(a) FROM town.p)": "a subquery among its expressions",
    "SELECT a FROM town.p AS p WHERE EXISTS (SELECT 1 FROM town.s.q WHERE q.a = p.a)": "a subquery",
    "SELECT unnest([a, a]) AS a FROM town.p": "unnest",
    "SELECT a FROM town.p, unnest([1, 2]) AS u(x)": "a join",
    "WITH t AS (SELECT DISTINCT a FROM town.p) SELECT a FROM t": "DISTINCT",
    "WITH p AS (SELECT DISTINCT a FROM town.p) SELECT a FROM (FROM p)": "DISTINCT",
    "WITH RECURSIVE t AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM t WHERE a < 3) SELECT a FROM t": "WITH RECURSIVE",
    "PIVOT town.p ON a IN (1, 2) USING count(*)": "PIVOT",
    "UNPIVOT town.p ON a": "PIVOT",
    "DESCRIBE town.p": "DESCRIBE",
    "SUMMARIZE town.p": "SUMMARIZE",
    "SELECT random() AS a FROM town.p": "the function random, and only functions that are known to depend on",
    "SELECT a FROM town.p ORDER BY uuid()": "the function uuid",
    "SELECT stats(a) AS a FROM town.p": "the function stats",
    "SELECT vector_type(a) AS a FROM town.p": "the function vector_type",
    "SELECT now() AS a FROM town.p": "the function now",
    "SELECT age(d) AS a FROM town.p": "the function age",
    "SELECT current_date AS a FROM town.p": "current_date, and it changes",
    "SELECT error('x') AS a FROM town.p": "the function error",
    "SELECT town.noisy(a) AS a FROM town.p": "the function noisy",
    "SELECT town.lower(b) AS a FROM town.p": "the function lower",
    "SELECT list_transform([a], x -> x + 1) AS a FROM town.p": "the function list_transform",
    "SELECT COLUMNS(c -> c = 'a') FROM town.p": "COLUMNS with a condition",
    "SELECT rowid AS a FROM town.p": "the column rowid, and the position of a row depends on the rows before it",
    "SELECT file_row_number AS a FROM '@p.parquet'": "the column file_row_number",
    "SELECT p.file_index AS a FROM '@p.parquet' AS p": "the column file_index",
    "FROM read_parquet('@p.parquet', file_row_number = true)": "file_row_number of read_parquet",
    "FROM read_parquet('@p.parquet', union_by_name := true)": "union_by_name of read_parquet",
    "FROM read_parquet('@p.parquet', hive_types_autocast = true)": "hive_types_autocast of read_parquet",
    "FROM read_parquet('@p.parquet', schema = MAP {})": "schema of read_parquet",
    "FROM read_parquet('@' || 'p.parquet')": "read_parquet without a literal path",
    "FROM '@year=*/part.parquet'": "guesses types from the names of folders",
    "FROM '@year=2020/part.parquet'": "guesses types from the names of folders",
    "FROM read_parquet('@*/part.parquet', hive_partitioning = true)": "guesses types from the names of folders",
    "SELECT a FROM town.distinct_ones": "DISTINCT",
    'SELECT a FROM town."an AS SELECT 1"': "DISTINCT",
    "SELECT a FROM town.random_ones": "the function random",
    "SELECT table_name AS a FROM information_schema.tables": "does not work row by row",
    "SELECT name AS a FROM sqlite_master": "does not work row by row",
    "SELECT * FROM duckdb_tables()": "the table function duckdb_tables",
    "SELECT * FROM query('SELECT DISTINCT a FROM town.p')": "the table function query",
    "SELECT * FROM query_table('town.p')": "the table function query_table",
    "FROM glob('*')": "the table function glob",
    "FROM '@town.duckdb'": "Attach the database",
    "SELECT a FROM '@p.csv'": "guesses the types of",
    "SELECT a FROM read_csv_auto('@p.csv')": "guesses the types of",
    "FROM read_csv('@p.csv', auto_detect = false, header = true, columns = {'a': 'VARCHAR'})": "guesses the types of",
    "FROM '@p.json'": "guesses the types of",
    "FROM read_json('@p.json', columns = {'a': 'VARCHAR'})": "guesses the types of",
    "FROM read_text('@p.csv')": "guesses the types of",
    "FROM read_xlsx('@p.xlsx')": "guesses the types of",
    "FROM '@p.xlsx'": "guesses the types of",
}


@pytest.mark.parametrize("query", OTHERS)
def test_any_other_query_is_refused(query: str, town: Path) -> None:
    with pytest.raises(InputError) as caught:
        opened(query, town)
    assert OTHERS[query] in str(caught.value)
    assert str(caught.value).startswith("data (a SQL query): ")
    assert "\n" not in str(caught.value)


TEXTS = pa.table({"a": ["1"]})
RELATIONS: dict[str, tuple[Callable[[Any, Path], Any], str]] = {
    "a table": (lambda con, town: con.table("p").filter("a > 0").project("a + 1 AS a").order("a"), ""),
    "a view": (lambda con, town: con.view("rowwise"), ""),
    "Parquet": (lambda con, town: con.read_parquet(f"{town}/p.parquet"), ""),
    "Arrow": (lambda con, town: con.from_arrow(TEXTS).filter("a > '0'"), ""),
    "polars": (lambda con, town: con.from_arrow(pl.DataFrame({"a": [1]}).to_arrow()), ""),
    "values": (lambda con, town: con.values([1]), ""),
    "a parameter": (lambda con, town: con.sql("SELECT a + ? AS a FROM p", params=[3]), ""),
    "DISTINCT": (lambda con, town: con.table("p").distinct(), "DISTINCT"),
    "an aggregate": (lambda con, town: con.table("p").aggregate("count(*) AS a"), "GROUP BY"),
    "LIMIT": (lambda con, town: con.table("p").limit(1), "LIMIT"),
    "UNION": (lambda con, town: con.table("p").union(con.table("p")), "UNION"),
    "a view of DISTINCT": (lambda con, town: con.view("distinct_ones"), "DISTINCT"),
    "a macro": (lambda con, town: con.sql("SELECT noisy(a) AS a FROM p"), "the function noisy"),
    "a macro in place of a function": (
        lambda con, town: con.sql("SELECT lower(b) AS a FROM p"),
        "lower is a user-defined macro",
    ),
    "CSV": (lambda con, town: con.read_csv(f"{town}/p.csv"), "in place of the query."),
    "JSON": (lambda con, town: con.read_json(f"{town}/p.json"), "guesses the types"),
    "pandas": (lambda con, town: con.from_df(pd.DataFrame({"a": [1]})), "guesses types of pandas' objects"),
    "PIVOT": (lambda con, town: con.sql("PIVOT p ON a"), "it holds rows whose query cannot be seen"),
    "rows that are kept": (lambda con, town: con.table("p").distinct().materialize(), "query cannot be"),
    "SUMMARIZE": (lambda con, town: con.sql("SUMMARIZE p"), "DESCRIBE or SUMMARIZE"),
}


@pytest.mark.parametrize("case", RELATIONS)
def test_a_relation_is_analysed_like_a_query(case: str, town: Path) -> None:
    make, says = RELATIONS[case]
    with duckdb.connect() as con:
        con.execute(MADE)
        before = con.execute("SELECT view_name FROM duckdb_views() ORDER BY ALL").fetchall()
        relation = make(con, town)
        if says:
            with pytest.raises(InputError) as caught:
                open_source(relation)
            assert says in str(caught.value)
            assert "\n" not in str(caught.value)
        else:
            assert next(open_source(relation).batches(list(relation.columns)[:1]))
        assert con.execute("SELECT view_name FROM duckdb_views() ORDER BY ALL").fetchall() == before


def test_listed_functions_are_functions_of_values_in_duckdb() -> None:
    sql = "SELECT function_name, function_type, stability FROM duckdb_functions()"
    kinds: dict[str, set[tuple[str, str | None]]] = {}
    for name, *kind in duckdb.connect().execute(sql).fetchall():
        kinds.setdefault(name.lower(), set()).add((kind[0], kind[1]))
    for name in FUNCTIONS:
        found = kinds.get(name, {("scalar", "CONSISTENT")})  # some are words of the parser
        assert found <= {("scalar", "CONSISTENT"), ("macro", None), ("table", None)}, name
    assert sum(name in kinds for name in FUNCTIONS) >= len(FUNCTIONS) - 3
