"""Forged releases whose figures fit each other: every figure that follows from others is derived again, and seen.

A forger changes some figures, adapts whatever is put together from them, and writes report, descriptions and checksums
anew. What no recomputation can see is listed by `verify` itself: `test_lies.py` holds that list.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest
from forging import Json, adapted, direct_parts, restated, retold, scale_asked_budget, spent_on, unit_of

from certsynth import Release
from certsynth.algorithm import recompute, verify
from certsynth.base.progress import silent
from certsynth.certificate.plug_in import Proxies, plug_in
from certsynth.mechanisms.guarantee import decimal_text

KINDS = (
    "pairs",
    "hidden rows",
    "rho, hidden rows",
    "candidates",
    "rho, candidates",
    "displacement",
    "rho, displacement, hidden rows",
    "workload",
    "the paper",
    "low-dimensional",
)

Forgery = Callable[[Json], Any]
REWRITTEN = ("files", "description", "report")
"""Checks of what a forger writes anew: they succeed."""


def refused(folder: Any, forged: Release) -> set[str]:
    """Checks that fail for a folder written anew with these figures."""
    forged = dataclasses.replace(forged, folder=None).save(folder)
    checks = {check["name"]: check["ok"] for check in Release.load(forged.folder).verify()}
    assert all(checks[name] for name in REWRITTEN), checks
    return {name for name, ok in checks.items() if not ok}


# ------------------------------------------------------------ figures that contradict each other


def with_direct_for_nothing(document: Json) -> None:
    """A direct ε of 10^-6, and a total that fits."""
    spent_on(document, "errors of the rows")["epsilon"] = "1/1000000"
    for part in direct_parts(document):
        part["epsilon"] = "0.000001"


def with_no_slack(document: Json) -> None:
    for part in direct_parts(document):
        part["terms"]["slack"] = 0.0


def with_a_bound_of_nearly_nothing(document: Json) -> None:
    for part in direct_parts(document):
        part["terms"] = {"measured_loss": 0.0005, "slack": 0.0}


def surer_with_the_same_slack(document: Json) -> None:
    """A confidence of 0.99 in place of 0.95: the failure probabilities add up, the slack stays."""
    certificate = document["certificate"]
    certificate["cells"].update(confidence=0.999, failure_probability="1/1000")
    left = 0.01 - (1 - certificate["plug_in"]["transport"]["confidence"]) - 0.001
    certificate["confidence"] = 0.99
    for part in direct_parts(document):
        part["confidence"] = 1 - left
    document.get("asked", {}).update(confidence="99/100")


def free_of_charge(what: str) -> Forgery:
    def change(document: Json) -> None:
        spent_on(document, what)[unit_of(document)] = "0"

    return change


CONTRADICTIONS: dict[str, tuple[str, Forgery]] = {
    "a direct certificate for an epsilon of 0.000001": ("pairs", with_direct_for_nothing),
    "no slack": ("pairs", with_no_slack),
    "a bound of 0.0005": ("pairs", with_a_bound_of_nearly_nothing),
    "another confidence": ("workload", surer_with_the_same_slack),
    "a number of rows for nothing": ("hidden rows", free_of_charge("number of rows")),
    "a choice for nothing": ("candidates", free_of_charge("choosing among 2 tables")),
}
"""What `verify` once let pass."""


@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_figures_that_contradict_each_other_are_seen(variants, tmp_path, name):
    kind, change = CONTRADICTIONS[name]
    made = Release.load(variants(kind).folder)
    assert refused(tmp_path / "forged", forged(made, change))


# ------------------------------------------------------------ the corpus


def scaled(text: str, factor: Fraction) -> str:
    return str(Fraction(text) * factor)


def forgeries(document: Json) -> Iterator[tuple[str, Forgery]]:
    """Ways to forge a release with this certificate.json. Each changes a copy; sums and the like are adapted later."""
    unit, steps = unit_of(document), document["privacy"]["spent"]
    for j, step in enumerate(steps):
        on = step["on"]
        for factor in (Fraction(0), Fraction(1, 2), Fraction(2)):
            yield f"{on} for {factor} times its share", spending(j, factor)
        yield f"{on} left out", lambda d, j=j: d["privacy"]["spent"].pop(j)
        yield f"half of {on} moved to another step", moving(j, (j + 1) % len(steps))
        if step["scale"] is not None:
            yield f"{on} with half the noise", noising(j, 0.5)
            yield f"{on} with half the noise at twice the share", both(noising(j, 0.5), spending(j, Fraction(2)))
            yield f"{on} with half the sensitivity and noise", both(noising(j, 0.5), sensing(j))
            yield f"{on} with more noise than its share needs", noising(j, 1.001)
        if step["worth"] is not None:
            yield (
                f"{on} in half the unit",
                lambda d, j=j: d["privacy"]["spent"][j].update(
                    worth=scaled(d["privacy"]["spent"][j]["worth"], Fraction(1, 2))
                ),
            )
            for i in range(len(step["values"])):
                yield f"integer {i} of {on} below what noise explains", valuing(j, i, -(2**50))
            yield f"{on} with an integer too few", lambda d, j=j: d["privacy"]["spent"][j]["values"].pop()
            yield f"{on} with an integer too many", lambda d, j=j: d["privacy"]["spent"][j]["values"].append(0)
    yield "half the budget asked for", asking_for_less(Fraction(1, 2))
    yield (
        "half the budget asked for and spent",
        both(asking_for_less(Fraction(1, 2)), *(spending(j, Fraction(1, 2)) for j in range(len(steps)))),
    )
    yield (
        "half the budget, with twice the noise",
        both(
            asking_for_less(Fraction(1, 2)),
            *(spending(j, Fraction(1, 2)) for j in range(len(steps))),
            *(
                noising(j, 2.0 if unit == "epsilon" else 2.0**0.5)
                for j, s in enumerate(steps)
                if s["scale"] is not None
            ),
        ),
    )
    for sure in ("1/2", "9/10", "19/20", "99/100", "999/1000"):
        if float(Fraction(sure)) != document["certificate"]["confidence"]:
            yield f"a confidence of {sure} with the figures of another", trusting(sure)
    if document["certificate"]["direct"]:
        yield "no slack", with_no_slack
        yield "half the slack", directly(lambda t: t.update(slack=t["slack"] / 2))
        yield "a bound of 0.0005", with_a_bound_of_nearly_nothing
        yield "a measured loss a tenth lower", directly(lambda t: t.update(measured_loss=t["measured_loss"] - 0.1))
        yield "less loss, more slack", directly(lambda t: t.update(measured_loss=t["measured_loss"] - 0.05, slack=0.04))
        yield "twice the share for the certificate", asking("certificate_share", Fraction(2))
        yield "no direct certificate", without_direct
        for name, bound in document["certificate"]["statistics"].items():
            for other in [bound / 2, bound - 0.001] if bound else [0.0]:
                yield f"{other} for the {name}", stating({name: other})
            yield f"no {name}", stating({name: None})
        yield "no statistics", lambda d: d["certificate"].pop("statistics")
        yield "bounds on statistics in another order", in_another_order
        if "cells" in document["certificate"]:
            yield "no bounds on cells", lambda d: d["certificate"].pop("cells")
            yield "more rows in the bounds on cells", counting("fewest_rows", 1_000)
            yield "fewer rows in the bounds on cells", counting("most_rows", -1)
            yield (
                "less room for the noise of cells",
                lambda d: d["certificate"]["cells"].update(failure_probability="1/100", confidence=0.99),
            )
    else:
        yield "bounds on statistics that were not measured", lambda d: d["certificate"].update(statistics=MADE_UP)
    if document["certificate"]["single_column"]:
        yield "failure probability moved to single columns", shifted_confidence
        yield "half the budget moved to single columns", shifted_budget
    for term in ("discretisation", "privatisation", "projection"):
        for factor in (0.0, 0.5, 0.9):
            yield f"{factor} times the {term}", plugging(term, factor)
    yield "fewer candidates", lambda d: d["release"].update(candidates=d["release"]["candidates"] + 1)
    yield "another preset", lambda d: d["release"].update(preset=None if d["release"]["preset"] else "paper")
    yield "another relation", another_relation
    yield "ten times the rows", ten_times_the_rows
    yield "another proxy", lambda d: d["recompute"].update(hub="1", end="1/2")
    yield (
        "another place in cells",
        lambda d: d["release"].update(detail="centre" if d["release"]["detail"] == "spread" else "spread"),
    )


def both(*changes: Forgery) -> Forgery:
    def change(document: Json) -> None:
        for each in changes:
            each(document)

    return change


def spending(j: int, factor: Fraction) -> Forgery:
    """A step at another cost; a direct certificate says the same."""

    def change(document: Json) -> None:
        step, unit = document["privacy"]["spent"][j], unit_of(document)
        step[unit] = scaled(step[unit], factor)
        if step["on"] == "errors of the rows":
            for part in direct_parts(document):
                part[unit] = decimal_text(Fraction(step[unit]))

    return change


def moving(j: int, k: int) -> Forgery:
    def change(document: Json) -> None:
        steps, unit = document["privacy"]["spent"], unit_of(document)
        half = Fraction(steps[j][unit]) / 2
        steps[j][unit], steps[k][unit] = str(half), str(Fraction(steps[k][unit]) + half)
        if len(steps) == 1:
            steps[0][unit] = str(half)

    return change


def noising(j: int, factor: float) -> Forgery:
    def change(document: Json) -> None:
        step = document["privacy"]["spent"][j]
        step["scale"] = (float.fromhex(step["scale"]) * factor).hex()

    return change


def sensing(j: int) -> Forgery:
    def change(document: Json) -> None:
        changes = document["privacy"]["spent"][j]["sensitivity"]
        changes.update(l1=changes["l1"] // 2, l2_squared=changes["l2_squared"] // 4)
        if "each" in changes:
            changes["each"] //= 2

    return change


def valuing(j: int, i: int, value: int) -> Forgery:
    def change(document: Json) -> None:
        document["privacy"]["spent"][j]["values"][i] = value

    return change


def asking(key: str, factor: Fraction) -> Forgery:
    return lambda d: d["asked"].update({key: scaled(d["asked"][key], factor)})


def asking_for_less(factor: Fraction) -> Forgery:
    return lambda d: scale_asked_budget(d, factor)


def directly(change_terms: Callable[[Json], Any]) -> Forgery:
    def change(document: Json) -> None:
        for part in direct_parts(document):
            change_terms(part["terms"])

    return change


def plugging(term: str, factor: float) -> Forgery:
    def change(document: Json) -> None:
        for plug in document["certificate"]["plug_in"].values():
            for subset in plug["subsets"]:
                subset["terms"][term] *= factor

    return change


def trusting(sure: str) -> Forgery:
    """Another confidence, shared as before."""

    def change(document: Json) -> None:
        certificate = document["certificate"]
        before, now = 1 - Fraction(document["asked"]["confidence"]), 1 - Fraction(sure)
        document["asked"]["confidence"], certificate["confidence"] = sure, float(Fraction(sure))
        cells = certificate.get("cells")
        for part in [*direct_parts(document), *certificate["plug_in"].values(), *([cells] if cells else [])]:
            failing = (1 - Fraction(str(part["confidence"]))) * now / before
            part["confidence"] = float(1 - failing)
        if cells:
            cells["failure_probability"] = str(Fraction(cells["failure_probability"]) * now / before)
        old = Fraction(document["recompute"]["plug_in_failure_probability"])
        document["recompute"]["plug_in_failure_probability"] = str(old * now / before)

    return change


def shifted_confidence(document: Json) -> None:
    direct, single = direct_parts(document)
    direct["confidence"], single["confidence"] = direct["confidence"] - 0.01, single["confidence"] + 0.01


def shifted_budget(document: Json) -> None:
    """Each says that it has a half of what both were measured with."""
    for part in direct_parts(document):
        part[unit_of(document)] = decimal_text(Fraction(part[unit_of(document)]) / 2)


MADE_UP = {"share_of_one_column": 0.01, "share_of_two_columns": 0.02, "group_total": 0.01, "moment": 0.01}


def stating(bounds: Json) -> Forgery:
    return lambda d: d["certificate"]["statistics"].update(bounds)


def counting(key: str, more: int) -> Forgery:
    def change(document: Json) -> None:
        document["certificate"]["cells"][key] += more

    return change


def in_another_order(document: Json) -> None:
    """The bounds that there are, each under the name of the next one."""
    bounds = document["certificate"]["statistics"]
    there = [name for name, bound in bounds.items() if bound is not None]
    bounds.update(zip(there, [bounds[name] for name in (*there[1:], there[0])], strict=True))


def without_direct(document: Json) -> None:
    document["certificate"].update(direct=None, single_column=None)
    document["certificate"].pop("statistics")
    document["certificate"].pop("cells", None)
    document["asked"]["certificate_share"] = "0"
    document["privacy"]["spent"] = [s for s in document["privacy"]["spent"] if s["on"] != "errors of the rows"]


def another_relation(document: Json) -> None:
    privacy = document["privacy"]
    hidden = privacy["neighbours"] == "add-remove"
    privacy.update(neighbours="replace-one" if hidden else "add-remove", rows=200 if hidden else None)


def ten_times_the_rows(document: Json) -> None:
    """A tenth of every bound: in certificate.json alone."""
    if document["privacy"]["rows"] is not None:
        document["privacy"]["rows"] *= 10
    for part in direct_parts(document):
        part["terms"] = {name: value / 10 for name, value in part["terms"].items()}
    bounds = document["certificate"].get("statistics", {})
    bounds.update({name: bound / 10 for name, bound in bounds.items() if bound})
    for name in ("privatisation", "projection"):
        plugging(name, 0.1)(document)


SHOPPED: dict[str, dict[str, Any]] = {
    "another seed": {"seed": 2**100 + 1},
    "the seed of the operating system": {"seed": 0x5EED},
    "fewer draws": {"draws": 150},
    "more draws": {"draws": 400},
    "another failure probability": {"beta": Fraction(1, 9)},
    "another hub": {"proxies": Proxies(hub=Fraction(2, 3), end=Fraction(1, 3))},
    "no displacement": {"displaced": None},
}
"""A plug-in certificate that is computed soundly, but with something else than what it must be computed with."""


@pytest.mark.quick_cases(1)
@pytest.mark.slow
@pytest.mark.parametrize("kind", ["displacement", "rho, hidden rows", "the paper"])
def test_a_certificate_cannot_be_shopped_for(variants, tmp_path, kind):
    made = Release.load(variants(kind).folder)
    assert not refused(tmp_path / "same", retold(made))
    for j, asked in enumerate(SHOPPED.values()):
        other = retold(made, **asked)
        if other.record != made.record:
            assert "plug-in certificate" in refused(tmp_path / str(j), other)


@pytest.fixture
def quickly(monkeypatch):
    """What does not depend on the certificate is computed once; what a forger writes anew is taken to fit."""
    known: dict[Any, Any] = {}

    def remembered(*arguments: Any, **asked: Any) -> Any:
        key = repr(sorted((name, value) for name, value in asked.items() if name != "progress"))
        if key not in known:
            known[key] = plug_in(*arguments, **asked)
        return known[key]

    monkeypatch.setattr(recompute, "plug_in", remembered)
    for check in ("_files", "_report", "_description", "_rows"):
        monkeypatch.setattr(verify, check, lambda release: (True, ""))


def forged(made: Release, change: Forgery) -> Release:
    document = made.document
    change(document)
    return restated(made, adapted(document))


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("kind", KINDS)
def test_every_coherent_forgery_is_seen(variants, quickly, kind):
    made = Release.load(variants(kind).folder)
    assert not [name for name, ok, _ in verify._checks(made, silent) if not ok]
    tried, missed = 0, []
    for name, change in forgeries(made.document):
        try:
            other = forged(made, change)
        except ValueError:  # no certificate has that form: such a folder is not even read
            tried += 1
            continue
        if other.record == made.record:
            continue  # such a release has nothing of the kind: it is what it was
        tried += 1
        if all(ok for _, ok, _ in verify._checks(other, silent)):
            missed.append(name)
    assert not missed
    assert tried >= LEAST[kind]


LEAST = dict.fromkeys(KINDS, 25)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_coherent_forgery_is_seen_in_a_folder_written_anew(variants, tmp_path, kind):
    made = Release.load(variants(kind).folder)
    for j, (name, change) in enumerate(forgeries(made.document)):
        try:
            other = forged(made, change)
        except ValueError:  # no certificate has that form: such a folder is not even read
            continue
        if other.record != made.record:
            assert refused(tmp_path / str(j), other), name
