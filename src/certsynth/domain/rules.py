"""Rules: public knowledge about which combinations of values a row cannot have."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from certsynth.domain.column import Column
from certsynth.domain.condition import And, Condition, Not, Rows, figures
from certsynth.domain.expression import BadExpression
from certsynth.domain.meaning import Reader
from certsynth.errors import SchemaError

MAX_RULES = 1_000
"""Most rules of a schema."""

MAX_WHY_CHARACTERS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One [[rule]] of a schema: a condition that is `impossible`, or one that rows `require`, perhaps only `when`
    another holds. `why` is a note for readers."""

    impossible: str | None = None
    require: str | None = None
    when: str | None = None
    why: str | None = None

    def entries(self) -> dict[str, str]:
        """The entries of the rule's [[rule]] table in the schema file."""
        given = {"when": self.when, "impossible": self.impossible, "require": self.require, "why": self.why}
        return {key: text for key, text in given.items() if text is not None}


@dataclass(frozen=True, slots=True)
class Constraint:
    """A rule compiled for the columns of its schema; `number` counts from 1."""

    number: int
    violation: Condition
    columns: tuple[str, ...]

    def violated(self, rows: Rows) -> np.ndarray:
        """Mask of the rows that are known to violate the rule: a missing value makes a comparison unknown."""
        return np.asarray(self.violation.holds(rows) > 0)


def read_rules(entries: Any, where: str) -> tuple[Rule, ...]:
    """Read the [[rule]] tables of a schema file. Their expressions are checked by `read_constraints`."""
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise SchemaError(f"{where}: write [[rule]] for each rule.")
    if len(entries) > MAX_RULES:
        raise SchemaError(f"{where}: {len(entries):,} rules; at most {MAX_RULES:,} are supported.")
    return tuple(_read_rule(entry, f"{where}: rule {i + 1}") for i, entry in enumerate(entries))


def _read_rule(entry: Mapping[str, Any], where: str) -> Rule:
    for key, text in entry.items():
        if key not in Rule.__dataclass_fields__:
            raise SchemaError(f"{where} has an unknown entry {key!r:.60}; it may have when, require, impossible, why.")
        if not isinstance(text, str):
            raise SchemaError(f"{where}: {key} is a text; write it in quotes.")
    return Rule(**entry)


def read_constraints(rules: Sequence[Rule], columns: Sequence[Column]) -> tuple[Constraint, ...]:
    """Compile rules for the columns of a schema; refuse expressions that do not parse or do not fit the columns."""
    if len(rules) > MAX_RULES:
        raise SchemaError(f"{len(rules):,} rules; at most {MAX_RULES:,} are supported.")
    reader = Reader(columns)
    return tuple(_read_constraint(rule, i + 1, reader) for i, rule in enumerate(rules))


def _read_constraint(rule: Rule, number: int, reader: Reader) -> Constraint:
    where = f"rule {number}"
    if (rule.impossible is None) == (rule.require is None):
        raise SchemaError(f"{where} must say either what is impossible or what it requires: one of the two.")
    if rule.when is not None and rule.require is None:
        raise SchemaError(f"{where}: 'when' goes with 'require'; join both by 'and' to say what is impossible.")
    if rule.why is not None and (len(rule.why) > MAX_WHY_CHARACTERS or not _is_printable(rule.why)):
        raise SchemaError(
            f"{where}: why is a text of at most {MAX_WHY_CHARACTERS:,} characters, none of them a control character."
        )

    def read(key: str, text: str) -> Condition:
        try:
            return reader.read(text)
        except BadExpression as error:
            raise SchemaError(f"{where}, {key}, {error}") from None

    if rule.impossible is not None:
        violation = read("impossible", rule.impossible)
    else:
        assert rule.require is not None
        violation = Not(read("require", rule.require))
        if rule.when is not None:
            violation = And((read("when", rule.when), violation))
    return Constraint(number, violation, violation.columns)


def broken_rule(
    known: Sequence[Constraint], columns: Sequence[Column], table: Mapping[str, np.ndarray]
) -> Constraint | None:
    """The first rule that some row of a written table violates, or None."""
    used = {name for constraint in known for name in constraint.columns}
    rows = {column.name: figures(column, table[column.name]) for column in columns if column.name in used}
    return next((constraint for constraint in known if constraint.violated(rows).any()), None)


def _is_printable(text: str) -> bool:
    return not any(unicodedata.category(letter) in ("Cc", "Cs") for letter in text)
