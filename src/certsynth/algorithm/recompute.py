"""Recompute both certificates from the contents of a release, for its own rows or for others."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from certsynth.algorithm.asked import asked_options
from certsynth.algorithm.method import checked_settings, method_named
from certsynth.algorithm.settings import Settings
from certsynth.algorithm.values import ExpectedLayer
from certsynth.artefact import Release
from certsynth.artefact.steps import ERRORS_OF_ROWS, MEAN_DISPLACEMENT, PAIR_SCORES, ROW_COUNT, step_on
from certsynth.base.progress import Progress, silent
from certsynth.certificate.coverage import statistic_names
from certsynth.certificate.direct import Direct, bounds, bounds_single_columns
from certsynth.certificate.plug_in import PlugIn, Proxies, Proxy, plug_in
from certsynth.certificate.seed import seed_of
from certsynth.mechanisms import Neighbours, as_full_measurements
from certsynth.queries.fine import LatticeQuery
from certsynth.record.record import RecomputeRecord


def stated_settings(release: Release) -> Settings:
    """The settings that follow from what the release says it was asked for."""
    return checked_settings(release.schema, asked_options(release.record))


def stated_layers(release: Release, settings: Settings) -> tuple[ExpectedLayer, ...]:
    """The layers that such a release measures, given the noisy integers that it chose them by."""
    scores = step_on(release.record.privacy, PAIR_SCORES)
    return method_named(settings.method).expected_layers(
        release.schema.measured, settings, release.measurements, scores
    )


def recomputed(release: Release, rows: Sequence[np.ndarray], *, progress: Progress = silent) -> dict[Proxy, PlugIn]:
    """The plug-in certificate of cleaned `rows`, with the draws of the noise that the release's own was computed with;
    none where only cells that stand out are known.

    The same draws make the same event: on it, the bounds of all tables hold that anybody ever computes so.

    Paper: Lemma 1 [certificate-holds]
    """
    if (full := as_full_measurements(release.measurements)) is None or not stated_settings(release).plug_in:
        return {}
    how = release.record.recompute
    return plug_in(
        full,
        release.schema.measured,
        release.schema.measured_part(rows),
        subsets=stated_settings(release).subsets if release.schema.derivations else release.subsets,
        beta=how.plug_in_failure_probability,
        draws=how.draws,
        seed=seed_of(release.measurements),
        displaced=step_on(release.record.privacy, MEAN_DISPLACEMENT),
        proxies=stated_proxies(how),
        progress=progress,
    )


def recomputed_direct(release: Release, settings: Settings) -> Direct | None:
    """The direct certificate from its noisy integers; None if there is none."""
    privacy = release.record.privacy
    if (noisy := step_on(privacy, ERRORS_OF_ROWS)) is None:
        return None
    fine = LatticeQuery.of(release.schema, settings.covered, lattice_columns=settings.lattice_columns)
    alone = not settings.plug_in or as_full_measurements(release.measurements) is None
    return bounds(
        fine,
        None,
        noisy,
        rows=0 if settings.neighbours is Neighbours.ADD_REMOVE else privacy.rows or 0,
        beta=settings.direct_beta(alone=alone),
        losses=2 if settings.exceptions else 1,
        stretch=Fraction(1),
        two_sided=False,
        exceptions=stated_exceptions(release, settings),
        single=bounds_single_columns(settings.covered),
        statistics=statistic_names(release.schema, settings.covered),
        counted=step_on(privacy, ROW_COUNT),
    )


def stated_exceptions(release: Release, settings: Settings) -> tuple[int, ...]:
    """The positions of the exceptions among the covered subsets; ValueError if there cannot be these."""
    stated, names = release.record.certificate.exceptions, release.schema.names
    columns = () if stated is None else stated.subsets
    covered = [tuple(names[j] for j in subset) for subset in settings.covered]
    if len(columns) != settings.exceptions or len(set(columns)) != len(columns):
        raise ValueError("not the number of exceptions that such a release has")
    return tuple(covered.index(each) for each in columns)


def stated_proxies(how: RecomputeRecord) -> Proxies:
    """How the losses were computed, as the record says."""
    return Proxies(hub=how.hub, end=how.end)
