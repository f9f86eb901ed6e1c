"""What the fuzzers share: how many examples they try, texts of every kind, schemas, and what a refusal looks like."""

from __future__ import annotations

import datetime
import json
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from certsynth.errors import CertsynthError

CANARY = "canary-5e1f"
"""Stands in cells, and in no message."""

LENGTHS = pytest.mark.parametrize("times", [1, pytest.param(10, marks=pytest.mark.slow)], ids=["quick", "long"])
"""Each fuzzer runs twice: on the same examples every time, and (slow) on ten times as many that are always new."""


def hunt(check: Callable[..., None], *, examples: int, times: int, **strategies: st.SearchStrategy[Any]) -> None:
    """Try `check` on many examples; one that fails is made small and printed."""
    bounded = settings(
        max_examples=examples * times,
        derandomize=times == 1,
        database=None,
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    bounded(given(**strategies)(check))()


def check_refusal(error: CertsynthError, *, hidden: str | None = None) -> None:
    """One line of moderate length that can be shown, with nothing that is hidden in it, nor in its traceback."""
    message = str(error)
    assert message
    assert message.isprintable(), message
    assert len(message) < 3_000, len(message)
    if hidden is not None:
        shown = f"{message}{error!r}{''.join(traceback.format_exception(error))}"
        assert hidden not in shown, shown


FORMULAS = ["=1+1", "@x", "+A1", "-B2", "\t=1", "\r@", "=cmd|' /C calc'!A0", "<script>alert(1)</script>", "'=1", "＝1"]
PATHS = ["../up", "/etc/passwd", "a/b", "~", "C:\\x", "a/../b", "//", ".", "..", "x\n.csv", "CON"]
ODD_TEXTS = [
    *FORMULAS,
    *PATHS,
    *(
        "",
        " ",
        "NA",
        "nan",
        "null",
        "true",
        "other",
        "missing",
        "0",
        "-1",
        "+2.5",
        "1e5",
        "00123",
        "'",
        '"',
        "`",
        "a,b",
    ),
    *("é", "\u202e", "\u2028", "\ufeff", "\u0000", "\x1b[31m", "\x7f", "𝒳", "🙂", "ﬁ", "x" * 999, "x" * 1001, "\ud800"),
]
texts = st.one_of(st.sampled_from(ODD_TEXTS), st.text(max_size=8))
safe_texts = st.one_of(
    st.sampled_from(["a", "b", "x y", "é", "NA", "00123", "1.5", "-1", "true", "'", '"', "a,b", "=".join("ab"), "<b>"]),
    st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=6).filter(
        lambda text: not text.startswith(("=", "+", "-", "@"))
    ),
)
numbers = st.one_of(
    st.integers(-3, 40),
    st.integers(),
    st.floats(),
    st.sampled_from([2**53, 2**53 + 1, 2.0**53, -(2**63), 10**30, 10**299, 10**301, 10**400, 1e300, 5e-324, -0.0]),
)


def toml(value: Any) -> str:
    """A value as TOML, also one that no schema may hold."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(str(key))} = {toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return repr(value)


values = st.recursive(
    st.one_of(texts, numbers, st.booleans(), st.dates(), st.datetimes(), st.times()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=6,
)
