"""Records of the direct and the plug-in certificate, as certificate.json states them."""

from __future__ import annotations

from collections.abc import Mapping

from certsynth.certificate.direct import Direct
from certsynth.certificate.plug_in import PlugIn, Proxy, Terms
from certsynth.mechanisms import FullMeasurement, Measurement
from certsynth.mechanisms.guarantee import decimal_text
from certsynth.record.record import (
    NO_PLUG_IN,
    CertificateRecord,
    DiagnosticRecord,
    DirectRecord,
    DirectTerms,
    NoPlugIn,
    PlugInRecord,
    PlugInRecords,
    PlugInSubset,
    PlugInTerms,
    SubsetRecord,
)
from certsynth.transport import Path


def path_length(measurement: Measurement) -> float | None:
    """Return the length of the longest path through the cells of a table, on which path loss and wavelets depend.

    None if there are too many cells to order them.

    Paper: Theorem 2 [general-rates]
    """
    if not isinstance(measurement, FullMeasurement):
        return None
    marginals, order = measurement.marginals, measurement.strategy.order
    return float(max(Path.along(marginals.of(subset), order).length for subset in marginals.subsets))


def certificate_record(
    confidence: float,
    plug_in: Mapping[Proxy, PlugIn],
    direct: Direct | None = None,
    single: Direct | None = None,
    *,
    no_plug_in: NoPlugIn = NO_PLUG_IN,
) -> CertificateRecord:
    """Record the smaller of the direct and the plug-in bound, and both certificates.

    `no_plug_in` is the reason if there is no plug-in certificate.
    """
    if not plug_in and not direct:
        raise ValueError("neither a plug-in nor a direct certificate is given")
    plugged = PlugInRecords(**{proxy: plug_in_record(each) for proxy, each in plug_in.items()})
    whole, one = (direct_record(each) if each else None for each in (direct, single))
    plug = plugged.tightest
    leading: PlugInRecord | DirectRecord | None = plug
    if whole and (plug is None or whole.bound < plug.bound):
        leading = whole
    assert leading
    return CertificateRecord(
        bound=leading.bound,
        confidence=confidence,
        kind="direct" if leading is whole else "plug-in",
        terms=leading.terms,
        single_column_bound=min([leading.bound] + ([one.bound] if one else [])),
        subsets=_subsets(plug, direct),
        direct=whole,
        single_column=one,
        plug_in=plugged,
        no_plug_in=None if plug_in else no_plug_in,
    )


def _subsets(plug: PlugInRecord | None, direct: Direct | None) -> tuple[SubsetRecord, ...]:
    """Record each subset with the smaller of its plug-in bound and the direct bound, which is the same for all."""
    most = float(direct.bound) if direct else 1.0
    if plug is None:
        assert direct
        return tuple(SubsetRecord(tuple(columns), most) for columns in direct.subsets)
    return tuple(SubsetRecord(subset.columns, min(subset.bound, most)) for subset in plug.subsets)


def direct_record(direct: Direct) -> DirectRecord:
    """Convert a direct certificate to its record."""
    spent, estimate = direct.cost.spent, float(max(direct.estimates))
    return DirectRecord(
        bound=float(direct.bound),
        confidence=float(direct.confidence),
        terms=DirectTerms(measured_loss=estimate, slack=float(direct.bound) - estimate),
        **{str(spent.unit): decimal_text(spent.amount)},
    )


def plug_in_record(plug: PlugIn) -> PlugInRecord:
    """Convert a plug-in certificate to its record."""
    diagnostic = plug.diagnostic
    return PlugInRecord(
        bound=float(plug.bound),
        confidence=float(plug.confidence),
        terms=_terms(plug.worst),
        subsets=tuple(
            PlugInSubset(tuple(columns), float(terms.bound), _terms(terms))
            for columns, terms in zip(plug.subsets, plug.terms, strict=True)
        ),
        diagnostic=DiagnosticRecord(
            fit=float(diagnostic.fit),
            noise_mean=float(diagnostic.noise_mean),
            noise_low=float(diagnostic.noise_low),
            noise_high=float(diagnostic.noise_high),
            worth_optimising=bool(diagnostic.worth_optimising),
        ),
    )


def _terms(terms: Terms) -> PlugInTerms:
    return PlugInTerms(float(terms.discretisation), float(terms.privatisation), float(terms.projection))
