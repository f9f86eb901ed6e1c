"""Figures of results folders as Markdown, next to each other: `python -m many.page FOLDER …`.

Figures are means over seeds. A bound is "inside" if it lies in the range that the plan of the same table and mode gave.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

MEASURES = {
    "W1 largest": "W1 largest",
    "W1 mean": "W1 mean",
    "variation mean": "variation of pairs",
    "correlation error": "correlations off by",
    "rank correlation error": "rank correlations",
    "AUC": "AUC",
}

Group = tuple[str, str, str, str]
"""Table, mode, variant, and name of the folder."""


def load(folders: Sequence[Path]) -> dict[Group, dict[str, Any]]:
    """The plan and the releases of each group."""
    found: dict[Group, dict[str, Any]] = defaultdict(lambda: {"plan": None, "releases": []})
    for folder in folders:
        for path in sorted(folder.glob("*.json")):
            run = json.loads(path.read_text(encoding="utf-8"))
            group = found[run["table"], run["mode"], run["variant"], folder.name]
            if run["ask"] == "plan":
                group["plan"] = run
            else:
                group["releases"].append(run)
    return dict(sorted(found.items()))


def line(run: dict[str, Any]) -> str:
    """One run in a line."""
    if run["outcome"] != "done":
        return f"{run['outcome']} ({run['wall']} s): {run['error']}"
    took = f"processor {run['cpu']} s, {run['peak MB']} MB"
    if "measures" not in run:
        return f"predicted {run['predicted']:.4f}, range {run['low']:.4f} to {run['high']:.4f}; {took}"
    figures = [f"{name} {run['measures'][name]:.4f}" for name in MEASURES if name in run["measures"]]
    return f"bound {run['bound']:.4f}, {', '.join(figures)}; {took}"


def page(folders: Sequence[Path]) -> str:
    titles = ["table", "mode", "seeds", *MEASURES.values(), "bound", "predicted", "range", "inside"]
    titles += ["processor s", "of plan", "peak MB"]
    rows = [_row(group, found) for group, found in load(folders).items()]
    lines = ["| " + " | ".join(each) + " |" for each in (titles, ["---"] * len(titles), *rows)]
    return "\n".join(lines)


def _row(group: Group, found: dict[str, Any]) -> list[str]:
    table, mode, variant, folder = group
    done = [run for run in found["releases"] if run["outcome"] == "done"]
    planned = found["plan"] if found["plan"] and found["plan"]["outcome"] == "done" else None
    cells = [table, f"{mode} {variant}".strip() + f" ({folder})", f"{len(done)} of {len(found['releases'])}"]
    cells += [_figure([run["measures"].get(name) for run in done]) for name in MEASURES]
    bounds = [run["bound"] for run in done]
    cells.append(_figure(bounds))
    if planned:
        low, high = planned["low"], planned["high"]
        inside = sum(low <= bound <= high for bound in bounds)
        cells += [f"{planned['predicted']:.4f}", f"{low:.4f}–{high:.4f}", f"{inside} of {len(bounds)}"]
    else:
        cells += ["", "", ""]
    cells += [_figure([run["cpu"] for run in done], 0), f"{planned['cpu']:.0f}" if planned else ""]
    return [*cells, _figure([run["peak MB"] for run in done], 0)]


def _figure(values: Sequence[float | None], digits: int = 4) -> str:
    there = [value for value in values if value is not None]
    return f"{mean(there):.{digits}f}" if there else ""


def main() -> None:
    print(page([Path(folder) for folder in sys.argv[1:]]))


if __name__ == "__main__":
    main()
