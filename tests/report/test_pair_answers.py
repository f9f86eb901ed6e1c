"""Answers about two columns on the page of a whole release have the digits of `release.answer`, with noisy counts."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from report_specimens import document, record, report_view, table, wide
from test_page_in_node import ASKS, in_percent, plain, run_in_node

from certsynth import Release, release
from certsynth.answers import Basis, answer
from certsynth.domain import Category, Ordered, Schema
from certsynth.report import pair_answers
from certsynth.report.packing import DIGITS, LAST_DIGITS, Numbers, Texts, pack, packable
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
    assert compare(said, made.answer) > QUESTIONS / 2, said[:5]


def compare(said: list[list[str]], answer: Callable[[str], Any]) -> int:
    """Compare what the page says with the answers to the same questions; return how many there were."""
    asked = [(head, says, note.removeprefix(ASKS)) for head, says, note in said if note.startswith(ASKS)]
    for head, says, query in asked:
        found = answer(query)
        texts = [in_percent(each) if found.unit == "share" else each for each in found.shown()]
        assert plain(head) == f"{texts[1]} to {texts[2]}", (query, head, found)
        assert f" {texts[0]}" in plain(says), (query, says, found)
        assert ("too wide to say anything" in says) == bool(found.says_nothing), query
    return len(asked)


@dataclass(frozen=True)
class Wide:
    """A page of many columns, and what `answer` says about the same release."""

    columns: list[str]
    calculator: Json
    basis: Basis

    @classmethod
    def of(cls, schema: Schema, rows: int = 400) -> Wide:
        stated, values = record(document(schema, rows=rows)), table(schema, rows=rows)
        clean = {column.name: column.encode(np.ma.asarray(values[column.name])) for column in schema}
        calculator = report_view(stated, schema, values)["calculator"]
        return cls(list(schema.names), calculator, Basis.read(schema, values, clean, stated))

    def ask(self, asks: list[Json]) -> list[list[str]]:
        (said,) = run_in_node([{"numbers": self.calculator, "asks": asks}])
        assert None not in said
        return said

    def compare(self, number: int, seed: int) -> int:
        rng = np.random.default_rng(seed)
        said = self.ask([controls(rng, self.calculator) for _ in range(number)])
        return compare(said, lambda query: answer(self.basis, query))


def check_all_pairs(page: Wide, questions: int) -> None:
    answers = page.calculator["answers"]
    assert answers["pairs"] is None
    assert len(answers["sides"]) == len(page.columns)
    for side in answers["sides"].values():
        assert len(side["asked"]) >= 3
    assert page.compare(questions, 3) > questions / 2


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_every_pair_has_ranges_where_there_is_room_for_few_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_answers, "MAX_ANSWERS", 600)
    check_all_pairs(Wide.of(wide(8)), QUESTIONS)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_every_pair_of_fifty_columns_has_ranges() -> None:
    check_all_pairs(Wide.of(wide(50)), 1_000)


COMMAND = re.compile(r"""certsynth answer DIR (".*"|'.*')$""")


def command_in(says: str) -> str:
    """The query of the command that the page states, as a shell reads it."""
    found = COMMAND.search(says)
    assert found, says
    (query,) = shlex.split(found[1])
    return query


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_a_label_that_is_not_among_the_most_frequent_has_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_answers, "MAX_ANSWERS_OF_PAIR", 60)
    page = Wide.of(wide(4))
    column = page.calculator["columns"][3]
    side, counts = page.calculator["answers"]["sides"]["3"], dict(zip(column["labels"], column["counts"], strict=True))
    assert side["labels"][-1] == "missing"
    kept = side["labels"][:-1]
    assert 1 <= len(kept) < len(counts)
    assert min(counts[label] for label in kept) >= max(counts[label] for label in counts if label not in kept)
    assert kept == sorted(kept, key=column["labels"].index)
    asks = [
        {"calc-what": what, "calc-first": "3", "calc-second": "0", "calc-part": "rest"}
        for what in ("both", "meanWithin")
    ]
    rarest = min(counts, key=lambda label: counts[label])
    for head, says, _ in page.ask(asks):
        assert head == "–"
        assert "the most frequent labels of" in says
        assert answer(page.basis, command_in(says).replace("LABEL", rarest)).confidence == page.basis.confidence


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_a_pair_for_which_there_is_no_time_has_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_answers, "MAX_ROWS_COUNTED", 2 * 400)
    page = Wide.of(wide(4))
    assert len(page.calculator["answers"]["pairs"]) == 4
    rng = np.random.default_rng(4)
    asks = [controls(rng, page.calculator) for _ in range(QUESTIONS)]
    said = page.ask(asks)
    assert compare(said, lambda query: answer(page.basis, query)) > 0
    told = [command_in(says) for _, says, _ in said if "no room" in says]
    assert len(told) > QUESTIONS / 4
    for query in told[:20]:
        answer(page.basis, query)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_a_label_that_a_shell_would_change_is_quoted() -> None:
    """The control: what a shell reads is the query."""
    labels = ('say "no"', "it's", "$HOME", "a`b", "back\\slash", "plain")
    schema = Schema(columns=(Category(name="c", values=labels), Ordered(name="x", kind="integer", low=0, high=9)))
    page = Wide.of(schema)
    page.calculator["answers"] |= {"pairs": [], "shares": ""}
    asks = [
        {"calc-what": "both", "calc-first": "0", "calc-second": "1", "calc-part": str(k)} for k in range(len(labels))
    ]
    for label, (_, says, _) in zip(labels, page.ask(asks), strict=True):
        doubled = label.replace("'", "''")
        assert command_in(says).startswith(f"fraction(c = '{doubled}' and ")


def unpack(text: str) -> list[Numbers | Texts | None]:
    """The definition, digit by digit."""
    found: list[Numbers | Texts | None] = []
    letters, before, decimals, nothing = list(text), dict[int, list[int]](), 0, False

    def number() -> int:
        digit = DIGITS.index(letters.pop(0))
        return digit if digit < LAST_DIGITS else digit + (len(DIGITS) - LAST_DIGITS) * number()

    while letters:
        if letters[0] in DIGITS:
            signed = [(-(n + 1) // 2 if n % 2 else n // 2) for n in (number(), number(), number())]
            before[decimals] = [a + b for a, b in zip(before.get(decimals, [0, 0, 0]), signed, strict=True)]
            found.append(Numbers(decimals, *before[decimals], nothing))
            nothing = False
            continue
        sign = letters.pop(0)
        if sign == "!":
            nothing = True
        elif sign == ".":
            found.append(None)
        elif sign == "=":
            end = letters.index(";")
            found.append(Texts(tuple("".join(letters[:end]).split("|")), nothing))
            letters, nothing = letters[end + 1 :], False
        else:
            decimals += 1 if sign == "+" else -1
    return found


def test_answers_are_packed_without_loss() -> None:
    rng = np.random.default_rng(6)
    answers: list[Numbers | Texts | None] = [None, Texts(("2020-01-01", "a", "-0.0"), True)]
    for _ in range(2_000):
        size = 10.0 ** rng.uniform(0, 14, 3)
        estimate, below, above = (int(x) for x in rng.choice([-1, 1], 3) * size)
        answers.append(Numbers(int(rng.integers(0, 9)), estimate, below, above, bool(rng.integers(2))))
        if rng.integers(9) == 0:
            answers.append(answers[int(rng.integers(2))])
    text = pack(answers)
    assert unpack(text) == answers
    assert not set(text) & set("\"\\<>&'")


def test_numbers_with_unlike_decimals_or_too_many_digits_stay_texts() -> None:
    assert packable(["-0.5", "-1.0", "12.5"]) == Numbers(1, -5, 5, 130)
    for texts in (["-0.0", "-1.0", "12.5"], ["1" * 20, "0", "2"], ["1.5", "1", "2"]):
        assert packable(texts) == Texts(tuple(texts))


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
