"""The paper's figures, and ours on the same axes.

    python experiments/run.py                 all of them: some two hours on one core
    python experiments/run.py 1a 3            some
    python experiments/run.py --quick         a few points, in minutes: to see that everything works
    python experiments/run.py --full          the paper's own tables, which are downloaded (see data.py)

Each point is kept as soon as it is computed, in build/experiments: a run that was interrupted goes on where it stopped.
To begin anew, remove that folder.
At the end, results are in experiments/results, figures in docs/images, and docs/reproduction.md compares them with what
the paper says. With --quick or --full all of these are written into a folder of build/experiments instead.

The noise has no seed, so no two runs are alike. Seeds of what needs no privacy are kept with the results.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import data
import drawing
import figures
import paper
import reproduction_page
import results
from points import Points

BUILD = data.ROOT / "build" / "experiments"


@dataclass(frozen=True, slots=True)
class Places:
    """Where things are written."""

    points: Path
    results: Path
    images: Path
    page: Path

    @classmethod
    def real(cls) -> Places:
        page = data.ROOT / "docs" / "reproduction.md"
        return cls(BUILD / "points.jsonl", results.FOLDER, drawing.FOLDER, page)

    @classmethod
    def apart(cls, folder: Path) -> Places:
        return cls(folder / "points.jsonl", folder / "results", folder / "images", folder / "reproduction.md")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run(
    names: list[str],
    *,
    size: paper.Size,
    places: Places,
    pairs: dict[str, data.Pair],
    folder: Path,
    compute: bool = True,
) -> None:
    """Compute what is missing for the named figures, and write results, figures and, if all are there, the page."""
    os.environ.setdefault("CERTSYNTH_CACHE", str(BUILD / "plans"))  # ours plans once, then knows
    kept, measuring = Points(places.points), paper.Measuring.of(pairs, folder, size)
    for name in figures.needed(names):
        series = paper.SERIES[name]
        tasks = series.tasks(size)
        if compute:
            kept.compute(tasks, measuring, say)
        if found := kept.whole_runs(tasks):
            results.save(name, settings(series, size, pairs[series.pair]), found, folder=places.results)
            say(f"{name}: {paper.runs_text(found, against=series.against)}")
    there = {path.stem for path in places.results.glob("paper-*.json")} & set(paper.SERIES)
    found = {name: results.load(name, folder=places.results) for name in there}
    for name in names:
        if set(figures.NEEDS[name]) <= there:
            figures.write(name, found, folder=places.images)
        else:
            say(f"figure {name} has no results yet")
    if there == set(paper.SERIES):
        places.page.write_text(reproduction_page.page(found), encoding="utf-8")


def settings(series: paper.Series, size: paper.Size, pair: data.Pair) -> dict[str, object]:
    """What was asked, to be kept beside what came out."""
    asked: dict[str, object] = {
        "method": series.method,
        "title": pair.title,
        "data": pair.note + ("" if size.private_rows is None else f" Tried out on {size.private_rows:,} private rows."),
        "private": pair.private.file,
        "columns": [name for name, _ in pair.bounds],
        "epsilon": paper.EPSILON,
        "confidence": paper.CONFIDENCE,
        "lattice": paper.LATTICE,
        "sharp_lattice": paper.SHARP[series.method],
        "private_rows": "all" if size.private_rows is None else size.private_rows,
        "seeds": "the noise has none",
    }
    if series.method == "paper":
        asked["public"] = pair.public.file
        asked["seeds"] = "`run` is the seed of the draw of public rows and of the order of rows; the noise has none"
    return asked


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figure", nargs="*", metavar="FIGURE", help="1a, 1b, 2a, 2b or 3; by default all")
    parser.add_argument("--quick", action="store_true", help="few points, written to build/experiments/quick")
    parser.add_argument("--full", action="store_true", help="the paper's own tables, through folktables")
    parser.add_argument("--runs", type=int, help="only the first so many runs")
    parser.add_argument("--as-is", action="store_true", help="compute nothing: draw what is there")
    asked = parser.parse_args(arguments)
    if unknown := set(asked.figure) - set(figures.NEEDS):
        parser.error(f"no figure {', '.join(sorted(unknown))}; choose from {', '.join(figures.NEEDS)}")
    size = paper.QUICK if asked.quick else paper.PAPER
    if asked.runs is not None:
        if not 1 <= asked.runs <= size.runs:
            parser.error(f"--runs must be from 1 to {size.runs}")
        size = replace(size, runs=asked.runs)
    apart = "-".join(name for name in ("full", "quick") if getattr(asked, name))
    pairs, folder = (data.FULL, BUILD / "tables") if asked.full else (data.PAIRS, data.folder())
    try:
        if asked.full:
            for survey in {survey for pair in pairs.values() for survey in (pair.private, pair.public)}:
                data.fetch(survey, folder)
        run(
            asked.figure or list(figures.NEEDS),
            size=size,
            places=Places.apart(BUILD / apart) if apart else Places.real(),
            pairs=pairs,
            folder=folder,
            compute=not asked.as_is,
        )
    except data.NoData as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
