"""Who takes part in the race on wide tables, and with which settings: all with δ = 1e-5 and add-remove, unless said."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

from certsynth.mechanisms.concentrated import rho_of
from race import contenders as survey
from race.contenders import Contender, ours, theirs

DELTA = "1e-5"
WITH_DELTA = {"neighbours": "add-remove", "delta": DELTA}

CONTENDERS = {
    contender.key: contender
    for contender in (
        ours("certsynth-delta", "certsynth", "add-remove", "all defaults but δ and the relation", **WITH_DELTA),
        ours(
            "certsynth-target",
            "certsynth, target",
            "add-remove",
            "the same, and `target` names the column that models predict",
            target=True,
            **WITH_DELTA,
        ),
        ours(
            "certsynth-pure",
            "certsynth, pure ε",
            "add-remove",
            "all defaults but the relation: δ = 0 promises more than the others do",
            neighbours="add-remove",
        ),
        ours(
            "certsynth-independent",
            "independent columns",
            "add-remove",
            "the floor: certsynth with `sparsity = 1`, which measures single columns only",
            sparsity=1,
            **WITH_DELTA,
        ),
        survey.CONTENDERS["dpmm-aim"],
        survey.CONTENDERS["dpmm-mst"],
        theirs(
            "opendp",
            "opendp-aim-delta",
            "OpenDP AIM",
            "defaults of AIM, at the largest ρ that is (ε, δ)-private; every label has a bin, other columns have 32",
            default=True,
            is_aim=True,
            bins=32,
            delta=float(DELTA),
        ),
        theirs(
            "smartnoise",
            "smartnoise-mst",
            "SmartNoise MST",
            "defaults but δ; every label has a bin, other columns have 32 in place of 10",
            default=True,
            is_aim=False,
            model="MST",
            bins=32,
            options={"delta": float(DELTA)},
        ),
        survey.CONTENDERS["dpmm-mst-reduced"],
    )
}
SLOW = ("dpmm-aim", "opendp-aim-delta")
"""Contenders that are run with a single seed for each ε: half an hour and more on Adult."""


def setting(contender: Contender, epsilon: str, target: str | None) -> dict[str, Any] | None:
    """What its runner is told for a budget and a table; None if the table has no target, which it would need."""
    found = dict(contender.setting)
    if contender.peer == "opendp":
        found["rho"] = _rho(epsilon)
    if contender.peer == "certsynth" and "target" in found["options"]:
        if target is None:
            return None
        found["options"] = found["options"] | {"target": target}
    return found


@cache
def _rho(epsilon: str) -> float:
    """By the conversion that certsynth uses itself, rounded down."""
    return int(rho_of(Fraction(epsilon), Fraction(DELTA)) * 10**5) / 10**5
