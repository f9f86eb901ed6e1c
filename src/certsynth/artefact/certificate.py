"""Records of the direct and the plug-in certificate, as certificate.json states them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from certsynth.answers.noisy_cells import CellNoise, CellTable, NoisyCells
from certsynth.certificate.coverage import STATISTICS
from certsynth.certificate.direct import Direct, Figure
from certsynth.certificate.plug_in import PlugIn, Proxy, Terms
from certsynth.domain import Schema
from certsynth.mechanisms import FullMeasurement, Measurement
from certsynth.mechanisms.dropped import dropped_shares
from certsynth.mechanisms.guarantee import decimal_text
from certsynth.mechanisms.identity import Identity
from certsynth.mechanisms.protection import Protection
from certsynth.mechanisms.scalars import NoisyScalars
from certsynth.projection.diagnostic import FitDiagnostic
from certsynth.queries.contributions import COUNTED_ROWS_FACTOR
from certsynth.record.direct import DroppedRecord, ShareRecord
from certsynth.record.record import (
    NO_PLUG_IN,
    CellsRecord,
    CertificateRecord,
    DiagnosticRecord,
    DirectRecord,
    DirectTerms,
    ExceptionsRecord,
    FitRecord,
    FunctionRecord,
    MisfitRecord,
    NoPlugIn,
    PlugInRecord,
    PlugInRecords,
    PlugInSubset,
    PlugInTerms,
    StatisticsRecord,
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
    cells: CellsRecord | None = None,
    *,
    no_plug_in: NoPlugIn = NO_PLUG_IN,
    protection: Protection | None = None,
    dropped: DroppedRecord | None = None,
) -> CertificateRecord:
    """Record the smaller of the direct and the plug-in bound, and both certificates.

    `no_plug_in` is the reason if there is no plug-in certificate. Costs are stated for the unit that `protection`
    names; without it, for a single row.
    """
    if not plug_in and not direct:
        raise ValueError("neither a plug-in nor a direct certificate is given")
    plugged = PlugInRecords(**{proxy: plug_in_record(each) for proxy, each in plug_in.items()})
    whole = direct_record(direct, direct.whole, protection) if direct else None
    one = direct_record(direct, direct.single, protection) if direct and direct.single else None
    plug = plugged.tightest
    leading: PlugInRecord | DirectRecord | None = plug
    if whole and (plug is None or whole.bound < plug.bound or not _covers(plug, direct)):
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
        statistics=statistics_record(direct) if direct else None,
        cells=cells,
        exceptions=exceptions_record(direct) if direct else None,
        dropped=dropped,
    )


def _covers(plug: PlugInRecord, direct: Direct | None) -> bool:
    """Whether the plug-in certificate covers all subsets: subsets with derived columns have the direct one only."""
    return direct is None or set(direct.subsets) <= {subset.columns for subset in plug.subsets}


def _subsets(plug: PlugInRecord | None, direct: Direct | None) -> tuple[SubsetRecord, ...]:
    """Record each subset with the smaller of its plug-in bound and its direct bound."""
    own = {subset.columns: subset.bound for subset in plug.subsets} if plug else {}
    if direct is None:
        return tuple(SubsetRecord(columns, bound) for columns, bound in own.items())
    return tuple(
        SubsetRecord(columns, min(own.get(columns, 1.0), float(loss.bound)))
        for columns, loss in zip(direct.subsets, direct.of_each_subset, strict=True)
    )


def dropped_record(noisy: NoisyScalars | None, protection: Protection, beta: Fraction) -> DroppedRecord | None:
    """Record the shares of dropped rows, and of persons with dropped rows; None if they were not measured."""
    persons = protection.persons
    if noisy is None or persons is None:
        return None
    rows, people = (
        ShareRecord(each.estimate, each.lower, each.upper) for each in dropped_shares(noisy, protection, persons, beta)
    )
    return DroppedRecord(counted_rows=COUNTED_ROWS_FACTOR * persons.rows, rows=rows, persons=people)


def direct_record(direct: Direct, loss: Figure, protection: Protection | None) -> DirectRecord:
    """Convert a loss of a direct certificate to its record, with its cost for the protected unit."""
    spent = direct.cost.spent if protection is None else protection.per_unit(direct.cost.spent)
    return DirectRecord(
        bound=float(loss.bound),
        confidence=float(direct.confidence),
        terms=DirectTerms(measured_loss=loss.estimate, slack=float(loss.bound) - loss.estimate),
        **{str(spent.unit): decimal_text(spent.amount)},
    )


def statistics_record(direct: Direct) -> StatisticsRecord:
    """Convert the bounds on errors of statistics to their record."""
    bounds: Mapping[str, Any] = dict.fromkeys(STATISTICS) | {k: each.bound for k, each in direct.statistics.items()}
    return StatisticsRecord(**bounds)


def exceptions_record(direct: Direct) -> ExceptionsRecord | None:
    """Convert the exceptions to their record; None if there are none."""
    if not direct.exceptions:
        return None
    others, own = direct.losses
    found = ExceptionsRecord(direct.exceptions, bound=own.bound, bound_of_others=others.bound)
    if "share_of_two_columns" in direct.of_pairs:
        others, own = direct.of_pairs["share_of_two_columns"]
        found = replace(found, share=own.bound, share_of_others=others.bound)
    if "group_total" in direct.of_pairs:
        others, own = direct.of_pairs["group_total"]
        found = replace(found, group_total=own.bound, group_total_of_others=others.bound)
    return found


def cells_record(direct: Direct, measurements: Sequence[Measurement], beta: Fraction) -> CellsRecord | None:
    """Record bounds on the noise of single cells; None if no measurement has noise on every cell."""
    if not any(map(has_noisy_cells, measurements)):
        return None
    return CellsRecord(
        confidence=float(1 - beta),
        failure_probability=beta,
        measurements=tuple(i for i, made in enumerate(measurements, start=1) if has_noisy_cells(made)),
        fewest_rows=max(0, math.floor(direct.fewest_rows)),
        most_rows=max(0, math.ceil(direct.most_rows)),
    )


def has_noisy_cells(made: Measurement) -> bool:
    """Whether noise was added to every cell of a measurement, or to counts of single values, so that these have bounds
    of their own."""
    return isinstance(made, FullMeasurement) and (isinstance(made.strategy, Identity) or made.values is not None)


def noisy_cells(schema: Schema, record: CertificateRecord, measurements: Sequence[Measurement]) -> NoisyCells:
    """The tables of a release whose noisy counts have bounds; `schema` is that of the measured columns.

    Half of the failure probability is for single columns, of which most questions are, and half for other tables.
    """
    if record.cells is None:
        return NoisyCells()
    columns = list(schema)
    found = [measurements[i - 1] for i in record.cells.measurements if i <= len(measurements)]
    widths = [len(table.subset) for made in found for table in made.tables]
    of_single, of_others = widths.count(1), len(widths) - widths.count(1)
    share = float(record.cells.failure_probability) / ((of_single > 0) + (of_others > 0) or 1)
    tables = []
    for made in found:
        noise, by_cell = CellNoise(made.cost.spent.unit.value, made.scale), isinstance(made.strategy, Identity)
        for each in made.tables:
            shape, block = tuple(cells.size for cells in each.cells), each.coefficients
            # A single cell of a public number of rows has none.
            if (by_cell or each.of_values) and len(block) == math.prod(shape):
                counts, named = (block / each.weight).reshape(shape), tuple(columns[i] for i in each.subset)
                beta = share / (of_single if len(shape) == 1 else of_others)
                tables.append(CellTable(named, each.cells, counts, noise, each.weight, beta, each.of_values))
    return NoisyCells(tables, record.cells.fewest_rows, record.cells.most_rows)


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


def fit_record(found: FitDiagnostic | None) -> FitRecord | None:
    """Convert the diagnostic of a fit to its record."""
    if found is None:
        return None
    return FitRecord(
        tables=found.tables,
        furthest=tuple(MisfitRecord(each.columns, each.misfit) for each in found.furthest),
        functions=tuple(FunctionRecord(each.source, each.derived, each.share) for each in found.functions),
    )


def _terms(terms: Terms) -> PlugInTerms:
    return PlugInTerms(float(terms.discretisation), float(terms.privatisation), float(terms.projection))
