"""Answer a text: a statistic, the difference of two, or a table of shares."""

from __future__ import annotations

from certsynth.answers import queries
from certsynth.answers.answer import Answer
from certsynth.answers.asking import evaluate, to_answer
from certsynth.answers.basis import Basis
from certsynth.answers.differences import evaluate_difference
from certsynth.answers.queries import FORMS, Difference
from certsynth.answers.table_answer import TableAnswer
from certsynth.answers.tables import tabulate
from certsynth.errors import InputError


def answer(basis: Basis, text: str) -> Answer | TableAnswer:
    """Answer a query, or raise an `InputError` that says what to write instead."""
    if not isinstance(text, str):
        raise InputError('a query is a text such as "mean(age)", or a function with its columns.')
    shown = " ".join(text.split())
    try:
        query = queries.parse(text)
        queries.check_names(query, basis.schema.names)
        if isinstance(query, Difference):
            return to_answer(basis, query, evaluate_difference(basis, query), shown)
        if FORMS[query.statistic].cells:
            return tabulate(basis, query, shown)
        return to_answer(basis, query, evaluate(basis, query), shown)
    except InputError as error:
        raise InputError(f"{shown[:80]}: {error}") from None
