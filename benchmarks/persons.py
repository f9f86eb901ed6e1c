"""Visits of 100,000 persons, 1 to 40 each: the price of protecting persons, for several k, both weights and relations.

    python benchmarks/persons.py [--persons N] [--runs N] [--results FILE]

For each k, weight and relation the table is released at ε = 1, verified, asked and evaluated. Results go to
benchmarks/persons.json, and runs that it has already are not repeated; docs/how-to/persons_figure.py draws them. The
truth is that of the kept rows, weighted as the release weighs them: this is what its certificate speaks of.
"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

import numpy as np
import polars as pl

from certsynth import Release, Schema, release
from certsynth.algorithm.verify import verify
from certsynth.certificate.passes import compare_tables
from certsynth.domain.persons import Persons, Weigh
from certsynth.mechanisms import Neighbours
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.tally import Rows, in_memory
from certsynth.sources import open_source
from certsynth.sources.persons import keep_rows

RESULTS = Path(__file__).with_suffix(".json")
KEPT_ROWS = (1, 2, 4, 8, 12)
"""The values of k, the most rows of one person that are kept."""

MAX_VISITS = 40
"""Most rows of one person in the table."""

MEMORY = 2**31
"""Bytes for the comparison of the tables."""

VISITS = Schema.parse(
    """
[table]
name = "visits"
unit = "one row is one visit; a person has several"
person = "patient"
rows_per_person = 4

[[column]]
name = "age"
kind = "integer"
low = 0
high = 100

[[column]]
name = "department"
kind = "category"
values = ["general", "emergency", "surgery", "eyes", "heart", "physiotherapy"]

[[column]]
name = "minutes"
kind = "integer"
low = 0
high = 240

[[column]]
name = "urgent"
kind = "boolean"
"""
)

QUESTIONS = ("mean(minutes)", 'fraction(department = "emergency")', "fraction(age >= 65 and urgent = true)")


def visits(persons: int, *, seed: int = 27) -> pl.DataFrame:
    """Make up visits. Half of the patients come once or twice and a few very often; those are older, come for
    physiotherapy, and stay less long, so that statistics of visits differ from statistics of patients."""
    rng = np.random.default_rng(seed)
    count = np.minimum(1 + np.floor(rng.pareto(1.2, persons) * 1.5).astype(int), MAX_VISITS)
    often = np.log(count) / np.log(MAX_VISITS)
    age_of_person = np.clip(rng.normal(38 + 35 * often, 18), 0, 100).astype(int)
    patient = np.repeat(np.arange(persons), count)
    rows, often, age = len(patient), often[patient], age_of_person[patient]
    shares = np.stack([0.3 - 0.1 * often, 0.3 - 0.2 * often, *([0.1 + 0 * often] * 3), 0.1 + 0.3 * often])
    department = (rng.random(rows) > np.cumsum(shares, axis=0)).sum(axis=0).clip(0, 5)
    minutes = np.clip(rng.gamma(2.0 + age / 50, 22 - 8 * often), 0, 240).astype(int)
    urgent = rng.random(rows) < np.where(department == 1, 0.8, 0.1)
    names = np.array(["general", "emergency", "surgery", "eyes", "heart", "physiotherapy"])
    frame = pl.DataFrame(
        {
            "patient": [f"P{number:06d}" for number in patient],
            "age": age,
            "department": names[department],
            "minutes": minutes,
            "urgent": urgent,
        }
    )
    return frame.sample(fraction=1.0, shuffle=True, seed=seed)


def true_answers(schema: Schema, kept: Rows) -> list[float]:
    """The answers to QUESTIONS for the kept rows, from exact counts on the columns' own values."""
    place = schema.names.index
    query = LatticeQuery.of(schema, [(place("department"), place("minutes")), (place("age"), place("urgent"))])
    counts = kept(query).counts
    shapes = map(query.marginals.shape, query.marginals.subsets)
    first, second = (block.reshape(shape) for block, shape in zip(counts, shapes, strict=True))
    mean = first.sum(axis=0) @ np.arange(first.shape[1]) / counts.rows
    return [float(mean), float(first[1].sum() / counts.rows), float(second[65:, 1].sum() / counts.rows)]


def true_loss(schema: Schema, kept: Rows, made: Release) -> float:
    """An upper bound on the loss of a release against the kept rows, without noise."""
    fine = LatticeQuery.of(schema, made.subsets)
    compared = compare_tables(fine, kept, [in_memory(made.rows)], memory=MEMORY)
    return max(float(each.all) for each in compared.found[0] if not each.skipped)


def measure(frame: pl.DataFrame, persons: Persons, neighbours: str, **options: Any) -> dict[str, Any]:
    """Release the table once, with everything that follows."""
    schema = replace(VISITS, persons=persons)
    clock = time.perf_counter
    with tempfile.TemporaryDirectory() as folder:
        began = clock()
        made = release(frame, schema, epsilon=1, neighbours=neighbours, out=Path(folder) / "release", **options)
        seconds = clock() - began
        failed = [check["name"] for check in verify(made) if not check["ok"]]
        answers = [made.answer(question) for question in QUESTIONS]
    kept = keep_rows(open_source(frame), schema, persons)
    totals, rows = kept.contributions(), kept.rows_of(schema, "")
    truth = true_answers(schema, rows)
    return {
        "bound": made.record.certificate.bound,
        "single_column_bound": made.record.certificate.single_column_bound,
        "loss": true_loss(schema, rows, made),
        "answers": [
            {"question": question, "low": answer.low, "high": answer.high, "truth": value}
            for question, answer, value in zip(QUESTIONS, answers, truth, strict=True)
        ],
        "failed_checks": failed,
        "persons": totals.over + totals.within,
        "rows": len(frame),
        "kept_rows": totals.kept,
        "seconds": round(seconds, 1),
    }


def holds(result: Mapping[str, Any]) -> bool:
    """Whether a release was verified, and its bound and all its answers are true."""
    inside = all(each["low"] <= each["truth"] <= each["high"] for each in result["answers"])
    return inside and result["loss"] <= result["bound"] and not result["failed_checks"]


def run(persons: int, runs: int, results: Path) -> None:
    """Measure what is not yet in the results, and print each line as it is done."""
    known: dict[str, Any] = json.loads(results.read_text()) if results.exists() else {}
    frame = visits(persons)
    print(f"{len(frame):,} visits of {persons:,} patients")
    for turn in range(runs):
        for k, weigh, neighbours in itertools.product(KEPT_ROWS, get_args(Weigh), Neighbours):
            key = f"k={k} weigh={weigh} {neighbours} persons={persons} run={turn}"
            if key not in known:
                result = measure(frame, Persons("patient", k, weigh), str(neighbours), seed=turn)
                known[key] = {"k": k, "weigh": weigh, "neighbours": str(neighbours), **result}
                results.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
            found = known[key]
            share = Fraction(found["kept_rows"], found["rows"])
            print(
                f"k = {k:2d}  {weigh:8}{neighbours:12} bound {found['bound']:.4f}  loss {found['loss']:.4f}  "
                f"kept {float(share):.0%}  {found['seconds']:.0f} s  {'true' if holds(found) else 'FALSE'}",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--persons", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    run(asked.persons, asked.runs, asked.results)
