"""Releases that tests of the folder share, and copies of them that were changed so that their checksums fit."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from certsynth import Release
from certsynth.algorithm.fitting import support_name
from certsynth.algorithm.recompute import recomputed_direct, stated_settings
from certsynth.artefact.certificate import cells_record, certificate_record, dropped_record, fit_record
from certsynth.artefact.folder import check_sums, write_folder
from certsynth.artefact.steps import DROPPED_ROWS, step_on
from certsynth.certificate.plug_in import plug_in
from certsynth.certificate.seed import seed_of
from certsynth.errors import InputError
from certsynth.mechanisms.concentrated import epsilon_of, rho_of
from certsynth.mechanisms.guarantee import decimal_text
from certsynth.projection.diagnostic import diagnose_fit
from certsynth.record.form import from_json, to_json
from certsynth.record.record import Record
from certsynth.report.verifiable import CHECKS
from small import native

GAUSSIAN: dict[str, dict[str, Any]] = {
    "with delta": {"epsilon": 1, "delta": 1e-6},
    "rho": {"rho": "0.1"},
    "rho and epsilon": {"rho": "0.1", "epsilon": 2},
    "rho and delta": {"rho": "0.1", "delta": "1e-9"},
    "rho, single columns": {"rho": "0.1", "sparsity": 1, "resolution": None},
    "rho, triples": {"rho": "0.1", "sparsity": 3},
    "rho, weights": {"rho": "0.1", "mechanism": "quad-tree", "resolution": 4},
    "rho, candidates": {"rho": "0.1", "candidates": 3},
    "rho, hidden rows": {"rho": "0.1", "neighbours": "add-remove", "rows": 150},
    "rho, displacement": {"rho": 8, "certificate_share": 0},
    "rho, displacement, hidden rows": {"rho": 8, "certificate_share": 0, "neighbours": "add-remove", "rows": 150},
    "rho, adaptive, hidden rows": {
        "rho": "0.1",
        "mechanism": "adaptive",
        "resolution": None,
        "neighbours": "add-remove",
        "rows": 150,
    },
    "delta, displacement, particles": {
        "epsilon": 30,
        "delta": "1e-6",
        "certificate_share": 0,
        "projection": "particles",
    },
}
"""Releases with Gaussian noise."""

VARIANTS: dict[str, dict[str, Any]] = {
    "pairs": {},
    "single columns": {"sparsity": 1, "resolution": None},
    "single columns on a coarse lattice": {"sparsity": 1, "resolution": 3},
    "triples": {"sparsity": 3},
    "haar": {"mechanism": "haar"},
    "weights": {"mechanism": "quad-tree", "resolution": 4},
    "chosen by the plan": {"mechanism": None},
    "no direct certificate": {"certificate_share": 0, "projection": "particles"},
    "single columns without direct certificate": {"sparsity": 1, "certificate_share": 0, "projection": "particles"},
    "displacement": {"epsilon": 40, "certificate_share": 0},
    "displacement, candidates": {"epsilon": 40, "certificate_share": 0, "candidates": 3},
    "hidden rows": {"neighbours": "add-remove", "rows": 150},
    "hidden rows, triples": {"neighbours": "add-remove", "rows": 150, "sparsity": 3},
    "hidden rows, single columns": {"neighbours": "add-remove", "rows": 150, "sparsity": 1},
    "public rows": {"public": native(50, seed=9)},
    "candidates": {"candidates": 2},
    "one column": {"columns": ["b"]},
    "more rows": {"rows": 1_000},
    "programs": {"projection": "full-grid"},
    "the paper": {"preset": "paper", "mechanism": None},
    "workload": {"subsets": [["a", "b"], ["b"], ["c"]]},
    "workload, a triple": {"subsets": [["b", "c"], ["a", "b", "c"], ["a"]], "neighbours": "add-remove", "rows": 150},
    "workload, displacement": {"epsilon": 40, "certificate_share": 0, "subsets": [["c"], ["a", "b"], ["a"]]},
    "persons": {"person": "who", "rows_per_person": 2, "measure_dropped": True},
    "low-dimensional": {"mechanism": "low-dimensional-l1", "columns": ["a", "c"], "resolution": None},
    "workload, the paper": {"preset": "paper", "mechanism": None, "subsets": [["a"], ["b", "c"]]},
    "derived columns": {"derived": True},
    "adaptive": {"mechanism": "adaptive", "resolution": None},
    "exceptions": {"exceptions": 1},
} | GAUSSIAN
"""ε = 3 unless said otherwise."""


UNREAD = "certificate.json does not have the form of a certificate"
"""Why a folder is not even read."""


def copied(made: Release, folder: Path, **changed: bytes) -> list[dict[str, Any]]:
    """Checks of a copy with other files (dots in their names are underscores here), and checksums that fit.

    Those in croissant.json fit as well, unless that is among the other files. Where certificate.json has another form,
    so that the folder is not even read, every check but that of checksums is said to fail.
    """
    assert made.folder is not None
    files = {path.name: path.read_bytes() for path in made.folder.iterdir() if path.name != "SHA256SUMS"}
    for name, content in changed.items():
        name = name.replace("_", ".")
        old, new = (hashlib.sha256(each).hexdigest().encode() for each in (files[name], content))
        files["croissant.json"] = files["croissant.json"].replace(old, new)
        files[name] = content
    write_folder(folder, files)
    try:
        return Release.load(folder).verify()
    except InputError as error:
        if UNREAD not in str(error):
            raise
        fit = not check_sums(folder)
        return [{"name": name, "ok": name == "files" and fit, "detail": str(error)} for name in CHECKS]


def tampered(made: Release, folder: Path, change: Callable[[dict[str, Any]], Any]) -> dict[str, bool]:
    """What is found of a copy whose certificate was changed."""
    assert made.folder is not None
    document = json.loads((made.folder / "certificate.json").read_text())
    change(document)
    return {c["name"]: c["ok"] for c in copied(made, folder, certificate_json=json.dumps(document).encode())}


def unpacked(made: Release) -> tuple[list[dict[str, Any]], np.ndarray]:
    """What is said about the measurements, and their coefficients."""
    assert made.folder is not None
    with np.load(io.BytesIO((made.folder / "measurements.npz").read_bytes())) as arrays:
        return json.loads(arrays["about"].tobytes()), arrays["coefficients"]


def packed(about: Any, coefficients: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    text = about if isinstance(about, bytes) else json.dumps(about).encode()
    np.savez_compressed(buffer, coefficients=coefficients, about=np.frombuffer(text, np.uint8))
    return buffer.getvalue()


def remeasured(made: Release, folder: Path, about: Any, coefficients: np.ndarray) -> dict[str, bool]:
    """What is found of a copy with other measurements."""
    return {c["name"]: c["ok"] for c in copied(made, folder, measurements_npz=packed(about, coefficients))}


# ------------------------------------------------------------ figures that fit each other

Json = dict[str, Any]


def unit_of(document: Json) -> str:
    return "epsilon" if document["privacy"]["rho"] is None else "rho"


def spent_on(document: Json, what: str) -> Json:
    """The step that a part of the budget was spent on."""
    return next(step for step in document["privacy"]["spent"] if step["on"] == what)


def scale_asked_budget(document: Json, factor: Fraction) -> None:
    """Another budget asked for: ε or ρ as it was; ε with δ as the ρ that both give, and that δ."""
    asked = document["asked"]
    if asked["rho"] is not None:
        asked["rho"] = str(Fraction(asked["rho"]) * factor)
    elif asked["delta"] is None:
        asked["epsilon"] = str(Fraction(asked["epsilon"]) * factor)
    else:
        rho = rho_of(Fraction(asked["epsilon"]), Fraction(asked["delta"]))
        asked.update(epsilon=None, rho=str(rho * factor))


def direct_parts(document: Json) -> list[Json]:
    certificate = document["certificate"]
    return [certificate[key] for key in ("direct", "single_column") if certificate[key]]


def adapted(document: Json) -> Json:
    """The document with everything that is put together from other figures made to fit them: sums, largest and smallest
    ones, the headline. Nothing is derived from noise, rows or schema: that is what `verify` does.
    """
    privacy, certificate, unit = document["privacy"], document["certificate"], unit_of(document)
    whole = sum((Fraction(step[unit]) for step in privacy["spent"]), Fraction(0))
    privacy[unit] = decimal_text(whole)
    if unit == "rho":
        least = epsilon_of(whole, Fraction(privacy["delta"]))
        privacy["epsilon"] = decimal_text(max(least, Fraction(privacy["epsilon"])))
    for part in direct_parts(document):
        part["bound"] = min(1.0, max(0.0, sum(part["terms"].values())))
        part["terms"]["slack"] = part["bound"] - part["terms"]["measured_loss"]
    for plug in certificate["plug_in"].values():
        for subset in plug["subsets"]:
            subset["bound"] = min(1.0, sum(subset["terms"].values()))
        worst = max(plug["subsets"], key=lambda subset: subset["bound"])
        plug["bound"], plug["terms"] = worst["bound"], dict(worst["terms"])
    direct, single = certificate["direct"], certificate["single_column"]
    plug = certificate["plug_in"].get("transport") or certificate["plug_in"].get("path")
    parts = [part for part in (plug, direct) if part]
    best = min(parts, key=lambda part: part["bound"])
    certificate["bound"], certificate["terms"] = best["bound"], dict(best["terms"])
    certificate["kind"] = "direct" if best is direct else "plug-in"
    certificate["single_column_bound"] = min([best["bound"]] + ([single["bound"]] if single else []))
    most = direct["bound"] if direct else 1.0
    for j, subset in enumerate(certificate["subsets"]):
        subset["bound"] = min(most, plug["subsets"][j]["bound"]) if plug else most
    return document


def copied_document(made: Release) -> Json:
    return made.document


def restated(made: Release, document: Json) -> Release:
    """The release with another certificate.json; a ValueError where that has not the form of one."""
    return dataclasses.replace(made, record=from_json(Record, document))


def retold(made: Release, **asked: Any) -> Release:
    """The release with both certificates and the fit computed again from what it holds, as `release` computes them.

    What follows from the options is told anew as well.

    `asked` replaces what the plug-in certificate is computed with: its seed, draws, failure probability or proxies.
    """
    document, settings = copied_document(made), stated_settings(made)
    direct = recomputed_direct(made, settings)
    how = {
        "subsets": made.subsets,
        "beta": settings.plug_in_beta,
        "draws": settings.draws,
        "seed": seed_of(made.measurements),
        "displaced": step_on(made.record, "mean displacement"),
        "proxies": settings.proxies(document["release"]["resolution"]),
    } | asked
    plugged = plug_in(made.measurements, made.schema, made.rows, **how)
    confidence = float(settings.confidence)
    cells = cells_record(direct, made.measurements, settings.cell_beta) if direct else None
    dropped = dropped_record(step_on(made.record, DROPPED_ROWS), settings.protection, settings.dropped_beta)
    document["certificate"] = to_json(
        certificate_record(confidence, plugged, direct, cells, protection=settings.protection, dropped=dropped)
    )
    own = made.schema.measured_part(made.rows)
    if fit := fit_record(diagnose_fit(made.measurements, made.schema.measured, own)):
        document["fit"] = to_json(fit)
    how_made, public = document["release"], document["asked"]["public"]
    how_made.update(
        projection=support_name(settings.projection, made.measurement.marginals, public=public),
        loss=settings.loss,
        detail=settings.detail,
        candidates=settings.candidates,
        preset=settings.preset,
    )
    hub = how["proxies"].hub
    document["recompute"] = {
        "plug_in_failure_probability": str(how["beta"]),
        "draws": how["draws"],
        "seed": f"{how['seed']:032x}",
        "hub": None if hub is None else str(hub),
        "end": str(how["proxies"].end),
    }
    return restated(made, document)
