"""The report's view of one column: the distribution of its values, and its bound in the column's own units."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from certsynth.answers import averages, quantiles, spreads
from certsynth.answers.basis import Basis, rank
from certsynth.answers.selection import Selection
from certsynth.base.clock import SECONDS, Clock
from certsynth.domain import Category, Column, Ordered
from certsynth.report import bands, by_ratio, numerals
from certsynth.report.binned_counts import BinnedCounts, bin_counts
from certsynth.report.calculator import label_numbers, line_numbers
from certsynth.report.cell_counts import CertifiedCells, count_cells

MAX_BINS = 40
NUMBER_BINS = 32
MAX_BARS = 12
"""Bins of a histogram of integers or dates, bins of a histogram of numbers, and bars of a categorical column."""

KINDS = {
    "integer": "whole number",
    "number": "number",
    "date": "date",
    "datetime": "date and time",
    "ordinal": "ordered list",
    "category": "category",
    "boolean": "true or false",
    "tree": "code in a tree",
    "metric": "label with distances",
}
_DAY_SECONDS = 86_400
_ROUNDING = 1e-9  # values sit on lattices: a rounding error must not decide a bin
_UNITS = 10**9  # of ranges in the page, which are rounded outward
_BIN_SECONDS = (
    *(1, 2, 5, 10, 15, 30),
    *(60, 120, 300, 600, 900, 1_800),
    *(3_600, 7_200, 10_800, 21_600, 43_200),
    *(_DAY_SECONDS, 7 * _DAY_SECONDS),
)
_BIN_MONTHS = (1, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 2400, 6000)

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class _Shown:
    """Facts, chart and calculator data of a column, and the number of missing values."""

    facts: list[Json]
    spread: Json
    numbers: Json
    absent: int


def column_view(column: Column, values: np.ma.MaskedArray[Any, Any], bound: float, basis: Basis | None = None) -> Json:
    """Return name, kind, range, facts and chart of one column, for which `bound` is certified.

    `basis`: the release, if its certificate also bounds the errors of shares and means of this column.
    """
    values, rows = np.ma.asarray(values), len(values)
    own = min(
        1.0, bound / float(column.weight)
    )  # the distances of a column with a small weight count less, so its own bound is larger
    if isinstance(column, Ordered):
        shown, last, kind = *_ordered_view(column, values, bound, own, basis), str(column.kind)
    elif isinstance(column, Category):
        shown, last, kind = _category_view(column, values, bound, basis), [], str(column.kind)
    else:
        raise TypeError(f"the report has no picture for a {type(column).__name__}")
    facts, spread = shown.facts, shown.spread
    if column.missing:
        spread["missing"] = _bar("missing", shown.absent, rows)
        off = min(own, _share_error(basis))
        _whiskers([spread["missing"]], off)
        text, points = numerals.share_around(shown.absent, rows, off)
        facts.append(_fact("share missing", text, f"{points} points", off))
    return {
        "name": numerals.text(column.title),
        "code": numerals.text(column.name) if column.title != column.name else None,
        "kind": KINDS[kind] + (" compared by ratios" if isinstance(column, Ordered) and column.grid else ""),
        "range": _range(column),
        "unit": _unit(column),
        "may_be_missing": column.missing,
        "bound": bound,
        "bound_text": numerals.upward(bound),
        "facts": facts + last,
        "spread": spread,
        "described": _described(spread),
        "numbers": shown.numbers,
    }


def _ordered_view(
    column: Ordered, values: np.ma.MaskedArray[Any, Any], bound: float, own: float, basis: Basis | None
) -> tuple[_Shown, list[Json]]:
    """Return the view of an ordered column, and its median, which is shown last."""
    rows, (offsets, absent) = len(values), _offsets(column, values)
    known = Selection(basis, (column,)) if basis is not None and len(offsets) else None
    ranges = {} if known is None else _ranges(known, column)
    if column.grid:
        return _ratio_view(column, offsets, bound, own, ranges.get("mean"), known, rows=rows)
    average = _average(column, offsets)
    spread, places = _spread(column, offsets, rows), bin_counts(column, offsets, absent)
    cells = count_cells(column, offsets, absent, _share_error(basis))
    facts = [_mean(column, average, own, ranges.get("mean"), present=len(offsets), rows=rows)]
    if average is not None and spread["form"] == "histogram":
        spread["mean"] = _mean_mark(column, average, facts[0]["plus_minus"])
    if spread["form"] == "histogram":
        spread["band"] = _band(column, offsets, places, own, cells)
    else:
        _whiskers_in_order(spread["bars"], column, places, own, cells)
    median = [_median(column, places, own, known)] if absent < rows else []
    return _Shown(facts, spread, line_numbers(column, places, bound, cells) | ranges, absent), median


def _ratio_view(
    column: Ordered,
    offsets: np.ndarray,
    bound: float,
    own: float,
    ends: Sequence[float] | None,
    known: Selection | None,
    *,
    rows: int,
) -> tuple[_Shown, list[Json]]:
    """Return the view of a column that is compared by ratios: that of its ranks, but for mean, median and ticks."""
    line, ranks, absent = by_ratio.ranks(column), column.index(offsets), rows - len(offsets)
    spread, places = _spread(line, ranks, rows), bin_counts(line, ranks, absent)
    cells = count_cells(line, ranks, absent, _share_error(None if known is None else known.basis))
    if spread["form"] == "histogram":
        spread |= {"ticks": by_ratio.ticks(column), "band": _band(line, ranks, places, own, cells)}
    else:
        _whiskers_in_order(spread["bars"], line, places, own, cells)
    average, what = by_ratio.average_of(column, ranks), "mean, of values present" if column.missing else "mean"
    facts, median = [_fact(what, "no value is present", None, None)], []
    if average is not None:
        low, high = by_ratio.mean_range(column, average, own, ends, present=len(ranks) / rows)
        width = max(high - average, average - low)
        value, off = numerals.around(average, width)
        facts, median = (
            [_fact(what, value, f"{off} {_unit(column)}".rstrip(), width)],
            [_median(line, places, own, known, column)],
        )
        if spread["form"] == "histogram":
            spread["mean"] = by_ratio.mean_mark(column, average, (low, high))
    return _Shown(facts, spread, line_numbers(line, places, bound, cells) | {"ranks": True}, absent), median


def _ranges(rows: Selection, column: Ordered) -> dict[str, list[float]]:
    """Return the certified ranges of mean and variance on a line of length 1, rounded outward."""
    claims = {"mean": averages.mean(rows, column)[1], "variance": spreads.variance(rows, column)[1]}
    return {
        what: [max(0.0, math.floor(c.low * _UNITS - 1) / _UNITS), min(1.0, math.ceil(c.high * _UNITS + 1) / _UNITS)]
        for what, c in claims.items()
    }


def _share_error(basis: Basis | None) -> float:
    """Return the certified error of shares of a column; 1 if nothing is known."""
    known = None if basis is None else basis.certificate.statistics
    return 1.0 if known is None else min(1.0, known.share_of_one_column)


def _category_view(column: Category, values: np.ma.MaskedArray[Any, Any], bound: float, basis: Basis | None) -> _Shown:
    """View a categorical column: a share changes by 1 over the smallest distance of two labels."""
    rows, (counts, absent) = len(values), _label_counts(column, values)
    own = min(1.0, bound / float(column.min_label_distance), _share_error(basis))
    spread = _bars(column.naming.of_labels(column.labels), counts, rows)
    _whiskers(spread["bars"], own)
    numbers = label_numbers(column, counts, absent, bound) | {"share": _share_error(basis)}
    return _Shown(_shares(column, counts, rows, own), spread, numbers, absent)


def _labels(column: Column) -> tuple[str, ...]:
    return column.labels if isinstance(column, Category) else column.values if isinstance(column, Ordered) else ()


def _label_counts(column: Column, values: np.ma.MaskedArray[Any, Any]) -> tuple[list[int], int]:
    found = Counter(values.tolist())  # masked entries are None
    if isinstance(column, Category) and column.kind == "boolean":
        return [found[False], found[True]], found[None]
    return [found[label] for label in _labels(column)], found[None]


def _offsets(column: Ordered, values: np.ma.MaskedArray[Any, Any]) -> tuple[np.ndarray, int]:
    """Return the cleaned values that are present, and the number of missing ones."""
    if column.kind == "ordinal":
        counts, absent = _label_counts(column, values)
        return np.repeat(np.arange(len(counts)), counts), absent
    clean = column.encode(values)
    there = ~np.isnan(clean)
    return clean[there], int(np.count_nonzero(~there))


def _range(column: Column) -> str:
    if isinstance(column, Ordered) and column.clock is not None:
        return f"{column.clock.text(int(column.low))} to {column.clock.text(int(column.high))}"
    if isinstance(column, Ordered) and column.kind != "ordinal":
        return f"{numerals.plain(column.low)} to {numerals.plain(column.high)} {_unit(column)}".rstrip()
    labels = column.naming.of_labels(_labels(column))
    if len(labels) == 1:
        return "1 value"
    if isinstance(column, Ordered):
        return f"{len(labels):,} values from {numerals.text(labels[0])} to {numerals.text(labels[-1])}"
    return f"{len(labels):,} values"


def _unit(column: Column) -> str:
    return numerals.text(column.naming.unit, most=40)


def _described(spread: Json) -> str:
    """Describe the chart in words, for screen readers."""
    if spread["form"] == "bars":
        bars = spread["bars"] + ([spread["missing"]] if "missing" in spread else [])
        each = [f"{bar['label']} {bar['share_text']} ({_certified(bar)})" for bar in bars]
        return "Shares of the synthetic rows, and of the real ones in brackets: " + "; ".join(each) + "."
    ends = " to ".join(spread["ticks"][i]["label"] for i in (0, -1))
    text = f"A histogram of the synthetic values, {ends}."
    steps = spread["band"]["steps"]
    # within a step the synthetic share grows from `before` to `share`, and the real one lies in the same band
    widest = max(max(s["largest"] - s["before"], s["share"] - s["least"]) for s in steps)
    within = f"the real one is within {numerals.margin_points(widest)} points"
    text += f" Under it, the share of rows up to each value: {within}."
    return text + (f" Missing: {spread['missing']['share_text']}." if "missing" in spread else "")


def _certified(bar: Json) -> str:
    return f"{numerals.outward(bar['least'], up=False)} to {numerals.outward(bar['largest'], up=True)}"


def _fact(what: str, value: str | None, plus_minus: str | None, number: float | None) -> Json:
    return {"what": what, "value": value, "plus_minus_text": plus_minus, "plus_minus": number}


def span(column: Ordered) -> float:
    """Return high − low in the column's own units: days for dates, seconds for times, positions for ordinals."""
    return float(column.high) - float(column.low)


def _average(column: Ordered, offsets: np.ndarray) -> float | None:
    """Return the mean offset of the values present, correctly rounded, so that it is the same on every machine."""
    if not len(offsets):
        return None
    total = math.fsum(offsets.tolist()) if column.kind == "number" else int(offsets.astype(np.int64).sum())
    return total / len(offsets)


def _mean(
    column: Ordered, average: float | None, bound: float, ends: Sequence[float] | None, *, present: int, rows: int
) -> Json:
    r"""Return the mean, and how far the mean of the real rows can be from it.

    If a share 1 − p of the synthetic values is missing, the real mean of the values present is within

    .. math:: \frac{bound}{p - bound} \cdot (high - low)

    because x ↦ x − (synthetic mean), and 0 if missing, is 1-Lipschitz, and so is the indicator of being present. The
    text also allows for the rounding of the mean shown. `ends`: the range of the mean on a line of length 1, if other
    bounds of the certificate give one.
    """
    what = "mean place in list" if column.kind == "ordinal" else f"mean {column.clock.word}" if column.clock else "mean"
    if column.missing:
        what += ", of values present"
    if average is None:
        return _fact(what, "no value is present", None, None)
    part = bound if not column.missing else math.inf
    if column.missing and present / rows > bound:
        part = bound / (present / rows - bound)
    if ends is not None:
        at = average / _reach(column)
        part = min(part, max(ends[1] - at, at - ends[0]))
    width = min(part, 1.0) * span(column)
    if column.clock is not None:
        nearest = math.floor(average + 0.5)
        text = numerals.margin(width + abs(nearest - average))
        return _fact(what, column.clock.text(int(column.low) + nearest), f"{text} {column.clock.unit}", width)
    if column.kind == "number":
        value = column.low + average * span(column)
    else:
        value = average + (1 if column.kind == "ordinal" else column.low)
    text, off = numerals.around(value, width)
    return _fact(what, text, f"{off} {_unit(column)}".rstrip(), width)


def _reach(column: Ordered) -> int:
    """Return the largest offset, and 1 if there is only one value."""
    return max(column.reach, 1)


def _median(
    column: Ordered, places: BinnedCounts, bound: float, known: Selection | None, by_ratios: Ordered | None = None
) -> Json:
    """Return the range that holds the median of the real rows: two values of the column, rounded outward.

    `by_ratios`: the column itself, if `column` is that of its ranks.
    """
    low, high = bands.quantile_range(places, bound, 0.5)
    if by_ratios is not None and known is not None:
        claim = quantiles.quantile_of(known, by_ratios, 0.5)[1]
        ends = [float(end) / _reach(column) for end in rank(by_ratios, np.array([claim.low, claim.high]))]
        low, high = max(low, ends[0]), min(high, ends[1])
    elif known is not None and span(column) > 0:
        claim = quantiles.quantile_of(known, column, 0.5)[1]
        ends = [(end - float(column.low)) / span(column) for end in (claim.low, claim.high)]
        low, high = max(low, ends[0] - _ROUNDING), min(high, ends[1] + _ROUNDING)
    if not column.whole:
        ends = [column.low + at * span(column) for at in (low, high)]
        return _median_fact(column, numerals.downward(ends[0]), numerals.upward(ends[1]))
    slack = 1e-6 + 1e-15 * column.reach  # a place is rounded
    first, last = math.ceil(low * column.reach - slack), math.floor(high * column.reach + slack)
    if column.kind == "ordinal":
        said = [numerals.text(name) for name in column.naming.of_labels([column.values[i] for i in (first, last)])]
    elif column.clock is not None:
        said = [column.clock.text(int(column.low) + i) for i in (first, last)]
    else:
        said = [numerals.plain(int(column.low) + i) for i in (first, last)]
    return _median_fact(column, *said)


def _median_fact(column: Ordered, low: str, high: str) -> Json:
    what = "real median, of values present" if column.missing else "real median"
    if low == high:
        return _fact(what, f"{low} {_unit(column)}".rstrip(), None, None)
    between = f"{what}, between" if column.missing else f"{what} between"
    return _fact(between, f"{low} and {high} {_unit(column)}".rstrip(), None, None)


def _band(
    column: Ordered, offsets: np.ndarray, places: BinnedCounts, bound: float, cells: CertifiedCells | None
) -> Json:
    """Return the share of synthetic rows up to each point of the axis, and the range of the real share.

    A step may cover many values: the synthetic share up to any of them lies between `before` and `share`. It is counted
    from the rows themselves, since binning may have moved them past the end of a step.
    """
    reach = _reach(column)
    values = np.sort(offsets.astype(float)) / reach
    slack = 0.0 if column.whole else _ROUNDING  # a value at the end of a step may be on either side of it

    def up_to(end: float) -> float:
        return int(np.searchsorted(values, end, side="right")) / max(places.rows, 1)

    steps = []
    for left, right, least, largest in bands.share_band(column, places, bound, cells):
        first, last = left, right
        if column.whole:
            first, last = (round(at * (column.reach + 1)) - less for at, less in ((left, 0), (right, 1)))
            first, last = first / reach, last / reach
        shares = {"before": up_to(first - slack), "share": up_to(last + slack)}
        steps.append({"from": left, "to": right, "least": least, **shares, "largest": largest})
    return {"steps": steps}


def _whiskers(bars: Sequence[Json], bound: float) -> None:
    """Add the range of the real share to each bar; `bound` is the largest error of a share."""
    for bar in bars:
        bar["least"], bar["largest"] = max(0.0, bar["share"] - bound), min(1.0, bar["share"] + bound)


def _whiskers_in_order(
    bars: Sequence[Json], column: Ordered, places: BinnedCounts, bound: float, cells: CertifiedCells | None
) -> None:
    """Add the real share's range to each bar of an ordered column: moving a row to the next value is cheap."""
    reach = _reach(column)
    for i, bar in enumerate(bars):
        away = np.append(np.abs(places.places - i / reach), 1.0)
        only = column.reach == 0
        there = np.append(np.where(np.abs(places.places - i / reach) < 0.5 / reach, 1.0 if only else 1 / reach, 0.0), 0)
        sure = only and not column.missing
        least = 1.0 if sure else max(0.0, 1 - bands.max_share(there, places, bound))
        found = (least, bands.max_share(away, places, bound))
        bar["least"], bar["largest"] = found if sure else bands.narrow(found, cells, i, i)


def _shares(column: Column, counts: Sequence[int], rows: int, bound: float) -> list[Json]:
    if isinstance(column, Category) and column.kind == "boolean":
        text, points = numerals.share_around(int(counts[1]), rows, bound)
        (name,) = column.naming.of_labels(["true"])
        return [_fact(f"share of {numerals.text(name)}", text, f"{points} points", bound)]
    return [_fact("share of any group of labels", None, f"{numerals.margin_points(bound)} points", bound)]


def _bar(label: str, number: int, rows: int) -> Json:
    shown = {"label": label, "count": int(number), "share": int(number) / max(rows, 1)}
    return shown | {"share_text": numerals.share(int(number), max(rows, 1))}


def _bars(labels: Sequence[str], counts: Sequence[int], rows: int) -> Json:
    """Return a bar for each label; with more than `MAX_BARS`, for the most frequent, and one for all others."""
    order, rest = list(range(len(labels))), 0
    if len(labels) > MAX_BARS:
        order = sorted(order, key=lambda i: (-counts[i], i))
        rest = int(sum(counts[i] for i in order[MAX_BARS - 1 :]))
        order = order[: MAX_BARS - 1]
    bars = [_bar(numerals.text(labels[i]) or "(empty text)", counts[i], rows) for i in order]
    if len(labels) > MAX_BARS:
        others = _bar(f"{len(labels) - len(order):,} other values", rest, rows)
        bars.append(others | {"together": True})
    return {"form": "bars", "bars": bars}


def _spread(column: Ordered, offsets: np.ndarray, rows: int) -> Json:
    """Return a histogram: bins with their ends as fractions of the axis, and the ticks of the axis."""
    if column.kind == "ordinal" and len(column.values) <= MAX_BARS:
        return _bars(
            column.naming.of_labels(column.values), np.bincount(offsets, minlength=len(column.values)).tolist(), rows
        )
    if column.kind == "number":
        edges = np.arange(NUMBER_BINS + 1) / NUMBER_BINS
        codes = np.minimum((offsets + _ROUNDING) * NUMBER_BINS, NUMBER_BINS - 1).astype(np.int64)
    else:
        edges = np.array(
            _whole_edges(column.reach + 1) if column.clock is None else _calendar_edges(column, column.clock)
        )
        codes = np.searchsorted(edges, offsets.astype(np.int64), side="right") - 1
    counts = np.bincount(codes, minlength=len(edges) - 1)
    ends = edges / edges[-1]
    bins = [
        {"from": float(a), "to": float(b), "count": int(c), "share": int(c) / max(rows, 1)}
        for a, b, c in zip(ends, ends[1:], counts, strict=False)
    ]
    return {"form": "histogram", "bins": bins, "ticks": _ticks(column)}


def _mean_mark(column: Ordered, average: float, off: float) -> Json:
    """Return the position of the mean on the axis, and the certified range of the real mean, which is `off` in the
    column's own units."""
    length, half = (1.0, 0.0) if column.kind == "number" else (column.reach + 1.0, 0.5)
    reach = 1.0 if column.kind == "number" else float(column.reach)
    move = off / (span(column) or 1.0) * reach
    low, high = max(0.0, average - move), min(reach, average + move)
    return {"at": (average + half) / length, "from": (low + half) / length, "to": (high + half) / length}


def _whole_edges(values: int) -> list[int]:
    width = max(1, math.ceil(numerals.step(values / MAX_BINS)))
    return [*range(0, values, width), values]


def _calendar_edges(column: Ordered, clock: Clock) -> list[int]:
    """Return bin edges: seconds to weeks, or the first days of months and years within the column's range."""
    ticks, low = column.reach + 1, int(column.low)
    for seconds in _BIN_SECONDS:
        width, rest = divmod(seconds, clock.seconds)
        if not rest and ticks <= MAX_BINS * width:
            return [*range(0, ticks, width), ticks]
    first, last = (clock.moment(low + tick) for tick in (0, ticks - 1))
    begin, end = (12 * d.year + d.month - 1 for d in (first, last))
    step = next((m for m in _BIN_MONTHS if (end - begin) / m < MAX_BINS - 1), 12_000)
    starts = [datetime.date(m // 12, m % 12 + 1, 1) for m in range(-(-(begin + 1) // step) * step, end + 1, step)]
    return [0, *(clock.number(start) - low for start in starts), ticks]


def _ticks(column: Ordered) -> list[Json]:
    """Return the ends of the range, and round numbers that are not close to them."""
    if column.kind == "ordinal":
        names = column.naming.of_labels([column.values[0], column.values[-1]])
        ends, inner = [numerals.text(name) for name in names], []
    elif column.clock is not None:
        shown = 10 if column.reach * column.clock.seconds > 2 * _DAY_SECONDS else 16  # the day, or the minute as well
        ends = [column.clock.text(int(v))[:shown] for v in (column.low, column.high)]
        inner = _times(column) or _years(column, column.clock)
    else:
        ends = [numerals.plain(column.low), numerals.plain(column.high)]
        half, length = (0.0, span(column)) if column.kind == "number" else (0.5, span(column) + 1)
        step = numerals.step(span(column) / 4)
        if column.whole:
            step = max(1.0, math.ceil(step))
        first = math.ceil(column.low / step)
        inside = [(first + i) * step for i in range(6) if column.low < (first + i) * step < column.high]
        inner = [((v - column.low + half) / length, numerals.plain(float(f"{v:.12g}"))) for v in inside]
    room = 0.17 if column.clock is None else 0.25 if len(ends[0]) <= 10 else 0.4
    kept = [{"at": at, "label": label} for at, label in inner if room < at < 1 - room]
    return [{"at": 0.0, "label": ends[0]}, *kept, {"at": 1.0, "label": ends[1]}]


def _times(column: Ordered) -> list[tuple[float, str]]:
    """Return round times of day, or days, of a column of times whose range is short enough for them."""
    step = next((seconds for seconds in _BIN_SECONDS if column.reach <= 4 * seconds), None)
    if column.clock is not SECONDS or step is None:
        return []
    low, high = int(column.low), int(column.high)
    part = slice(0, 10) if step >= _DAY_SECONDS else slice(11, 19 if step < 60 else 16)
    times = range(-(-(low + 1) // step) * step, high, step)
    return [((time - low) / (column.reach + 1), SECONDS.text(time)[part]) for time in times]


def _years(column: Ordered, clock: Clock) -> list[tuple[float, str]]:
    first, last = (clock.moment(int(v)).year for v in (column.low, column.high))
    step = math.ceil(numerals.step(max(last - first, 1) / 4))
    years = range(-(-(first + 1) // step) * step, last + 1, step)
    starts = [(clock.number(datetime.date(y, 1, 1)) - int(column.low), y) for y in years]
    return [(ticks / (column.reach + 1), str(y)) for ticks, y in starts]
