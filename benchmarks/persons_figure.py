"""Draw k against the bound from the results of persons.py: docs/images/persons.svg and .png.

PYTHONPATH=experiments python benchmarks/persons_figure.py
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

from drawing import BLUE, FOLDER, GREEN, ORANGE, RED, write
from persons import RESULTS

LINES = {
    ("rows", "replace-one"): ("each row counts 1, replace-one", RED, "s-"),
    ("rows", "add-remove"): ("each row counts 1, add-remove", ORANGE, "o-"),
    ("persons", "replace-one"): ("each person counts 1, replace-one", BLUE, "s-"),
    ("persons", "add-remove"): ("each person counts 1, add-remove", GREEN, "o-"),
}

Points = dict[tuple[str, str], dict[int, float]]


def mean_bounds(results: dict[str, Any]) -> tuple[Points, dict[int, float], int]:
    """The mean bound for each weight, relation and k; the share of rows kept for each k; and the fewest runs of any."""
    bounds: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    kept: dict[int, float] = {}
    for found in results.values():
        bounds[found["weigh"], found["neighbours"]][found["k"]].append(found["bound"])
        kept[found["k"]] = found["kept_rows"] / found["rows"]
    runs = min(len(each) for points in bounds.values() for each in points.values())
    means = {line: {k: statistics.mean(each) for k, each in points.items()} for line, points in bounds.items()}
    return means, kept, runs


def draw(results: dict[str, Any], folder: Path = FOLDER) -> None:
    means, kept, runs = mean_bounds(results)
    figure, axes = plt.subplots(figsize=(6.4, 3.6))
    for line, (label, colour, style) in LINES.items():
        points = sorted(means[line].items())
        axes.plot(
            [k for k, _ in points], [bound for _, bound in points], style, color=colour, label=label, markersize=4
        )
    axes.set_xticks(sorted(kept), [f"{k}\n{share:.0%}" for k, share in sorted(kept.items())])
    axes.set_xlabel("k, the most rows of one person that are kept, and the share of all rows that this keeps")
    axes.set_ylabel(f"certified bound, mean of {runs} runs")
    axes.set_ylim(bottom=0)
    axes.legend()
    write(figure, "persons", folder=folder)


def table(results: dict[str, Any]) -> str:
    """The same as rows of a table in Markdown."""
    means, kept, _ = mean_bounds(results)
    lines = ["| k | rows kept | " + " | ".join(label for label, *_ in LINES.values()) + " |", "|---" * 6 + "|"]
    lines += [
        f"| {k} | {share:.0%} | " + " | ".join(f"{means[line][k]:.4f}" for line in LINES) + " |"
        for k, share in sorted(kept.items())
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    stored = json.loads(RESULTS.read_text())
    draw(stored)
    sys.stdout.write(table(stored))
