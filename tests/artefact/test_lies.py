"""What no recomputation can see: every such lie has its sentence in what `verify` says that it cannot check."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from forging import copied_document, restated, retold, scale_asked_budget, spent_on, unit_of
from test_every_key import KEYS

from certsynth import Release
from certsynth.certificate.coverage import STATISTICS
from certsynth.certificate.skipping import LOSS_UNITS
from certsynth.mechanisms import Budget, Guarantee, Sensitivity, Unit
from certsynth.mechanisms.guarantee import decimal_text
from certsynth.mechanisms.samplers import calibrated_scale
from certsynth.report.verifiable import UNVERIFIABLE, UNVERIFIABLE_BY_STEP, UNVERIFIABLE_EXCEPTIONS

COUNTS, ROWS, ELSEWHERE, CONFIDENCE, NAMES = UNVERIFIABLE
Lie = Callable[[Release], Release]


def other_counts(made: Release) -> Release:
    """Every noisy count but a few of them, each a little larger."""
    changed = [
        dataclasses.replace(m, coefficients=tuple(block + (block > 3) for block in m.coefficients))
        for m in made.measurements
    ]
    return dataclasses.replace(made, measurements=tuple(changed))


def more_rows(made: Release) -> Release:
    """Twice as many rows as there are, where that number is public, and as many asked for as were made."""
    document = copied_document(made)
    document["asked"]["rows"] = document["release"]["rows"]
    document["privacy"]["rows"] *= 2
    measurements = tuple(dataclasses.replace(m, total=2 * m.total) for m in made.measurements)
    return dataclasses.replace(restated(made, document), measurements=measurements)


def more_noise(made: Release) -> Release:
    """Half the budget, and noise that would fit it: it was not drawn so."""
    document, unit = copied_document(made), Unit(unit_of(copied_document(made)))
    scale_asked_budget(document, Fraction(1, 2))
    measurements = []
    for m in made.measurements:
        half = m.cost.spent.share(Fraction(1, 2))
        measurements.append(dataclasses.replace(m, cost=Guarantee(half, m.cost.neighbours)))
    for step in document["privacy"]["spent"]:
        spent = Budget(Fraction(step[unit]) / 2, unit)
        scale = calibrated_scale(Sensitivity(**step["sensitivity"]), spent)
        measurements = [
            dataclasses.replace(m, scale=scale) if m.scale.hex() == step["scale"] else m for m in measurements
        ]
        step.update({str(unit): str(spent.amount), "scale": scale.hex()})
    whole = sum((Fraction(step[unit]) for step in document["privacy"]["spent"]), Fraction(0))
    document["privacy"][unit] = decimal_text(whole)
    return dataclasses.replace(restated(made, document), measurements=tuple(measurements))


def other_value(what: str, value: Callable[[int], int], *, at: int | None = None) -> Lie:
    """Other noisy integers of a step: all of them, or one."""

    def lie(made: Release) -> Release:
        document = copied_document(made)
        step = spent_on(document, what)
        step["values"] = [value(each) if at in (None, i) else each for i, each in enumerate(step["values"])]
        return restated(made, document)

    return lie


def other_text(*path: Any, value: Any) -> Lie:
    def lie(made: Release) -> Release:
        document = copied_document(made)
        part: Any = document
        for key in path[:-1]:
            part = part[key]
        assert part[path[-1]] != value
        part[path[-1]] = value
        return restated(made, document)

    return lie


def other_exception(made: Release) -> Release:
    """Another subset in place of the one that was chosen."""
    document = made.document
    (chosen,) = document["certificate"]["exceptions"]["subsets"]
    others = [each["columns"] for each in document["certificate"]["subsets"] if each["columns"] != chosen]
    document["certificate"]["exceptions"]["subsets"] = others[:1]
    return restated(made, document)


LIES: dict[str, tuple[str, str, Lie]] = {
    "other noisy counts": ("pairs", COUNTS, other_counts),
    "other noisy counts in rho": ("rho, hidden rows", COUNTS, other_counts),
    "other noisy counts of a grid": ("low-dimensional", COUNTS, other_counts),
    "more noise than was drawn": ("pairs", COUNTS, more_noise),
    "more noise than was drawn, hidden rows": ("hidden rows", COUNTS, more_noise),
    "more rows than there are": ("pairs", ROWS, more_rows),
    "more rows than there are, plug-in alone": ("the paper", ROWS, more_rows),
    "another line of the ledger": ("pairs", ELSEWHERE, other_text("ledger", value="0" * 64)),
    "another confidence": ("pairs", CONFIDENCE, other_text("asked", "confidence", value="9/10")),
    "another preset": ("programs", NAMES, other_text("asked", "preset", value="paper")),
    "another prediction": ("pairs", NAMES, other_text("compared", 0, "discretisation", value=0.125)),
    "another version": ("pairs", NAMES, other_text("certsynth", value="9.9")),
    "another loss": ("the paper", NAMES, other_text("asked", "loss", value="transport")),
    "public rows that nobody gave": ("pairs", NAMES, other_text("asked", "public", value=True)),
    "another dimension": ("low-dimensional", NAMES, other_text("release", "dimension", value=7)),
    "other numbers of occupied cells": (
        "low-dimensional",
        NAMES,
        other_value("choosing the resolution", lambda value: value + 5),
    ),
    "another exception": ("exceptions", UNVERIFIABLE_EXCEPTIONS, other_exception),
    "more noisy rows": (
        "hidden rows",
        UNVERIFIABLE_BY_STEP["number of rows"],
        other_value("number of rows", lambda n: 5 * n),
    ),
    "fewer dropped rows": (
        "persons",
        UNVERIFIABLE_BY_STEP["dropped rows of persons"],
        other_value("dropped rows of persons", lambda value: value // 2),
    ),
    "no displacement": (
        "displacement",
        UNVERIFIABLE_BY_STEP["mean displacement"],
        other_value("mean displacement", lambda value: 0),
    ),
    "a smaller displacement, hidden rows": (
        "rho, displacement, hidden rows",
        UNVERIFIABLE_BY_STEP["mean displacement"],
        other_value("mean displacement", lambda value: value // 2),
    ),
    "smaller errors, hidden rows": (
        "rho, hidden rows",
        UNVERIFIABLE_BY_STEP["errors of the rows"],
        other_value("errors of the rows", lambda value: value // 3),
    ),
} | {
    f"a smaller {name}": (
        "pairs",
        UNVERIFIABLE_BY_STEP["errors of the rows"],
        other_value("errors of the rows", lambda value: value - LOSS_UNITS, at=at),
    )
    for at, name in enumerate(["loss", "loss of single columns", *STATISTICS])
}
"""Of which release, under which sentence, and what is changed before everything is computed again."""


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("name", LIES)
def test_a_lie_that_cannot_be_seen_is_listed(variants, tmp_path, name):
    """It is accepted once everything that follows is computed again, and refused as long as it is not."""
    kind, sentence, lie = LIES[name]
    lied = lie(Release.load(variants(kind).folder))
    again = retold(lied)
    written = Release.load(dataclasses.replace(again, folder=None).save(tmp_path / "lie").folder)
    checks = written.verify()
    assert all(check["ok"] for check in checks), [check for check in checks if not check["ok"]]
    assert sentence in written.cannot_verify()
    if again.record != lied.record:
        left = Release.load(dataclasses.replace(lied, folder=None).save(tmp_path / "left").folder)
        assert not all(check["ok"] for check in left.verify())


def test_every_sentence_stands_for_a_lie():
    assert {sentence for _, sentence, _ in LIES.values()} == {
        *UNVERIFIABLE,
        *UNVERIFIABLE_BY_STEP.values(),
        UNVERIFIABLE_EXCEPTIONS,
    }


def test_the_keys_that_are_on_trust_are_these():
    """`test_every_key.py` holds that these can be changed unseen, once all that follows is computed again."""
    assert {path for path, part in KEYS.items() if part["x-verify"] == "on trust"} == {
        "certsynth",
        "ledger",
        "privacy.spent[].values",
        "certificate.exceptions.subsets",
        "release.dimension",
        "release.omitted_rules",
        "release.omitted_rules[].number",
        "release.omitted_rules[].columns",
        "asked.projection",
        "asked.loss",
        "asked.preset",
        "asked.public",
        "asked.confidence",
        "compared[].mechanism",
        "compared[].resolution",
        "compared[].discretisation",
        "compared[].privatisation",
        "compared[].predicted_loss",
        "compared[].rehearsals",
    }
