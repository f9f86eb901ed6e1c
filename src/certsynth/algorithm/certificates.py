"""The certificates of fitted rows, computed from the earlier steps: displacement, plug-in and direct."""

from __future__ import annotations

from collections.abc import Mapping

from certsynth.algorithm.certify import direct_bounds
from certsynth.algorithm.exceptions import ExceptionChoice, share_for_each
from certsynth.algorithm.method import Run
from certsynth.algorithm.values import Counted, Fitted, Measured
from certsynth.certificate.direct import Direct
from certsynth.certificate.plug_in import PlugIn, Proxy, plug_in
from certsynth.certificate.seed import seed_of
from certsynth.mechanisms import Sensitivity, as_full_measurements
from certsynth.mechanisms.dropped import measure_dropped
from certsynth.mechanisms.scalars import NoisyScalars, measure_scalars
from certsynth.queries.displacement import Displacement, farthest


def measure_displacement(this: Run, measured: Measured) -> NoisyScalars | None:
    """Measure the sum of the distances of rows from the centres of their cells; None if the settings omit it.

    Without it, the plug-in certificate uses the worst case. One row adds at most the largest distance within a cell.
    """
    settings, marginals, schema = this.settings, measured.last.marginals, this.schema.measured
    if not settings.displacement_share or not (most := farthest(schema, marginals)):
        return None
    return measure_scalars(
        [this.private.displacing(Displacement(schema, marginals))],
        sensitivity=Sensitivity(most, most**2),
        budget=settings.budget.share(settings.displacement_share),
        neighbours=settings.neighbours,
        noise=this.means.spending,
    )


def plug_in_certificates(
    this: Run, measured: Measured, fitted: Fitted, displaced: NoisyScalars | None
) -> Mapping[Proxy, PlugIn]:
    """Return the paper's certificate for each proxy loss; none if the distribution of the noise's effect is unknown.

    It covers the measured subsets: private rows need not obey the formulas of derived columns.
    """
    full, settings = as_full_measurements(measured.measurements), this.settings
    if full is None or not settings.plug_in:
        return {}
    return plug_in(
        full,
        this.schema.measured,
        this.schema.measured_part(fitted.rows),
        subsets=settings.subsets,
        beta=settings.plug_in_beta,
        draws=settings.draws,
        seed=seed_of(full),
        displaced=displaced,
        proxies=settings.proxies(measured.resolution),
        progress=this.means.progress,
    )


def measure_dropped_rows(this: Run) -> NoisyScalars | None:
    """Measure how many rows are dropped because their person has too many; None if that was not requested."""
    settings = this.settings
    persons, contributions = settings.protection.persons, this.private.contributions
    if not settings.measure_dropped or persons is None or contributions is None:
        return None
    return measure_dropped(
        contributions(),
        settings.protection,
        persons,
        budget=settings.budget.share(settings.dropped_share),
        noise=this.means.spending,
    )


def exception_choice(this: Run) -> ExceptionChoice | None:
    """Return the choice of exceptions; None if there are none."""
    settings = this.settings
    if not settings.exceptions:
        return None
    each = settings.budget.share(share_for_each(settings.exceptions))
    return ExceptionChoice(settings.exceptions, each, settings.neighbours, this.means.spending)


def direct_certificate(
    this: Run, counted: Counted, fitted: Fitted, exceptions: ExceptionChoice | None = None, *, alone: bool
) -> Direct | None:
    """Measure the losses and the errors of statistics themselves, with noise; None if there is no budget for it.

    `alone`: there is no plug-in certificate, so the direct one has the whole failure probability.
    """
    settings, means = this.settings, this.means
    if not settings.certificate_share:
        return None
    return direct_bounds(
        this.lattice,
        this.private.placing,
        lambda: [fitted.rows],
        budget=settings.budget.share(settings.certificate_share),
        beta=settings.direct_beta(alone=alone),
        neighbours=settings.neighbours,
        exceptions=exceptions,
        two_sided=False,
        counted=counted.noisy,
        noise=means.spending,
        memory=means.memory,
        progress=means.progress,
    )
