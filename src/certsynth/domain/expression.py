"""A small language for conditions on a row: text to a tree, in linear time and without running anything.

What the words mean is not decided here: `certsynth.domain.meaning` reads a tree beside the columns of a schema.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from certsynth.errors import InputError

MAX_LENGTH = 1_000
MAX_DEPTH = 32
"""Most characters of an expression, and most brackets, signs and `not`s inside each other: Python's stack is short."""

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
KEYWORDS = frozenset({"and", "or", "not", "between", "in", "is", "missing", "true", "false"})

_TOKEN = re.compile(
    r"""(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<word>[^\W\d]\w*)
      | (?P<name>`[^`]*(?:``[^`]*)*`)
      | (?P<text>'[^']*(?:''[^']*)*'|"[^"]*(?:""[^"]*)*")
      | (?P<sign><=|>=|==|!=|[=<>+\-*(),\[\]])
    """,
    re.VERBOSE,
)
_SPACE = re.compile(r"[ \t\r\n]*")
_MOST_LISTED = 8


class BadExpression(InputError):
    """What is wrong, at which character, and what to write instead."""

    def __init__(self, at: int, what: str) -> None:
        super().__init__(f"at character {at + 1}: {what}")


@dataclass(frozen=True, slots=True)
class Node:
    """A part of an expression; `at` is where it begins in the text."""

    at: int = field(compare=False)


@dataclass(frozen=True, slots=True)
class Name(Node):
    name: str


@dataclass(frozen=True, slots=True)
class Constant(Node):
    value: bool | float | str


@dataclass(frozen=True, slots=True)
class Sum(Node):
    terms: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Product(Node):
    factors: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Chain(Node):
    """`terms[0] signs[0] terms[1] signs[1] …`: every comparison of neighbours holds."""

    terms: tuple[Node, ...]
    signs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Among(Node):
    """One of the listed values."""

    term: Node
    values: tuple[Constant, ...]


@dataclass(frozen=True, slots=True)
class Missing(Node):
    term: Node


@dataclass(frozen=True, slots=True)
class Not(Node):
    part: Node


@dataclass(frozen=True, slots=True)
class And(Node):
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or(Node):
    parts: tuple[Node, ...]


def parse(text: str) -> Node:
    """The tree of an expression, or `BadExpression`.

    >>> parse("0 <= x")
    Chain(at=0, terms=(Constant(at=0, value=0.0), Name(at=5, name='x')), signs=('<=',))
    """
    if len(text) > MAX_LENGTH:
        raise BadExpression(MAX_LENGTH, f"longer than {MAX_LENGTH:,} characters; split it into several.")
    return _Parser(text).whole()


def listed(names: Iterable[str]) -> str:
    """Names for a message: the first few, and how many more there are."""
    known = list(names)
    more = f" and {len(known) - _MOST_LISTED:,} more" if len(known) > _MOST_LISTED else ""
    return ", ".join(f"{name!r:.60}" for name in known[:_MOST_LISTED]) + more


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else f"{self.text!r:.40}"


def _tokens(text: str) -> list[_Token]:
    for at, letter in enumerate(text):
        if letter not in "\t\r\n" and unicodedata.category(letter) in ("Cc", "Cs"):
            raise BadExpression(at, "a control character; remove it.")
    tokens, at = [], _SPACE.match(text).end()  # type: ignore[union-attr]  # matches anything
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise BadExpression(at, _stray(text[at]))
        kind, word = str(found.lastgroup), found.group()
        if kind in ("name", "text"):
            word = word[1:-1].replace(word[0] * 2, word[0])
        elif kind == "word" and word in KEYWORDS:
            kind = "keyword"
        tokens.append(_Token(kind, "=" if word == "==" and kind == "sign" else word, at))
        at = _SPACE.match(text, found.end()).end()  # type: ignore[union-attr]
    return [*tokens, _Token("end", "", len(text))]


def _stray(letter: str) -> str:
    if letter in "'\"`":
        return f"the quote {letter} is never closed; write it once more where the text ends (and twice inside of it)."
    if letter in "/%^":
        return f"{letter!r} is no operator here; sums and multiples are, like 0.5*x + y."
    return f"{letter!r} belongs to no word of this language; names with such letters stand in `backquotes`."


class _Parser:
    """Recursive descent: each method reads one level, from `or` down to a single name."""

    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.place = 0
        self.depth = 0

    @property
    def next(self) -> _Token:
        return self.tokens[self.place]

    def sees(self, *words: str) -> bool:
        return self.next.kind in ("sign", "keyword") and self.next.text in words

    def take(self, *words: str) -> bool:
        seen = self.sees(*words)
        self.place += seen
        return seen

    def expect(self, word: str, after: str) -> None:
        if not self.take(word):
            raise BadExpression(self.next.at, f"{word!r} must follow {after}, and not {self.next}.")

    def inside(self, level: Callable[[], Node]) -> Node:
        """One level deeper."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise BadExpression(self.next.at, f"more than {MAX_DEPTH} brackets, signs or 'not' inside each other.")
        node = level()
        self.depth -= 1
        return node

    def whole(self) -> Node:
        node = self.either()
        if self.next.kind != "end":
            raise BadExpression(self.next.at, f"{self.next} is one too many; join conditions by 'and' or 'or'.")
        return node

    def either(self) -> Node:
        at, parts = self.next.at, [self.both()]
        while self.take("or"):
            parts.append(self.both())
        return Or(at, tuple(parts)) if len(parts) > 1 else parts[0]

    def both(self) -> Node:
        at, parts = self.next.at, [self.negation()]
        while self.take("and"):
            parts.append(self.negation())
        return And(at, tuple(parts)) if len(parts) > 1 else parts[0]

    def negation(self) -> Node:
        at = self.next.at
        return Not(at, self.inside(self.negation)) if self.take("not") else self.condition()

    def condition(self) -> Node:
        at, first = self.next.at, self.sum()
        if self.sees(*COMPARISONS):
            terms, signs = [first], []
            while self.sees(*COMPARISONS):
                signs.append(self.next.text)
                self.place += 1
                terms.append(self.sum())
            return Chain(at, tuple(terms), tuple(signs))
        if self.take("between"):
            low = self.sum()
            self.expect("and", "the lower end of 'between'")
            return Chain(at, (low, first, self.sum()), ("<=", "<="))
        if self.take("in"):
            return Among(at, first, self.constants())
        if self.take("not"):
            self.expect("in", "'not' behind a value")
            return Not(at, Among(at, first, self.constants()))
        if self.take("is"):
            negated = self.take("not")
            self.expect("missing", "'is'")
            return Not(at, Missing(at, first)) if negated else Missing(at, first)
        return first

    def constants(self) -> tuple[Constant, ...]:
        self.expect("[", "'in'")
        values = [self.constant()]
        while self.take(","):
            values.append(self.constant())
        self.expect("]", "the last value of a list")
        return tuple(values)

    def constant(self) -> Constant:
        at, negative = self.next.at, self.take("-")
        value = self.single()
        if not isinstance(value, Constant):
            raise BadExpression(at, "a list holds numbers, or texts in quotes.")
        if not negative:
            return value
        if not isinstance(value.value, float):
            raise BadExpression(at, "only a number can have a sign.")
        return Constant(at, -value.value)

    def sum(self) -> Node:
        at, terms = self.next.at, [self.product()]
        while self.sees("+", "-"):
            start, negative = self.next.at, self.sees("-")
            self.place += 1
            term = self.product()
            terms.append(Product(start, (Constant(start, -1.0), term)) if negative else term)
        return Sum(at, tuple(terms)) if len(terms) > 1 else terms[0]

    def product(self) -> Node:
        at, factors = self.next.at, [self.signed()]
        while self.take("*"):
            factors.append(self.signed())
        return Product(at, tuple(factors)) if len(factors) > 1 else factors[0]

    def signed(self) -> Node:
        at = self.next.at
        if self.take("-"):
            return Product(at, (Constant(at, -1.0), self.inside(self.signed)))
        if self.take("+"):
            return self.inside(self.signed)
        return self.single()

    def single(self) -> Node:
        token = self.next
        self.place += token.kind != "end"
        if token.kind in ("word", "name"):
            return Name(token.at, token.text)
        if token.kind == "text":
            return Constant(token.at, token.text)
        if token.kind == "number":
            if not math.isfinite(value := float(token.text)):
                raise BadExpression(token.at, "a number that is too large.")
            return Constant(token.at, value)
        if token.kind == "keyword" and token.text in ("true", "false"):
            return Constant(token.at, token.text == "true")
        if token.kind == "sign" and token.text == "(":
            node = self.inside(self.either)
            self.expect(")", "what stands in brackets")
            return node
        hint = " (a column of that name stands in `backquotes`)" if token.kind == "keyword" else ""
        raise BadExpression(token.at, f"a column, a number or a text in quotes must stand here, and not {token}{hint}.")
