"""Prints the tables of choose.md: what `plan` expects for the made-up town. It reads no table, and takes minutes."""

from __future__ import annotations

import sys

from certsynth import Schema, demo, plan

TOWN = Schema.parse(demo.SCHEMA)
FEW = ("age", "region", "employed", "income")


def bound(columns: tuple[str, ...] | None, rows: int, **options: object) -> str:
    """The bound to expect, and the resolution that would be chosen."""
    choice = plan(TOWN, rows=rows, columns=columns, **options).choice  # type: ignore[arg-type]
    at = "full detail" if choice.resolution is None else str(choice.resolution)
    return f"{choice.predicted_bound:.4f} ({at})"


def row(*cells: object) -> None:
    sys.stdout.write(f"| {' | '.join(map(str, cells))} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    for epsilon in ("0.1", "0.5", "1", "2", "5"):
        row(epsilon, *(bound(FEW, rows, epsilon=epsilon) for rows in (2_000, 20_000, 200_000)))
    for sparsity in (1, 2, 3):
        row(sparsity, *(bound(FEW, rows, epsilon=1, sparsity=sparsity) for rows in (2_000, 20_000, 200_000)))
    for columns in (FEW, None):
        count = len(columns or TOWN.names)
        row(count, bound(columns, 20_000, epsilon=1), bound(columns, 20_000, epsilon=1, delta="1e-6"))
