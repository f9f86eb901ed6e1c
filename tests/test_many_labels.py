"""Columns of very many labels are refused before any data is opened, with the column and the numbers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from certsynth import certify, evaluate, plan, release
from certsynth.domain import Category, Ordered, Schema
from certsynth.errors import TooLarge

MANY = Schema((Category(name="zip", values=tuple(f"z{i}" for i in range(20_000))), Ordered(name="age", low=0, high=99)))
NOWHERE = Path("no such file.csv")

CALLS: dict[str, Callable[[], Any]] = {
    "plan": lambda: plan(MANY, rows=10**6, epsilon=1),
    "release": lambda: release(NOWHERE, MANY, epsilon=1),
    "certify": lambda: certify(NOWHERE, Path("nor this.csv"), MANY, epsilon=1),
    "evaluate": lambda: evaluate(NOWHERE, NOWHERE, MANY),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_labels_beside_a_line_are_refused_with_the_numbers(call: Callable[[], Any]) -> None:
    with pytest.raises(TooLarge, match=r"column 'zip' has 20,000 labels: .* 2,000,000 points, .* merge labels"):
        call()


def test_labels_beside_few_others_are_not() -> None:
    """Between labels alone transport needs no solver."""
    pair = Schema((MANY.columns[0], Category(name="sex", values=("f", "m"))))
    found = plan(pair, rows=10_000, epsilon=1, resolution=4, mechanism="identity")
    assert [m.column for m in found.merged] == ["zip"]
