"""Answer a text: a statistic, the difference of two, a table of shares, or a statistic of every group."""

from __future__ import annotations

from certsynth.answers import queries
from certsynth.answers.answer import Answer, Unanswered
from certsynth.answers.asking import evaluate, to_answer
from certsynth.answers.basis import Basis
from certsynth.answers.differences import evaluate_difference
from certsynth.answers.groups import answer_groups
from certsynth.answers.hints import explain
from certsynth.answers.queries import FORMS, Difference, Grouped
from certsynth.answers.table_answer import TableAnswer
from certsynth.answers.tables import tabulate
from certsynth.domain.expression import BadExpression
from certsynth.errors import InputError


def answer(basis: Basis, text: str) -> Answer | TableAnswer:
    """Answer a query, or raise an `InputError` that says what to write instead."""
    found = answer_or_reason(basis, text)
    if isinstance(found, Unanswered):
        raise InputError(str(found) if isinstance(text, str) else found.error)
    return found


def answer_or_reason(basis: Basis, text: str) -> Answer | TableAnswer | Unanswered:
    """Answer a query, or return the reason why it has no answer and what to write instead."""
    if not isinstance(text, str):
        reason = 'a query is a text such as "mean(age)", or a function with its columns.'
        return Unanswered(f"{text!r:.80}", reason)
    shown = " ".join(text.split())
    try:
        return _answer(basis, text, shown)
    except BadExpression as error:
        return Unanswered(shown, str(explain(error, text, basis.columns)))
    except InputError as error:
        return Unanswered(shown, str(error))


def _answer(basis: Basis, text: str, shown: str) -> Answer | TableAnswer:
    query = queries.parse(text)
    queries.check_names(query, basis.schema.names)
    if isinstance(query, Grouped):
        return answer_groups(basis, query, shown)
    if isinstance(query, Difference):
        return to_answer(basis, query, evaluate_difference(basis, query), shown)
    if FORMS[query.statistic].cells:
        return tabulate(basis, query, shown)
    return to_answer(basis, query, evaluate(basis, query), shown)
