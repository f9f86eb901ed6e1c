"""Statistics of a release with certified error bars: from the synthetic rows and the certificate alone."""

from certsynth.answers.answer import Answer
from certsynth.answers.asking import answer, answer_function
from certsynth.answers.basis import Basis

__all__ = ["Answer", "Basis", "answer", "answer_function"]
