"""Both certificates once more, from what a release holds: for its own rows, or for others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from certsynth.artefact.certificate import ADAPTING, COUNTED, DISPLACEMENT, LOSS_OF_ROWS, LOSS_OF_SINGLES
from certsynth.artefact.steps import stated_steps, step_on
from certsynth.certificate.direct import Direct, bounds, certificate_shares, single_columns
from certsynth.certificate.plug_in import PlugIn, Proxies, Proxy, plug_in
from certsynth.certificate.seed import seed_of
from certsynth.errors import InputError
from certsynth.mechanisms import Budget, Neighbours, Unit
from certsynth.mechanisms.concentrated import Privacy
from certsynth.mechanisms.guarantee import exact_rational, stored_rational
from certsynth.mechanisms.sparse import LowDimensional, SparseMeasurement
from certsynth.progress import Progress, silent
from certsynth.queries.fine import FineMarginals
from certsynth.settings import Settings

if TYPE_CHECKING:
    from certsynth.artefact.release import Release

MOST_DRAWS = 100_000
"""Draws that are made for a certificate that somebody else wrote."""


def stated_settings(release: Release) -> Settings:
    """What the release was asked for, as far as anything follows from it: shares of the budget and of the failure
    probability, draws, cells. All of it is read from certificate.json and the measurements.
    """
    asked, how, privacy = (release.document[key] for key in ("asked", "release", "privacy"))
    last = release.measurement
    unit = last.cost.spent.unit
    epsilon = exact_rational(privacy["epsilon"])
    delta = None if unit is Unit.EPSILON else exact_rational(privacy["delta"])
    if epsilon is None:
        raise ValueError("the epsilon")

    def settings(resolution: int | None) -> Settings:
        return Settings(
            privacy=Privacy(Budget(stored_rational(asked["budget"]), unit), epsilon=epsilon, delta=delta),
            subsets=release.subsets,
            named=how["workload"] is not None,
            resolution=resolution,
            mechanism=last.strategy.name if isinstance(last.strategy, LowDimensional) else None,
            projection=how["projection"],
            loss=how["loss"],
            rows=how["rows"],
            share=stored_rational(asked["certificate_share"]),
            confidence=stored_rational(asked["confidence"]),
            neighbours=last.strategy.neighbours,
            preset=how["preset"],
            candidates=how["candidates"],
        )

    # A resolution that was asked for leaves more of the budget to the grid: it was not chosen privately.
    found = settings(None)
    chosen = any(step.on == ADAPTING for step in stated_steps(release.document))
    as_found = chosen or last.cost.spent == found.measurement_budget
    return found if as_found or not found.low_dimensional else settings(how["resolution"])


def recomputed(release: Release, rows: Sequence[np.ndarray], *, progress: Progress = silent) -> dict[Proxy, PlugIn]:
    """The plug-in certificate of cleaned `rows`, with the draws of the noise that the release's own was computed with;
    none where only cells that stand out are known.

    The same draws make the same event: on it, the bounds of all tables hold that anybody ever computes so.

    Paper: Lemma 1 [certificate-holds]
    """
    if isinstance(release.measurement, SparseMeasurement):
        return {}
    how = release.document["recompute"]
    draws = int(how["draws"])
    if draws > MOST_DRAWS:
        raise InputError(f"certificate.json asks for {draws:,} draws, more than any release makes.")
    return plug_in(
        release.measurements,
        release.schema,
        rows,
        subsets=release.subsets,
        beta=stored_rational(how["plug_in_failure_probability"]),
        draws=draws,
        seed=seed_of(release.measurements),
        displaced=step_on(release.document, DISPLACEMENT),
        proxies=stated_proxies(release.document),
        progress=progress,
    )


def recomputed_direct(release: Release, settings: Settings) -> tuple[Direct | None, Direct | None]:
    """The direct certificates from their noisy losses: of all subsets together, and of single columns."""
    document = release.document
    fine = FineMarginals.of(release.schema, settings.subsets, lattice_columns=settings.lattice_columns)
    beta = settings.direct_beta(alone=isinstance(release.measurement, SparseMeasurement))
    counted = step_on(document, COUNTED)
    hidden = settings.neighbours is Neighbours.ADD_REMOVE
    shares = certificate_shares(settings.subsets)
    found: list[Direct | None] = []
    for what, share, bare in zip((LOSS_OF_ROWS, LOSS_OF_SINGLES), shares, (fine, single_columns(fine)), strict=True):
        noisy = step_on(document, what)
        if noisy is None:
            found.append(None)
            continue
        found.append(
            bounds(
                bare,
                None,
                noisy,
                rows=0 if hidden else int(document["privacy"]["rows"]),
                beta=beta * share,
                losses=1,
                stretch=Fraction(1),
                two_sided=False,
                counted=counted,
            )
        )
    return found[0], found[1]


def stated_proxies(document: Mapping[str, Any]) -> Proxies:
    """How the losses were computed, as certificate.json says."""
    how = document["recompute"]
    hub = how["hub"]
    return Proxies(hub=None if hub is None else stored_rational(hub), end=stored_rational(how["end"]))
