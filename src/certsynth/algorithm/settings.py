"""The settings of a release: checked options, defaults, and the quantities derived from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from certsynth.algorithm.exceptions import share_for_all
from certsynth.algorithm.request import DEFAULT_CONFIDENCE, checked_budget, checked_subsets
from certsynth.certificate.plug_in import DISPLACEMENT_BETA, TRANSPORT_COLUMNS, Proxies
from certsynth.domain import Schema
from certsynth.errors import InputError
from certsynth.mechanisms import Budget, Measurement, Neighbours
from certsynth.mechanisms.concentrated import Privacy
from certsynth.mechanisms.protection import Protection
from certsynth.projection.emit import Detail
from certsynth.queries.fine import LATTICE_COLUMNS
from certsynth.queries.marginals import Subset, maximal_subsets, subsets_within
from certsynth.record.record import NO_PLUG_IN, PAIRS_LEFT_OUT, NoPlugIn

CellKind = Literal["even", "points", "groups"]
"""Cells of equal width; all points of the columns' lattices; groups of those points."""

MAX_DEFAULT_ROWS = 1_000_000
DEFAULT_ROWS_IF_HIDDEN = 100_000
"""Rows emitted by default if the number of private rows is hidden; otherwise that number, at most MAX_DEFAULT_ROWS."""

MAX_DRAWS = 2_000
"""Most draws of the noise for the plug-in certificate; they bound the work of a release and of its verification."""

SELECTION_SHARE = Fraction(1, 20)
"""Share of the budget for choosing among candidates, if there are several."""

COUNT_SHARE = Fraction(1, 50)
"""Share of the budget for counting the rows if their number is hidden: the best plan depends on it, and the direct
certificate divides by it."""

DISPLACEMENT_SHARE = Fraction(1, 50)
"""Share of the budget for measuring the discretisation if there is only a plug-in certificate."""

SPLITS = (Fraction(1, 8), Fraction(1, 4), Fraction(3, 8), Fraction(1, 2))
"""Candidate shares of the measurement budget for single columns if tables of several columns are measured as well."""

SHARE_GROWTH = 2
"""Factor by which the share of the budget grows with each column of a table, if all tables of 2, 3, … columns are
measured."""

DROPPED_SHARE = Fraction(1, 50)
"""Share of the budget for measuring how many rows of persons are dropped, if that is requested."""

PLUG_IN_BETA, CELL_BETA, DROPPED_BETA = Fraction(1, 10), Fraction(1, 10), Fraction(1, 20)
"""Shares of the failure probability for the plug-in certificate, for the noisy counts of single cells and for the share
of dropped rows, if there is a direct certificate, which has the rest."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The checked settings of a release. An open setting is None if the data or the plan determine it.

    `privacy` is the budget of the protected unit; the steps work with single rows, and with `budget` and `neighbours`.

    `subsets` are those that are measured; `named` says that they were listed explicitly, otherwise they are all subsets
    of one size. `method` names the method; `detail` says where values are placed inside their cells; `choice_share` is
    the share of the budget for choosing what to measure; `plug_in` says whether a plug-in certificate can be computed;
    `target` is the position of the column whose tables are always measured; `as_printed` selects the proxy losses as
    printed in the paper; `lattice_columns` is the largest subset that the direct certificate compares on a lattice;
    `share_is_open` says that the certificate's share is still to be chosen, once there is a number of rows to plan for;
    `exceptions` is the number of subsets that get direct bounds of their own, or the largest if `exceptions_are_open`
    until the number of rows is known; `losses_only` says that these are bounds on losses only, as in releases of
    earlier versions; `measure_dropped` says that the share of rows dropped
    because a person has too many is measured.

    If the schema has derived columns, `certified` are the subsets that the certificate covers. Positions in `certified`
    are those in the schema; positions in `subsets`, those in its measured part.
    """

    privacy: Privacy
    subsets: tuple[Subset, ...]
    named: bool
    resolution: int | None
    mechanism: str | None
    projection: str
    loss: str | None
    rows: int | None
    certificate_share: Fraction
    confidence: Fraction
    protection: Protection
    preset: str | None
    candidates: int
    method: str = "layered"
    detail: Detail = "spread"
    choice_share: Fraction = Fraction(0)
    plug_in: bool = True
    target: int | None = None
    as_printed: bool = False
    lattice_columns: int = LATTICE_COLUMNS
    share_is_open: bool = False
    certified: tuple[Subset, ...] | None = None
    exceptions: int = 0
    exceptions_are_open: bool = False
    losses_only: bool = False
    measure_dropped: bool = False

    @property
    def budget(self) -> Budget:
        """The budget for a single row: the steps of a release spend it."""
        return self.protection.per_row(self.privacy.budget)

    @property
    def neighbours(self) -> Neighbours:
        """The relation between tables that differ in a single row."""
        return self.protection.of_rows

    @property
    def covered(self) -> tuple[Subset, ...]:
        """The subsets of the schema's columns that the certificate covers."""
        return self.subsets if self.certified is None else self.certified

    @property
    def sparsity(self) -> int:
        """The largest number of columns of a measured subset."""
        return max(map(len, self.subsets))

    def workload(self, schema: Schema) -> list[list[str]] | None:
        """The subsets by column names, if they were listed explicitly."""
        return [[schema.names[j] for j in subset] for subset in self.subsets] if self.named else None

    @property
    def tables(self) -> tuple[Subset, ...]:
        """The maximal subsets, whose marginals determine all others: the tables measured by a single layer."""
        return maximal_subsets(self.subsets)

    @property
    def beta(self) -> Fraction:
        return 1 - self.confidence

    @property
    def plug_in_beta(self) -> Fraction:
        """Failure probability of the plug-in certificate: all of β if it is the only one."""
        return self.beta * PLUG_IN_BETA if self.certificate_share else self.beta

    @property
    def cell_beta(self) -> Fraction:
        """Failure probability of the bounds on noisy cells."""
        return self.beta * CELL_BETA

    @property
    def reason_for_no_plug_in(self) -> NoPlugIn:
        """The reason that is recorded if there is no plug-in certificate."""
        return NO_PLUG_IN if self.plug_in else PAIRS_LEFT_OUT

    def direct_beta(self, *, alone: bool) -> Fraction:
        """Failure probability of the direct certificate; `alone`: there is no plug-in certificate."""
        others = CELL_BETA + (0 if alone else PLUG_IN_BETA) + (DROPPED_BETA if self.measure_dropped else 0)
        return self.beta * (1 - others)

    @property
    def dropped_beta(self) -> Fraction:
        """Failure probability of the share of dropped rows."""
        return self.beta * DROPPED_BETA

    @property
    def dropped_share(self) -> Fraction:
        """Share of the budget for measuring how many rows are dropped."""
        return DROPPED_SHARE if self.measure_dropped else Fraction(0)

    @property
    def draws(self) -> int:
        """Draws of the noise: the paper's 200, or as many as the quantile needs (half of β may go to a hidden n).

        At most MAX_DRAWS: above a confidence of 0.999 only the direct certificate is informative.
        """
        halves = 2 if self.neighbours is Neighbours.ADD_REMOVE else 1
        if self.cells(self.sparsity) == "groups" and any(len(table) == 1 for table in self.tables):
            halves *= 2  # single columns are certified together with tables whose cells depend on them
        share = 1 - DISPLACEMENT_BETA if self.displacement_share else Fraction(1)
        return min(MAX_DRAWS, max(200, math.ceil(halves / (share * self.plug_in_beta))))

    @property
    def selection_share(self) -> Fraction:
        """Share of the budget for choosing among candidates."""
        return SELECTION_SHARE if self.candidates > 1 else Fraction(0)

    @property
    def exception_share(self) -> Fraction:
        """Share of the budget for choosing exceptions."""
        return share_for_all(self.exceptions)

    @property
    def splits_pairs(self) -> bool:
        """Whether errors of pairs of columns are measured twice: for exceptions and for all other pairs."""
        return bool(self.exceptions) and not self.losses_only

    @property
    def count_share(self) -> Fraction:
        """Share of the budget for the noisy number of rows: 0 if it is public."""
        return COUNT_SHARE if self.neighbours is Neighbours.ADD_REMOVE else Fraction(0)

    @property
    def displacement_share(self) -> Fraction:
        """Share of the budget for measuring the distance of rows to the centres of their cells.

        It is 0 if there is a direct certificate, which does not use it, and in the paper's preset, which takes the
        worst case.
        """
        return Fraction(0) if self.certificate_share or self.as_printed else DISPLACEMENT_SHARE

    @property
    def measurement_budget(self) -> Budget:
        others = self.certificate_share + self.selection_share + self.choice_share + self.displacement_share
        return self.budget.share(1 - others - self.count_share - self.exception_share - self.dropped_share)

    def layers(self, split: Fraction) -> tuple[tuple[tuple[Subset, ...], CellKind, Fraction], ...]:
        """The layers in order of measurement: tables, kind of cells, share of the measurement budget.

        With groups, single columns at full detail come first with the share `split`, followed by tables of 2, 3, …
        columns that lie in one of the subsets. Otherwise a single layer measures the maximal subsets, whatever their
        sizes.
        """
        last = self.sparsity
        if self.cells(last) != "groups":
            return ((self.tables, self.cells(last), Fraction(1)),)
        columns = subsets_within(self.subsets, 1)
        found: list[tuple[tuple[Subset, ...], CellKind, Fraction]] = [(columns, "points", split)]
        tables = [subsets_within(self.subsets, ways) for ways in range(2, last + 1)]
        wanted = [
            SHARE_GROWTH**ways * Fraction(len(each), math.comb(len(columns), ways))
            for ways, each in enumerate(tables, start=2)
        ]
        found += [(each, "groups", (1 - split) * part / sum(wanted)) for each, part in zip(tables, wanted, strict=True)]
        return tuple(found)

    def cells(self, ways: int) -> CellKind:
        """The kind of cells in which tables of `ways` columns are measured.

        With particles and a direct certificate, single columns are measured at full detail, and several columns in
        groups derived from those. The plug-in certificate charges the widest cell, so if it is the only one, cells are
        even.
        """
        if self.projection != "particles" or (ways > 1 and not self.certificate_share):
            return "even"
        return "points" if ways == 1 else "groups"

    def emitted_rows(self, measurement: Measurement) -> int:
        """The number of rows to write: as requested, else the number of private rows, or a constant if that is
        hidden."""
        if self.rows is not None:
            return self.rows
        if self.neighbours is Neighbours.ADD_REMOVE or measurement.total is None:
            return DEFAULT_ROWS_IF_HIDDEN
        return min(max(measurement.total // self.protection.parts, 1), MAX_DEFAULT_ROWS)

    def proxies(self, resolution: int | None) -> Proxies:
        """Parameters of the proxy losses: as printed in the paper, or the tightest valid ones."""
        return Proxies(hub=Fraction(1), end=Fraction(1, resolution)) if self.as_printed and resolution else Proxies()


@dataclass(frozen=True, slots=True)
class Defaults:
    """Defaults of a method for open options."""

    certificate_share: Fraction = Fraction(9, 100)
    confidence: Fraction = DEFAULT_CONFIDENCE
    mechanism: str | None = None


def common_settings(
    method: str, schema: Schema, options: Mapping[str, Any], defaults: Defaults, *, sparsity: int | None
) -> Settings:
    """The settings common to all methods, from options that were checked individually.

    `projection` and `loss` are passed through. The schema has the released columns: with explicit subsets, those that
    they name.
    """
    subsets = checked_subsets(schema, sparsity, options["subsets"])
    share, confidence, mechanism = options["certificate_share"], options["confidence"], options["mechanism"]
    if options["candidates"] > 1 and max(map(len, subsets)) > TRANSPORT_COLUMNS:
        raise InputError(
            f"choosing among candidates compares at most {TRANSPORT_COLUMNS} columns at once; leave `candidates` out."
        )
    return Settings(
        method=method,
        privacy=checked_budget(options["epsilon"], options["delta"], options["rho"]),
        subsets=subsets,
        named=options["subsets"] is not None,
        resolution=options["resolution"],
        mechanism=defaults.mechanism if mechanism in (None, "auto") else mechanism,
        projection=options["projection"],
        loss=options["loss"],
        rows=options["rows"],
        certificate_share=defaults.certificate_share if share is None else share,
        confidence=defaults.confidence if confidence is None else confidence,
        protection=Protection(Neighbours(options["neighbours"]), schema.persons),
        preset=options["preset"],
        candidates=options["candidates"],
        measure_dropped=options["measure_dropped"],
    )
