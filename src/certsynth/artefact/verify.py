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
from certsynth.domain import Column, Ordered
from certsynth.errors import CertsynthError
from certsynth.mechanisms.guarantee import decimal_text, stored_rational
from certsynth.mechanisms.measure import sensitivity
from certsynth.report import render_report

MOST_DRAWS = 100_000
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
    """Values inside the schema, the stated number of rows, and the same rows in both files."""
    assert release.folder is not None
    names, schema = release.schema.names, release.schema
    stated = release.document["release"]["rows"]
    for column, clean in zip(schema, release.rows, strict=True):
        values = release.table[column.name]
        if not _allowed(column, values, column.decode(clean)):
            return False, f"{PARQUET}: column {column.name!r} holds a value that the schema does not allow"
        if len(values) != stated:
            return False, f"{PARQUET} has {len(values):,} rows where the certificate says {stated:,}"
    for column, text, clean in zip(schema, read_table(release.folder / CSV, names), release.rows, strict=True):
        if not np.array_equal(column.clean(text), clean, equal_nan=True):
            return False, f"{CSV}: column {column.name!r} differs from {PARQUET}"
    return True, f"{stated:,} rows, all values allowed by the schema, the same in both files"


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
    """The noise's scales, as stored, are enough for the ε that is stated, and the parts add up to the whole."""
    privacy, measured = release.document["privacy"], Fraction(0)
    for m in release.measurements:
        if sensitivity(m.marginals, m.strategy) / Fraction(m.scale) > m.cost.epsilon:
            return False, "the scale of the noise is too small for the epsilon of the measurement"
        if privacy["neighbours"] != m.strategy.neighbours:
            return False, "certificate and measurement name different neighbour relations"
        measured += m.cost.epsilon
    parts = [stored_rational(part["epsilon"]) for part in privacy["spent"]]
    stated = decimal_text(sum(parts, Fraction(0)))
    if stated != privacy["epsilon"] or sum(parts[: len(release.measurements)]) < measured:
        return False, "the parts of the budget do not add up to the stated epsilon"
    scales = ", ".join(f"{m.scale:g}" for m in release.measurements)
    return True, f"noise of scale {scales} is enough for what was measured: epsilon {privacy['epsilon']} in all"


def _plug_in(release: Release) -> Answer:
    """The same computation, from the noisy integers and the emitted rows."""
    how, stated = release.document["recompute"], release.document["certificate"]["plug_in"]
    hub, draws = how["hub"], int(how["draws"])
    if draws > MOST_DRAWS:
        return False, f"{draws:,} draws are more than any release makes"
    again = plug_in(
        release.measurement,
        release.schema,
        release.rows,
        beta=Fraction(how["plug_in_failure_probability"]),
        draws=draws,
        seed=int(how["seed"], 16),
        proxies=Proxies(hub=None if hub is None else Fraction(hub), end=Fraction(how["end"])),
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
