"""Compute what `plan` expects for the made-up town, for the tables and figures of choose.md and plan.md.

It reads no table, and takes minutes. The results are kept in predictions.json; this script writes the tables of
choose.md from them, and docs/make_figures.py draws the figures.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from certsynth import Schema, demo, plan
from certsynth.planning.plan import Planned

PAGE, RESULTS = Path(__file__).with_name("choose.md"), Path(__file__).with_name("predictions.json")
TOWN = Schema.parse(demo.SCHEMA)
FEW = ("age", "region", "employed", "income")
ROWS = (2_000, 20_000, 200_000)
EPSILONS = ("0.1", "0.5", "1", "2", "5")
SPARSITIES = (1, 2, 3)
DELTA = "1e-6"


def expected(design: Planned) -> dict[str, Any]:
    """A design with its bound and range, rounded as nobody reads more digits."""
    bounds = {"bound": design.predicted_bound, "low": design.low, "high": design.high}
    return {
        "mechanism": design.mechanism,
        "resolution": design.resolution,
        **{name: float(f"{value:.4g}") for name, value in bounds.items()},
    }


def choice(columns: Sequence[str] | None, rows: int, **options: Any) -> dict[str, Any]:
    return expected(plan(TOWN, rows=rows, columns=columns, **options).choice)


def compute() -> dict[str, Any]:
    designs = plan(TOWN, rows=20_000, columns=FEW, epsilon=1)
    return {
        "epsilon": {e: {str(rows): choice(FEW, rows, epsilon=e) for rows in ROWS} for e in EPSILONS},
        "sparsity": {str(s): {str(n): choice(FEW, n, epsilon=1, sparsity=s) for n in ROWS} for s in SPARSITIES},
        "delta": {
            str(len(columns or TOWN.names)): {
                "pure": choice(columns, 20_000, epsilon=1),
                "with δ": choice(columns, 20_000, epsilon=1, delta=DELTA),
            }
            for columns in (FEW, None)
        },
        "designs": {"choice": expected(designs.choice), "candidates": [expected(each) for each in designs.candidates]},
    }


def table(found: dict[str, Any], heads: Sequence[str]) -> str:
    """A line for each entry: the bounds to expect, and the resolutions in brackets."""
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for name, cells in found.items():
        shown = (f"{cell['bound']:.4f} ({cell['resolution'] or 'full detail'})" for cell in cells.values())
        lines.append(f"| {name} | {' | '.join(shown)} |")
    return "\n".join(lines)


def page(results: dict[str, Any]) -> str:
    """The page with the tables of these results."""
    counts = [f"{rows:,} rows" for rows in ROWS]
    tables = {
        "epsilon": table(results["epsilon"], ["ε", *counts]),
        "sparsity": table(results["sparsity"], ["sparsity", *counts]),
        "delta": table(results["delta"], ["columns", "pure", f"with δ = {DELTA}"]),
    }
    text = PAGE.read_text(encoding="utf-8")
    for name, made in tables.items():
        start, end = f"<!-- predictions: {name} -->", f"<!-- end of {name} -->"
        text = re.sub(f"{start}.*?{end}", lambda _, s=start, m=made, e=end: f"{s}\n\n{m}\n\n{e}", text, flags=re.DOTALL)
    return text


def results() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    RESULTS.write_text(json.dumps(compute(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page(results()), encoding="utf-8")
