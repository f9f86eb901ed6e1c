"""What anybody can check about a release without the private data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from certsynth.artefact.folder import check_sums
from certsynth.artefact.release import CSV, PARQUET, Release
from certsynth.artefact.table import read_table
from certsynth.certificate.plug_in import Proxies, plug_in
from certsynth.domain import Column, Groups, Ordered
from certsynth.domain.rules import broken_rule
from certsynth.errors import CertsynthError
from certsynth.mechanisms import Budget, Guarantee, Sensitivity, Unit
from certsynth.mechanisms.concentrated import epsilon_of
from certsynth.mechanisms.guarantee import decimal_text, exact_rational, stored_rational
from certsynth.mechanisms.measure import sensitivity
from certsynth.mechanisms.samplers import MAX_SCALE, is_enough
from certsynth.mechanisms.scalars import NoisyScalars
from certsynth.queries.displacement import farthest
from certsynth.report import render_report

MOST_DRAWS = 100_000

DISPLACEMENT = "mean displacement"
"""What the budget for the measured discretisation is spent on, as a release says it."""

_TOLERANCE = 1e-7  # the same computation on another machine, in floats

CANNOT = (
    "Not checkable from here: that the noise was drawn as stated and the seed of the simulated noise not picked, that "
    "the rows were read as the schema says, that the budget was not spent elsewhere as well, and the direct "
    "certificate: only the owner can compute the loss."
)

Check = dict[str, Any]
Values = np.ma.MaskedArray[Any, Any]
Answer = tuple[bool, str]


def verify(release: Release) -> list[Check]:
    """Run every check; none is skipped because another failed."""
    return [{"name": name, "ok": ok, "detail": detail} for name, ok, detail in _checks(release)]


def _checks(release: Release) -> Iterator[tuple[str, bool, str]]:
    checks: list[tuple[str, Callable[[Release], Answer]]] = [
        ("files", _files),
        ("rows", _rows),
        ("privacy", _privacy),
        ("method", _method),
        ("plug-in certificate", _plug_in),
        ("bound", _bound),
        ("report", _report),
    ]
    for name, check in checks:
        try:
            ok, detail = check(release)
        except (
            CertsynthError,
            KeyError,
            TypeError,
            ValueError,
            IndexError,
            AttributeError,
            ArithmeticError,
        ) as error:
            ok, detail = (
                False,
                f"could not be checked: {error if isinstance(error, CertsynthError) else 'malformed'}",
            )
        yield name, ok, detail


def _files(release: Release) -> Answer:
    assert release.folder is not None
    problems = check_sums(release.folder)
    return not problems, "; ".join(problems) or "every file is there and has its checksum"


def _rows(release: Release) -> Answer:
    """Values inside the schema, rules obeyed, the stated number of rows, and the same rows in both files."""
    assert release.folder is not None
    names, schema = release.schema.names, release.schema
    stated = release.document["release"]["rows"]
    for column, clean in zip(schema, release.rows, strict=True):
        values = release.table[column.name]
        if not _allowed(column, values, column.decode(clean)):
            return False, f"{PARQUET}: column {column.name!r} holds a value that the schema does not allow"
        if len(values) != stated:
            return False, f"{PARQUET} has {len(values):,} rows where the certificate says {stated:,}"
    broken = broken_rule(schema.constraints, schema.columns, release.table)
    if broken is not None:
        return False, f"{PARQUET}: a row violates rule {broken.number} of the schema"
    for column, text, clean in zip(schema, read_table(release.folder / CSV, names), release.rows, strict=True):
        if not np.array_equal(column.clean(text), clean, equal_nan=True):
            return False, f"{CSV}: column {column.name!r} differs from {PARQUET}"
    allowed = "all values and all rows" if schema.rules else "all values"
    return True, f"{stated:,} rows, {allowed} allowed by the schema, the same in both files"


def _allowed(column: Column, values: Values, back: Values) -> bool:
    """Whether cleaning left the values alone: `back` is what they are after it."""
    missing = np.ma.getmaskarray(values)
    if not np.array_equal(missing, np.ma.getmaskarray(back)):
        return False
    present = values.data[~missing]
    if isinstance(column, Ordered) and column.kind == "number":  # the last bit may change on the way
        return bool(((present >= column.low) & (present <= column.high)).all())
    return bool((present == back.data[~missing]).all())


def _privacy(release: Release) -> Answer:
    """The noise's scales, as stored, are enough for what is stated, and the parts add up to the whole."""
    privacy, measurements = release.document["privacy"], release.measurements
    unit = Unit.EPSILON if privacy["rho"] is None else Unit.RHO
    parts = [(part["on"], stored_rational(part[unit])) for part in privacy["spent"]]
    for m in measurements:
        if m.cost.spent.unit is not unit:
            return False, "certificate and measurement count privacy in different units"
        if not is_enough(m.scale, sensitivity(m.marginals, m.strategy), m.cost.spent):
            return False, f"the scale of the noise is too small for the {unit} of the measurement"
        if privacy["neighbours"] != m.strategy.neighbours:
            return False, "certificate and measurement name different neighbour relations"
    if [amount for _, amount in parts[: len(measurements)]] != [m.cost.spent.amount for m in measurements]:
        return False, f"the {unit} of a measurement is not what is stated for it"
    displaced = _displaced(release)
    if displaced is not None:
        most = farthest(release.schema, release.measurement.marginals)
        if not is_enough(displaced.scale, Sensitivity(most, most**2), displaced.cost.spent):
            return False, f"the scale of the noise is too small for the {unit} of the displacement"
    stated_for_it = [amount for what, amount in parts[len(measurements) :] if what == DISPLACEMENT]
    if stated_for_it != ([] if displaced is None else [displaced.cost.spent.amount]):
        return False, f"the {unit} of the displacement is not what is stated for it"
    whole = sum((amount for _, amount in parts), Fraction(0))
    if decimal_text(whole) != privacy[unit]:
        return False, f"the parts of the budget do not add up to the stated {unit}"
    scales = ", ".join(f"{m.scale:g}" for m in measurements)
    stated = f"epsilon {privacy['epsilon']}"
    if unit is Unit.RHO:
        delta, epsilon = exact_rational(privacy["delta"]), exact_rational(privacy["epsilon"])
        if delta is None or epsilon is None or epsilon_of(whole, delta) > epsilon:
            return False, "rho means a larger epsilon than is stated"
        stated += f", delta {privacy['delta']}"
    elif privacy["delta"] is not None:
        return False, "a delta is stated where none belongs"
    return True, f"noise of scale {scales} is enough for what was measured: {stated} in all"


def _method(release: Release) -> Answer:
    """What is said of the mechanism is what was measured, and what was chosen."""
    how, last = release.document["release"], release.measurement
    (chosen,) = [each for each in release.document["compared"] if each["chosen"]]
    said = how["mechanism"], how["growth"], how["sparsity"], len(how["measured"])
    true = last.strategy.name, decimal_text(last.strategy.growth), max(map(len, last.marginals.subsets))
    if said != (*true, len(release.measurements)):
        return False, "the mechanism is not the one of the measurements"
    covered, columns = set(release.subsets), len(release.schema)
    if how["workload"] is None and len(covered) != math.comb(columns, how["sparsity"]):
        return False, "some subsets of columns were not measured, and no workload says so"
    if len({j for subset in covered for j in subset}) != columns:
        return False, "the workload leaves out a column of the release"
    resolutions = {how["resolution"], how["measured"][-1]["resolution"], chosen["resolution"]}
    if chosen["mechanism"] != how["mechanism"] or len(resolutions) > 1:
        return False, "the mechanism or resolution is not the one that was chosen"
    even = {c.steps for c in last.marginals.cells if not isinstance(c, Groups)}
    if even and even != resolutions:
        return False, "the cells are not of the stated resolution"
    return True, f"{how['mechanism']}, as measured, and as chosen among {len(release.document['compared'])}"


def _displaced(release: Release) -> NoisyScalars | None:
    """The noisy displacement that the discretisation was taken from, as stored."""
    stored, measurement = release.document["recompute"]["displacement"], release.measurement
    if stored is None:
        return None
    unit, scale = measurement.cost.spent.unit, float.fromhex(stored["scale"])
    if not 0 < scale <= MAX_SCALE:
        raise ValueError("the noise")
    return NoisyScalars(
        values=(int(stored["value"]),),
        scale=scale,
        cost=Guarantee(Budget(stored_rational(stored[unit]), unit), measurement.strategy.neighbours),
    )


def _plug_in(release: Release) -> Answer:
    """The same computation, from the noisy integers and the emitted rows."""
    how, stated = release.document["recompute"], release.document["certificate"]["plug_in"]
    hub, draws = how["hub"], int(how["draws"])
    if draws > MOST_DRAWS:
        return False, f"{draws:,} draws are more than any release makes"
    again = plug_in(
        release.measurements,
        release.schema,
        release.rows,
        subsets=release.subsets,
        beta=stored_rational(how["plug_in_failure_probability"]),
        draws=draws,
        seed=int(how["seed"], 16),
        displaced=_displaced(release),
        proxies=Proxies(hub=None if hub is None else stored_rational(hub), end=stored_rational(how["end"])),
    )
    if set(stated) != set(again):
        return False, "the certificate lacks a proxy, or has one too many"
    for proxy, plug in again.items():
        figures = [s["bound"] for s in stated[proxy]["subsets"]]
        names = [tuple(s["columns"]) for s in stated[proxy]["subsets"]]
        if names != list(plug.subsets) or not _close(figures, [t.bound for t in plug.terms]):
            return False, f"recomputed bounds with the {proxy} loss differ from those stated"
        if not _close([stated[proxy]["bound"]], [plug.bound]):
            return False, f"the stated bound with the {proxy} loss is not the largest of its subsets"
        if Fraction(repr(stated[proxy]["confidence"])) > Fraction(repr(float(plug.confidence))):
            return False, "the stated confidence is higher than the failure probability allows"
    best = again.get("transport") or again["path"]
    return True, f"recomputed from the noisy integers and the emitted rows: {best.bound:.6f}"


def _bound(release: Release) -> Answer:
    """The headline is the smaller of its parts, and their failure probabilities fit into one."""
    stated = release.document["certificate"]
    plug = stated["plug_in"].get("transport") or stated["plug_in"]["path"]
    direct, single = stated["direct"], stated["single_column"]
    parts = [plug["bound"]] + ([direct["bound"]] if direct else [])
    failure = sum(1 - part["confidence"] for part in (plug, direct, single) if part)
    least = min(parts + ([single["bound"]] if single else []))
    if not _close([stated["bound"]], [min(parts)]) or not _close([stated["single_column_bound"]], [least]):
        return False, "the stated bound is not the smaller of the direct and the plug-in bound"
    for subset, of_plug in zip(stated["subsets"], plug["subsets"], strict=True):
        most = min(of_plug["bound"], direct["bound"] if direct else 1.0)
        if subset["columns"] != of_plug["columns"] or not _close([subset["bound"]], [most]):
            return False, "the bound of a subset is not the smaller of its parts"
    if failure > 1 - stated["confidence"] + 1e-12:
        return False, "the parts fail more often together than the stated confidence allows"
    return True, f"{stated['bound']:.6f} ({stated['kind']}) at confidence {stated['confidence']:g}. {CANNOT}"


def _report(release: Release) -> Answer:
    assert release.folder is not None
    same = (release.folder / "report.html").read_bytes() == render_report(
        release.document, release.schema, release.table
    ).encode()
    return (
        same,
        "is the one that the release gives" if same else "report.html is not the one that the release gives",
    )


def _close(first: list[float], second: list[float]) -> bool:
    return len(first) == len(second) and all(
        math.isclose(a, b, rel_tol=0, abs_tol=_TOLERANCE) for a, b in zip(first, second, strict=True)
    )
