"""Recompute both certificates from the contents of a release, for its own rows or for others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from certsynth.algorithm.asked import asked_options
from certsynth.algorithm.exceptions import MIN_DEFAULT_EXCEPTIONS
from certsynth.algorithm.method import checked_settings, method_named
from certsynth.algorithm.settings import Settings
from certsynth.algorithm.task import Task, rows_to_plan_for
from certsynth.algorithm.values import ExpectedLayer
from certsynth.answers.alone import GROUP_TOTAL, LOSS, LOSS_OF_ONE_COLUMN, SHARE_2
from certsynth.artefact import Release
from certsynth.artefact.certificate import exceptions_record
from certsynth.artefact.persons import public_weight
from certsynth.artefact.steps import ERRORS_OF_ROWS, MEAN_DISPLACEMENT, PAIR_SCORES, ROW_COUNT, step_on
from certsynth.base.progress import Progress, silent
from certsynth.certificate.coverage import STATISTICS, statistic_names
from certsynth.certificate.direct import Direct, bounds, bounds_single_columns
from certsynth.certificate.plug_in import PlugIn, Proxies, Proxy, plug_in
from certsynth.certificate.seed import seed_of
from certsynth.certificate.statistics import OF_EXCEPTIONS
from certsynth.errors import InputError
from certsynth.mechanisms import as_full_measurements
from certsynth.mechanisms.scalars import NoisyScalars
from certsynth.queries.fine import LatticeQuery
from certsynth.record.record import CertificateRecord, ExceptionsRecord, RecomputeRecord, StatisticsRecord


def stated_settings(release: Release) -> Settings:
    """The settings that follow from what the release says it was asked for.

    In releases of earlier versions exceptions had bounds on losses only, and by default there were fewer.
    """
    record = release.record
    settings, certificate = checked_settings(release.schema, asked_options(record)), record.certificate
    known, apart = certificate.statistics, certificate.exceptions
    if known is not None and apart is not None and known.share_of_two_columns is not None and apart.share is None:
        number = MIN_DEFAULT_EXCEPTIONS if settings.exceptions_are_open else settings.exceptions
        return replace(settings, exceptions=number, exceptions_are_open=False, losses_only=True)
    counted = step_on(record, ROW_COUNT)
    rows = (public_weight(record) or 0) if counted is None else rows_to_plan_for(counted.values[0])
    return Task(release.schema, settings, rows).settle_exceptions().settings


def stated_layers(release: Release, settings: Settings) -> tuple[ExpectedLayer, ...]:
    """The layers that such a release measures, given the noisy integers that it chose them by."""
    scores = step_on(release.record, PAIR_SCORES)
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
        displaced=step_on(release.record, MEAN_DISPLACEMENT),
        proxies=stated_proxies(how),
        progress=progress,
    )


def recomputed_direct(release: Release, settings: Settings) -> Direct | None:
    """The direct certificate from its noisy integers; None if there is none."""
    if (noisy := step_on(release.record, ERRORS_OF_ROWS)) is None:
        return None
    alone = not settings.plug_in or as_full_measurements(release.measurements) is None
    return _direct_bounds(release, settings, noisy, settings.direct_beta(alone=alone))


def certificate_for_one_question(release: Release, used: frozenset[str]) -> CertificateRecord:
    """A certificate that makes claims about the `used` numbers only, and holds for these with the stated confidence.

    Noisy cells keep their share of the failure probability. All the rest is that of the noise of these numbers: no
    other number and no plug-in certificate has a share of it. `used` must be chosen without looking at the noisy
    numbers. All other bounds are 1.

    Proof: docs/explanation/proofs/answers.md
    """
    settings, stated = stated_settings(release), release.record.certificate
    noisy = step_on(release.record, ERRORS_OF_ROWS)
    if noisy is None or stated.statistics is None:
        raise InputError(
            "this release has no direct certificate, so there is no tighter interval for one question alone; leave out "
            "`alone`."
        )
    beta = settings.beta - (settings.cell_beta if stated.cells is not None else 0)
    measured_twice = {LOSS} if settings.exceptions else set()
    measured_twice |= set(OF_EXCEPTIONS) if settings.splits_pairs else set()
    number = len(used) + len(used & measured_twice)
    direct = _direct_bounds(release, settings, noisy, beta, used=number)
    losses = {LOSS: direct.bound, LOSS_OF_ONE_COLUMN: direct.single.bound if direct.single else direct.bound}
    known = {name: bound for name, bound in losses.items() if name in used}
    figures: dict[str, Any] = dict.fromkeys(STATISTICS)
    figures |= {name: each.bound if name in used else 1.0 for name, each in direct.statistics.items()}
    whole = known.get(LOSS, 1.0)
    return replace(
        stated,
        bound=whole,
        single_column_bound=min(whole, known.get(LOSS_OF_ONE_COLUMN, 1.0)),
        subsets=tuple(
            replace(subset, bound=each.bound if LOSS in used else 1.0)
            for subset, each in zip(stated.subsets, direct.of_each_subset, strict=True)
        ),
        statistics=StatisticsRecord(**figures),
        exceptions=_used_exceptions(exceptions_record(direct), used),
    )


def _used_exceptions(found: ExceptionsRecord | None, used: frozenset[str]) -> ExceptionsRecord | None:
    """The bounds of exceptions and of all others, if the number is `used`; all others are 1."""
    if found is None:
        return None
    fields = {
        LOSS: ("bound", "bound_of_others"),
        SHARE_2: ("share", "share_of_others"),
        GROUP_TOTAL: ("group_total", "group_total_of_others"),
    }
    unused = [each for name, both in fields.items() if name not in used for each in both]
    vacuous: dict[str, Any] = {each: 1.0 for each in unused if getattr(found, each) is not None}
    return replace(found, **vacuous)


def _direct_bounds(
    release: Release, settings: Settings, noisy: NoisyScalars, beta: Fraction, *, used: int | None = None
) -> Direct:
    return bounds(
        LatticeQuery.of(release.schema, settings.covered, lattice_columns=settings.lattice_columns),
        None,
        noisy,
        rows=public_weight(release.record) or 0,
        beta=beta,
        losses=2 if settings.exceptions else 1,
        stretch=Fraction(1),
        two_sided=False,
        exceptions=stated_exceptions(release, settings),
        single=bounds_single_columns(settings.covered),
        statistics=statistic_names(release.schema, settings.covered, exceptions=settings.splits_pairs),
        counted=step_on(release.record, ROW_COUNT),
        used=used,
    )


def stated_exceptions(release: Release, settings: Settings) -> tuple[int, ...]:
    """The positions of the exceptions among the covered subsets."""
    stated, names = release.record.certificate.exceptions, release.schema.names
    columns = () if stated is None else stated.subsets
    covered = [tuple(names[j] for j in subset) for subset in settings.covered]
    if len(columns) != settings.exceptions or len(set(columns) & set(covered)) != len(columns):
        raise InputError("the exceptions are not as many as were asked for, or not different subsets that are covered.")
    return tuple(covered.index(each) for each in columns)


def stated_proxies(how: RecomputeRecord) -> Proxies:
    """How the losses were computed, as the record says."""
    return Proxies(hub=how.hub, end=how.end)
