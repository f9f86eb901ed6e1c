"""docs/benchmarks-tightness.md from the results; `docs/make_figures.py` draws its dot plots.

`PYTHONPATH=benchmarks python -m tightness.page` writes the page again.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from race.keeping import about_releases
from race.page import folded
from race.tables import ROOT
from tightness.tables import TARGETS

PAGE = ROOT / "docs" / "benchmarks-tightness.md"
RESULTS = Path(__file__).parent / "results"
RUNS = 3
MODES = {"pure-replace": "ε = 1, replace-one", "delta-add": "ε = 1, δ = 1e-5, add-remove"}
BOOSTING, LINEAR = "gradient boosting", "linear model"
VARIANTS = {"": "default", "target": "`target`"}

ERRORS = {
    "share_of_one_column": "share of one column",
    "share_of_two_columns": "share of two columns",
    "group_total": "group total",
    "moment": "mean, square or product",
}
"""Certified errors, as they are named on the page."""

Run = dict[str, Any]


def key_of(run: Run) -> tuple[str, str, int]:
    return run["mode"], run["variant"], run["seed"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A statistic, and its answers in the releases of one mode. Errors and widths are in units of the statistic."""

    statistic: Run
    answers: tuple[Run, ...]

    @property
    def kind(self) -> str:
        return str(self.statistic["kind"])

    @property
    def answered(self) -> list[Run]:
        return [answer for answer in self.answers if "error" not in answer]

    @property
    def errors(self) -> list[float]:
        return [abs(answer["estimate"] - self.truth) / self.unit for answer in self.answered]

    @property
    def half_widths(self) -> list[float]:
        return [(answer["high"] - answer["low"]) / 2 / self.unit for answer in self.answered]

    @property
    def error(self) -> float:
        return statistics.fmean(self.errors) if self.answered else 0.0

    @property
    def half_width(self) -> float:
        return statistics.fmean(self.half_widths) if self.answered else 0.0

    @property
    def truth(self) -> float:
        return float(self.statistic["truth"])

    @property
    def unit(self) -> float:
        return float(self.statistic["unit"])

    @property
    def inside(self) -> int:
        """Answers whose interval contains the true value; sums in another order may differ in the last bits."""
        slack = 1e-9 * max(abs(self.truth), self.unit)
        return sum(answer["low"] - slack <= self.truth <= answer["high"] + slack for answer in self.answered)


@dataclass(frozen=True, slots=True)
class Results:
    """The document of one table."""

    document: Run

    @property
    def key(self) -> str:
        return str(self.document["table"])

    @property
    def title(self) -> str:
        return str(self.document["title"]).split(",")[0]

    @property
    def columns(self) -> str:
        return f"{self.title}, {self.document['columns']} columns"

    def runs(self, mode: str, variant: str = "") -> list[Run]:
        done = (run for run in self.document["runs"] if run["outcome"] == "done")
        return [run for run in done if (run["mode"], run["variant"]) == (mode, variant)]

    def asked(self, mode: str) -> list[Asked]:
        """The statistics with their answers; empty without a release of the mode."""
        runs = [run for run in self.runs(mode) if "answers" in run]
        if not runs:
            return []
        listed = enumerate(self.document["statistics"])
        return [Asked(statistic, tuple(run["answers"][i] for run in runs)) for i, statistic in listed]

    def score(self, model: str, mode: str, variant: str) -> float | None:
        found = [run["models"][model] for run in self.runs(mode, variant) if "models" in run]
        return statistics.fmean(found) if found else None


def load(folder: Path = RESULTS) -> list[Results]:
    paths = (folder / f"{key}.json" for key in TARGETS)
    return [Results(json.loads(path.read_text(encoding="utf-8"))) for path in paths if path.exists()]


def file_name(key: str) -> str:
    return f"tightness-{key}.svg"


# ------------------------------------------------------------ the page


def page(folder: Path = RESULTS) -> str:
    found = load(folder)
    parts = [INTRODUCTION, in_short(found), by_kind(found), made_of(found), WHAT_HELPS, MODELS, models(found)]
    parts += [by_table(found), HOW, about_releases([each.document for each in found])]
    return "\n\n".join(part.strip() for part in parts if part) + "\n"


def write(folder: Path = RESULTS) -> Path:
    PAGE.write_text(page(folder), encoding="utf-8")
    return PAGE


INTRODUCTION = """
# Certified against true

How tight are certified intervals? For each table on this page, twenty statistics were fixed by a rule before any
release was made: shares of labels and ranges, of one column and of two, means, medians, quantiles, a standard
deviation, a correlation, statistics of groups, and differences. `certsynth answer` gave each an estimate and an
interval. The tables are public, so the true value is known.

Errors and half widths are in *units*: 1 for shares and correlations (0.01 is a percentage point), and the standard
deviation of the column for means, medians and quantiles.
"""

MODELS = """
## Models

What does a data scientist lose who trains on synthetic rows? Models were trained on the released rows, on synthetic
rows, and on synthetic rows of a release that was told the column to predict (`target`), and tested on real rows that
were held out. Gradient boosting and the linear model (logistic regression; ridge regression for a price) have
scikit-learn's defaults. The score is the area under the ROC curve, for the price R²; 1 is perfect.
"""

WHAT_HELPS = """
So noise on the certificate is not what makes intervals wide, and neither is a loose bound: what is certified is the
largest error of any column or pair, and that is nearly what it is. But a question is about one pair, and most pairs
have a much smaller error than the worst one. Groups divide the error of a total by the group's share of the rows, and
columns whose values lie in a small part of their range divide it by their small standard deviation.

What helps the person who releases: bounds no wider than the values need, the `step` of numbers that have one, `bands`
at the thresholds that matter, a [logarithmic scale](how-to/kinds.md#skewed-numbers) for skewed columns, fewer columns,
and δ. What helps the person who asks: large groups, and shares instead of means of skewed columns. `--alone` helps
little here, since slack is the smaller part. From 100 pairs on, which Fire has, about the worst fifth of all pairs are
[exceptions](explanation/direct-certificate.md#exceptions) with errors of their own, and all others have smaller ones.
In smaller tables that would cost more than it gains.
"""

HOW = """
## How it is measured

- Columns take turns, in an order drawn once; one in which a value has more than nine tenths of the rows is left out.
  Thresholds are quantiles of the real rows, rounded to three digits. A frequent label is the most frequent one, a
  rare label the one with a share nearest to 5 %. A table without labels has whole numbers with few values in their
  place. `benchmarks/tightness/statistics.py` has the rule, and computes true values without certsynth.
- Releases have all defaults at ε = 1, once pure under replace-one and once with δ = 1e-5 under add-remove. Of tables
  with a target four fifths of the rows are released (36,000 of Adult), and models are tested on the others.
- All intervals of a release hold at once with a confidence of 95 %.

`make tightness` makes the releases and this page, in an hour or two; `make tightness TIGHTNESS="adult --seeds 1"` takes
a minute or two. Releases are kept in `build/tightness` and results in `benchmarks/tightness/results`; an interrupted
run resumes. `TIGHTNESS=--ask-again` answers the queries of kept releases again, in minutes.
"""


def in_short(found: Sequence[Results]) -> str:
    heads = ["table", "privacy", "releases", "true error", "certified ±", "ratio", "inside"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for results, mode, asked in settings(found):
        error, width = (statistics.median(values) for values in _errors_and_widths(asked))
        cells = [results.columns, MODES[mode], str(len(asked[0].answers)), short(error), short(width)]
        cells += [short(width / error) if error else "", _inside(asked)]
        lines.append(f"| {' | '.join(cells)} |")
    every = [asked for _, _, listed in settings(found) for asked in listed]
    held, answers = sum(each.inside for each in every), sum(len(each.answered) for each in every)
    figure = f"![True errors and certified half widths of {len(found)} tables](images/tightness.svg)"
    total = (
        f"Medians over twenty statistics of each release. In all, {held:,} of {answers:,} intervals contain the true "
        "value; the confidence of 95 % is that *all* intervals of a release do."
    )
    return "\n\n".join(["## In short", "\n".join(lines), total, *_not_run(found), figure])


def _not_run(found: Sequence[Results]) -> Iterator[str]:
    """Releases that are missing."""
    missing = [
        f"{each.columns}, {MODES[mode]}, {VARIANTS[variant]} ({count} of {RUNS})"
        for each in found
        for variant in (VARIANTS if each.document["target"] else [""])
        for mode in MODES
        if (count := len(each.runs(mode, variant))) < RUNS
    ]
    if missing:
        yield f"Releases that are not complete yet: {'; '.join(missing)}."


def settings(found: Sequence[Results]) -> Iterator[tuple[Results, str, list[Asked]]]:
    """Every table and mode with releases."""
    for results in found:
        for mode in MODES:
            if asked := results.asked(mode):
                yield results, mode, asked


def _errors_and_widths(asked: Iterable[Asked]) -> tuple[list[float], list[float]]:
    listed = list(asked)
    return [x for each in listed for x in each.errors], [x for each in listed for x in each.half_widths]


def _inside(asked: Sequence[Asked]) -> str:
    held, answers = sum(each.inside for each in asked), sum(len(each.answered) for each in asked)
    text = f"{held} of {answers}"
    return text if held == answers else f"**{text}**"


def by_kind(found: Sequence[Results]) -> str:
    """The kinds of statistics, the loosest first."""
    kinds: dict[str, dict[str, list[Asked]]] = {}
    for _, mode, asked in settings(found):
        for each in asked:
            kinds.setdefault(each.kind, {}).setdefault(mode, []).append(each)
    heads = ["statistic", *(f"{what}, {title}" for title in MODES.values() for what in ("true error", "certified ±"))]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    rows = []
    for kind, of_modes in kinds.items():
        cells, widths = [kind], []
        for mode in MODES:
            if mode not in of_modes:
                cells += ["", ""]
                continue
            errors, half_widths = _errors_and_widths(of_modes[mode])
            widths.append(statistics.median(half_widths))
            cells += [short(statistics.median(errors)), short(widths[-1])]
        rows.append((-max(widths), cells))
    lines += [f"| {' | '.join(cells)} |" for _, cells in sorted(rows)]
    said = (
        "Medians over all tables and releases, in units, the loosest first. Shares of all rows are certified best. "
        "Statistics of a group are looser by the reciprocal of its share of the rows. Means and correlations of "
        "columns whose values fill a small part of their range are looser by the reciprocal of their standard "
        "deviations, since errors are relative to the range."
    )
    return "\n\n".join(["## Which statistics are loose", said, "\n".join(lines)])


def made_of(found: Sequence[Results]) -> str:
    """Certified errors, the slack in them, and the true largest and median errors."""
    heads = ["table", "privacy", "error of a", "certified", "of which slack", "true, largest", "true, median"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    ratios, excess = [], []
    for results in found:
        for mode in MODES:
            run = next((run for run in results.runs(mode) if "true errors" in run), None)
            if run is None:
                continue
            certified = run["certified errors"]
            for name, title in ERRORS.items():
                if name not in certified or name not in run["true errors"]:
                    continue
                true = run["true errors"][name]
                cells = [results.columns, MODES[mode], title]
                cells += [short(x) for x in (certified[name], certified["slack"], true["largest"], true["median"])]
                lines.append(f"| {' | '.join(cells)} |")
                if name in ("share_of_two_columns", "group_total"):
                    ratios.append(certified[name] / true["median"])
                    excess.append(certified[name] / true["largest"])
    if not ratios:
        return ""
    said = (
        "A certificate has one error for all shares of one column, one for those of two columns, one for totals of "
        "groups and one for means, squares and products: the largest of all columns or pairs, plus slack for the noise "
        "on that number. Here are the true errors behind them in the first release of each kind: of the worst column "
        "or pair, and of the median one. The certified errors of two columns are "
        f"{short(statistics.median(excess))} times those of the worst pair and {short(statistics.median(ratios))} "
        "times those of the median pair (medians over the tables). Where some pairs are exceptions, as in Fire, these "
        "are the errors for the exceptions."
    )
    table = folded("Certified errors and true ones, table by table", "\n".join(lines))
    return "\n\n".join(["## Why", said, table])


def by_table(found: Sequence[Results]) -> str:
    parts = ["## Table by table"]
    for results in found:
        parts += [f"### {results.columns}", f"{results.document['rows']:,} rows."]
        parts.append(f"![Twenty statistics of {results.title}](images/{file_name(results.key)})")
        parts += [folded(f"Answers, {MODES[mode]}", _answers(asked)) for _, mode, asked in settings([results])]
        parts += list(_trouble(results))
    return "\n\n".join(parts)


def _answers(asked: Sequence[Asked]) -> str:
    heads = ["query", "true", "synthetic", "from", "to", "error", "±", "inside"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for each in asked:
        query = each.statistic["query"].replace("|", "\\|").replace("`", "")
        if not each.answered:
            lines.append(f"| {query} | {short(each.truth)} | | | | | | {each.answers[0]['error']} |")
            continue
        first = each.answered[0]
        cells = [query, *(short(x) for x in (each.truth, first["estimate"], first["low"], first["high"]))]
        cells += [short(each.error), short(each.half_width), f"{each.inside} of {len(each.answered)}"]
        lines.append(f"| {' | '.join(cells)} |")
    said = "Synthetic value and interval of the first release; mean error and half width of all, in units."
    return said + "\n\n" + "\n".join(lines)


def _trouble(results: Results) -> Iterator[str]:
    for run in results.document["runs"]:
        if run["outcome"] != "done":
            said = run["error"].replace("`", " ")
            yield f"- {MODES[run['mode']]}, {VARIANTS[run['variant']]}, seed {run['seed']}: {run['outcome']}: `{said}`"


def models(found: Sequence[Results]) -> str:
    heads = ["table", "predicted", "model", "real rows"]
    heads += [f"{title}: {variant}" for title in MODES.values() for variant in VARIANTS.values()]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for results in found:
        real = results.document.get("models of real rows")
        for model in (BOOSTING, LINEAR) if real else ():
            cells = [results.title, f"`{results.document['target']}`", model, f"{real[model]:.3f}"]
            scores = [results.score(model, mode, variant) for mode in MODES for variant in VARIANTS]
            cells += ["" if score is None else f"{score:.3f}" for score in scores]
            lines.append(f"| {' | '.join(cells)} |")
    figure = "![Scores of models trained on real and on synthetic rows](images/tightness-models.svg)"
    return "\n\n".join([what_models_lose(found), figure, "\n".join(lines)])


def what_models_lose(found: Sequence[Results]) -> str:
    """How much of its score gradient boosting loses on synthetic rows with δ, and what `target` changes."""
    parts = []
    for results in found:
        real = results.document.get("models of real rows")
        score, told = (results.score(BOOSTING, "delta-add", variant) for variant in VARIANTS)
        if real is None or score is None:
            continue
        text = f"{results.title} {real[BOOSTING] - score:.3f}"
        parts.append(text if told is None else f"{text} ({real[BOOSTING] - told:.3f} with `target`)")
    return f"With {MODES['delta-add']}, gradient boosting loses: {'; '.join(parts)}." if parts else ""


def short(value: float) -> str:
    """Three significant digits, without an exponent.

    >>> short(0.012345), short(1234.5), short(12.0), short(0.0)
    ('0.0123', '1,234', '12.0', '0')
    """
    if value == 0:
        return "0"
    digits = f"{abs(value):.2e}"
    decimals = max(0, 2 - int(digits.partition("e")[2]))
    return f"{value:,.{decimals}f}"


def line(run: Run, document: Run) -> str:
    """One run in a line."""
    setting = f"{run['mode']}{' with target' if run['variant'] else ''}, seed {run['seed']}"
    if run["outcome"] != "done":
        return f"{setting}: {run['outcome']}: {run['error']}"
    parts = [f"bound {run['bound']:.4f}"]
    if "answers" in run:
        pairs = zip(document["statistics"], run["answers"], strict=True)
        asked = [Asked(statistic, (answer,)) for statistic, answer in pairs]
        errors, widths = _errors_and_widths(asked)
        parts.append(
            f"error {statistics.median(errors):.4f}, ± {statistics.median(widths):.4f}, {_inside(asked)} inside"
        )
    parts += [f"{model} {score:.3f}" for model, score in run.get("models", {}).items()]
    return f"{setting}: {', '.join(parts)}; processor {run['cpu']:.0f} s"


if __name__ == "__main__":
    print(write().relative_to(ROOT))
