"""The syntax of conditions on a row: text to a syntax tree, in linear time and without evaluating anything.

What a tree means is not decided here: `certsynth.domain.meaning` checks it against the columns of a schema.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from certsynth.errors import InputError

MAX_CHARACTERS = 1_000
MAX_NESTING = 32
"""Most characters of an expression, and most nested brackets, signs and `not`s: the parser is recursive."""

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
_MAX_NAMES_LISTED = 8


class BadExpression(InputError):
    """An invalid expression. The message says at which character, why, and what to write instead."""

    def __init__(self, at: int, what: str) -> None:
        super().__init__(f"at character {at + 1}: {what}")


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the syntax tree; `at` is its position in the text."""

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
    """`terms[0] signs[0] terms[1] signs[1] …`: true if every comparison of neighbours is."""

    terms: tuple[Node, ...]
    signs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Among(Node):
    """The term is one of the listed values."""

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
    """Parse an expression; raise `BadExpression` if it is invalid.

    >>> parse("0 <= x")
    Chain(at=0, terms=(Constant(at=0, value=0.0), Name(at=5, name='x')), signs=('<=',))
    """
    if len(text) > MAX_CHARACTERS:
        raise BadExpression(MAX_CHARACTERS, f"longer than {MAX_CHARACTERS:,} characters; split it into several.")
    return _Parser(text).whole()


def list_names(names: Iterable[str]) -> str:
    """Names for a message: the first few, and the number of the others."""
    known = list(names)
    more = f" and {len(known) - _MAX_NAMES_LISTED:,} more" if len(known) > _MAX_NAMES_LISTED else ""
    return ", ".join(f"{name!r:.60}" for name in known[:_MAX_NAMES_LISTED]) + more


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else f"{self.text!r:.40}"


def _tokenize(text: str) -> list[_Token]:
    for at, letter in enumerate(text):
        if letter not in "\t\r\n" and unicodedata.category(letter) in ("Cc", "Cs"):
            raise BadExpression(at, "a control character; remove it.")
    tokens, at = [], _SPACE.match(text).end()  # type: ignore[union-attr]  # matches anything
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise BadExpression(at, _stray_character_message(text[at]))
        kind, word = str(found.lastgroup), found.group()
        if kind in ("name", "text"):
            word = word[1:-1].replace(word[0] * 2, word[0])
        elif kind == "word" and word in KEYWORDS:
            kind = "keyword"
        tokens.append(_Token(kind, "=" if word == "==" and kind == "sign" else word, at))
        at = _SPACE.match(text, found.end()).end()  # type: ignore[union-attr]
    return [*tokens, _Token("end", "", len(text))]


def _stray_character_message(letter: str) -> str:
    if letter in "'\"`":
        return f"the quote {letter} is never closed; close it where the text ends, and double it inside the text."
    if letter in "/%^":
        return f"{letter!r} is not an operator here; write sums and multiples, like 0.5*x + y."
    return f"{letter!r} has no meaning here; put names with such characters in `backquotes`."


class _Parser:
    """Recursive descent: each method parses one level of precedence, from `or` down to a single name."""

    def __init__(self, text: str) -> None:
        self.tokens = _tokenize(text)
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
            raise BadExpression(self.next.at, f"{word!r} must follow {after}, not {self.next}.")

    def inside(self, level: Callable[[], Node]) -> Node:
        """Parse one level deeper."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise BadExpression(self.next.at, f"more than {MAX_NESTING} nested brackets, signs or 'not'.")
        node = level()
        self.depth -= 1
        return node

    def whole(self) -> Node:
        node = self.either()
        if self.next.kind != "end":
            raise BadExpression(self.next.at, f"{self.next} was not expected; join conditions with 'and' or 'or'.")
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
            self.expect("in", "'not' after a value")
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
                raise BadExpression(token.at, "this number is too large.")
            return Constant(token.at, value)
        if token.kind == "keyword" and token.text in ("true", "false"):
            return Constant(token.at, token.text == "true")
        if token.kind == "sign" and token.text == "(":
            node = self.inside(self.either)
            self.expect(")", "the expression in brackets")
            return node
        hint = " (put a column of that name in `backquotes`)" if token.kind == "keyword" else ""
        raise BadExpression(token.at, f"a column, a number or a text in quotes was expected, not {token}{hint}.")
