"""Answers about two columns on the page of a whole release have the digits of `release.answer`, with noisy counts."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest
from test_page_in_node import ASKS, in_percent, plain, run_in_node

from certsynth import Release, release
from certsynth.domain import Ordered
from certsynth.report.pair_answers import _quick_share, packable_share, said_share
from certsynth.report.view import view
from small import NATIVE, native

QUESTIONS = 120

Json = dict[str, Any]


@pytest.fixture(scope="module")
def made() -> Release:
    return release(native(600), NATIVE, seed=1, epsilon=8, confidence=0.8, resolution=4, mechanism="identity")


def controls(rng: np.random.Generator, calculator: Json) -> Json:
    """A question about two columns: what is set in the form, in that order."""
    answers = calculator["answers"]
    what = ["both", "meanWithin"][int(rng.integers(2))]
    sides = answers["sides"]
    pairs = [(i, j) for i in sides for j in sides if i != j and (what == "both" or sides[j]["means"] is not None)]
    i, j = pairs[int(rng.integers(len(pairs)))]
    found = {"calc-what": what, "calc-first": i, "calc-second": j}
    for place, name in ((i, "calc-part"), (j, "calc-other"))[: 2 if what == "both" else 1]:
        side = answers["sides"][place]
        number = len(side["ranges"])
        if not number:
            found[name] = str(rng.integers(len(side["asked"])))
            continue
        first, last = sorted(int(k) for k in rng.integers(0, number, 2))
        found |= {name: str(first), f"{name}-to": str(last)}
    return found


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_page_says_what_answer_says_of_a_release(made: Release) -> None:
    shown = view(made.record, made.schema, made.table, rows=made.rows, noisy=made.noisy_cells)["calculator"]
    rng = np.random.default_rng(1)
    (said,) = run_in_node([{"numbers": shown, "asks": [controls(rng, shown) for _ in range(QUESTIONS)]}])
    asked = [(head, says, note.removeprefix(ASKS)) for head, says, note in said if note.startswith(ASKS)]
    assert len(asked) > QUESTIONS / 2, said[:5]
    for (head, says, query), found in zip(asked, made.answer([query for *_, query in asked]), strict=True):
        texts = [in_percent(each) if found.unit == "share" else each for each in found.shown()]
        assert plain(head) == f"{texts[1]} to {texts[2]}", (query, head, found)
        assert f" {texts[0]}" in plain(says), (query, says, found)
        assert ("too wide to say anything" in says) == bool(found.says_nothing), query


def test_labels_are_in_the_order_of_the_schema_and_complete(made: Release) -> None:
    columns = view(made.record, made.schema, made.table)["calculator"]["columns"]
    for column, shown in zip(made.schema, columns, strict=True):
        if not isinstance(column, Ordered):
            assert shown["labels"] == list(column.labels)


def test_shares_that_are_written_quickly_are_the_same() -> None:
    rng, quick = np.random.default_rng(2), 0
    for _ in range(3_000):
        width = 10.0 ** rng.uniform(-6, 0.3)
        estimate = float(rng.choice([rng.random(), rng.integers(0, 41) / 40, 10.0 ** rng.uniform(-7, 0)]))
        low, high = max(0.0, estimate - width * rng.random()), min(1.0, estimate + width * rng.random())
        if rng.integers(4) == 0:
            low, high = round(low, 3), round(high, 3)
        low, high = min(low, estimate), max(high, estimate)
        quick += _quick_share(estimate, low, high) is not None
        assert packable_share(estimate, low, high) == said_share(estimate, low, high).packable, (estimate, low, high)
    assert quick > 1_500
