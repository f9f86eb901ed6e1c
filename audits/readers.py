"""Neighbouring files through every way in: the loss between the two tables must be at most that of one row.

    python audits/readers.py [--quick]

Two files differ in one row, whose cell is chosen so that a reader that guesses from rows would read the others
otherwise, too. `certsynth.evaluate` tells how far the two tables are from each other at least. One row of n
moves any average by at most 1/n, so that a distance above 1/n shows that other rows have changed. A way that is refused
publishes nothing. The controls are tables as readers that guess hand them over, turned to text: each must be caught.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
from pyarrow import csv as arrow_csv
from pyarrow import parquet

import certsynth
from certsynth.errors import InputError
from certsynth.sources import Unopened, pushed_down
from writing import say_versions, table, write

ROWS = 400
SCHEMA = """
[[column]]
name = "x"
{kind}

[[column]]
name = "n"
kind = "integer"
low = 0
high = 9
"""
CASES: dict[str, tuple[str, list[str], list[str]]] = {
    "dates of two formats": (
        'kind = "date"\nlow = 2020-01-01\nhigh = 2020-12-31\nmissing = true',
        ["2020-05-01", "2020-06-02"],
        ["01/13/2020", "soon", ""],
    ),
    "True, False and maybe": (
        'kind = "category"\nvalues = ["True", "False", "maybe"]\nother = true',
        ["True", "False"],
        ["maybe", ""],
    ),
    "007 and 00X": ('kind = "category"\nvalues = ["007", "012"]\nother = true', ["007", "012"], ["00X", "1.5"]),
    "codes beyond 2^53": (
        'kind = "category"\nvalues = ["9007199254740993", "9007199254740995"]\nmissing = true',
        ["9007199254740993", "9007199254740995"],
        ["", "x"],
    ),
    "small codes": ('kind = "category"\nvalues = ["7", "8"]\nother = true', ["7", "8"], ["x", "2.5", "", "True"]),
    "numbers": ('kind = "number"\nlow = 0\nhigh = 10\nmissing = true', ["2.5", "7"], ["x", "", "1e999"]),
}

Way = Callable[[Path], Any]


def texts(path: Path) -> pa.Table:
    kinds = {"x": pa.string(), "n": pa.string()}
    return arrow_csv.read_csv(path, convert_options=arrow_csv.ConvertOptions(column_types=kinds))


def as_parquet(path: Path) -> Path:
    target = path.with_suffix(".parquet")
    parquet.write_table(texts(path), target)
    return target


def as_folder(path: Path) -> Path:
    folder = path.with_suffix("")
    for part, rows in enumerate((texts(path).slice(0, 100), texts(path).slice(100))):
        (folder / f"part={part}").mkdir(parents=True, exist_ok=True)
        parquet.write_table(rows, folder / f"part={part}" / "rows.parquet")
    return folder


def as_database(path: Path) -> Path:
    target = path.with_suffix(".duckdb")
    with duckdb.connect(str(target)) as con:
        con.from_arrow(texts(path)).create("people")
    return target


WAYS: dict[str, Way] = {
    "CSV": lambda path: path,
    "Parquet": as_parquet,
    "folder of Parquet": as_folder,
    "SQL over CSV": lambda path: Unopened(f"SELECT * FROM '{path}'"),
    "SQL over Parquet": lambda path: Unopened(f"SELECT * FROM '{as_parquet(path)}'"),
    "SQL over a database": lambda path: Unopened("FROM town.people", attached=(("town", str(as_database(path))),)),
    "relation of CSV": lambda path: duckdb.connect().read_csv(str(path)),
    "relation of Parquet": lambda path: duckdb.connect().read_parquet(str(as_parquet(path))),
    "relation, pushed down": lambda path: pushed_down(duckdb.connect().read_parquet(str(as_parquet(path)))),
    "pandas.read_csv": pd.read_csv,
    "pandas, all texts": lambda path: pd.read_csv(path, dtype=str),
    "polars.read_csv": lambda path: pl.read_csv(path, infer_schema_length=None),
    "polars.scan_csv": pl.scan_csv,
    "polars, lazy texts": lambda path: pl.read_csv(path, infer_schema=False).lazy(),
    "pyarrow.csv.read_csv": arrow_csv.read_csv,
    "pyarrow, all texts": texts,
}
CONTROLS: dict[str, tuple[str, Way]] = {
    "True, False and maybe": ("DuckDB's guess", lambda path: _guessed(path)),
    "007 and 00X": ("pandas' guess", lambda path: pd.read_csv(path).astype(str)),
    "codes beyond 2^53": ("pandas' guess", lambda path: pd.read_csv(path).astype(object).map(_whole)),
}


def _guessed(path: Path) -> pd.DataFrame:
    rows = duckdb.sql(f"FROM '{path}'").fetchall()
    return pd.DataFrame([(str(x).lower() if isinstance(x, bool) else x, n) for x, n in rows], columns=["x", "n"])


def _whole(value: Any) -> Any:
    return str(int(value)) if isinstance(value, float) and value == value else value


def written(folder: Path, name: str, cells: list[str], last: str) -> Path:
    path = folder / name
    rows = [f"{cells[j % len(cells)]},{j % 3}" for j in range(ROWS - 1)]
    path.write_text("\n".join(["x,n", *rows, f"{last},1", ""]), encoding="utf-8")
    return path


def loss(way: Way, ours: Path, theirs: Path, schema: certsynth.Schema) -> float | None:
    """How far two tables are from each other at least; None if one of them is refused."""
    try:
        return float(certsynth.evaluate(way(ours), way(theirs), schema).lower)
    except InputError:
        return None


def command(ours: str, theirs: Path, schema: Path, *options: str) -> int:
    """The exit code of the command line."""
    words = [sys.executable, "-m", "certsynth", "evaluate", ours, str(theirs), "--schema", str(schema), *options]
    return subprocess.run(words, capture_output=True, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one upsetting cell for each column")
    asked = parser.parse_args()
    say_versions("certsynth", "duckdb", "pandas", "polars", "pyarrow")
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for case, (kind, cells, upsets) in CASES.items():
            schema = certsynth.Schema.parse(SCHEMA.format(kind=kind))
            pairs = [(cells[0], cell) for cell in upsets[: 1 if asked.quick else None]]
            ways = [(name, way, False) for name, way in WAYS.items()]
            ways += [(*CONTROLS[case], True)] if case in CONTROLS else []
            for name, way, broken in ways:
                found = []
                for j, (usual, upset) in enumerate(pairs):
                    inside = folder / f"{len(rows)}-{j}"
                    inside.mkdir()
                    files = [written(inside, f"{k}.csv", cells, cell) for k, cell in enumerate((usual, upset))]
                    found.append(loss(way, *files, schema))
                there = [each for each in found if each is not None]
                worst = max(there, default=None)
                caught = worst is not None and worst > 1.000001 / ROWS
                verdict = ("CAUGHT" if broken else "ACCUSED") if caught else "refused" if worst is None else "one row"
                rows.append(
                    {
                        "column": case,
                        "way in": name,
                        "broken": "guesses" if broken else None,
                        "pairs": len(pairs),
                        "refused": len(found) - len(there),
                        "rows moved at least": None if worst is None else round(worst * ROWS, 6),
                        "verdict": verdict,
                    }
                )
                print(table([rows[-1]], headed=len(rows) == 1), flush=True)
        (folder / "schema.toml").write_text(schema.to_toml(), encoding="utf-8")
        file = written(folder, "x.csv", cells, cells[0])
        codes = [command(text, file, folder / "schema.toml", *sql) for text, sql in _commands(file)]
    accused = [row for row in rows if row["verdict"] == "ACCUSED"]
    missed = [row for row in rows if row["broken"] and row["verdict"] != "CAUGHT"]
    wrong = codes != [0, 2]
    tried = sum(row["pairs"] for row in rows if not row["broken"])
    print(f"\n{tried} pairs of files, {len(accused)} ways ACCUSED; {len(CONTROLS)} controls, {len(missed)} missed.")
    print(f"The command line reads the file itself and refuses a query over it: {'no' if wrong else 'yes'}.")
    write("readers", {"rows": rows, "commands": codes}, "duckdb", "pandas", "polars", "pyarrow")
    return int(bool(accused or missed or wrong))


def _commands(file: Path) -> list[tuple[str, tuple[str, ...]]]:
    return [(str(file), ()), (f"SELECT * FROM '{file}'", ("--sql",))]


if __name__ == "__main__":
    sys.exit(main())
