"""Answers about pairs of columns, for the page: shares of cells and means of groups, as `certsynth answer` states them.

A reader chooses a label or a range of either column. Ranges are those between a few borders, so that the page can hold
the answers to all such questions. The more columns there are, the fewer borders.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from certsynth.answers.answer import Answer
from certsynth.answers.asking import Found, in_units
from certsynth.answers.basis import Basis, span
from certsynth.answers.crosstab_means import GroupMeans
from certsynth.answers.crosstabs import Crosstab, Ranges
from certsynth.answers.queries import written_name
from certsynth.answers.sides import Side
from certsynth.answers.silence import is_whole_range
from certsynth.answers.tables import Bin, bins_of, texts_of_ends
from certsynth.domain import Category, Column, Ordered
from certsynth.report import numerals

MAX_ANSWERS = 16_000
"""Answers about pairs in a page, at about twelve bytes each: with more it would take long to open."""
MAX_ANSWERS_OF_PAIR = 2_000
"""Answers about one pair: it has no table if its columns have more labels than that."""
MAX_ROWS_COUNTED = 3 * 10**8
"""Rows that are counted for all pairs together, which takes some seconds; further pairs have no table."""
MAX_BANDS = 10
"""Bands of a column that are its ranges; a column with more has ranges of equal width."""
CHOICES = ((5, True), (4, True), (6, False), (5, False), (4, False), (3, False))
"""How many ranges an ordered column has, and whether all unions of neighbouring ones are answered, too: the first that
leads to at most MAX_ANSWERS."""

BETWEEN, AFTER, NOTHING, NAME = "|", ";", "!", "\x01"
"""Signs between estimate, low and high of an answer, after an answer, behind one that says nothing, and for the name of
the column in a condition."""
DECIMALS = "abcdefghijklm"
"""Signs between the numbers of an answer: the letter says how many decimals they have."""

_OUTWARD = 1e-9  # by which `answer` moves the ends of a share
_UNSURE = 1e-6  # far more than a product of floats below 10⁷ is off by
_MAX_DIGITS = 15  # of numbers that a script adds without rounding

Json = dict[str, Any]
Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Said:
    """Estimate, low and high as texts. `nothing`: the interval holds all possible values."""

    estimate: str
    low: str
    high: str
    nothing: bool

    @property
    def text(self) -> str:
        """In few characters, as the script reads it."""
        return packed((self.estimate, self.low, self.high)) + (NOTHING if self.nothing else "")


@dataclass(frozen=True, slots=True, eq=False)
class PairAnswer:
    """The shares of the cells of two columns, by the sets of the first and of the second, and the means of each column
    in the groups of the other; None if a column has no mean. The mean of a group without values is not a number."""

    shares: Ranges
    mean_of_first: Ranges | None
    mean_of_second: Ranges | None


@dataclass(frozen=True, slots=True, eq=False)
class PairAnswers:
    """The sides of the columns that can be chosen, by their places in the schema, and answers about pairs of them."""

    sides: Mapping[int, Side]
    pairs: Mapping[Pair, PairAnswer]

    @classmethod
    def of(cls, basis: Basis, columns: Mapping[int, Column]) -> PairAnswers:
        """The answers about these columns, by their places in the schema: as many as a page can hold."""
        pairs = [
            (i, j)
            for i, j in itertools.combinations(sorted(columns), 2)
            if basis.covers((columns[i].name, columns[j].name))
        ]
        if not basis.errors.two < 1 or not pairs:
            return cls({}, {})
        bins, kept, runs = _choose(columns, pairs)
        kept = kept[: MAX_ROWS_COUNTED // basis.size]
        sides = {
            i: side
            for i in sorted({i for pair in kept for i in pair})
            if (side := Side.of(basis, columns[i], bins[i], runs=runs)) is not None
        }
        found = {(i, j): _answer_pair(sides[i], sides[j]) for i, j in sorted(kept) if i in sides and j in sides}
        return cls(sides, found)

    def bins(self, i: int) -> list[int]:
        """The numbers of those sets of a column that are single bins, in order."""
        side = self.sides[i]
        return [k for k in range(len(side.sets)) if side.contains[k].sum() == 1]

    def to_json(self) -> Json:
        """All answers as texts, for the calculator's script."""
        tables, means = {}, {}
        for (i, j), found in self.pairs.items():
            tables[f"{i},{j}"] = self._table(i, j, found.shares)
            for groups, line, ranges in ((j, i, found.mean_of_first), (i, j, found.mean_of_second)):
                if ranges is not None:
                    means[f"{groups},{line}"] = self._means(groups, line, ranges)
        return {"sides": {str(i): self._side(i) for i in self.sides}, "tables": tables, "means": means}

    def _side(self, i: int) -> Json:
        """The labels of a column, or the ends of its ranges; its sets as conditions of a query; their shares."""
        side, ranges = self.sides[i], []
        of_labels = isinstance(side.column, Category)  # whose labels the page has anyway
        if side.runs:
            ranges = [ends_of(side.column, side.sets[k]) for k in self.bins(i) if side.sets[k].ends]
        return {
            "labels": [] if ranges or of_labels else [label_of(side.column, each) for each in side.sets],
            "ranges": ranges,
            "missing": side.column.missing,
            "asked": [_condition(side.column, each) for each in side.sets],
            "shares": AFTER.join(
                share_text(size / side.basis.size, claim.low, claim.high)
                for size, claim, _ in zip(side.sizes.tolist(), side.claims, side.sets, strict=False)
            ),
        }

    def _table(self, i: int, j: int, found: Ranges) -> str:
        cells = itertools.product(range(len(self.sides[i].sets)), range(len(self.sides[j].sets)))
        return AFTER.join(share_text(*found.at(*cell)) for cell in cells)

    def _means(self, groups: int, line: int, found: Ranges) -> str:
        column = self.sides[line].column
        assert isinstance(column, Ordered)
        each = (found.at(k) for k in range(len(self.sides[groups].sets)))
        return AFTER.join("" if math.isnan(mean[0]) else mean_text(column, *mean) for mean in each)


NO_PAIRS = PairAnswers({}, {})


def _choose(columns: Mapping[int, Column], pairs: Sequence[Pair]) -> tuple[dict[int, list[Bin]], list[Pair], bool]:
    """The bins of all columns, the pairs with few enough answers, the fewest first, and whether runs are answered."""
    for ranges, runs in CHOICES:
        bins = {i: _bins(column, ranges) for i, column in columns.items()}
        sizes = {i: _number_of_sets(column, len(bins[i]), runs=runs) for i, column in columns.items()}
        numbers = [(_number_of_answers(columns[i], columns[j], sizes[i], sizes[j]), i, j) for i, j in pairs]
        few = sorted(each for each in numbers if each[0] <= MAX_ANSWERS_OF_PAIR)
        if sum(number for number, _, _ in few) <= MAX_ANSWERS:
            break
    totals = itertools.accumulate(number for number, _, _ in few)
    return bins, [(i, j) for (_, i, j), total in zip(few, totals, strict=True) if total <= MAX_ANSWERS], runs


def _answer_pair(first: Side, second: Side) -> PairAnswer:
    crosstab = Crosstab(first, second)
    means = [
        GroupMeans(crosstab, first=side is first).means if has_mean(side.column) else None for side in (first, second)
    ]
    return PairAnswer(crosstab.shares, *means)


def has_mean(column: Column) -> bool:
    """Whether groups have means of this column in the page: those of a column by ratios take too long to compute."""
    return isinstance(column, Ordered) and not column.grid and span(column) > 0


def share_text(estimate: float, low: float, high: float) -> str:
    """Estimate, low and high of a share in per cent for the script, with the digits of `certsynth answer`."""
    return _quick_share_text(estimate, low, high) or said_share(estimate, low, high).text


def _quick_share_text(estimate: float, low: float, high: float) -> str | None:
    """The same, without decimal numbers, of which a page has thousands; None where a rounding error could matter."""
    if high == 0.0:
        return None
    least, most = max(0.0, low - _OUTWARD), min(1.0, high + _OUTWARD)  # as `outward` does for a range of length 1
    width = most - least
    if not 1e-5 < width < 1:
        return None
    exponent = math.log10(width)
    if abs(exponent - round(exponent)) < _UNSURE:
        return None
    places = max(1 - math.floor(exponent), 2)
    units = 10**places
    at, first, last = estimate * units, least * units, most * units
    sure = (first == 0.0 or abs(first - round(first)) > _UNSURE) and (most == 1.0 or abs(last - round(last)) > _UNSURE)
    if not sure or abs(at - math.floor(at) - 0.5) < _UNSURE or not least <= estimate <= most:
        return None
    near, sign = round(at), DECIMALS[places - 2]
    says_nothing = low <= _OUTWARD and high >= 1.0 - _OUTWARD
    ends = near - math.floor(first), (units if most == 1.0 else math.ceil(last)) - near
    return f"{near}{sign}{ends[0]}{sign}{ends[1]}" + (NOTHING if says_nothing else "")


def said_share(estimate: float, low: float, high: float) -> Said:
    found = Found((estimate, low, high), 1.0, "", "share", 0.0, 1.0)
    return _said(found, [_in_percent(each) for each in _answer(found).shown()])


def mean_text(column: Ordered, estimate: float, low: float, high: float) -> str:
    """Estimate, low and high of a mean place for the script, with the digits of `certsynth answer`."""
    return said_mean(column, estimate, low, high).text


def said_mean(column: Ordered, estimate: float, low: float, high: float) -> Said:
    """A mean place in the column's own units; for ordinals, places in the list from 1."""
    first, last = (1.0, span(column) + 1) if column.kind == "ordinal" else (float(column.low), float(column.high))
    at, least, most = (span(column) * each + first for each in (estimate, low, high))
    found = Found((at, least, most), 1.0, "", "", first, last, column if column.clock is not None else None)
    return _said(found, _answer(found).shown())


def _answer(found: Found) -> Answer:
    return Answer("", *in_units(found), 1.0, "", "", 1.0)


def _said(found: Found, shown: Sequence[str]) -> Said:
    estimate, low, high = shown
    return Said(estimate, low, high, is_whole_range(found.interval, found.least, found.most))


def packed(shown: Sequence[str]) -> str:
    """Estimate, low and high in few characters: numbers with the same decimals as the estimate, without its point, and
    how far the ends are below and above it.

    >>> packed(["12.3", "10.5", "14.2"]), packed(["-3", "-4", "2"]), packed(["2020-01-02", "2020-01-01", "2020-01-04"])
    ('123b18b19', '-3a1a5', '2020-01-02|2020-01-01|2020-01-04')
    """
    decimals = {len(each.partition(".")[2]) for each in shown}
    digits = [each.replace(".", "") for each in shown]
    if len(decimals) > 1 or not all(map(_is_plain, digits)):
        return BETWEEN.join(shown)
    estimate, low, high = map(int, digits)
    return f"{DECIMALS[decimals.pop()]}".join(map(str, (estimate, estimate - low, high - estimate)))


def _is_plain(digits: str) -> bool:
    """Whether digits are those of a whole number that is not too large; a zero with a sign is a text."""
    return digits.removeprefix("-").isdecimal() and len(digits) < _MAX_DIGITS and (digits[0] != "-" or int(digits) != 0)


def _in_percent(share: str) -> str:
    """A decimal number times 100, with the same digits.

    >>> _in_percent("0.123"), _in_percent("0.0050"), _in_percent("1.000"), _in_percent("0")
    ('12.3', '0.50', '100.0', '0')
    """
    whole, _, digits = share.partition(".")
    digits = digits.ljust(2, "0") if whole != "0" or digits else digits
    moved = f"{whole}{digits[:2]}".lstrip("0") or "0"
    return f"{moved}.{digits[2:]}" if digits[2:] else moved


def _bins(column: Column, ranges: int) -> list[Bin]:
    if isinstance(column, Ordered) and column.bands and len(column.bands) < MAX_BANDS:
        return bins_of(column, None)
    return bins_of(column, ranges if isinstance(column, Ordered) else None)


def _number_of_answers(first: Column, second: Column, sets: int, other_sets: int) -> int:
    return sets * other_sets + sets * has_mean(second) + other_sets * has_mean(first)


def _condition(column: Column, part: Bin) -> str:
    """The condition of a set in a query, without the name of the column."""
    name, text = written_name(column.name), part.text
    before, after = "", text.removeprefix(name)
    if after == text:  # from … <= name <= …
        start, _, end = text.partition(f"<= {name} <")
        before, after = f"{start}<= ", f" <{end}"
    return f"{numerals.text(before, most=400)}{NAME}{numerals.text(after, most=400)}"


def _number_of_sets(column: Column, bins: int, *, runs: bool) -> int:
    ranges = bins - column.missing
    return ranges * (ranges + 1) // 2 + column.missing if runs and isinstance(column, Ordered) else bins


def label_of(column: Column, part: Bin) -> str:
    """The label of a set for readers."""
    if part.label is None:
        return "missing"
    (name,) = column.naming.of_labels([part.label])
    return numerals.text(name, most=200) or "(empty text)"


def ends_of(column: Column, part: Bin) -> list[str]:
    """The first and the last value of a range for readers."""
    assert isinstance(column, Ordered)
    return [numerals.text(name, most=200) for name in column.naming.of_labels(texts_of_ends(column, part))]
