"""Sample more rows from the noisy counts of a release, with their own certificate. Reads no private row; costs
nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from certsynth.algorithm.fitting import FitRequest, Fitting
from certsynth.algorithm.method import method_named
from certsynth.algorithm.options import ROWS
from certsynth.algorithm.recompute import recomputed, stated_settings
from certsynth.algorithm.sizes import check_lattice
from certsynth.artefact import Release
from certsynth.artefact.certificate import certificate_record
from certsynth.artefact.frames import FrameKind, to_frame
from certsynth.artefact.notebook import certificate_html
from certsynth.artefact.release import Certificate
from certsynth.artefact.table import cleaned_table, with_derived
from certsynth.base.html import block, paragraph
from certsynth.base.memory import default_memory
from certsynth.base.progress import Progress, silent
from certsynth.certificate.passes import compare_tables
from certsynth.errors import InputError, TooLarge
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.tally import in_memory
from certsynth.report.numerals import upward

BY_WAY = "by way of the certified rows"

_OUTWARD = 1e-9  # exceeds the rounding error of converting fractions to floats and adding them


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sample:
    r"""New rows with two bounds on their distance from the private rows.

    `certificate` is the plug-in certificate, evaluated on these rows. It fails only on an event E that
    depends on the noise alone: that its loss exceeds the quantile. Lemma 1 holds for all tables simultaneously,

    .. math:: W(D, \mu) \le disc + \frac{U(0, \eta) + U(\nu, n\mu)}{n} \quad\text{for all } \mu,

    so outside E all bounds computed with the same draws hold, for the release and for any number of samples, however
    these are chosen. Its confidence is that of the plug-in part of the release. It does not cover derived columns,
    and is None if the release has none.

    `through_release` is the bound of the certified rows plus the exact distance from them to these: the triangle
    inequality. It has the confidence of the release, and is None if that distance is too expensive to compute. This is
    the only bound that the direct certificate, measured on the certified rows, implies for other rows.

    Paper: Lemma 1 [certificate-holds]
    """

    table: Any
    rows: int
    certificate: Certificate | None
    through_release: Certificate | None
    confidence: float
    """Probability that the release's own bound and both bounds of all samples hold simultaneously."""
    about: str = ""
    """The private rows that the bounds are about, if these are not all."""

    @property
    def bound(self) -> float:
        """The smaller of the two bounds; choosing it is valid since both hold simultaneously at `confidence`.

        With derived columns it is that of `through_release`, which alone covers them.
        """
        return self.best.bound

    @property
    def best(self) -> Certificate:
        plug, through = self.certificate, self.through_release
        if plug is None or through is None:
            return next(each for each in (plug, through) if each is not None)
        covered = {columns for columns, _ in plug.subsets}
        complete = all(columns in covered for columns, _ in through.subsets)
        return plug if complete and plug.bound <= through.bound else through

    def __repr__(self) -> str:
        plug, through = self.certificate, self.through_release
        also = f"; {BY_WAY} {upward(through.bound)} with confidence {through.confidence!r}" if through else ""
        own = f"plug-in {upward(plug.bound)} with confidence {plug.confidence!r}" if plug else "no plug-in certificate"
        return (
            f"Sample({self.rows:,} rows, off by at most {upward(self.bound)} with confidence {self.confidence!r}: "
            f"{own}{also}{f'; the bounds are about {self.about}' if self.about else ''})"
        )

    def _repr_html_(self) -> str:
        parts = [paragraph(f"{self.rows:,} new rows, off by at most {upward(self.bound)}", strong=True)]
        parts += [paragraph(f"The bounds are about {self.about}.")] if self.about else []
        parts += [certificate_html(each) for each in (self.certificate, self.through_release) if each]
        return block(*parts)


def sample(
    release: Release,
    rows: int,
    *,
    seed: int | None = None,
    frame: FrameKind | None = None,
    public: Sequence[np.ndarray] | None = None,
    progress: Progress = silent,
) -> Sample:
    """Sample new rows from the release's measurements. They obey its rules; `seed` need not be secret.

    `public` are the cleaned public rows, if the release was made with some.
    """
    number = ROWS("rows", rows)
    assert number is not None
    schema = release.schema
    settings = stated_settings(release)
    how = Fitting.from_settings(settings, release.measurement)
    rng = np.random.default_rng(seed)
    request = FitRequest(release.measurements, schema.measured, how, number, rng, public=public, progress=progress)
    fitted, _ = method_named(settings.method).fit(request)
    table = with_derived(schema, fitted)
    clean = cleaned_table(schema, table)
    stated = release.record.certificate
    again = recomputed(release, clean, progress=progress)
    beta = release.record.recompute.plug_in_failure_probability
    plugged = certificate_record(float(1 - beta), again) if again else None
    through = _bound_through_release(release, clean, progress)
    if through is None and plugged is None:
        raise InputError(
            f"new rows cannot be certified: {stated.no_plug_in}; and there are too many columns or labels to compare "
            "them with the released rows."
        )
    if through is None and schema.derivations:
        raise InputError(
            "new rows with derived columns are certified by comparing them with the released rows, for which these "
            "have too many columns or labels: use the released rows, or remove the entries derived from the schema."
        )
    return Sample(
        table=to_frame(frame, schema, table, clean),
        rows=number,
        certificate=None if plugged is None else Certificate.of(plugged),
        through_release=through,
        confidence=release.certificate.confidence,
        about="" if schema.persons is None else schema.persons.kept,
    )


def _bound_through_release(release: Release, clean: Sequence[np.ndarray], progress: Progress) -> Certificate | None:
    """The bound that the release's certificate implies for other rows: both tables are public, so their distance is
    exact."""
    certificate, subsets = release.certificate, release.subsets
    fine = LatticeQuery.of(release.schema, subsets)
    try:
        check_lattice(fine)
    except TooLarge:
        return None
    fine = fine.with_nets([release.rows], [clean])
    tables = in_memory(release.rows), [in_memory(clean)]
    compared = compare_tables(fine, *tables, memory=default_memory(), every=True, progress=progress)
    bounds = {frozenset(columns): bound for columns, bound in certificate.subsets}
    found: list[tuple[tuple[str, ...], float]] = []
    for subset, d in zip(fine.marginals.subsets, compared.found[0], strict=True):
        columns = tuple(release.schema.names[j] for j in subset)
        most = min(bounds[frozenset(columns)], certificate.single_column_bound if len(columns) == 1 else 1.0)
        between = float(d.all)
        found.append((columns, min(1.0, most + between + _OUTWARD)))
    largest = max(bound for _, bound in found)
    return Certificate(
        bound=largest,
        confidence=certificate.confidence,
        kind=BY_WAY,
        single_column_bound=largest,
        subsets=tuple(found),
    )
