"""The benchmark of rows compares like with like: DuckDB's query puts every value into the cell that we count it in."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest

from certsynth.sources import cleaned, open_source
from scale import rows


def test_the_reference_bins_as_we_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "TABLES", tmp_path)
    path = rows.table(20_000)
    (batch,) = cleaned(open_source(path), rows.SCHEMA)
    cells = [column.cells(rows.CELLS) for column in rows.SCHEMA]
    codes = [column.to_cells(x, c) for column, x, c in zip(rows.SCHEMA, batch, cells, strict=True)]
    chosen = ", ".join(f"{each} AS x{j}" for j, each in enumerate(rows.bins()))
    found = duckdb.sql(f"SELECT {chosen} FROM read_parquet('{path}')").fetchnumpy()
    for j, (column, code) in enumerate(zip(rows.SCHEMA, codes, strict=True)):
        absent = column.missing & (code == cells[j].size - 1)
        ours = np.where(absent & (column.name != "region"), 0, code)
        np.testing.assert_array_equal(found[f"x{j}"].astype(int), ours, err_msg=column.name)


def test_the_best_of_runs_is_kept_but_the_largest_peak() -> None:
    first = rows.best(None, {"seconds": 2.0, "cpu": 3.0, "mb": 5})
    assert rows.best(first, {"seconds": 3.0, "cpu": 1.0, "mb": 4}) == {"seconds": 2.0, "cpu": 1.0, "mb": 5, "runs": 2}
