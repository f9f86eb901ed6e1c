"""Any text is a schema that comes back from its own text, or is refused in one line; nothing else ever happens."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from fuzzing import LENGTHS, check_refusal, columns, hunt, safe_texts, texts, toml, values
from hypothesis import strategies as st

from certsynth.domain import Schema
from certsynth.domain.workload import parse_workload
from certsynth.errors import InputError, SchemaError
from certsynth.sources.reading import objects
from small import EVERY_KIND, MIXED

EXPRESSIONS = [
    "a",
    "b",
    "`a b`",
    "'x'",
    '"y"',
    "1",
    "1e999",
    "-",
    "+",
    "*",
    "/",
    "(",
    ")",
    "[",
    "]",
    ",",
    "=",
    "!=",
    "<",
]
EXPRESSIONS += [
    ">=",
    "and",
    "or",
    "not",
    "in",
    "between",
    "is",
    "missing",
    "true",
    "'2024-12-31'",
    "\n",
    "\x00",
    "é",
    "''",
]


@st.composite
def schemas(draw: st.DrawFn) -> str:
    """TOML of the shape of a schema: some without a fault, most of the others with few."""
    lines, faults = [], draw(st.sampled_from([0, 0, 1, 2]))
    if draw(st.booleans()):
        lines.append("[table]")
        keys = ["name", "unit", "draft", "x", "name.y"] if faults else ["name", "unit"]
        for key in draw(st.lists(st.sampled_from(keys), max_size=3, unique=not faults)):
            lines.append(f"{key} = {toml(draw(st.one_of(texts, st.booleans(), values) if faults else safe_texts))}")
    listed = [columns(wild=False)] * draw(st.integers(1, 3)) + [columns(wild=True)] * faults
    entries = [draw(column) for column in listed]
    if not faults:
        entries = list({entry["name"].lower(): entry for entry in entries}.values())
    for entry in draw(st.permutations(entries)):
        lines.append("[[column]]")
        lines += [f"{toml(key)} = {toml(value)}" for key, value in entry.items()]
    for _ in range(draw(st.integers(0, 2)) if faults else 0):
        lines.append("[[rule]]")
        for key in draw(st.lists(st.sampled_from(["impossible", "require", "when", "why"]), min_size=1, max_size=2)):
            words = draw(st.lists(st.sampled_from(EXPRESSIONS), max_size=8))
            lines.append(f"{key} = {toml(' '.join(words))}")
    return "\n".join(lines)


RULES = [
    "age < 3",
    "age between 2 and 5",
    "income is missing",
    "sex in ['f', 'm']",
    "education >= 'middle'",
    "employed",
]
RULES += [
    "since > '2020-06-01'",
    "income - 2*age > 1e300",
    "not (sex = 'other')",
    "age + income <= -1e308",
    "age = age",
]


@st.composite
def ruled(draw: st.DrawFn) -> str:
    """A schema with rules that are sentences, nearly."""
    text = MIXED.to_toml()
    for _ in range(draw(st.integers(1, 3))):
        parts = draw(st.lists(st.sampled_from(RULES), min_size=1, max_size=4))
        joined = draw(st.sampled_from([" and ", " or ", " and not "])).join(parts)
        joined = draw(st.sampled_from(["{}", "({})", "not ({})", "(" * 40 + "{}", "{} and " * 3 + "age > 1"])).replace(
            "{}", joined
        )
        start, end = sorted(draw(st.tuples(st.integers(0, len(joined)), st.integers(0, len(joined)))))
        whole = draw(st.booleans())
        text += f"\n[[rule]]\nimpossible = {toml(joined if whole else joined[:start] + joined[end:])}\n"
        if draw(st.booleans()):
            text += f"why = {toml(draw(texts | safe_texts))}\n"
    return text


VALID = [MIXED.to_toml(), EVERY_KIND.to_toml()]
PIECES = [
    "[[column]]\n",
    "[table]\n",
    "[column]\n",
    "[[rule]]\n",
    "name = 1\n",
    '"',
    "'",
    '"""',
    "[",
    "]",
    "{",
    "}",
    "=",
    "#",
]
PIECES += [
    "\x00",
    "\r",
    "\\u0000",
    "\\",
    "é",
    "\ud800",
    "." * 20,
    "[" * 2_000,
    "9" * 5_000,
    "1e999",
    "nan",
    "-inf",
    "0x",
    "1_",
]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A schema with pieces cut out, doubled, moved or put in."""
    text = draw(st.sampled_from(VALID))
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 60)))
        how = draw(st.sampled_from(["cut", "double", "put", "flip", "line"]))
        if how == "cut":
            text = text[:start] + text[end:]
        elif how == "double":
            text = text[:end] + text[start:end] + text[end:]
        elif how == "put":
            text = text[:start] + draw(st.one_of(st.sampled_from(PIECES), st.text(max_size=3))) + text[start:]
        elif how == "flip" and start < len(text):
            text = text[:start] + chr(ord(text[start]) ^ draw(st.integers(1, 127))) + text[start + 1 :]
        else:
            lines = text.split("\n")
            line = draw(st.sampled_from(lines))
            lines.insert(draw(st.integers(0, len(lines))), line)
            text = "\n".join(lines)
    return text


ODD_CELLS = objects(
    [None, "x", "", "1", 1, -1, 0.5, 2**53, 10**30, 1e300, -1e300, float("inf"), float("nan"), "2024-01-01"]
)


def check_text(text: str, home: Path) -> bool:
    """A schema that comes back, or a refusal in one line; whether it was a schema."""
    try:
        schema = Schema.parse(text, folder=home)
    except SchemaError as error:
        check_refusal(error)
        return False
    again = schema.to_toml()
    assert Schema.parse(again) == schema
    assert Schema.parse(again).to_toml() == again
    assert len(again) <= 40 * len(text) + 4_000  # a few words do not become a large schema, but a matrix may be a file
    for column in schema:
        assert column.detail().size <= 200_000
        codes = column.to_cells(column.clean(ODD_CELLS), column.cells(16))
        assert np.bincount(codes, minlength=column.cells(16).size).shape == (column.cells(16).size,)
    return True


def home_of(scratch: Path) -> Path:
    """A folder with a matrix, and with what is no matrix."""
    home = scratch / "home"
    if not home.exists():
        home.mkdir()
        (home / "m.csv").write_text(",x,y\nx,0,1\ny,1,0\n")
        os.mkfifo(home / "pipe")
        (home / "circle").symlink_to(home / "circle")
    return home


@LENGTHS
def test_a_text_of_the_shape_of_a_schema_is_one_or_is_refused(scratch, times):
    home, seen = home_of(scratch), {True: 0, False: 0}

    def check(text: str) -> None:
        seen[check_text(text, home)] += 1

    hunt(check, examples=200, times=times, text=schemas())
    assert min(seen.values()) > 20, seen  # both happen, or nothing was tried


@LENGTHS
def test_a_schema_that_was_changed_is_one_or_is_refused(scratch, times):
    home, seen = home_of(scratch), {True: 0, False: 0}

    def check(text: str) -> None:
        seen[check_text(text, home)] += 1

    hunt(check, examples=150, times=times, text=mutated())
    hunt(check, examples=100, times=times, text=ruled())
    assert min(seen.values()) > 20, seen


@LENGTHS
def test_any_bytes_are_a_schema_file_or_are_refused(scratch, times):
    file = scratch / "schema.toml"

    def check(content: bytes) -> None:
        file.write_bytes(content)
        try:
            Schema.load(file)
        except SchemaError as error:
            check_refusal(error)

    valid = st.sampled_from([text.encode() for text in VALID])
    flipped = st.tuples(valid, st.integers(0, 10**4), st.integers(1, 255)).map(
        lambda drawn: _flip(drawn[0], drawn[1] % len(drawn[0]), drawn[2])
    )
    hunt(check, examples=75, times=times, content=st.one_of(st.binary(max_size=40), flipped))


def _flip(content: bytes, place: int, bits: int) -> bytes:
    return content[:place] + bytes([content[place] ^ bits]) + content[place + 1 :]


@LENGTHS
def test_any_text_is_a_workload_or_is_refused(times):
    def check(text: str) -> None:
        try:
            subsets = parse_workload(text)
        except InputError as error:
            check_refusal(error)
            return
        assert all(isinstance(name, str) for subset in subsets for name in subset)

    lists = st.lists(st.lists(st.one_of(texts, values), max_size=3), max_size=3)
    shaped = st.tuples(st.sampled_from(["subsets", "subset", "a.b"]), st.one_of(lists, values)).map(
        lambda drawn: f"{drawn[0]} = {toml(drawn[1])}"
    )
    hunt(check, examples=100, times=times, text=st.one_of(shaped, st.text(max_size=20)))
