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

from certsynth.domain import Schema
from certsynth.domain.reading_entries import READING_ENTRIES
from certsynth.domain.schema import KINDS
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
        return json.dumps(value, ensure_ascii=False)  # TOML has no pairs of surrogates
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml(str(key))} = {toml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    return repr(value)


values = st.recursive(
    st.one_of(texts, numbers, st.booleans(), st.dates(), st.datetimes(), st.times()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=6,
)


READING_KEYS = sorted(set().union(*READING_ENTRIES.values()))
KEYS = ["name", "kind", "missing", "weight", "low", "high", "values", "other", "distances", "matrix"]
KEYS += ["title", "unit", "labels", *READING_KEYS]
FILES = [
    "m.csv",
    "none.csv",
    "../m.csv",
    "/etc/passwd",
    "pipe",
    ".",
    "",
    "m.csv/m.csv",
    "circle",
    "x" * 900,
    "/dev/zero",
]
EDGES = {
    "integer": st.integers(-(2**39), 2**39) | st.integers(-3, 40),
    "number": st.floats(-1e300, 1e300)
    | st.integers(-3, 40)
    | st.sampled_from([2**53, 2**53 + 1, 2.0**53, 0, 5e-324, 10**299]),
}


@st.composite
def columns(draw: st.DrawFn, *, wild: bool) -> dict[str, Any]:
    """A [[column]]: what its kind wants, with values at the edge of what is allowed; a wild one may hold anything."""
    kind = draw(st.sampled_from(KINDS))
    name = st.sampled_from("abcA") | safe_texts
    entry: dict[str, Any] = {"name": draw(name | texts if wild else name), "kind": kind}
    if kind in ("integer", "number"):
        ends = [draw(numbers if wild else EDGES[kind]) for _ in range(2)]
        entry |= dict(zip(("low", "high"), ends if wild else sorted(ends), strict=True))
    elif kind in ("date", "datetime"):
        days = st.one_of(st.dates(), st.dates().map(str), st.datetimes(), st.sampled_from(["2024-13-01", "0001-01-01"]))
        times = st.datetimes().map(lambda time: time.replace(microsecond=0))
        ends = [draw(days if wild else st.dates() if kind == "date" else times) for _ in range(2)]
        entry |= dict(zip(("low", "high"), ends if wild else sorted(ends), strict=True))
    elif kind != "boolean":
        label = st.sampled_from(["x", "y", "z", "w"]) | safe_texts.filter(lambda text: wild or "/" not in text)
        label = label | texts | st.sampled_from(["x/y", "x/z", "a//b", "other"]) if wild else label
        entry["values"] = draw(st.lists(label, min_size=int(not wild), max_size=4, unique=not wild))
        if kind == "tree" and draw(st.booleans()):
            entry["values"] = ["/".join(entry["values"][: i + 1]) for i in range(len(entry["values"]))]
        if kind == "metric":
            if draw(st.integers(0, 3)) == 0:
                entry.pop("values")
                entry["matrix"] = draw(st.sampled_from(FILES)) if wild else "m.csv"
            else:
                size, unit = (
                    len(entry["values"]),
                    draw(numbers | texts if wild else st.sampled_from([1, 0.5, 1e-12, 10**12])),
                )
                entry["distances"] = [[0 if i == j else unit for j in range(size)] for i in range(size)]
    for key, drawn in (
        ("missing", st.booleans()),
        ("other", st.booleans()),
        ("weight", st.sampled_from([1, 0.5, 0.001])),
    ):
        if draw(st.booleans()) and (key != "other" or kind in ("category", "tree", "metric")):
            entry[key] = draw(drawn)
    if wild and draw(st.booleans()):
        entry[draw(st.one_of(st.sampled_from(KEYS), texts))] = draw(values)
    if wild and draw(st.booleans()):
        key = draw(st.sampled_from(sorted(READING_ENTRIES[kind])))
        entry[key] = draw(st.lists(texts, max_size=3) | texts | st.sampled_from([",", ".", " ", "%d.%m.%Y", "ignore"]))
    if wild and draw(st.integers(0, 3)) == 0:
        entry.pop(draw(st.sampled_from(sorted(entry))))
    return entry


@st.composite
def valid_schemas(draw: st.DrawFn, *, most: int = 3) -> Schema:
    """A schema of a few columns of any kinds, with names and labels that are as odd as they may be."""
    entries = [draw(columns(wild=False)) for _ in range(draw(st.integers(1, most)))]
    kept = {}
    for entry in entries:
        if entry.get("low", 0) != entry.get("high", 1) and "matrix" not in entry:
            kept[entry["name"].lower()] = entry
    entries = list(kept.values()) or [{"name": "a", "kind": "boolean"}]
    return Schema.parse(
        "".join(
            "[[column]]\n" + "".join(f"{key} = {toml(value)}\n" for key, value in entry.items()) for entry in entries
        )
    )
