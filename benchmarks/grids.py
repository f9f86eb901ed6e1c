"""What a grid of all columns takes: seconds and memory of whole releases whose noise is drawn only where it is large.

    python benchmarks/grids.py [rows] [columns] [resolution ...]

By default 100,000 rows of five columns, and 32 cells to a column: 33 million cells. Each release has its own process.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time

import numpy as np
import polars as pl

from certsynth import Schema, release

ONE = "--one"


def rows_of(kind: str, rows: int, columns: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    along, turns = rng.random((rows, 1)), np.arange(1, columns + 1)
    return rng.random((rows, columns)) if kind == "cube" else 0.5 + 0.45 * np.sin(np.pi * along * turns)


def one(kind: str, rows: int, columns: int, resolution: int) -> None:
    schema = Schema.parse(
        "\n".join(f'[[column]]\nname = "x{j}"\nkind = "number"\nlow = 0\nhigh = 1' for j in range(columns))
    )
    table = pl.DataFrame({f"x{j}": x for j, x in enumerate(rows_of(kind, rows, columns).T)})
    wall, work = time.perf_counter(), time.process_time()
    made = release(table, schema, epsilon=1, mechanism="low-dimensional", resolution=resolution)
    found = {
        "kept": len(made.measurement.coefficients[0]),
        "bound": made.certificate.bound,
        "wall": time.perf_counter() - wall,
        "work": time.process_time() - work,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }
    print(json.dumps(found))


def main() -> None:
    numbers = [int(text) for text in sys.argv[1:]]
    rows, columns = [*numbers, *(100_000, 5)[len(numbers) :]][:2]
    print(f"{rows:,} rows, {columns} columns, ε = 1")
    print("rows in  resolution          cells   kept  bound   seconds  CPU seconds  peak GB")
    for resolution in numbers[2:] or [32]:
        for kind in ("curve", "cube"):
            command = [sys.executable, __file__, ONE, kind, str(rows), str(columns), str(resolution)]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            print(
                f"{kind:8} {resolution:10} {resolution**columns:14,} {found['kept']:6,} {found['bound']:.4f} "
                f"{found['wall']:8.1f} {found['work']:12.1f} {found['memory']:8.2f}"
            )


if __name__ == "__main__":
    if sys.argv[1:2] == [ONE]:
        one(sys.argv[2], *map(int, sys.argv[3:]))
    else:
        main()
