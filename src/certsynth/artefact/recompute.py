"""The plug-in certificate once more, from what a release holds: for its own rows, or for others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from certsynth.base.progress import Progress, silent
from certsynth.certificate.plug_in import PlugIn, Proxies, Proxy, plug_in
from certsynth.errors import InputError
from certsynth.mechanisms import Budget, Guarantee, as_full_measurements
from certsynth.mechanisms.guarantee import stored_rational
from certsynth.mechanisms.samplers import MAX_SCALE
from certsynth.mechanisms.scalars import NoisyScalars

if TYPE_CHECKING:
    from certsynth.artefact.release import Release

MOST_DRAWS = 100_000
"""Draws that are made for a certificate that somebody else wrote."""


def recomputed(release: Release, rows: Sequence[np.ndarray], *, progress: Progress = silent) -> dict[Proxy, PlugIn]:
    """The certificate of cleaned `rows`, with the draws of the noise that the release's own was computed with; none
    where only cells that stand out are known.

    The same draws make the same event: on it, the bounds of all tables hold that anybody ever computes so.

    Paper: Lemma 1 [certificate-holds]
    """
    if (measurements := as_full_measurements(release.measurements)) is None:
        return {}
    how = release.document["recompute"]
    draws = int(how["draws"])
    if draws > MOST_DRAWS:
        raise InputError(f"certificate.json asks for {draws:,} draws, more than any release makes.")
    return plug_in(
        measurements,
        release.schema,
        rows,
        subsets=release.subsets,
        beta=stored_rational(how["plug_in_failure_probability"]),
        draws=draws,
        seed=int(how["seed"], 16),
        displaced=displaced(release),
        proxies=stated_proxies(release.document),
        progress=progress,
    )


def stated_proxies(document: Mapping[str, Any]) -> Proxies:
    """How the losses were computed, as certificate.json says."""
    how = document["recompute"]
    hub = how["hub"]
    return Proxies(hub=None if hub is None else stored_rational(hub), end=stored_rational(how["end"]))


def displaced(release: Release) -> NoisyScalars | None:
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
