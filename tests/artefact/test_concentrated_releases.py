"""Releases that count privacy in ρ, and those that measure the displacement: what they say, and forgeries of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forging import GAUSSIAN, copied, remeasured, spent_on, tampered, unit_of, unpacked

from certsynth import Release
from certsynth.mechanisms import Unit, samplers
from certsynth.mechanisms.concentrated import delta_of, epsilon_of, rho_of
from certsynth.mechanisms.guarantee import decimal_text
from certsynth.queries.fine import MOVE_UNITS
from certsynth.record import values
from certsynth.record.form import from_json
from certsynth.record.record import Record
from certsynth.report import render_report
from small import NATIVE, native

Document = dict[str, Any]

DISPLACED = ("displacement", "rho, displacement", "rho, displacement, hidden rows", "delta, displacement, particles")


# ------------------------------------------------------------ what they say


def spent(made: Release) -> dict[str, Fraction]:
    return {part["on"]: Fraction(part["rho"]) for part in made.document["privacy"]["spent"]}


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("name", GAUSSIAN)
def test_a_release_read_back_verifies_and_says_the_same(variants, name) -> None:
    made = variants(name)
    again = Release.load(made.folder)
    assert all(c["ok"] for c in again.verify()), again.verify()
    assert again.document == json.loads(json.dumps(made.document))
    assert {m.cost.spent.unit for m in again.measurements} == {Unit.RHO}
    assert made.document["privacy"]["definition"] == "zero-concentrated differential privacy"


def test_what_was_asked_for_is_what_is_said(variants) -> None:
    privacy = variants("with delta").document["privacy"]
    assert (privacy["epsilon"], privacy["delta"]) == ("1", "0.000001")
    whole = sum(spent(variants("with delta")).values())
    assert whole <= rho_of(Fraction(1), Fraction(1, 10**6))
    assert privacy["rho"] == decimal_text(whole) == "0.024355970354"
    assert epsilon_of(whole, Fraction(1, 10**6)) <= 1


@pytest.mark.parametrize("name", GAUSSIAN)
def test_epsilon_and_delta_follow_from_what_was_spent(variants, name) -> None:
    made, asked = variants(name), GAUSSIAN[name]
    privacy, whole = made.document["privacy"], sum(spent(made).values())
    epsilon, delta = Fraction(privacy["epsilon"]), Fraction(privacy["delta"])
    assert epsilon_of(whole, delta) <= epsilon
    if "rho" in asked:
        assert whole <= Fraction(asked["rho"])
        assert Fraction(asked["rho"]) - whole < Fraction(1, 10**6)  # only choosing among candidates rounds
    if "epsilon" in asked:
        assert epsilon == asked["epsilon"]
    if name == "rho and epsilon":
        assert delta == delta_of(Fraction("0.1"), Fraction(2))
    elif "delta" not in asked:
        assert delta == Fraction(1, 10**6)


def test_every_step_is_paid_for(variants) -> None:
    parts = spent(variants("rho, candidates"))
    assert list(parts) == [
        "noisy single columns",
        "noisy marginals",
        "choosing among 3 tables",
        "errors of the rows",
    ]
    assert list(parts.values())[:2] == [m.cost.spent.amount for m in variants("rho, candidates").measurements]
    share = Fraction(variants("rho, candidates").document["asked"]["certificate_share"])
    assert sum(list(parts.values())[:2]) == Fraction("0.1") * (1 - share - Fraction(1, 20))
    assert parts["errors of the rows"] == Fraction("0.1") * share
    choosing = Fraction("0.1") * Fraction(1, 20)
    assert choosing - Fraction(1, 10**12) < parts["choosing among 3 tables"] <= choosing  # ε²/2, of a rounded ε
    assert list(spent(variants("rho, displacement"))) == ["noisy marginals", "mean displacement"]
    assert spent(variants("rho, displacement"))["mean displacement"] == Fraction(8, 50)


@pytest.mark.parametrize("name", DISPLACED)
def test_the_displacement_makes_the_discretisation_smaller(variants, name) -> None:
    """Half a cell is 1/4, and rows are nearer to its centre by far more than the noise."""
    made = variants(name)
    stored = spent_on(made.document, "mean displacement")
    assert ("epsilon" in stored) == (name == "displacement")
    for proxy in made.document["certificate"]["plug_in"].values():
        for subset in proxy["subsets"]:
            assert 0 < subset["terms"]["discretisation"] < 0.25
    away = [
        column.distance_to_centre(column.clean(native(200)[column.name].to_numpy()), cells)
        for column, cells in zip(NATIVE, made.measurement.marginals.cells, strict=True)
    ]
    true = max(np.max([away[j] for j in s], axis=0).sum() for s in made.measurement.marginals.subsets)
    scale = float.fromhex(stored["scale"]) / MOVE_UNITS
    assert stored["values"][0] / MOVE_UNITS == pytest.approx(true, abs=40 * scale)  # once in 10^17 runs


# ------------------------------------------------------------ forgeries


def lower(text: str, by: str = "9/10") -> str:
    return decimal_text(Fraction(text) * Fraction(by))


def _privacy(**changes: Callable[[str], str]) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        for key, to in changes.items():
            document["privacy"][key] = to(document["privacy"][key])

    return change


def _part(index: int, by: str = "9/10") -> Callable[[Document], None]:
    """One part of what was spent, lowered or raised."""

    def change(document: Document) -> None:
        part = document["privacy"]["spent"][index]
        part["rho"] = str(Fraction(part["rho"]) * Fraction(by))

    return change


FORGERIES: dict[str, Callable[[Document], Any]] = {
    "rho lowered": _privacy(rho=lower),
    "rho lowered by a little": _privacy(rho=lambda rho: decimal_text(Fraction(rho) - Fraction(1, 10**12))),
    "rho raised": _privacy(rho=lambda rho: lower(rho, "11/10")),
    "rho and epsilon lowered": _privacy(rho=lower, epsilon=lower),
    "epsilon lowered": _privacy(epsilon=lower),
    "epsilon lowered by a little": _privacy(epsilon=lambda epsilon: lower(epsilon, "9999/10000")),
    "delta lowered": _privacy(delta=lambda delta: lower(delta, "1/2")),
    "delta of nothing": _privacy(delta=lambda _: "0"),
    "delta below nothing": _privacy(delta=lambda _: "-1"),
    "no delta": lambda d: d["privacy"].update(delta=None),
    "no epsilon": lambda d: d["privacy"].update(epsilon=None),
    "an epsilon of NaN": lambda d: d["privacy"].update(epsilon="nan"),
    "the first part lowered": _part(0),
    "the second part lowered": _part(1),
    "the last part lowered": _part(-1),
    "a part raised": _part(0, "11/10"),
    "a part below nothing": _part(0, "-1"),
    "a part dropped": lambda d: d["privacy"]["spent"].pop(),
    "another relation": lambda d: d["privacy"].update(neighbours="add-remove"),
    "said to be pure": lambda d: d["privacy"].update(rho=None, delta=None),
    "said to be pure in all parts": lambda d: (
        d["privacy"].update(rho=None, delta=None, epsilon=d["privacy"]["rho"]),
        d["privacy"].update(spent=[{"on": part["on"], "epsilon": part["rho"]} for part in d["privacy"]["spent"]]),
    ),
}


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize("change", FORGERIES.values(), ids=FORGERIES)
def test_forged_privacy_is_seen(variants, tmp_path, change) -> None:
    checks = tampered(variants("with delta"), tmp_path / "forged", change)
    assert checks["files"]
    assert not checks["privacy"]


def test_a_larger_epsilon_or_delta_is_not_what_was_asked_for(variants, tmp_path) -> None:
    """A weaker promise is true as well, but both follow from the options."""
    for number, changes in enumerate(({}, {"epsilon": "1.1"}, {"delta": "0.00001"})):
        checks = tampered(variants("with delta"), tmp_path / str(number), lambda d, c=changes: d["privacy"].update(c))
        assert checks["privacy"] == (not changes)


def test_a_delta_where_none_belongs_is_seen(variants, tmp_path) -> None:
    checks = tampered(variants("pairs"), tmp_path / "forged", lambda d: d["privacy"].update(delta="0.000001"))
    assert not checks["privacy"]


def _displaced(**entries: Any) -> Callable[[Document], None]:
    return lambda document: spent_on(document, "mean displacement").update(entries)


def _moved(by: float) -> Callable[[Document], None]:
    """The noisy sum, changed by so much for each of 200 rows."""

    def change(document: Document) -> None:
        spent_on(document, "mean displacement")["values"][0] += round(by * 200 * MOVE_UNITS)

    return change


def _wider(factor: float) -> Callable[[Document], None]:
    def change(document: Document) -> None:
        stored = spent_on(document, "mean displacement")
        stored["scale"] = (float.fromhex(stored["scale"]) * factor).hex()

    return change


def _dropped(document: Document) -> None:
    document["privacy"]["spent"].remove(spent_on(document, "mean displacement"))


def _cheaper(document: Document) -> None:
    stored, unit = spent_on(document, "mean displacement"), unit_of(document)
    stored[unit] = str(Fraction(stored[unit]) / 2)


def _understated(document: Document) -> None:
    """The part of the displacement is lowered, and the sum with it; its noise is left alone."""
    privacy = document["privacy"]
    unit = "epsilon" if privacy["rho"] is None else "rho"
    (part,) = [part for part in privacy["spent"] if part["on"] == "mean displacement"]
    part[unit] = str(Fraction(part[unit]) / 2)
    privacy[unit] = decimal_text(sum(Fraction(part[unit]) for part in privacy["spent"]))


DISPLACEMENTS: dict[str, tuple[Callable[[Document], Any], str]] = {
    "value lowered": (_moved(-0.01), "plug-in certificate"),
    "value raised": (_moved(0.01), "plug-in certificate"),
    "value lowered by a little": (_moved(-1e-5), "plug-in certificate"),
    "scale lowered": (_wider(0.999), "privacy"),
    "scale raised": (_wider(1.5), "privacy"),
    "a scale of nothing": (_displaced(scale="0x0p0"), "privacy"),
    "a scale of NaN": (_displaced(scale="nan"), "privacy"),
    "an infinite scale": (_displaced(scale="inf"), "privacy"),
    "a scale that is no text": (_displaced(scale=3.5), "privacy"),
    "a value that is nothing": (_displaced(values=None), "plug-in certificate"),
    "a value in words": (_displaced(values="many"), "plug-in certificate"),
    "no value": (_displaced(values=[]), "plug-in certificate"),
    "more than rows can make it": (_moved(0.3), "privacy"),
    "dropped": (_dropped, "plug-in certificate"),
    "an empty entry": (lambda d: spent_on(d, "mean displacement").clear(), "plug-in certificate"),
    "said to be cheaper": (_cheaper, "privacy"),
    "understated": (_understated, "privacy"),
}


@pytest.mark.parametrize("name", ["displacement", "rho, displacement, hidden rows"])
@pytest.mark.parametrize("forgery", DISPLACEMENTS)
def test_a_forged_displacement_is_seen(variants, tmp_path, name, forgery) -> None:
    change, check = DISPLACEMENTS[forgery]
    checks = tampered(variants(name), tmp_path / "forged", change)
    assert checks["files"]
    assert not checks[check]


def test_an_understated_displacement_is_seen_beside_candidates(variants, tmp_path) -> None:
    """Parts stand in the order of what was done: the choice among tables comes before the displacement."""
    assert all(tampered(variants("displacement, candidates"), tmp_path / "same", lambda _: None).values())
    assert not tampered(variants("displacement, candidates"), tmp_path / "forged", _understated)["privacy"]


@pytest.mark.parametrize("name", ["displacement", "rho, displacement"])
@pytest.mark.parametrize("scale", ["-0x1p20", "0x1p900"], ids=["below zero", "huge"])
def test_a_scale_out_of_range_does_not_stall_a_check(variants, tmp_path, monkeypatch, name, scale) -> None:
    """The search for a quantile of such noise does not end."""
    steps, tail = [], samplers._log_tail

    def counted(*arguments: Any) -> float:
        steps.append(1)
        assert len(steps) < 100_000, "no end"
        return tail(*arguments)

    monkeypatch.setattr(samplers, "_log_tail", counted)
    assert not all(tampered(variants(name), tmp_path / "forged", _displaced(scale=scale)).values())


def test_a_number_of_absurd_length_is_not_worked_out(variants, tmp_path, monkeypatch) -> None:
    class Careful(Fraction):
        def __new__(cls, value: Any = 0, *rest: Any) -> Fraction:  # type: ignore[misc]
            assert value != "1e1000", "a thousand digits, or a billion"
            return Fraction(value, *rest)

    monkeypatch.setattr(values, "Fraction", Careful)
    assert not tampered(variants("pairs"), tmp_path / "forged", lambda d: d["privacy"].update(epsilon="1e1000"))[
        "privacy"
    ]


# ------------------------------------------------------------ forged measurements


@pytest.mark.parametrize(
    ("name", "unit"),
    [("pairs", "rho"), ("displacement", "rho"), ("with delta", "epsilon"), ("rho, displacement", "epsilon")],
)
def test_another_unit_of_a_measurement_is_seen(variants, tmp_path, name, unit) -> None:
    made = variants(name)
    for layer in range(len(made.measurements)):
        about, flat = unpacked(made)
        assert about[layer]["unit"] != unit
        about[layer]["unit"] = unit
        assert not remeasured(made, tmp_path / str(layer), about, flat)["privacy"]


@pytest.mark.parametrize("name", ["weights", "rho, weights"])
@pytest.mark.parametrize("by", [Fraction(-1, 4), Fraction(1, 4), Fraction(1)])
def test_another_growth_is_seen(variants, tmp_path, name, by) -> None:
    """Other weights need other noise, or are another way back to cells."""
    made = variants(name)
    about, flat = unpacked(made)
    growth = Fraction(about[-1]["growth"])
    assert growth >= Fraction(1, 4)
    assert decimal_text(growth) == made.document["release"]["growth"]
    about[-1]["growth"] = str(growth + by)
    checks = remeasured(made, tmp_path / "forged", about, flat)
    assert not (checks["privacy"] and checks["plug-in certificate"])


@pytest.mark.parametrize("name", ["pairs", "with delta"])
def test_growth_of_a_mechanism_without_levels_means_nothing(variants, tmp_path, name) -> None:
    """Control of the test above: all that is seen is that it is not how it is written."""
    made = variants(name)
    about, flat = unpacked(made)
    about[-1]["growth"] = "1/4"
    checks = remeasured(made, tmp_path / "same", about, flat)
    assert [check for check, ok in checks.items() if not ok] == ["measurements"]


OTHERS = {"growth": "3", "mechanism": "haar", "resolution": 7, "sparsity": 3}


@pytest.mark.parametrize("key", OTHERS)
def test_what_the_certificate_says_of_the_mechanism_is_that_of_the_report(variants, tmp_path, key) -> None:
    change = {key: OTHERS[key]}
    assert not tampered(variants("rho, weights"), tmp_path / "forged", lambda d: d["release"].update(change))["report"]


@pytest.mark.parametrize("key", OTHERS)
def test_what_the_certificate_says_of_the_mechanism_is_that_of_the_measurements(variants, tmp_path, key) -> None:
    """Also where the report was made to fit."""
    made = variants("rho, weights")
    document = json.loads(json.dumps(made.document))
    document["release"][key] = OTHERS[key]
    report = render_report(from_json(Record, document), made.schema, Release.load(made.folder).table).encode()
    files = {"certificate_json": json.dumps(document).encode(), "report_html": report}
    assert not all(c["ok"] for c in copied(made, tmp_path / "forged", **files))


def test_noise_of_hardly_any_width_is_seen_without_a_warning(variants, tmp_path) -> None:
    made = variants("rho, hidden rows")
    about, flat = unpacked(made)
    about[-1]["scale"] = (1e-300).hex()
    assert not remeasured(made, tmp_path / "forged", about, flat)["privacy"]


# ------------------------------------------------------------ what was compared


def test_the_certificate_lists_what_was_compared(variants) -> None:
    compared = variants("chosen by the plan").document["compared"]
    assert len(compared) > 1
    (chosen,) = [each for each in compared if each["chosen"]]
    found = variants("chosen by the plan").document["release"]
    assert (chosen["mechanism"], chosen["resolution"]) == (found["mechanism"], found["resolution"])
    for each in compared:
        assert set(each) == {
            "mechanism",
            "resolution",
            "discretisation",
            "privatisation",
            "predicted_loss",
            "rehearsals",
            "chosen",
        }
    (alone,) = variants("pairs").document["compared"]
    assert alone["chosen"]


def test_everything_in_the_certificate_is_plain_json(variants, tmp_path: Path) -> None:
    for name in GAUSSIAN:
        document = variants(name).document
        assert json.loads(json.dumps(document, allow_nan=False)) == document


# ------------------------------------------------------------ what verify still takes on trust


@pytest.mark.parametrize("name", ["displacement", "rho, displacement"])
def test_another_resolution_is_seen_wherever_it_is_stated(variants, tmp_path, name) -> None:
    """Also where the report was made to fit."""
    made = variants(name)
    document = json.loads(json.dumps(made.document))
    for place in (document["release"], document["release"]["measured"][-1], *document["compared"]):
        place["resolution"] = 64
    report = render_report(from_json(Record, document), made.schema, Release.load(made.folder).table).encode()
    files = {"certificate_json": json.dumps(document).encode(), "report_html": report}
    assert not all(c["ok"] for c in copied(made, tmp_path / "forged", **files))


@pytest.mark.parametrize("key", ["plug_in_failure_probability", "hub", "end"])
def test_a_number_of_absurd_length_is_not_recomputed_with(variants, tmp_path, monkeypatch, key) -> None:
    class Careful(Fraction):
        def __new__(cls, value: Any = 0, *rest: Any) -> Fraction:  # type: ignore[misc]
            assert value != "1e-1000", "a thousand digits, or a billion"
            return Fraction(value, *rest)

    monkeypatch.setattr(values, "Fraction", Careful)
    checks = tampered(variants("pairs"), tmp_path / "forged", lambda d: d["recompute"].update({key: "1e-1000"}))
    assert not checks["plug-in certificate"]
