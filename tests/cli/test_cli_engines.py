"""Tables that an engine finds, by commands: queries, attached databases, and what is said when they are not there."""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import pytest

from certsynth import Release
from certsynth.cli.options import table
from certsynth.sources import Unopened

SCHEMA = ("--schema", "schema.toml")
PINNED = ("--epsilon", 2, "--resolution", 4, "--mechanism", "identity", "--quiet")
QUERY = "SELECT age, region, employed FROM 'people.parquet' WHERE age >= 18"


@pytest.fixture
def parquet(town: Path) -> Path:
    duckdb.execute("COPY (FROM 'people.csv') TO 'people.parquet'")
    return town


def test_a_release_of_a_query_verifies(run, parquet):
    done = run("release", QUERY, "--sql", *SCHEMA, *PINNED, "--out", "release", "--json")
    assert done.code == 0, done.err
    assert all(check["ok"] for check in Release.load("release").verify())
    assert done.json["privacy"]["rows"] == duckdb.execute(f"SELECT count(*) FROM ({QUERY})").fetchall()[0][0]


def test_certify_and_evaluate_take_a_query_for_the_private_table(run, parquet):
    whole = "SELECT * FROM 'people.parquet'"
    told = [
        run("evaluate", data, "people.csv", *SCHEMA, "--json", *sql)
        for data, *sql in [(whole, "--sql"), ("people.csv",)]
    ]
    assert told[0].json == told[1].json
    assert run("certify", whole, "people.csv", "--sql", *SCHEMA, "--epsilon", 5, "--quiet").code == 0


def test_an_attached_database_has_a_name(run, parquet):
    with duckdb.connect("town.duckdb") as con:
        con.execute("CREATE TABLE people AS FROM 'people.csv'")
    done = run("evaluate", "FROM town.people", "people.csv", "--sql", "--attach", "town=town.duckdb", *SCHEMA)
    assert done.code == 0, done.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("SELECT a FROM b",), "this looks like a query, and there is no such file. Add --sql if it is a query."),
        (("people.csv", "--sql"), 'private data (a SQL query): syntax error at or near "people". That is a file: '),
        (("COPY (SELECT 1) TO 'x'", "--sql"), "private data (a SQL query): only a single SELECT is run, and this is"),
        (("SELECT 1; SELECT 2", "--sql"), "private data (a SQL query): only a single SELECT is run. Remove"),
        (("SELECT agee FROM 'people.parquet'", "--sql"), "(a SQL query): no column 'agee' in what it reads. Check the"),
        (("people.csv", "--attach", "t=x"), "--attach applies to queries run by DuckDB: give --sql, and no other"),
        (("SELECT 1", "--sql", "--attach", "town"), "--attach needs NAME=DATABASE, like --attach town=town.duckdb."),
        (("SELECT 1", "--sql", "--engine", "oracle"), "invalid value for '--engine'"),
        (("SELECT 1 AS age", "--sql"), "no column 'region'; it has 'age'"),
    ],
)
def test_mistakes_are_told_in_one_line(run, parquet, arguments, says):
    assert says in run("evaluate", arguments[0], "people.csv", *SCHEMA, *arguments[1:]).error
    assert not Path("x").exists()


@pytest.mark.parametrize("command", ["release", "certify", "evaluate", "schema"])
def test_a_query_over_a_csv_file_says_what_to_write_instead(run, parquet, command):
    """The types of all rows would be guessed from all rows."""
    arguments = {
        "release": (*SCHEMA, "--epsilon", 1, "--out", "d"),
        "certify": ("people.csv", *SCHEMA, "--epsilon", 1),
        "evaluate": ("people.csv", *SCHEMA),
        "schema": ("--out", "q.toml"),
    }
    done = run(command, "SELECT * FROM 'people.csv'", *arguments[command], "--sql")
    assert done.code == 2
    assert "DuckDB guesses the types of 'people.csv' from its rows" in done.error
    assert done.error.endswith("Give people.csv itself in place of the query, without --sql.")
    assert {"d", "q.toml"}.isdisjoint(path.name for path in parquet.iterdir())


def test_without_spark_its_extra_is_named(run, parquet, monkeypatch):
    monkeypatch.setattr("certsynth.sources.spark.find_spec", lambda name: None)
    done = run("evaluate", "people.parquet", "people.csv", "--engine", "spark", *SCHEMA)
    assert done.error == "Spark is not installed. Run: pip install 'certsynth[spark]'"


def test_arguments_are_checked_before_an_engine_is_asked(run, parquet):
    """An engine may take half a minute to start, and the query may be wrong: neither comes first."""
    done = run("release", "SELECT", "--sql", "--engine", "spark", *SCHEMA, "--epsilon", 1000, "--out", "release")
    assert "epsilon" in done.error
    assert "pyspark" not in sys.modules or "SELECT" not in done.error


def test_a_query_is_passed_on_as_it_is_typed():
    text = "SELECT a // 2 AS b FROM './x/../y.parquet'"
    assert table(text, {"engine": "duckdb", "sql": True, "attach": ()}) == Unopened(text)
    assert table("a//b.csv", {"engine": "duckdb", "sql": False, "attach": ()}) == Path("a/b.csv")
