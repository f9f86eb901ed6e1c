"""Rules: what a text means is compared with plain Python, row by row; what no rule can mean is refused in one line."""

from __future__ import annotations

import contextlib
import datetime
import functools
import operator
import pickle
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certsynth.domain import Category, Column, Ordered, Rule, Schema
from certsynth.domain.condition import figures, written
from certsynth.domain.expression import MAX_CHARACTERS, MAX_NESTING, BadExpression, parse
from certsynth.domain.meaning import Reader
from certsynth.domain.possible import check_rules, possible_row, rule_components
from certsynth.domain.rules import MAX_RULES
from certsynth.errors import SchemaError
from work import calls_made

EPOCH = datetime.date(1970, 1, 1)
GRADES, TOWNS, PLACES = ("low", "middle", "high"), ("x", "it's", 'so "y"'), ('so "y"', "x", "far")
LOW = (datetime.date(2024, 1, 1) - EPOCH).days

COLUMNS: dict[str, Column] = {
    "a": Ordered("a", kind="integer", low=-4, high=4),
    "dep `delay`": Ordered("dep `delay`", kind="integer", low=-4, high=4, missing=True),
    "größe": Ordered("größe", kind="number", low=-2.0, high=2.0, missing=True),
    "since": Ordered("since", kind="date", low=LOW, high=LOW + 5),
    "and": Ordered("and", kind="date", low=LOW, high=LOW + 5, missing=True),
    "grade": Ordered("grade", kind="ordinal", low=0, high=2, values=GRADES, missing=True),
    "grade2": Ordered("grade2", kind="ordinal", low=0, high=2, values=GRADES),
    "town": Category("town", values=TOWNS, other=True, missing=True),
    "place": Category("place", values=PLACES),
    "here": Category("here", kind="boolean", values=("false", "true"), missing=True),
}
READER = Reader(list(COLUMNS.values()))
NUMBERS, DATES = ("a", "dep `delay`", "größe"), ("since", "and")
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

Row = dict[str, Any]


def named(name: str) -> str:
    plain = name.isidentifier() and name != "and"
    return name if plain else "`" + name.replace("`", "``") + "`"


def quoted(text: str, mark: str) -> str:
    return mark + text.replace(mark, mark * 2) + mark


@dataclass(frozen=True)
class Said:
    """A text, how tightly it binds, and what it means of one row: None is unknown."""

    text: str
    level: int
    means: Callable[[Row], Any]

    def inside(self, level: int) -> str:
        return self.text if self.level >= level else f"({self.text})"


def lifted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Unknown if any argument is."""
    return lambda *values: None if any(value is None for value in values) else function(*values)


def both(values: list[bool | None]) -> bool | None:
    return False if False in values else None if None in values else True


def either(values: list[bool | None]) -> bool | None:
    return True if True in values else None if None in values else False


def opposite(value: bool | None) -> bool | None:
    return None if value is None else not value


# ------------------------------------------------------------ terms: levels are 0 for sums, 1 for products, 2 for names

constants = st.integers(-12, 12).map(lambda n: n / 4)


@st.composite
def numbers(draw: st.DrawFn, depth: int = 2) -> Said:
    kind = draw(st.sampled_from(["name", "constant", "sum", "multiple", "sign", "days"] if depth else ["name"]))
    if kind == "name":
        name = draw(st.sampled_from(NUMBERS))
        return Said(named(name), 2, lambda row: row[name])
    if kind == "constant":
        value = abs(draw(constants))
        return Said(f"{value:g}", 2, lambda row: value)
    if kind == "days":
        first, second = draw(st.sampled_from(DATES)), draw(st.sampled_from(DATES))
        days = lifted(lambda a, b: (a - b).days)
        return Said(f"{named(first)} - {named(second)}", 0, lambda row: days(row[first], row[second]))
    one = draw(numbers(depth=depth - 1))
    if kind == "sign":
        return Said("-" + one.inside(2), 1, lambda row: lifted(operator.neg)(one.means(row)))
    if kind == "multiple":
        times = draw(constants)
        text = f"{times:g} * {one.inside(2)}" if draw(st.booleans()) else f"{one.inside(2)}*({times:g})"
        return Said(text, 1, lambda row: lifted(operator.mul)(times, one.means(row)))
    other = draw(numbers(depth=depth - 1))
    if draw(st.booleans()):
        text = f"{one.text} + {other.inside(1)}"
        return Said(text, 0, lambda row: lifted(operator.add)(one.means(row), other.means(row)))
    text = f"{one.text} - {other.inside(1)}"
    return Said(text, 0, lambda row: lifted(operator.sub)(one.means(row), other.means(row)))


@st.composite
def dates(draw: st.DrawFn) -> Said:
    name, days = draw(st.sampled_from(DATES)), draw(st.integers(0, 3))
    later = lifted(lambda day: day + datetime.timedelta(days))
    before = lifted(lambda day: day - datetime.timedelta(days))
    return draw(
        st.sampled_from(
            [
                Said(named(name), 2, lambda row: row[name]),
                Said(f"{named(name)} + {days}", 0, lambda row: later(row[name])),
                Said(f"{days} + {named(name)}", 0, lambda row: later(row[name])),
                Said(f"{named(name)} - {days}", 0, lambda row: before(row[name])),
            ]
        )
    )


days_as_texts = st.integers(-1, 6).map(
    lambda n: (lambda day: Said(quoted(str(day), "'"), 2, lambda row: day))(EPOCH + datetime.timedelta(LOW + n))
)
signs = st.sampled_from(sorted(COMPARE))
marks = st.sampled_from("'\"")


def has_a_column(said: Said) -> bool:
    return any(named(name) in said.text for name in COLUMNS)


# ------------------------------------------------------------ conditions: 0 or, 1 and, 2 not, 3 comparisons


def compared(terms: list[Said], given_signs: list[str]) -> Said:
    text = terms[0].text
    for sign, term in zip(given_signs, terms[1:], strict=True):
        text += f" {sign} {term.text}"
    holds = [lifted(COMPARE[sign]) for sign in given_signs]
    return Said(
        text,
        3,
        lambda row: both([h(a.means(row), b.means(row)) for h, a, b in zip(holds, terms, terms[1:], strict=False)]),
    )


def between(value: Said, low: Said, high: Said) -> Said:
    holds = lifted(operator.le)
    return Said(
        f"{value.text} between {low.text} and {high.text}",
        3,
        lambda row: both([holds(low.means(row), value.means(row)), holds(value.means(row), high.means(row))]),
    )


def among(value: Said, texts: list[str], values: list[Any], negated: bool) -> Said:
    def means(row: Row) -> bool | None:
        inside = lifted(lambda v: v in values)(value.means(row))
        return opposite(inside) if negated else inside

    return Said(f"{value.text} {'not ' * negated}in [{', '.join(texts)}]", 3, means)


def ranked(name: str) -> Callable[[Row], Any]:
    return lambda row: None if row[name] is None else GRADES.index(row[name])


@st.composite
def comparisons(draw: st.DrawFn) -> Said:
    kind = draw(
        st.sampled_from(["number", "chain", "between", "among", "date", "ordinal", "label", "truth", "missing"])
    )
    if kind in ("number", "chain", "between"):
        column = numbers().filter(has_a_column)
        if kind == "number":
            return compared([draw(column), draw(numbers())], [draw(signs)])
        if kind == "between":
            return between(draw(column), draw(numbers()), draw(numbers()))
        return compared([draw(numbers()), draw(column), draw(numbers())], [draw(signs), draw(signs)])
    if kind == "among":
        values = draw(st.lists(constants, min_size=1, max_size=4))
        return among(draw(numbers().filter(has_a_column)), [f"{v:g}" for v in values], values, draw(st.booleans()))
    if kind == "date":
        pair = [draw(dates()), draw(st.one_of(dates(), days_as_texts))]
        return compared(pair if draw(st.booleans()) else pair[::-1], [draw(signs)])
    if kind == "ordinal":
        name, label = draw(st.sampled_from(["grade", "grade2"])), draw(st.sampled_from(GRADES))
        rank = Said(quoted(label, draw(marks)), 3, lambda row: GRADES.index(label))
        second = draw(st.sampled_from([rank, Said("grade2", 3, ranked("grade2"))]))
        pair = [Said(name, 3, ranked(name)), second]
        return compared(pair if draw(st.booleans()) else pair[::-1], [draw(signs)])
    if kind == "label":
        label, mark = draw(st.sampled_from((*TOWNS, "other"))), draw(marks)
        town, place = Said("town", 3, lambda row: row["town"]), Said("place", 3, lambda row: row["place"])
        if draw(st.booleans()):
            return among(town, [quoted(label, mark), "'x'"], [label, "x"], draw(st.booleans()))
        second = draw(st.sampled_from([place, Said(quoted(label, mark), 3, lambda row: label)]))
        return compared([town, second], [draw(st.sampled_from(["=", "==", "!="]))])
    if kind == "truth":
        return draw(
            st.sampled_from(
                [
                    Said("here", 3, lambda row: row["here"]),
                    Said("here = false", 3, lambda row: opposite(row["here"])),
                    Said("true != here", 3, lambda row: opposite(row["here"])),
                ]
            )
        )
    name = draw(st.sampled_from(sorted(COLUMNS)))
    if draw(st.booleans()):
        return Said(f"{named(name)} is missing", 3, lambda row: row[name] is None)
    return Said(f"{named(name)} is not missing", 3, lambda row: row[name] is not None)


@st.composite
def conditions(draw: st.DrawFn, depth: int = 3) -> Said:
    kind = draw(st.sampled_from(["comparison", "not", "and", "or"] if depth else ["comparison"]))
    if kind == "comparison":
        return draw(comparisons())
    if kind == "not":
        part = draw(conditions(depth=depth - 1))
        return Said("not " + part.inside(2), 2, lambda row: opposite(part.means(row)))
    parts = draw(st.lists(conditions(depth=depth - 1), min_size=2, max_size=3))
    level, join = (1, both) if kind == "and" else (0, either)
    text = f" {kind} ".join(part.inside(level) for part in parts)
    return Said(text, level, lambda row: join([part.means(row) for part in parts]))


def values_of(column: Column) -> st.SearchStrategy[Any]:
    if isinstance(column, Category):
        values: st.SearchStrategy[Any] = st.sampled_from([*column.labels])
        if column.kind == "boolean":
            values = st.booleans()
    else:
        assert isinstance(column, Ordered)
        values = {
            "integer": st.integers(-4, 4),
            "number": st.integers(-16, 16).map(lambda n: n / 8),
            "date": st.integers(0, 5).map(lambda n: EPOCH + datetime.timedelta(LOW + n)),
            "ordinal": st.sampled_from(GRADES),
        }[column.kind]
    return st.one_of(st.none(), values) if column.missing else values


some_rows = st.lists(st.fixed_dictionaries({n: values_of(c) for n, c in COLUMNS.items()}), min_size=1, max_size=12)


def as_written(column: Column, values: list[Any]) -> np.ma.MaskedArray[Any, Any]:
    kind = column.kind  # type: ignore[attr-defined]
    dtype: Any = {"integer": np.int64, "number": float, "date": "datetime64[D]", "boolean": bool}.get(kind, object)
    present = next((value for value in values if value is not None), 0 if dtype is not object else "")
    filled = np.array([present if value is None else value for value in values], dtype=dtype)
    return np.ma.masked_array(filled, mask=[value is None for value in values])


def as_figures(rows: list[Row]) -> dict[str, np.ndarray]:
    return {name: figures(column, as_written(column, [row[name] for row in rows])) for name, column in COLUMNS.items()}


def answers(text: str, rows: list[Row]) -> list[bool | None]:
    found = np.broadcast_to(READER.read(text).holds(as_figures(rows)), len(rows))
    return [{1: True, -1: False, 0: None}[int(x)] for x in found]


@settings(max_examples=150, deadline=None)
@given(conditions(), some_rows)
def test_a_text_means_what_plain_python_says_row_by_row(said: Said, rows: list[Row]) -> None:
    if len(said.text) <= MAX_CHARACTERS:
        assert answers(said.text, rows) == [said.means(row) for row in rows]


ROW: Row = {
    "a": 1,
    "dep `delay`": None,
    "größe": 0.5,
    "since": EPOCH + datetime.timedelta(LOW + 1),
    "and": None,
    "grade": "middle",
    "grade2": "low",
    "town": 'so "y"',
    "place": 'so "y"',
    "here": None,
}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("a = 1 or `dep ``delay``` = 1 and a = 2", True),  # and binds tighter
        ("not a = 2 and a = 1", True),
        ("not (a = 2 or a = 1)", False),
        ("not not here", None),
        ("here or a = 1", True),
        ("here and a = 2", False),
        ("`dep ``delay``` = `dep ``delay```", None),
        ("0 * `dep ``delay``` = 0", None),
        ("a between 0 and 1 and grade2 = 'low'", True),
        ("0 < a <= 1 < 2 - größe", True),
        ("2*a - 3*(größe + 1) = -2.5", True),
        ("since - '2024-01-01' = 1", True),
        ("since between '2024-01-01' and '2024-01-01' + 1", True),
        ("'2024-01-03' - since + a in [-1, 2]", True),
        ('grade > "low" and "high" >= grade and grade != grade2', True),
        ("town = place", True),
        ("place != town", False),
        ("town in ['so \"y\"', 'it''s']", True),
        ("(a) + ((größe)) >= 1.5e0", True),
        ("a\n=\t.1e1", True),
    ],
)
def test_readings(text: str, answer: bool | None) -> None:
    assert answers(text, [ROW]) == [answer]


def test_a_reading_with_two_truth_values_would_be_noticed() -> None:
    """Control of the comparison above: taking unknown for false gives other answers."""
    (found,) = answers("not here", [ROW])
    assert found is None
    assert found != (not bool(ROW["here"]))


def test_brackets_are_no_part_of_the_tree() -> None:
    assert parse("((a) = (1)) and (not (b))") == parse("a = 1 and not b")
    assert parse("a = 1") != parse("a = 2")


@settings(max_examples=50, deadline=None)
@given(some_rows)
def test_figures_are_written_back_as_they_were(rows: list[Row]) -> None:
    for name, column in COLUMNS.items():
        values = as_written(column, [row[name] for row in rows])
        again = written(column, figures(column, values))
        assert again.tolist() == values.tolist()


def test_numbers_keep_their_last_bit() -> None:
    column = Ordered("x", kind="number", low=-1 / 3, high=1e5, missing=True)
    values = np.append(np.random.default_rng(0).uniform(-1 / 3, 1e5, 1000), 0.1)
    again = written(column, figures(column, np.ma.masked_array(values, mask=False)))
    assert (again.data == values).all()
    assert (column.decode(column.clean(values)).data != values).any(), "control: by way of offsets it is lost"


# ------------------------------------------------------------ the schema file

BASE = Schema(tuple(COLUMNS.values()))


def toml(*rules: str) -> str:
    return BASE.to_toml() + "".join(f"\n[[rule]]\n{rule}\n" for rule in rules)


def test_rules_come_back_from_the_file() -> None:
    schema = Schema.parse(
        toml(
            """impossible = 'a < 1 and town != "x"'\nwhy = "nobody under 1"\n""",
            'require = """since >=\n\t`and`"""',
            "when = 'here = false'\nrequire = 'a = 0 and größe between 0 and 1'",
        )
    )
    assert schema.rules == (
        Rule(impossible='a < 1 and town != "x"', why="nobody under 1"),
        Rule(require="since >=\n\t`and`"),
        Rule(when="here = false", require="a = 0 and größe between 0 and 1"),
    )
    assert Schema.parse(schema.to_toml()) == schema
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert replace(schema, rules=()) != schema
    assert [c.columns for c in schema.constraints] == [("a", "town"), ("since", "and"), ("here", "a", "größe")]


def violated(rule: str, row: Row) -> bool:
    (constraint,) = Schema.parse(toml(rule)).constraints
    return bool(constraint.violated(as_figures([row]))[0])


@pytest.mark.parametrize(
    ("rule", "here", "a", "expected"),
    [
        ("impossible = 'here'", True, 0, True),
        ("impossible = 'here'", False, 0, False),
        ("impossible = 'here'", None, 0, False),
        ("require = 'here'", True, 0, False),
        ("require = 'here'", False, 0, True),
        ("require = 'here'", None, 0, False),
        ("when = 'here'\nrequire = 'a = 1'", True, 0, True),
        ("when = 'here'\nrequire = 'a = 1'", True, 1, False),
        ("when = 'here'\nrequire = 'a = 1'", False, 0, False),
        ("when = 'here'\nrequire = 'a = 1'", None, 0, False),
        ("when = 'a = 0'\nrequire = 'here'", None, 0, False),
    ],
)
def test_a_rule_is_violated_only_if_it_is_known_to_be(rule: str, here: bool | None, a: int, expected: bool) -> None:
    assert violated(rule, {**ROW, "here": here, "a": a}) is expected


def test_a_selection_keeps_the_rules_that_speak_of_nothing_else() -> None:
    schema = Schema.parse(toml("require = 'a >= größe'", "require = 'a >= 0'", "require = '`and` >= since'"))
    assert schema.select(["größe", "a"]).rules == schema.rules[:2]
    assert schema.select(["a"]).rules == schema.rules[1:2]
    assert schema.select(["here"]).rules == ()


def long(text: str) -> str:
    return text * (MAX_CHARACTERS // len(text) + 1)


REFUSED = {
    "no condition": ("require = ''", "rule 1, require, at character 1", "was expected"),
    "a value": ("require = 'a + 1'", "character 1", "compare it with something"),
    "a number": ("require = '1'", "character 1", "compare it"),
    "two constants": ("require = '1 < 2'", "character 1", "name a column"),
    "a constant in a list": ("require = '1 in [1, 2]'", "character 1", "name a column"),
    "an unknown column": ("impossible = 'a = 1 and b = 2'", "rule 1, impossible, at character 11", "there are 'a'"),
    "the second rule": ("require = 'a = 1'\n[[rule]]\nwhen = 'b'\nrequire = 'a = 1'", "rule 2, when,", "'a'"),
    "a label without quotes": ("require = 'town = x'", "character 8", "texts are written in quotes"),
    "an unlisted label": ("require = \"town = 'z'\"", "'z' is not a label of 'town'", "which has 'x'"),
    "an unlisted rank": ("require = \"grade in ['low', 'lo']\"", "character 18", "'low', 'middle', 'high'"),
    "order of categories": ("require = \"town < 'x'\"", "'town' has no order", "= or != or 'in'"),
    "order of two categories": ("require = 'town < place'", "'town' and 'place'", "by = or !="),
    "a category beside an ordinal": ("require = 'town = grade'", "'town' and 'grade'", "same values"),
    "a number as label": ("require = 'town = 5'", "'town' has labels", "choose from"),
    "a number as truth": ("require = 'here = 1'", "'here' is true or false", "one of the two"),
    "truth as label": ("require = 'town = true'", "'town' has labels", "choose from"),
    "truth as number": ("require = 'a = true'", "with a number", "boolean columns"),
    "a text as number": ("require = 'a = \"1\"'", "text is compared with a number", "without quotes"),
    "a text among numbers": ("require = 'a in [1, \"1\"]'", "character 10", "without quotes"),
    "a number as date": ("require = 'since > 3'", "number is compared with a date", "2024-12-31"),
    "a number among dates": ("require = 'since in [3]'", "number is compared with a date", "2024-12-31"),
    "no date": ("require = 'since > \"soon\"'", "character 9", "2024-12-31"),
    "two dates added": ("require = 'since + `and` > 3'", "dates cannot be added", "date - date"),
    "twice a date": ("require = '2*since > 3'", "cannot be multiplied", "difference"),
    "a sum of labels": ("require = 'town + 1 = 2'", "'town' has labels", "numbers and dates"),
    "a text in a sum": ("require = 'a + \"x\" = 2'", "numbers and dates", "2024-12-31"),
    "a product of columns": ("require = 'a * größe = 2'", "multiplied", "sums and multiples"),
    "a quotient": ("require = 'a / 2 = 2'", "'/'", "0.5*x"),
    "a power": ("require = 'a ** 2 = 2'", "character 4", "was expected"),
    "a call": ("require = 'abs(a) = 2'", "character 4", "was not expected"),
    "an import": ("""require = '__import__("os").system("true")'""", "character 17", "backquotes"),
    "an attribute": ("require = 'a.b = 1'", "'.'", "backquotes"),
    "an item": ("require = 'a[0] = 1'", "character 2", "was not expected"),
    "a lambda": ("require = 'lambda: 1'", "':'", "backquotes"),
    "a condition in a sum": ("require = '(a < 1) + 1 < 2'", "found a condition", "'and'"),
    "a compared condition": ("require = '(a < 1) = (a < 2)'", "found a condition", "'and'"),
    "missing sums": ("require = 'a + 1 is missing'", "only a column", "each one"),
    "is null": ("require = 'a is null'", "'missing' must follow 'is'", "'null'"),
    "not behind a value": ("require = 'a not 3'", "'in' must follow", "'3'"),
    "between without and": ("require = 'a between 1, 2'", "'and' must follow", "','"),
    "an open bracket": ("require = '(a = 1'", "')' must follow", "the end"),
    "a closed bracket": ("require = 'a = 1)'", "')'", "was not expected"),
    "an empty list": ("require = 'a in []'", "character 7", "was expected"),
    "a list of columns": ("require = 'a in [größe]'", "character 7", "numbers, or texts"),
    "a negative text": ("require = 'a in [-\"x\"]'", "character 7", "sign"),
    "round brackets": ("require = 'a in (1, 2)'", "'[' must follow 'in'", "'('"),
    "an open quote": ("require = 'a = \"1'", "character 5", "never closed"),
    "an open backquote": ("require = '`a = 1'", "character 1", "never closed"),
    "a keyword as name": ("require = 'and = since'", "character 1", "backquotes"),
    "two conditions": ("require = 'a = 1 a = 2'", "character 7", "'and' or 'or'"),
    "capital letters": ("require = 'a = 1 AND a = 2'", "'AND'", "'and' or 'or'"),
    "a huge number": ("require = 'a = 1e999'", "too large", "1"),
    "a huge product": ("require = 'a = 1e300*1e300'", "too large", "1"),
    "many digits": (f"require = 'a = {'9' * 900}'", "too large", "1"),
    "a null byte": ('require = "a = 1\\u0000"', "character 6", "control character; remove"),
    "an escape": ('require = "a = \\u001b[1m"', "character 5", "control character; remove"),
    "a control character in a text": ("require = \"town = '\\u0085'\"", "character 9", "control character; remove"),
    "a control character in why": ('require = "a = 1"\nwhy = "\\u0007"', "rule 1", "why"),
    "a long why": (f'require = "a = 1"\nwhy = "{"x" * 1001}"', "rule 1", "1,000"),
    "deep brackets": (f"require = '{'(' * 900}'", f"more than {MAX_NESTING}", "nested"),
    "deep nots": (f"require = '{long('not ')[:996]}a'", f"more than {MAX_NESTING}", "nested"),
    "deep signs": (f"require = 'a = {'-' * 900}1'", f"more than {MAX_NESTING}", "nested"),
    "a long text": (f"require = '{long('a=1 or ')}a=1'", "1,000 characters", "split it"),
    "a million characters": (f"require = '{'a' * 10**6}'", "1,000 characters", "split it"),
    "a million brackets": (f"require = '{'(' * 10**6}'", "1,000 characters", "split it"),
    "neither": ("why = 'because'", "rule 1", "one of the two"),
    "both": ("require = 'a = 1'\nimpossible = 'a = 2'", "rule 1", "one of the two"),
    "when with impossible": ("when = 'a = 1'\nimpossible = 'a = 2'", "rule 1", "'and'"),
    "when alone": ("when = 'a = 1'", "rule 1", "one of the two"),
    "an unknown entry": ("requires = 'a = 1'", "rule 1", "when, require, impossible, why"),
    "a number as rule": ("require = 1", "rule 1", "in quotes"),
    "too many rules": ("require = 'a = 1'\n[[rule]]\n" * MAX_RULES + "require = 'a = 1'", "1,001 rules", "1,000"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses(case: str) -> None:
    rule, names, remedy = REFUSED[case]
    with pytest.raises(SchemaError) as caught:
        Schema.parse(toml(rule))
    message = str(caught.value)
    assert names in message
    assert remedy in message
    assert "\n" not in message
    assert len(message) < 400


@pytest.mark.parametrize("case", ["a million brackets", "deep brackets", "deep nots", "deep signs", "many digits"])
def test_hostile_rules_are_refused_with_little_work(case: str) -> None:
    """What is too long is not read; what is too deep is left where it gets so."""

    def parse() -> None:
        with pytest.raises(SchemaError):
            Schema.parse(toml(REFUSED[case][0]))

    assert calls_made(parse) < 30_000


@pytest.mark.parametrize("entry", ["rule = 1", "rule = [1]", "[rule]\nrequire = 'a = 1'"])
def test_refuses_rules_that_are_no_tables(entry: str) -> None:
    with pytest.raises(SchemaError, match=r"write \[\[rule\]\] for each rule"):
        Schema.parse(entry + "\n" + BASE.to_toml() if "[" not in entry[:1] else BASE.to_toml() + entry)


def test_long_lists_are_cut_in_messages() -> None:
    schema = Schema((Category("c", values=tuple(f"v{i}" for i in range(50_000))),))
    with pytest.raises(SchemaError, match=r"which has 'v0', .* and 49,992 more\.$"):
        replace(schema, rules=(Rule(require="c = 'w'"),))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.sampled_from([*"abx`'\"()[],=<>!+-*./ 0129é\n", "and", "or", "not", " in ", "is", "missing"])).map(
        "".join
    )
)
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(BadExpression):
        READER.read(text).holds(as_figures([ROW]))


@pytest.mark.slow
def test_what_is_allowed_at_most_is_read() -> None:
    wide = "a+" * 400 + "a = 1 or " + " or ".join(["a=1"] * 20)
    deep = "(" * (MAX_NESTING - 1) + "a" + ")" * (MAX_NESTING - 1) + " = 1"
    assert len(wide) <= MAX_CHARACTERS
    schema = replace(BASE, rules=(Rule(impossible=wide), Rule(require=deep)) * (MAX_RULES // 2))
    assert len(schema.constraints) == MAX_RULES
    labels = tuple(f"v{i}" for i in range(100_000))
    many = Schema((Category("c", values=labels), Category("d", values=labels[::-1])))
    far = Rule(impossible="c = d or " + " or ".join([f"c = '{labels[-1]}'"] * 60))
    assert len(replace(many, rules=(far,) * MAX_RULES).constraints) == MAX_RULES


def test_each_rule_is_read_with_as_much_work_as_the_one_before_however_many_labels_there_are() -> None:
    for size in (10, 10_000):
        labels = tuple(f"v{i}" for i in range(size))
        schema = Schema((Category("c", values=labels), Category("d", values=labels[::-1])))
        far = Rule(impossible="c = d or " + " or ".join([f"c = '{labels[-1]}'"] * 60))
        one, two, twelve = (
            calls_made(functools.partial(replace, schema, rules=(far,) * rules)) for rules in (1, 2, 12)
        )
        assert two - one < 20_000  # about 9,500; a walk along the labels would take 60 times their number
        assert twelve - two <= 10.1 * (two - one)


# ------------------------------------------------------------ what is possible

CONTRADICTIONS = {
    "outside of the column": (["a > 4"], "rule 1 "),
    "two rules": (["grade2 != 'low' or a < 0", "a > 1", "a < 1"], "rules 2 and 3 contradict"),
    "a circle": (["a < b", "b < c", "c < a", "a != 3"], "rules 1, 2 and 3 contradict"),
    "a chain that is too long": (["a < b", "b < c", "c < d", "d < a + 3"], "rules 1, 2, 3 and 4 contradict"),
    "no label is left": (["grade2 in ['low']", "grade2 > 'low'"], "rules 1 and 2 contradict"),
    "missing where nothing can be": (["a is missing"], "rule 1 "),
    "sums": (["a + b = 3", "a - b = 2"], "rules 1 and 2 contradict"),
}
SMALL = Schema(
    (
        *(Ordered(name, kind="integer", low=-4, high=4) for name in "abcd"),
        Ordered("x", kind="number", low=0.0, high=1e5),
        Ordered("y", kind="number", low=0.0, high=1e5),
        Ordered("grade2", kind="ordinal", low=0, high=2, values=GRADES),
        Category("town", values=TOWNS),
        Category("place", values=PLACES),
        Ordered("hole", kind="integer", low=0, high=4, missing=True),
    )
)


def ruled(*required: str) -> Schema:
    return replace(SMALL, rules=tuple(Rule(require=text) for text in required))


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_contradictions_are_refused_and_those_at_fault_are_named(case: str) -> None:
    required, says = CONTRADICTIONS[case]
    with pytest.raises(SchemaError, match=f"^{says}") as caught:
        check_rules(ruled(*required))
    assert "\n" not in str(caught.value)


POSSIBLE = [
    ["a < b", "b < c", "c < d"],
    ["d > c", "c > b", "b > a"],
    ["a + b + c + d = 13"],
    ["a + b = 3", "a - b = 1"],
    ["x = 0.1", "y = 0.3"],
    ["0.1 < x < 0.10000000001"],
    ["x + y = 1e5", "x - 3*y = 0"],
    ["x + 1e-9 > y > x"],
    ["town = place", "town != 'x'"],
    ["grade2 > 'low' and grade2 < 'high'"],
    ["hole > 3", "hole < 3"],  # a missing value violates nothing
    ["a = 3 or a = -3", "b = 2*a or b = -a", "a + b + c = 4", "c != 4 or d = a"],
]


@pytest.mark.parametrize("required", POSSIBLE, ids=" ; ".join)
def test_what_is_possible_is_found(required: list[str]) -> None:
    schema = ruled(*required)
    check_rules(schema)
    for part in rule_components(schema):
        row = possible_row(part)
        assert row is not None
        assert set(row) == {column.name for column in part.columns}
        assert not part.violations({name: np.array([value]) for name, value in row.items()}).any()


def test_rules_that_share_no_column_are_parts() -> None:
    schema = ruled("a < b", "c > 0", "b < 4", "d < x", "c != d")
    named_parts = [{c.name for c in part.columns} for part in rule_components(schema)]
    assert sorted(map(sorted, named_parts)) == [["a", "b"], ["c", "d", "x"]]
    assert sorted(tuple(c.number for c in part.constraints) for part in rule_components(schema)) == [(1, 3), (2, 4, 5)]


def test_many_columns_that_depend_on_each_other_are_no_matter_for_the_stack() -> None:
    columns = tuple(Ordered(f"c{i}", low=0, high=2_000) for i in range(800))
    rules = tuple(Rule(require=f"c{i} < c{i + 1}") for i in range(799))
    check_rules(Schema(columns, rules=rules))
    fewer = Schema(columns[:200], rules=rules[:199])
    assert calls_made(lambda: check_rules(fewer)) < 10 * 200**2  # about 5 for each pair; a search would be exponential


def test_the_rules_of_the_reference_are_read() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "schema.md").read_text(encoding="utf-8")
    schema = Schema.parse(re.findall(r"^```toml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)[0])
    assert len(schema.rules) == 3
    check_rules(schema)


def test_labels_of_digits_need_no_quotes_if_they_are_written_alike():
    reader = Reader(
        Schema.parse('[[column]]\nname = "code"\nkind = "category"\nvalues = ["0", "2", "05", "-1", "2.5"]')
    )
    for label in ("2", "-1", "2.5"):
        assert reader.read(f"code = {label}") == reader.read(f"code = '{label}'")
    assert reader.read("code in [0, 2]") == reader.read("code in ['0', '2']")
    with pytest.raises(BadExpression, match="has labels, which are texts; choose from '0', '2', '05'"):
        reader.read("code = 5")
