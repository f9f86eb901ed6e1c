"""Answers about pairs of columns, for the page: shares of cells and means of groups, as `certsynth answer` states them.

A reader chooses a label or a range of either column. Ranges are those between a few borders, so that the page can hold
the answers to all such questions. The more columns there are, the fewer borders, and the fewer labels of columns with
many: then the most frequent ones.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

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
from certsynth.domain.expression import Among, Chain, Constant, Name, Not
from certsynth.report import numerals
from certsynth.report.packing import Numbers, Texts, pack, packable

MAX_ANSWERS = 52_000
"""Answers about pairs in a page, at about four bytes each."""
MAX_ANSWERS_OF_PAIR = 2_000
"""Answers about one pair."""
MAX_ROWS_COUNTED = 3 * 10**8
"""Rows that are counted for all pairs together, which takes some seconds; further pairs have no table."""
MAX_BANDS = 10
"""Bands of a column that are its ranges; a column with more has ranges of equal width."""
RANGES = ((5, True), (4, True), (6, False), (3, True), (4, False), (3, False), (2, False))
"""How many ranges an ordered column has, and whether all unions of neighbouring ones are answered, too: from the most
sets to the fewest."""
MAX_LABEL_BYTES = 150_000
"""Bytes of labels of columns whose labels are not all answered, and of conditions on them, for all columns together."""

NAME = "\x01"
"""Sign for the name of the column in a condition."""

_OUTWARD = 1e-9  # by which `answer` moves the ends of a share
_UNSURE = 1e-6  # far more than a product of floats below 10⁷ is off by
_OTHERS = "other labels"

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
    def packable(self) -> Numbers | Texts:
        return packable((self.estimate, self.low, self.high), nothing=self.nothing)


@dataclass(frozen=True, slots=True)
class Sets:
    """The bins of a column, and whether all unions of consecutive ones are sets, too.

    `rest`: the number of the bin of all labels that are not answered one by one; None if there is none.
    """

    bins: Sequence[Bin]
    runs: bool = False
    rest: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class PairAnswer:
    """The shares of the cells of two columns, by the sets of the first and of the second, and the means of each column
    in the groups of the other; None if a column has no mean. The mean of a group without values is not a number."""

    shares: Ranges
    mean_of_first: Ranges | None
    mean_of_second: Ranges | None


@dataclass(frozen=True, slots=True, eq=False)
class PairAnswers:
    """The sides of the columns that can be chosen, by their places in the schema, and answers about pairs of them.

    `rests`: the numbers of bins that only hold labels that are not answered one by one, by the column's place.
    """

    sides: Mapping[int, Side]
    pairs: Mapping[Pair, PairAnswer]
    rests: Mapping[int, int]

    @classmethod
    def of(cls, basis: Basis, columns: Mapping[int, Column]) -> PairAnswers:
        """The answers about these columns, by their places in the schema: as many as a page can hold."""
        pairs = [
            (i, j)
            for i, j in itertools.combinations(sorted(columns), 2)
            if basis.covers((columns[i].name, columns[j].name))
        ]
        if not any(basis.errors((columns[i].name, columns[j].name)).two < 1 for i, j in pairs):
            return NO_PAIRS
        chosen = _choose(basis, columns, pairs)
        sides = {
            i: side
            for i in sorted({i for pair in pairs for i in pair})
            if (side := Side.of(basis, columns[i], chosen[i].bins, runs=chosen[i].runs)) is not None
        }
        kept = [(i, j) for i, j in pairs if i in sides and j in sides]
        kept.sort(key=lambda pair: len(sides[pair[0]].sets) * len(sides[pair[1]].sets))
        kept = kept[: MAX_ROWS_COUNTED // basis.size]
        found = {(i, j): _answer_pair(sides[i], sides[j]) for i, j in sorted(kept)}
        rests = {i: rest for i in sides if (rest := chosen[i].rest) is not None}
        return cls(sides, found, rests)

    def shown(self, i: int) -> list[int]:
        """The numbers of the sets of a column that a reader can choose."""
        return [k for k in range(len(self.sides[i].sets)) if k != self.rests.get(i)]

    def bins(self, i: int) -> list[int]:
        """The numbers of those sets of a column that are single bins, in order."""
        side = self.sides[i]
        return [k for k in range(len(side.sets)) if side.contains[k].sum() == 1]

    def to_json(self) -> Json:
        """All answers for the calculator's script: the shares of the cells of all pairs as one text, and in each side
        the means of its column in the groups of all others, also in the order of the pairs."""
        complete = list(self.pairs) == list(itertools.combinations(self.sides, 2))
        return {
            "sides": {str(i): self._side(i) for i in self.sides},
            "pairs": None if complete else [i for pair in self.pairs for i in pair],
            "shares": pack(
                packable_share(*found.shares.at(*cell))
                for (i, j), found in self.pairs.items()
                for cell in itertools.product(self.shown(i), self.shown(j))
            ),
        }

    def _side(self, i: int) -> Json:
        """The labels of a column, or the ends of its ranges; its sets as conditions of a query; their shares.

        Labels are left out if they are all those of the column, which the page has anyway.
        """
        side, shown, ranges = self.sides[i], self.shown(i), []
        if side.runs:
            ranges = [ends_of(side.column, side.sets[k]) for k in self.bins(i) if side.sets[k].ends]
        listed = i in self.rests if isinstance(side.column, Category) else not ranges
        sizes, claims = side.sizes.tolist(), side.claims
        return {
            "labels": [label_of(side.column, side.sets[k]) for k in shown] if listed else [],
            "ranges": ranges,
            "missing": side.column.missing,
            "rest": i in self.rests,
            "means": pack(self._means(i)) if has_mean(side.column) else None,
            "asked": [_condition(side.column, side.sets[k]) for k in shown],
            "shares": pack(packable_share(sizes[k] / side.basis.size, claims[k].low, claims[k].high) for k in shown),
        }

    def _means(self, line: int) -> Iterator[Numbers | Texts | None]:
        """The means of a column in all groups of all columns that it has a table with."""
        column = self.sides[line].column
        assert isinstance(column, Ordered)
        for (i, j), found in self.pairs.items():
            ranges = found.mean_of_first if line == i else found.mean_of_second if line == j else None
            if ranges is None:
                continue
            for k in self.shown(j if line == i else i):
                mean = ranges.at(k)
                yield None if math.isnan(mean[0]) else packable_mean(column, *mean)


NO_PAIRS = PairAnswers({}, {}, {})


def _choose(basis: Basis, columns: Mapping[int, Column], pairs: Sequence[Pair]) -> dict[int, Sets]:
    """The sets of all columns, with the largest limit on the sets of a column at which all pairs fit."""
    ways = {i: _ways(basis, column, MAX_LABEL_BYTES // len(columns)) for i, column in columns.items()}

    def fits(most: int) -> bool:
        sizes = {i: ways[i](most)[0] for i in columns}
        numbers = [_number_of_answers(columns[i], columns[j], sizes[i], sizes[j]) for i, j in pairs]
        return max(numbers) <= MAX_ANSWERS_OF_PAIR and sum(numbers) <= MAX_ANSWERS

    most = bisect.bisect_left(range(1, MAX_ANSWERS_OF_PAIR + 1), True, key=lambda most: not fits(most))
    return {i: ways[i](max(most, 1))[1]() for i in columns}


def _ways(basis: Basis, column: Column, room: int) -> Callable[[int], tuple[int, Callable[[], Sets]]]:
    """Return a function from a number of sets to the largest choice with no more, or else to the smallest: the number
    of its sets, and the sets. Labels may use `room` bytes if not all are answered."""
    if isinstance(column, Ordered):
        bands = bins_of(column, None) if column.bands and len(column.bands) < MAX_BANDS else []
        choices = [Sets(bands, runs) for runs in (True, False) if bands]
        choices += [Sets(bins_of(column, ranges), runs) for ranges, runs in RANGES]
        sized = sorted(
            ((_number_of_sets(column, len(each.bins), runs=each.runs), -k, each) for k, each in enumerate(choices)),
            reverse=True,
        )

        def of_ranges(most: int) -> tuple[int, Callable[[], Sets]]:
            number, _, found = next((each for each in sized if each[0] <= most), sized[-1])
            return number, lambda: found

        return of_ranges
    assert isinstance(column, Category)
    counts = np.bincount(basis.clean[column.name], minlength=len(column.labels))[: len(column.labels)]
    order = sorted(range(len(column.labels)), key=lambda i: (-int(counts[i]), i))
    texts = [*zip(column.labels, column.naming.of_labels(column.labels), strict=True)]  # in conditions, and in the list
    lengths = itertools.accumulate(sum(len(text.encode(errors="replace")) + 8 for text in texts[i]) for i in order)
    fitting = sum(length <= room for length in lengths)

    def of_labels(most: int) -> tuple[int, Callable[[], Sets]]:
        labels = len(column.labels)
        if labels + column.missing <= most and fitting == labels:
            return labels + column.missing, lambda: Sets(bins_of(column, None))
        labels = max(min(most - column.missing, fitting, labels - 1), 1)
        return labels + column.missing, lambda: _most_frequent(column, sorted(order[:labels]))

    return of_labels


def _most_frequent(column: Category, kept: Sequence[int]) -> Sets:
    """The sets of some labels, one for all others, and that of missing values."""
    bins = bins_of(column, None)
    constants = (node.terms[1] for k in kept if isinstance(node := bins[k].condition, Chain))
    listed = tuple(each for each in constants if isinstance(each, Constant))
    others = Bin(_OTHERS, "", Not(0, Among(0, Name(0, column.name), listed)))
    return Sets([*(bins[k] for k in kept), others, *bins[len(column.labels) :]], rest=len(kept))


def _answer_pair(first: Side, second: Side) -> PairAnswer:
    crosstab = Crosstab(first, second)
    means = [
        GroupMeans(crosstab, first=side is first).means if has_mean(side.column) else None for side in (first, second)
    ]
    return PairAnswer(crosstab.shares, *means)


def has_mean(column: Column) -> bool:
    """Whether groups have means of this column in the page: those of a column by ratios take too long to compute."""
    return isinstance(column, Ordered) and not column.grid and span(column) > 0


def packable_share(estimate: float, low: float, high: float) -> Numbers | Texts:
    """Estimate, low and high of a share in per cent for the script, with the digits of `certsynth answer`."""
    return _quick_share(estimate, low, high) or said_share(estimate, low, high).packable


def _quick_share(estimate: float, low: float, high: float) -> Numbers | None:
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
    near = round(at)
    says_nothing = low <= _OUTWARD and high >= 1.0 - _OUTWARD
    above = (units if most == 1.0 else math.ceil(last)) - near
    return Numbers(places - 2, near, near - math.floor(first), above, says_nothing)


def said_share(estimate: float, low: float, high: float) -> Said:
    found = Found((estimate, low, high), 1.0, "", "share", 0.0, 1.0)
    return _said(found, [_in_percent(each) for each in _answer(found).shown()])


def packable_mean(column: Ordered, estimate: float, low: float, high: float) -> Numbers | Texts:
    """Estimate, low and high of a mean place for the script, with the digits of `certsynth answer`. Dates and times are
    ticks of the column's clock, if these say the same."""
    said = said_mean(column, estimate, low, high)
    if column.clock is None:
        return said.packable
    texts = [said.estimate, said.low, said.high]
    at, first, last = ticks = [column.clock.read(text) for text in texts]
    if [column.clock.text(tick) for tick in ticks] != texts:
        return said.packable
    return Numbers(0, at, at - first, last - at, said.nothing)


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


def _in_percent(share: str) -> str:
    """A decimal number times 100, with the same digits.

    >>> _in_percent("0.123"), _in_percent("0.0050"), _in_percent("1.000"), _in_percent("0")
    ('12.3', '0.50', '100.0', '0')
    """
    whole, _, digits = share.partition(".")
    digits = digits.ljust(2, "0") if whole != "0" or digits else digits
    moved = f"{whole}{digits[:2]}".lstrip("0") or "0"
    return f"{moved}.{digits[2:]}" if digits[2:] else moved


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
    if part.label is None or not part.text:
        return part.label or "missing"
    (name,) = column.naming.of_labels([part.label])
    return numerals.text(name, most=200) or "(empty text)"


def ends_of(column: Column, part: Bin) -> list[str]:
    """The first and the last value of a range for readers."""
    assert isinstance(column, Ordered)
    return [numerals.text(name, most=200) for name in column.naming.of_labels(texts_of_ends(column, part))]
