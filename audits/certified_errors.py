"""Answers from bounds on shares, group totals and moments: is the statistic of a private table outside of the interval?

    python audits/certified_errors.py [--quick] [--answers N] [--seed S]

Small schemas of every kind are made up, as in `intervals.py`, some with more values than the lattices have points, then
synthetic and private rows. The largest errors over all sets, groups and moments are computed exactly, and stated as the
bounds of a certificate whose bound on the distance is 1, or that of the rows that were moved. Of three columns some
pairs may be exceptions, with errors of their own. The statistic of the private rows, by the second implementation of
queries in `questions.py`, must be in the interval.

Control: the same with bounds that are a fifth too small.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from certsynth.answers import Basis, answer
from certsynth.certificate.skipping import LOSS_UNITS
from certsynth.certificate.statistics import OF_EXCEPTIONS, StatisticMaxima
from certsynth.domain import Ordered, Schema
from certsynth.errors import InputError
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.marginals import Subset
from certsynth.record.record import (
    CertificateRecord,
    ExceptionsRecord,
    PlugInRecords,
    PlugInTerms,
    StatisticsRecord,
    SubsetRecord,
)
from intervals import judge
from questions import KINDS, Asker, column
from within import World, moved
from writing import asked_for, say_versions, table, write

ANSWERS = 100_000
QUICK = 2_000
LARGEST_WORLD = 130
PER_TABLE = 6
LONG = 5_000
"""Length of ranges with more values than the lattices have points."""


@dataclass(slots=True)
class Tally:
    """Answers by form, those that were narrower than without these bounds, and those with the truth outside."""

    answers: Counter[str] = field(default_factory=Counter)
    narrowed: Counter[str] = field(default_factory=Counter)
    outside_forms: Counter[str] = field(default_factory=Counter)
    outside: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.answers.values())

    def rows(self) -> list[dict[str, Any]]:
        return [
            {"form": form, "answers": n, "narrowed": self.narrowed[form], "outside": self.outside_forms[form]}
            for form, n in sorted(self.answers.items())
        ]


def run(answers: int, *, seed: int = 0, shrink: float = 1.0, kinds: Sequence[str] = KINDS) -> Tally:
    """Ask until there are this many answers. `shrink`: the factor by which the stated bounds are too small."""
    rng, tally = np.random.default_rng(seed), Tally()
    while tally.total < answers:
        world = _world(rng, kinds)
        synthetic, private, bound = _tables(rng, world)
        asker = Asker(rng, world, int(private.sum()))
        plain, narrow = _bases(rng, world, (synthetic, private), bound, shrink)
        for _ in range(PER_TABLE):
            question = asker.question()
            if question is None or question.apply is not None:
                continue
            true = question.value(private / private.sum())
            if true is None:
                continue
            try:
                found, without = answer(narrow, question.text), answer(plain, question.text)
            except InputError:
                continue
            tally.answers[question.form] += 1
            tally.narrowed[question.form] += (found.low, found.high) != (without.low, without.high)
            if wrong := judge(found, question, [true]):  # type: ignore[arg-type]
                tally.outside_forms[question.form] += 1
                shown = f"{synthetic.tolist()} for {private.tolist()}; {narrow.certificate.statistics}; {found}"
                tally.outside.append(f"{wrong}; {list(world.schema)}; {shown}")
    return tally


def _world(rng: np.random.Generator, kinds: Sequence[str]) -> World:
    while True:
        columns = [column(rng, f"c{i}", str(rng.choice(kinds))) for i in range(int(rng.choice([1, 2, 2, 3])))]
        for i, each in enumerate(columns):
            whole = isinstance(each, Ordered) and each.kind in ("integer", "date", "datetime") and not each.grid
            if isinstance(each, Ordered) and whole and not rng.integers(4):
                columns[i] = replace(each, high=int(each.low) + int(rng.choice([300, LONG])))
        world = World(Schema(columns=tuple(columns)), rng)
        if world.size <= LARGEST_WORLD:
            return world


def _tables(rng: np.random.Generator, world: World) -> tuple[np.ndarray, np.ndarray, float]:
    """Synthetic rows, private rows (the same with some moved, or others), and a bound on their distance."""
    likely = rng.dirichlet(np.full(world.size, 0.3))
    synthetic = rng.multinomial(int(rng.integers(2, 60)), likely)
    if rng.integers(2):
        distance = world.distance(world.schema.names)
        private, cost = moved(rng, synthetic, distance, int(rng.integers(1, 6)))
        return synthetic, private, cost(distance) if rng.integers(2) else 1.0
    others = 0.7 * likely + 0.3 * rng.dirichlet(np.ones(world.size))
    return synthetic, rng.multinomial(int(rng.integers(2, 60)), others), 1.0


def _bases(
    rng: np.random.Generator, world: World, tables: tuple[np.ndarray, np.ndarray], bound: float, shrink: float
) -> tuple[Basis, Basis]:
    """The synthetic rows with a certificate without and with bounds on shares, group totals and moments."""
    synthetic, private = tables
    clean = {name: np.repeat(values, synthetic) for name, values in world.clean.items()}
    written = {c.name: c.decode(clean[c.name]) for c in world.schema}
    certificate = CertificateRecord(
        bound=bound,
        confidence=0.95,
        kind="direct",
        terms=PlugInTerms(0.0, 0.0, 0.0),
        single_column_bound=bound,
        subsets=(SubsetRecord(tuple(world.schema.names), bound),),
        direct=None,
        single_column=None,
        plug_in=PlugInRecords(),
        no_plug_in=None,
    )
    apart = _exceptions(rng, len(world.schema.names))
    found = largest_errors(world, synthetic, private, apart)
    errors = {name: shrink * float(error) for name, error in found.items()}
    exceptions = _exceptions_record(world.schema, apart, errors, bound) if apart else None
    for name in ("share_of_two_columns", "group_total", "moment"):
        if name in errors and not rng.integers(8):  # some bounds may be larger than they need be
            errors[name] = min(1.0, 1.5 * errors[name])
        errors.setdefault(name, None)  # type: ignore[arg-type]
    plain = Basis(world.schema, written, clean, certificate, int(private.sum()))
    stated = replace(certificate, statistics=StatisticsRecord(**errors), exceptions=exceptions)
    return plain, replace(plain, certificate=stated)


def _exceptions(rng: np.random.Generator, columns: int) -> list[Subset]:
    """Some pairs of three columns, in half of all cases."""
    pairs = list(itertools.combinations(range(columns), 2))
    if len(pairs) < 2 or rng.integers(2):
        return []
    return [pairs[j] for j in rng.permutation(len(pairs))[: int(rng.integers(1, len(pairs)))]]


def _exceptions_record(
    schema: Schema, pairs: Sequence[Subset], errors: dict[str, float], bound: float
) -> ExceptionsRecord:
    """The errors of exceptions and of all other pairs; `errors` keeps the larger ones."""
    both = {}
    for name, own in OF_EXCEPTIONS.items():
        short = "share" if name == "share_of_two_columns" else name
        both |= {f"{short}_of_others": errors.get(name), short: errors.pop(own, None)}
        if name in errors:
            errors[name] = max(errors[name], both[short])
    subsets = tuple(tuple(schema.names[j] for j in pair) for pair in pairs)
    return ExceptionsRecord(subsets, bound, bound, **both)


def largest_errors(
    world: World, synthetic: np.ndarray, private: np.ndarray, exceptions: Sequence[Subset] = ()
) -> dict[str, Fraction]:
    """The largest errors of all sets, groups and moments, as a certificate without noise would state them."""
    maxima, names = StatisticMaxima(by_pair={} if exceptions else None), range(len(world.schema.names))
    for subsets in ([(j,) for j in names], list(itertools.combinations(names, 2))):
        if subsets:
            fine = LatticeQuery.of(world.schema, subsets)
            ours, theirs = (
                fine.count([[np.repeat(world.clean[c.name], counts) for c in world.schema]])
                for counts in (private, synthetic)
            )
            maxima.update(fine, ours, theirs)
    losses = maxima.losses_with(exceptions) if exceptions else maxima.losses
    return {name: Fraction(loss, LOSS_UNITS * int(private.sum())) for name, loss in losses.items()}


def main() -> int:
    wanted, seed = asked_for(__doc__, answers=ANSWERS, quick=QUICK)
    say_versions("certsynth", "numpy")
    begun = time.process_time()
    tally = run(wanted, seed=seed)
    print(table(tally.rows()))
    for line in tally.outside[:5]:
        print(line)
    small = run(max(wanted // 20, 1_000), seed=seed + 1, shrink=0.8)
    print(
        f"{tally.total:,} answers, {sum(tally.narrowed.values()):,} narrowed, {len(tally.outside)} outside. Control: "
        f"bounds a fifth too small, {len(small.outside):,} of {small.total:,} outside. "
        f"{time.process_time() - begun:,.0f} CPU-seconds."
    )
    write(
        "certified_errors",
        {
            "seed": seed,
            "answers": tally.total,
            "outside": tally.outside,
            "forms": tally.rows(),
            "controls": {"bounds a fifth too small": [len(small.outside), small.total]},
        },
    )
    return 1 if tally.outside or not small.outside else 0


if __name__ == "__main__":
    sys.exit(main())
