"""Statistics of a release with certified error bars: from the synthetic rows and the certificate alone."""

from certsynth.answers.answer import Answer, Unanswered
from certsynth.answers.answering import answer, answer_or_reason
from certsynth.answers.asking import answer_function
from certsynth.answers.basis import Basis
from certsynth.answers.table_answer import TableAnswer

__all__ = ["Answer", "Basis", "TableAnswer", "Unanswered", "answer", "answer_function", "answer_or_reason"]
