"""Answers beside the tables that are within their bound: is there one whose statistic lies outside of the interval?

    python audits/intervals.py [--quick] [--answers N] [--seed S]

Small schemas of every kind are made up, with weights, missing values and columns of one value, then synthetic rows, a
certificate and a query. All possible rows are listed (`within.py`), and the tables within the bound that make the
statistic largest and smallest are computed by linear programming, with a second implementation of what queries mean
(`questions.py`). The interval of `certsynth.answers` must hold their statistics, and so must its texts. Half of the
bounds are those of another table of whole rows, which is asked as well.

Controls: the same with bounds that are a fifth too small, and with a sum whose ends are not put in order.
"""

from __future__ import annotations

import datetime
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np

from certsynth.answers import Answer, Basis, answer, answer_function
from certsynth.domain import Schema
from certsynth.errors import InputError
from certsynth.record.record import CertificateRecord, PlugInRecords, PlugInTerms, SubsetRecord
from questions import KINDS, Asker, Question, column
from within import Near, World, moment_figure, moved
from writing import asked_for, say_versions, table, write

ANSWERS = 100_000
QUICK = 2_000
LARGEST_WORLD = 130
"""Possible rows of a made-up schema."""
PER_TABLE = 4
"""Questions about the same synthetic rows."""
TIGHT = 1e-4
"""How near to an end of the interval a table must come to count as one that attains it, as a share of its width."""
RELATIVE = 1e-9
"""What floats may lose, as a share of the figures."""


@dataclass(slots=True)
class Tally:
    """What was asked: answers by form, ends of intervals that some table attains, refusals, and what was outside."""

    answers: Counter[str] = field(default_factory=Counter)
    attained: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    tables: int = 0
    outside: list[str] = field(default_factory=list)
    outside_forms: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return sum(self.answers.values())

    def rows(self) -> list[dict[str, Any]]:
        return [
            {
                "form": form,
                "answers": number,
                "ends attained": f"{self.attained[form] / (2 * number):.0%}",
                "outside": self.outside_forms[form],
            }
            for form, number in sorted(self.answers.items())
        ]


def run(
    answers: int,
    *,
    seed: int = 0,
    shrink: float = 1.0,
    keep: Callable[[Question], bool] | None = None,
    kinds: Sequence[str] = KINDS,
) -> Tally:
    """Ask until there are so many answers. `shrink`: what bounds are multiplied by before `answer` is told."""
    rng, tally = np.random.default_rng(seed), Tally()
    while tally.total < answers:
        world = _world(rng, kinds)
        counts = rng.multinomial(int(rng.integers(1, 16)), rng.dirichlet(np.full(world.size, 0.2)))
        asker = Asker(rng, world, int(counts.sum()))
        for _ in range(PER_TABLE):
            question = asker.question()
            if question is not None and (keep is None or keep(question)):
                _ask(rng, world, counts, question, tally, shrink)
    return tally


def _world(rng: np.random.Generator, kinds: Sequence[str]) -> World:
    while True:
        number = int(rng.choice([1, 2, 2, 3]))
        columns = [column(rng, f"c{i}", str(rng.choice(kinds))) for i in range(number)]
        world = World(Schema(columns=tuple(columns)), rng)
        if world.size <= LARGEST_WORLD:
            return world


def _ask(
    rng: np.random.Generator, world: World, counts: np.ndarray, question: Question, tally: Tally, shrink: float
) -> None:
    """One question: the certificate is about its columns, or about more than them where it has another bound."""
    distance = world.distance(question.columns)
    private = None
    bound = float(rng.choice([0.0, 1e-6, 0.01, 1.0, rng.uniform(0, 0.1), rng.uniform(0, 1)]))
    if rng.integers(2):
        private, cost = moved(rng, counts, distance, int(rng.integers(0, 6)))
        bound = cost(distance)
    basis = _basis(rng, world, counts, question.columns, bound, shrink)
    try:
        found = (
            question.apply(lambda *a, **k: answer_function(basis, *a, **k))
            if question.apply
            else answer(basis, question.text)
        )
    except InputError as error:
        tally.refused[str(error).rpartition(": ")[2][:60]] += 1
        return
    tables = question.search(Near.of(counts, distance, bound))
    if private is not None:
        tables.append(private / private.sum())
    values = [value for each in (*tables, counts / counts.sum()) if (value := question.value(each)) is not None]
    tally.answers[question.form] += 1
    tally.tables += len(values)
    wrong = judge(found, question, values)
    if wrong:
        tally.outside_forms[question.form] += 1
        tally.outside.append(f"{wrong}; bound {bound}; {list(world.schema)}; counts {counts.tolist()}; {found}")
        return
    low, high = (_plain(end) for end in (found.low, found.high))
    width = TIGHT * (high - low) + RELATIVE * (abs(low) + abs(high)) + (1.0 if question.whole else 0.0)
    if values:
        tally.attained[question.form] += (min(values) <= low + width) + (max(values) >= high - width)


def _basis(
    rng: np.random.Generator, world: World, counts: np.ndarray, names: tuple[str, ...], bound: float, shrink: float
) -> Basis:
    """Subsets of several sizes, as a workload has them: the bound of the question is the smallest that covers it."""
    told, larger = shrink * bound, min(1.0, 1.5 * bound + 0.01)
    subsets = [(tuple(names), told)]
    if set(names) != set(world.schema.names):
        subsets.append((tuple(world.schema.names), larger))
    if len(names) == 1 and rng.integers(2):  # the bound of single columns is the smaller one
        subsets[0] = (subsets[0][0], larger)
    certificate = CertificateRecord(
        bound=max(bound for _, bound in subsets),
        confidence=0.95,
        kind="plug-in",
        terms=PlugInTerms(0.0, 0.0, 0.0),
        single_column_bound=told if len(names) == 1 else larger,
        subsets=tuple(SubsetRecord(columns, bound) for columns, bound in subsets),
        direct=None,
        single_column=None,
        plug_in=PlugInRecords(),
        no_plug_in=None,
    )
    clean = {name: np.repeat(values, counts) for name, values in world.clean.items()}
    written = {c.name: c.decode(clean[c.name]) for c in world.schema}
    return Basis(world.schema, written, clean, certificate, int(counts.sum()))


def judge(found: Answer, question: Question, values: list[float]) -> str:
    """What is wrong with an answer, given values that the statistic has for tables within the bound; or nothing."""
    estimate, low, high = (_plain(each, found) for each in (found.estimate, found.low, found.high))
    slack = RELATIVE * max(abs(low), abs(high), 1e-3 if question.form in ("variance", "covariance") else 0.0)
    if not all(map(math.isfinite, (estimate, low, high))):
        return f"{question.text}: a figure that is no number"
    if not low <= estimate <= high:
        return f"{question.text}: not in order"
    beyond = low < question.least - slack - 1e-9 or high > question.most + slack + 1e-9
    if beyond and found.unit not in ("date", "datetime"):  # means of these are rounded outward to whole days or seconds
        return f"{question.text}: beyond what is public, {question.least} to {question.most}"
    reach = (
        [math.ceil(v - 1e-6) if question.whole else v for v in values],
        [math.floor(v + 1e-6) if question.whole else v for v in values],
    )
    ends = [(low, high)]
    if isinstance(found.low, float):
        _, down, up = (Decimal(text) for text in found.shown())
        ends.append((float(down), float(up)))
    for least, most in ends:
        if max(reach[1], default=most) > most + slack + 1e-12 or min(reach[0], default=least) < least - slack - 1e-12:
            return f"{question.text}: from {min(values)} to {max(values)}"
    return ""


def _plain(value: Any, found: Answer | None = None) -> float:
    """Figures, days or seconds since 1970-01-01, and places of labels in a list."""
    if isinstance(value, datetime.date):
        return moment_figure(value)
    return float(("low", "middle", "high", "top").index(value)) if isinstance(value, str) else float(value)


def unordered_sums(answers: int, *, seed: int = 0) -> Tally:
    """The control: sums over values that may be missing, cut to a range whose ends are not put in order."""
    from unittest import mock

    from certsynth.answers import moments

    sound = moments.total

    def broken(*given: Any, ends: tuple[float, float]) -> Any:
        estimate, least, most = sound(*given, ends=ends)
        return estimate, max(least, min(ends[0], 0.0)), min(most, max(ends[1], 0.0))

    def missing(question: Question) -> bool:
        return question.form == "sum"

    with mock.patch.object(moments, "total", broken):
        return run(answers, seed=seed, keep=missing)


def main() -> int:
    wanted, seed = asked_for(__doc__, answers=ANSWERS, quick=QUICK)
    say_versions("certsynth", "numpy")
    begun = time.process_time()
    tally = run(wanted, seed=seed)
    print(table(tally.rows()))
    for line in tally.outside[:5]:
        print(line)
    small = run(max(wanted // 20, 500), seed=seed + 1, shrink=0.8)
    signs = unordered_sums(200, seed=seed + 2)
    print(
        f"{tally.total:,} answers, {tally.tables:,} tables within their bounds, {len(tally.outside)} outside; "
        f"refused {sum(tally.refused.values()):,}. Controls: bounds a fifth too small, {len(small.outside):,} of "
        f"{small.total:,} outside; ends out of order, {len(signs.outside)} of {signs.total}. "
        f"{time.process_time() - begun:,.0f} CPU-seconds."
    )
    write(
        "intervals",
        {
            "seed": seed,
            "answers": tally.total,
            "tables": tally.tables,
            "outside": tally.outside,
            "forms": tally.rows(),
            "refused": dict(tally.refused),
            "controls": {"bounds a fifth too small": [len(small.outside), small.total],
                         "ends out of order": [len(signs.outside), signs.total]},
        },
    )  # fmt: skip
    return 1 if tally.outside or not small.outside or not signs.outside else 0


if __name__ == "__main__":
    sys.exit(main())
