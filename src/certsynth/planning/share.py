"""Choose the certificate's share of the budget from public knowledge, if no share was requested."""

from __future__ import annotations

from fractions import Fraction

from certsynth.algorithm.task import Task
from certsynth.planning.cache import load_or_make
from certsynth.planning.choice import first_guess, predict_design
from certsynth.planning.rehearsal import certified_bound

CERTIFICATE_SHARES = (Fraction(9, 100), Fraction(3, 20), Fraction(1, 4), Fraction(2, 5))
"""Candidate shares of the budget for the direct certificate."""

MAX_BOUND_RATIO = 1.15
"""The smallest share is chosen whose expected bound is at most this multiple of the smallest one: a certificate must
not cost accuracy unless it is clearly better for it."""

GUESSED_MECHANISM = "identity"
"""The mechanism that shares are compared with, unless another is requested: all of them need about the same share."""


def settle_share(task: Task) -> Task:
    """Choose the certificate's share of the budget if it is open; all other tasks are returned as they are.

    A larger share makes the certificate's noise smaller and the synthetic rows worse. The choice depends on the schema,
    the settings and a number of rows that must be public. It is cached on disk.
    """
    settings = task.settings
    if not settings.share_is_open or settings.cells(settings.sparsity) != "groups":
        return task
    question = {
        "share": 3,
        "schema": task.schema.to_toml(),
        "budget": [str(settings.budget.amount), settings.budget.unit],
        "confidence": str(settings.confidence),
        "neighbours": settings.neighbours,
        "subsets": settings.subsets,
        "mechanism": settings.mechanism,
        "resolution": settings.resolution,
        "candidates": settings.candidates,
        "exceptions": settings.exceptions,
        "rows": task.rows,
    }
    found = load_or_make(question, lambda: {"share": str(_best_share(task))}).get("share")
    known = {str(share): share for share in CERTIFICATE_SHARES}
    share = known[found] if isinstance(found, str) and found in known else _best_share(task)
    return task.with_settings(certificate_share=share, share_is_open=False)


def _best_share(task: Task) -> Fraction:
    guess = first_guess(task.with_settings(mechanism=task.settings.mechanism or GUESSED_MECHANISM))
    bounds = {}
    for share in CERTIFICATE_SHARES:
        other = task.with_settings(certificate_share=share)
        loss = predict_design(other, guess.strategy, guess.resolution, guess.split).predicted
        bounds[share] = certified_bound(other, loss)
    return next(share for share in CERTIFICATE_SHARES if bounds[share] <= MAX_BOUND_RATIO * min(bounds.values()))
