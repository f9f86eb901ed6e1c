"""Draw the dot plots of the documentation from results in the repository.

PYTHONPATH=benchmarks python docs/make_figures.py
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dot_plot import Dot, Line, Panel, dot_plot

from privpgd import page as privpgd
from privpgd.measures import NAMES
from race.page import RESULTS, Row, rows_of
from race.tables import TABLES
from tightness import page as tightness
from wide import page as wide
from wide.measures import AREAS
from wide.measures import NAMES as WIDE_NAMES

HERE = Path(__file__).parent
IMAGES = HERE / "images"
PREDICTIONS = HERE / "how-to" / "predictions.json"
DESIGNS = ("identity", "quad-tree", "haar-weighted")
"""The mechanisms of the figure for plan.md: the best three of the example."""


def figures() -> dict[str, str]:
    """File names and figures."""
    found = json.loads(PREDICTIONS.read_text(encoding="utf-8"))
    return {
        "choose-epsilon.svg": by_rows(found["epsilon"], "ε = {}", "The bound that a budget buys"),
        "choose-sparsity.svg": by_rows(found["sparsity"], "sparsity {}", "The bound by sparsity, at ε = 1"),
        "plan-designs.svg": designs(found["designs"]),
        "benchmarks.svg": race(),
        **{privpgd.file_name(name): privpgd_measure(name, privpgd.load()) for name in NAMES},
        "tightness.svg": tightness_of_tables(tightness.load()),
        "tightness-models.svg": tightness_models(tightness.load()),
        **{tightness.file_name(each.key): tightness_of_table(each) for each in tightness.load()},
        **{
            wide.file_name(name): adult_measure(name, adult)
            for adult in wide.load()
            if adult.key == "adult"
            for name in adult.measures
        },
    }


def by_rows(found: Mapping[str, Mapping[str, Any]], label: str, title: str) -> str:
    """A line for each setting, with a dot for each number of rows."""
    lines = [
        Line(label.format(name), tuple(_dot(i, design) for i, design in enumerate(cells.values())))
        for name, cells in found.items()
    ]
    counts = [f"{int(count):,} rows" for count in next(iter(found.values()))]
    said = "; ".join(
        f"{line.label}: " + ", ".join(f"{dot.value:g} at {counts[dot.series]}" for dot in line.dots) for line in lines
    )
    return dot_plot(
        title,
        said,
        [Panel("", tuple(lines))],
        series=counts,
        axis="predicted bound, and the range of nine tables in ten; further left is better",
        labels=100,
    )


def _dot(series: int, design: Mapping[str, Any]) -> Dot:
    return Dot(series, design["bound"], design["low"], design["high"])


def designs(found: Mapping[str, Any]) -> str:
    """A line for each resolution, with a dot for each of the best mechanisms."""
    candidates = [each for each in found["candidates"] if each["mechanism"] in DESIGNS]
    chosen = found["choice"]
    lines = []
    for resolution in sorted({each["resolution"] for each in candidates}):
        dots = tuple(
            Dot(DESIGNS.index(each["mechanism"]), each["bound"])
            for each in candidates
            if each["resolution"] == resolution
        )
        arrow = "→ " if resolution == chosen["resolution"] else ""
        lines.append(Line(f"{arrow}{resolution} cells", dots))
    said = (
        f"The bound is smallest between too few and too many cells; release would choose {chosen['mechanism']} at "
        f"{chosen['resolution']}, marked by an arrow"
    )
    return dot_plot(
        "Designs for four columns, 20,000 rows, ε = 1",
        said,
        [Panel("", tuple(lines))],
        series=DESIGNS,
        axis="predicted bound; further left is better. The arrow marks the choice of release.",
        labels=100,
        width=640,
    )


def race() -> str:
    """A panel for each table, with the loss of every system in its default setting, and our certificates."""
    documents = [json.loads((RESULTS / f"{key}.json").read_text(encoding="utf-8")) for key in TABLES]
    names = list(dict.fromkeys(row.title for document in documents for row in _defaults(document)))
    panels = [Panel(_heading(document), _race_lines(names, _defaults(document))) for document in documents]
    said = "; ".join(
        ", ".join(panel.title.splitlines())
        + ": "
        + ", ".join(f"{line.label} {line.dots[0].value:.4f}" for line in panel.lines if line.dots)
        for panel in panels
    )
    return dot_plot(
        "Largest error of any smooth statistic of two columns, at ε = 1",
        said,
        panels,
        series=("certsynth", "other tools", "certificate that certsynth publishes"),
        axis="largest W1 distance over all pairs of columns, mean of the runs; further left is better",
        width=980,
        labels=240,
    )


def _heading(document: Mapping[str, Any]) -> str:
    return f"{TABLES[document['table']].title.removesuffix(', few rows')}\n{document['rows']:,} rows"


def _defaults(document: Mapping[str, Any]) -> list[Row]:
    return [row for row in rows_of(dict(document)) if row.contender.default]


def _race_lines(names: Sequence[str], rows: Sequence[Row]) -> tuple[Line, ...]:
    found = {row.title: row for row in rows}
    return tuple(_race_line(name, found.get(name)) for name in names)


def _race_line(name: str, row: Row | None) -> Line:
    if row is None:
        return Line(name, (), "no result")
    dots = [Dot(0 if row.is_ours else 1, row.mean("value"))]
    if row.values("certificate"):
        dots.append(Dot(2, row.mean("certificate")))
    return Line(name, tuple(dots))


def privpgd_measure(name: str, found: Sequence[privpgd.Results]) -> str:
    """A panel for each table: our releases at ε = 1, and the published figures."""
    modes = [mode for mode in privpgd.MODES if any(each.setting(mode, "1") for each in found)]
    methods = list(dict.fromkeys(method for each in found for method in each.published["methods"]))
    panels = [Panel(_privpgd_heading(each), _privpgd_lines(name, each, modes, methods)) for each in found]
    said = "; ".join(
        ", ".join(panel.title.splitlines())
        + ": "
        + ", ".join(f"{line.label} {line.dots[0].value:.3g}" for line in panel.lines if line.dots)
        for panel in panels
    )
    title, shown = NAMES[name], 4 if any(name in each.document["real"] for each in found) else 3
    return dot_plot(
        f"{title[0].upper()}{title[1:]}, at ε = 1",
        said,
        panels,
        series=("certsynth, replace-one", "published figures", "certsynth, add-remove", "real rows")[:shown],
        axis="mean of the runs, with the smallest and the largest of ours; further left is better",
        width=980,
        labels=240,
    )


def _privpgd_heading(each: privpgd.Results) -> str:
    ours, theirs = each.document["rows"], each.published["rows"]
    return f"{each.title}\n{ours:,} rows" + ("" if ours == theirs else f" (published: {theirs:,})")


def _privpgd_lines(name: str, each: privpgd.Results, modes: Sequence[str], methods: Sequence[str]) -> tuple[Line, ...]:
    lines = []
    for mode in modes:
        label, setting = f"certsynth, {privpgd.MODES[mode].title}", each.setting(mode, "1")
        if setting is None:
            lines.append(Line(label, (), "not run"))
            continue
        values, series = setting.values(name), 2 if mode.endswith("add") else 0
        lines.append(Line(label, (Dot(series, setting.mean(name), min(values), max(values)),)))
    for method in methods:
        figure = each.published["methods"].get(method, {}).get(name)
        lines.append(Line(method, (Dot(1, float(figure)),)) if figure else Line(method, (), "not at hand"))
    if name in each.document["real"]:
        lines.append(Line("real rows", (Dot(3, each.document["real"][name]),)))
    return tuple(lines)


def tightness_of_tables(found: Sequence[tightness.Results]) -> str:
    """A panel for each mode: the median error and half width of the statistics of each table."""
    panels = [Panel(title, _tightness_lines(found, mode)) for mode, title in tightness.MODES.items()]
    return dot_plot(
        "True errors and certified half widths of twenty statistics",
        _listed(panels),
        panels,
        series=("true error, median", "certified half width: median and quartiles"),
        axis="in units: 1 for a share or a correlation, else the standard deviation of the column",
        width=980,
        labels=190,
    )


def _tightness_lines(found: Sequence[tightness.Results], mode: str) -> tuple[Line, ...]:
    lines = []
    for each in found:
        asked = [one for one in each.asked(mode) if one.answered]
        if not asked:
            lines.append(Line(each.columns, (), "not run"))
            continue
        low, middle, high = statistics.quantiles([one.half_width for one in asked], method="inclusive")
        error = statistics.median(one.error for one in asked)
        dots = [Dot(0, error)] if error else []
        lines.append(Line(each.columns, (*dots, Dot(1, middle, low or None, high))))
    return tuple(lines)


def tightness_of_table(each: tightness.Results) -> str:
    """A panel for each mode, with a line for each statistic. A true error of 0 has no dot."""
    panels = []
    for mode, title in tightness.MODES.items():
        lines = []
        for one in each.asked(mode):
            values = (one.error, one.half_width) if one.answered else ()
            dots = tuple(Dot(series, value) for series, value in enumerate(values) if value > 0)
            lines.append(Line(one.kind, dots, "" if dots else "exact" if one.answered else "no answer"))
        if lines:
            panels.append(Panel(title, tuple(lines)))
    return dot_plot(
        f"{each.columns}: true errors and certified half widths",
        _listed(panels),
        panels,
        series=("true error", "certified half width"),
        axis="mean of the releases, in units; a dot that is missing is 0",
        width=980,
        labels=210,
    )


def tightness_models(found: Sequence[tightness.Results]) -> str:
    """A panel for each model and mode: what is missing to a perfect score."""
    found = [each for each in found if each.document.get("models of real rows")]
    panels = [
        Panel(f"{model}\n{title}", tuple(_model_line(each, model, mode) for each in found))
        for model in (tightness.BOOSTING, tightness.LINEAR)
        for mode, title in tightness.MODES.items()
    ]
    return dot_plot(
        "Models trained on real and on synthetic rows, tested on real rows",
        _listed(panels),
        panels,
        series=("synthetic rows", "synthetic rows, with target", "real rows"),
        axis="1 − area under the ROC curve; for the price of diamonds 1 − R²; further left is better",
        width=980,
        labels=110,
    )


def _model_line(each: tightness.Results, model: str, mode: str) -> Line:
    real = each.document["models of real rows"][model]
    scores = each.score(model, mode, ""), each.score(model, mode, "target"), real
    return Line(each.title, tuple(Dot(i, 1 - score) for i, score in enumerate(scores) if score is not None))


def _listed(panels: Sequence[Panel]) -> str:
    """All values, for people who do not see the figure."""
    parts = []
    for panel in panels:
        lines = [f"{line.label} {' and '.join(f'{dot.value:.2g}' for dot in line.dots)}" for line in panel.lines]
        parts.append(f"{', '.join(panel.title.splitlines())}: {', '.join(lines)}")
    return "; ".join(parts)


def adult_measure(name: str, adult: wide.Results) -> str:
    """A panel for each ε: our releases, the other tools, the floor, and models of the real rows."""
    by_epsilon = {epsilon: rows for epsilon in sorted(wide.EPSILONS, key=float) if (rows := adult.rows(epsilon))}
    titles = list(dict.fromkeys(row.title for rows in by_epsilon.values() for row in rows))
    real = adult.document["real"].get(name)
    panels = []
    for epsilon, rows in by_epsilon.items():
        found = {row.title: row for row in rows}
        lines = [_adult_line(name, title, found.get(title)) for title in titles]
        lines += [Line("real rows", (Dot(3, wide.shown_loss(name, real)),))] if real else []
        panels.append(Panel(f"ε = {epsilon}", tuple(lines)))
    said = "; ".join(
        f"{panel.title}: " + ", ".join(f"{line.label} {line.dots[0].value:.3g}" for line in panel.lines if line.dots)
        for panel in panels
    )
    title = f"{WIDE_NAMES[name][0].upper()}{WIDE_NAMES[name][1:]}" + (", 1 − area under the curve" * (name in AREAS))
    return dot_plot(
        f"{title}, on Adult with δ = 1e-5",
        said,
        panels,
        series=("certsynth", "other tools", "independent columns", "real rows")[: 4 if real else 3],
        axis="mean of the runs, with the smallest and the largest; further left is better",
        width=1060,
        labels=270,
    )


def _adult_line(name: str, title: str, row: Row | None) -> Line:
    if row is None:
        return Line(title, (), "not run")
    values = [wide.shown_loss(name, value) for value in row.values(name)]
    series = 2 if row.contender.key == wide.FLOOR else 0 if row.is_ours else 1
    ends = (min(values), max(values)) if len(values) > 1 else (None, None)
    return Line(title, (Dot(series, wide.shown_loss(name, row.mean(name)), *ends),))


if __name__ == "__main__":
    for name, figure in figures().items():
        (IMAGES / name).write_text(figure, encoding="utf-8")
