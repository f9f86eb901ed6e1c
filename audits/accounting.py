"""dp-accounting looks at whole releases: what their folders say about noise, composed by somebody else's accountant.

    python audits/accounting.py [--quick]

Real release folders are written, and read back. For every pair of neighbouring rows that the schema allows, all noisy
integers of a folder are gone through, to find the pair that they tell apart best under the scales that are stored. For
that pair dp-accounting composes the laws of all parts: privacy loss distributions of discrete Laplace or Gaussian noise
(never above what is claimed), and Rényi divergences (the same formula as the claim, over its own orders).
`tests/mechanisms/test_concentrated.py` compares single mechanisms; this is about folders.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import json
import math
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any
from unittest import mock

import dp_accounting
import numpy as np
import polars as pl
from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as pld
from dp_accounting.rdp import RdpAccountant

from certsynth import Release, Schema, release
from certsynth.certificate.direct import LOSS_UNITS
from certsynth.mechanisms.measure import coefficients
from certsynth.queries.displacement import farthest
from certsynth.queries.fine import MOVE_UNITS, LatticeQuery
from certsynth.queries.marginals import CellCounts
from certsynth.queries.tally import tally_batches
from writing import say_versions, table, write

INTERVAL = 1e-4
"""Privacy losses are rounded up to multiples of this by dp-accounting, once for each part."""

ON_A_GRID = 1e-4
"""Relative: the accountant's orders lie on a grid."""

FINE = 10_000.0
"""Scale from which the laws of discrete noise are told by those of continuous noise, which are faster to compute."""

TINY = 1e-9
"""The δ at which pure releases are queried: at 0 the accountant's cut-off tails count as infinite."""

SCHEMA = Schema.parse(
    """
[[column]]
name = "a"
kind = "integer"
low = 0
high = 6

[[column]]
name = "b"
kind = "integer"
low = 0
high = 4
missing = true

[[column]]
name = "c"
kind = "category"
values = ["x", "y"]
"""
)

PINNED = {"resolution": 4, "mechanism": "identity"}
HIDDEN = {"neighbours": "add-remove", "rows": 500}
RELEASES: dict[str, dict[str, Any]] = {
    "pure, particles": {**PINNED, "epsilon": 1},
    "pure, hidden n": {**PINNED, **HIDDEN, "epsilon": "0.7"},
    "pure, weighted wavelets, choice among 3": {
        "resolution": 4, "mechanism": "haar-weighted", "epsilon": 2, "candidates": 3, "loss": "path",
    },
    "pure, plug-in alone": {"resolution": 3, "mechanism": "quad-tree", "epsilon": 1, "certificate_share": 0},
    "the paper's": {"preset": "paper", "resolution": 4, "epsilon": 1},
    "pure, a workload, hidden n": {**PINNED, **HIDDEN, "epsilon": 1, "subsets": [["a", "c"], ["b"]]},
    "Gaussian, particles": {**PINNED, "epsilon": 1, "delta": "1e-6"},
    "Gaussian, hidden n": {**PINNED, **HIDDEN, "epsilon": 2, "delta": "1e-5"},
    "Gaussian, wavelets, choice among 3": {
        "resolution": 4, "mechanism": "haar", "rho": "0.1", "candidates": 3, "loss": "path",
    },
    "Gaussian, plug-in alone": {"resolution": 3, "mechanism": "identity", "rho": "0.05", "certificate_share": 0},
}  # fmt: skip
QUICK = ("pure, particles", "pure, hidden n", "pure, plug-in alone", "Gaussian, particles", "Gaussian, hidden n")


def people(rows: int) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    a = rng.binomial(6, 0.4, rows)
    return pl.DataFrame(
        {
            "a": a,
            "b": [None if gone else int(x) for gone, x in zip(rng.random(rows) < 0.1, np.minimum(a, 4), strict=True)],
            "c": np.where(rng.random(rows) < 0.3, "x", "y"),
        }
    )


def every_row() -> list[tuple[np.ndarray, ...]]:
    """All rows that the schema allows, cleaned, each as a table of its own."""
    values = [np.array(sorted({*range(7)})), np.array([*range(5), None]), np.array(["x", "y"])]
    clean = [column.clean(np.ma.masked_equal(v, None)) for column, v in zip(SCHEMA, values, strict=True)]
    return [(x[None], y[None], z[None]) for x in clean[0] for y in clean[1] for z in clean[2]]


@dataclass(frozen=True, slots=True)
class Part:
    """Something that a release spent on: by how much its integers differ, at what scale; or only what it says.

    With `sup_norm` noise is drawn for all of its integers at once, with P(z) ∝ exp(−max|z|/scale).
    """

    what: str
    shifts: np.ndarray
    scale: float
    stated: Fraction
    sup_norm: bool = False

    @property
    def told_only(self) -> bool:
        return not len(self.shifts)

    def spent(self, unit: str) -> Fraction:
        if self.told_only:
            return self.stated
        scale = Fraction(self.scale)
        if self.sup_norm:
            return Fraction(int(np.abs(self.shifts).max())) / scale
        if unit == "epsilon":
            return Fraction(int(np.abs(self.shifts).sum())) / scale
        return Fraction(int((self.shifts.astype(object) ** 2).sum())) / (2 * scale**2)


def parts_of(folder: Path) -> tuple[dict[str, Any], list[Part]]:
    """What the folder says was spent, and its parts for the pair of rows that the integers tell apart best."""
    document = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))
    with np.load(io.BytesIO((folder / "measurements.npz").read_bytes()), allow_pickle=False) as arrays:
        about = json.loads(arrays["about"].tobytes())
    privacy = document["privacy"]
    unit, hidden = "epsilon" if privacy["rho"] is None else "rho", privacy["neighbours"] == "add-remove"
    made = Release.load(folder)
    blocks = []
    for m in made.measurements:
        alone = [np.concatenate(coefficients(tally_batches([row], CellCounts(SCHEMA, m.marginals)), m.strategy))
                 for row in every_row()]  # fmt: skip
        blocks.append(np.array(alone))
    scales = [float.fromhex(each["scale"]) for each in about]
    best, worst = -1.0, [np.zeros(0, int)] * len(blocks)
    count = len(blocks[0])
    for i in range(count):
        shifts = [b[i : i + 1] if hidden else b[i] - b[i + 1 :] for b in blocks]
        if not len(shifts[0]):
            continue
        if unit == "epsilon":
            size = sum(np.abs(d).sum(axis=1) / s for d, s in zip(shifts, scales, strict=True))
        else:
            size = sum((d.astype(float) ** 2).sum(axis=1) / (2 * s**2) for d, s in zip(shifts, scales, strict=True))
        j = int(np.argmax(size))
        if size[j] > best:
            best, worst = float(size[j]), [d[j] for d in shifts]
    # A hidden number of rows comes first.
    before, spent = privacy["spent"][:hidden], privacy["spent"][hidden:]
    parts = [Part(p["on"], w, s, Fraction(p[unit])) for p, w, s in zip(spent, worst, scales, strict=False)]
    parts += [_other(p, Fraction(p[unit]), hidden, made) for p in [*before, *spent[len(parts) :]]]
    return privacy, parts


def _other(step: dict[str, Any], stated: Fraction, hidden: bool, made: Release) -> Part:
    """A step of few noisy integers, at the scale that the folder has; a private choice is taken at its word."""
    what, sup_norm = step["on"], step.get("noise") == "sup-norm"
    if step["scale"] is None:
        return Part(what, np.zeros(0, int), 1.0, stated)
    if what == "number of rows":
        most = [1]
    elif what == "mean displacement":
        most = [farthest(SCHEMA, made.measurement.marginals)]
    else:  # losses of all subsets and of single columns; then errors of shares, totals and moments, a row each
        columns = sorted({(j,) for subset in made.subsets for j in subset})
        wide = any(len(subset) > 1 for subset in made.subsets)
        most = [_loss_change(subsets, hidden, made) for subsets in (made.subsets, *([columns] if wide else []))]
        most += [LOSS_UNITS] * (len(step["values"]) - len(most))
    assert len(most) == len(step["values"])
    return Part(what, np.array(most), float.fromhex(step["scale"]), stated, sup_norm)


def _loss_change(subsets: Sequence[Any], hidden: bool, made: Release) -> int:
    fine = LatticeQuery.of(SCHEMA, subsets)
    change = 1 + Fraction(fine.farthest(), MOVE_UNITS)
    if hidden:  # what synthetic rows are moved counts once more
        change += Fraction(max(fine.count([made.rows]).moved), MOVE_UNITS * len(made.rows[0]))
    return math.ceil(LOSS_UNITS * change)


def by_loss_distribution(parts: list[Part], unit: str, delta: float) -> tuple[float, int]:
    """ε at δ by dp-accounting's privacy loss distributions, and how often it rounded."""
    whole, rounded = None, 0
    for part in parts:
        if part.told_only:
            epsilon = float(part.stated) if unit == "epsilon" else math.sqrt(2 * part.stated)
            laws = [(pld.from_privacy_parameters(common.DifferentialPrivacyParameters(epsilon), INTERVAL), 1)]
            if unit == "rho" and "choosing" not in part.what:
                laws = [(_gaussian(1 / math.sqrt(2 * part.stated)), 1)]
        elif part.sup_norm:  # no more is known of the law of its loss than that it is at most this
            most = common.DifferentialPrivacyParameters(float(part.spent(unit)))
            laws = [(pld.from_privacy_parameters(most, INTERVAL), 1)]
        else:
            laws = [
                (_law(int(shift), part.scale, unit), times)
                for shift, times in Counter(np.abs(part.shifts[part.shifts != 0]).tolist()).items()
            ]
        for law, times in laws:
            law = law.self_compose(times) if times > 1 else law
            whole = law if whole is None else whole.compose(law)
            rounded += times
    assert whole is not None
    return float(whole.get_epsilon_for_delta(delta)), rounded


def _gaussian(sigma: float) -> pld.PrivacyLossDistribution:
    return pld.from_gaussian_mechanism(sigma, value_discretization_interval=INTERVAL)


def _law(shift: int, scale: float, unit: str) -> pld.PrivacyLossDistribution:
    """Of discrete noise around two integers; of continuous noise where steps are so fine that they do not matter."""
    if unit == "epsilon":
        if scale > FINE:
            return pld.from_laplace_mechanism(scale / shift, value_discretization_interval=INTERVAL)
        return pld.from_discrete_laplace_mechanism(1 / scale, shift, value_discretization_interval=INTERVAL)
    if scale > FINE:
        return _gaussian(scale / shift)
    return pld.from_discrete_gaussian_mechanism(scale, shift, value_discretization_interval=INTERVAL)


def by_renyi(parts: list[Part], rho: Fraction, delta: float) -> float:
    """ε at δ by dp-accounting's Rényi accountant, with orders that lie close together around the best one."""
    centre = math.sqrt(-math.log(delta) / rho)
    accountant = RdpAccountant(orders=(1 + centre * np.geomspace(math.exp(-3), math.exp(3), 2001)).tolist())
    for part in parts:
        spent = float(part.spent("rho"))
        if part.told_only:
            accountant.compose(dp_accounting.ZCDpEvent(spent))
        elif spent:
            change = math.sqrt(float((part.shifts.astype(float) ** 2).sum()))
            accountant.compose(dp_accounting.GaussianDpEvent(part.scale / change))
    return float(accountant.get_epsilon(delta))


def examined(name: str, privacy: dict[str, Any], parts: list[Part]) -> dict[str, Any]:
    unit = "epsilon" if privacy["rho"] is None else "rho"
    claimed, delta = Fraction(privacy["epsilon"]), float(privacy["delta"] or TINY)
    by_pld, rounded = by_loss_distribution(parts, unit, delta)
    composed = sum((part.spent(unit) for part in parts), Fraction(0))
    row: dict[str, Any] = {
        "release": name,
        "neighbours": privacy["neighbours"],
        "parts": len(parts),
        "taken at their word": sum(part.told_only for part in parts),
        "claimed epsilon": float(claimed),
        "at delta": float(privacy["delta"] or 0),
        "by loss distributions": by_pld,
        "by Renyi": None if unit == "epsilon" else by_renyi(parts, composed, delta),
        "claimed sum": float(Fraction(privacy[unit])),
        "sum": float(composed),
    }
    row["ok"] = bool(
        sum((part.stated for part in parts), Fraction(0)) <= Fraction(privacy[unit])
        and all(part.spent(unit) <= part.stated for part in parts)
        and by_pld <= float(claimed) + rounded * INTERVAL
        and (row["by Renyi"] is None or row["by Renyi"] <= float(claimed) * (1 + ON_A_GRID))
    )
    return row


def forged(parts: list[Part]) -> list[Part]:
    """Noise a tenth narrower than it should be."""
    return [dataclasses.replace(p, scale=0.9 * p.scale) for p in parts]


def run(names: list[str], rows: int) -> list[dict[str, Any]]:
    found = []
    data = people(rows)
    with tempfile.TemporaryDirectory() as place, mock.patch.dict(os.environ, CERTSYNTH_CACHE="off"):
        for number, name in enumerate(names):
            folder = Path(place) / f"release-{number}"
            release(
                data, SCHEMA, out=folder, **{"sparsity": None if "subsets" in RELEASES[name] else 2, **RELEASES[name]}
            )
            privacy, parts = parts_of(folder)
            found.append(examined(name, privacy, parts))
            found.append(examined(f"{name}; control: noise a tenth narrower", privacy, forged(parts)))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"{len(QUICK)} releases instead of {len(RELEASES)}")
    arguments = parser.parse_args()
    say_versions("certsynth", "dp-accounting", "opendp", "numpy", "scipy")
    found = run(list(QUICK if arguments.quick else RELEASES), 2000)
    print(table(found))
    sound = [row for row in found if "control" not in row["release"]]
    controls = [row for row in found if "control" in row["release"]]
    print(f"\n{sum(r['ok'] for r in sound)} of {len(sound)} releases claim at least what dp-accounting finds.")
    print(f"{sum(not r['ok'] for r in controls)} of {len(controls)} forged ones CAUGHT.")
    write("accounting", {"rows": found}, "dp-accounting")
    return int(not all(r["ok"] for r in sound) or any(r["ok"] for r in controls))


if __name__ == "__main__":
    sys.exit(main())
