"""What a release is asked to do: every choice checked, with the defaults and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from certsynth.algorithm.request import DEFAULT_CONFIDENCE, checked_budget, checked_subsets
from certsynth.certificate.plug_in import DISPLACEMENT_BETA, TRANSPORT_COLUMNS, Proxies
from certsynth.domain import Schema
from certsynth.errors import InputError
from certsynth.mechanisms import Budget, Measurement, Neighbours
from certsynth.mechanisms.concentrated import Privacy
from certsynth.projection.emit import Detail
from certsynth.queries.fine import LATTICE_COLUMNS
from certsynth.queries.marginals import Subset, maximal_subsets, subsets_within

CellKind = Literal["even", "points", "groups"]
"""Even cells; all points of the columns' lattices; groups of those points."""

MOST_ROWS = 1_000_000
HIDDEN_ROWS = 100_000
"""Rows emitted by default: as many as there are, up to a million, where that number is public; else this many."""

MOST_DRAWS = 2_000

SELECTION_SHARE = Fraction(1, 20)

COUNT_SHARE = Fraction(1, 50)
"""Of the budget, what the number of rows costs where it is hidden: what is best for a hundred thousand is not for three
thousand, and the direct certificate divides by it."""

DISPLACEMENT_SHARE = Fraction(1, 50)
"""Of the budget, what measuring the discretisation costs where the plug-in certificate speaks alone."""

SPLITS = (Fraction(1, 8), Fraction(1, 4), Fraction(3, 8), Fraction(1, 2))
"""Of the budget for measuring, what single columns may get where several are measured as well."""

BEYOND = 2
"""Where all tables of 2, … columns are measured, those of one column more get so many times the share."""

DIRECT_BETA = Fraction(9, 10)
"""Of the failure probability, what the direct certificate gets; the plug-in one gets the rest."""


@dataclass(frozen=True, slots=True)
class Settings:
    """A release's choices, checked. What a person left open is None where the data or the plan decide.

    `subsets` are those that the certificate covers, and `named` says that they were named one by one: else they are all
    of one size. `method` is the name of the method that runs; `detail` says where values are put inside their cells,
    `choice_share` what part of the budget the method spends on choosing what to measure, `as_printed` that proxy losses
    are computed as the paper prints them, and `lattice_columns` up to how many columns the direct certificate compares
    on a lattice.
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
    neighbours: Neighbours
    preset: str | None
    candidates: int
    method: str = "layered"
    detail: Detail = "spread"
    choice_share: Fraction = Fraction(0)
    as_printed: bool = False
    lattice_columns: int = LATTICE_COLUMNS

    @property
    def sparsity(self) -> int:
        """How many columns a statistic may look at: the size of the largest subset."""
        return max(map(len, self.subsets))

    def workload(self, schema: Schema) -> list[list[str]] | None:
        """The subsets by their names, where they were named."""
        return [[schema.names[j] for j in subset] for subset in self.subsets] if self.named else None

    @property
    def tables(self) -> tuple[Subset, ...]:
        """The subsets whose marginals say what all are: what is measured where one layer does it."""
        return maximal_subsets(self.subsets)

    @property
    def beta(self) -> Fraction:
        return 1 - self.confidence

    @property
    def plug_in_beta(self) -> Fraction:
        """What the plug-in certificate may fail with: all of β if it speaks alone."""
        return self.beta * (1 - DIRECT_BETA) if self.certificate_share else self.beta

    def direct_beta(self, *, alone: bool) -> Fraction:
        """What the direct certificates may fail with together: all of β where there is no plug-in certificate."""
        return self.beta if alone else self.beta * DIRECT_BETA

    @property
    def draws(self) -> int:
        """Draws of the noise: the paper's 200, or as many as the quantile needs (half of β may go to a hidden n).

        No more than MOST_DRAWS: beyond a confidence of 0.999 the direct certificate speaks alone.
        """
        halves = 2 if self.neighbours is Neighbours.ADD_REMOVE else 1
        if self.cells(self.sparsity) == "groups" and any(len(table) == 1 for table in self.tables):
            halves *= 2  # single columns are certified beside tables whose cells follow from them
        share = 1 - DISPLACEMENT_BETA if self.displacement_share else Fraction(1)
        return min(MOST_DRAWS, max(200, math.ceil(halves / (share * self.plug_in_beta))))

    @property
    def selection_share(self) -> Fraction:
        """Of the budget, what choosing among candidates costs."""
        return SELECTION_SHARE if self.candidates > 1 else Fraction(0)

    @property
    def count_share(self) -> Fraction:
        """Of the budget, what a noisy number of rows costs: nothing where it is public."""
        return COUNT_SHARE if self.neighbours is Neighbours.ADD_REMOVE else Fraction(0)

    @property
    def displacement_share(self) -> Fraction:
        """Of the budget, what measuring how far rows are from the centres of their cells costs.

        The direct certificate has no use for it, and the paper takes the worst case.
        """
        return Fraction(0) if self.certificate_share or self.as_printed else DISPLACEMENT_SHARE

    @property
    def measurement_budget(self) -> Budget:
        others = self.certificate_share + self.selection_share + self.choice_share + self.displacement_share
        return self.privacy.budget.share(1 - others - self.count_share)

    def layers(self, split: Fraction) -> tuple[tuple[tuple[Subset, ...], CellKind, Fraction], ...]:
        """What is measured, one layer after the other: tables, kind of cells, share of the budget for measuring.

        With groups, single columns at full detail come first and have the share `split`, and tables of more columns
        after them. Of each number of columns there are those that lie in a subset that matters. Where one layer does
        it, it holds the largest of these subsets, whatever their sizes.
        """
        last = self.sparsity
        if self.cells(last) != "groups":
            return ((self.tables, self.cells(last), Fraction(1)),)
        columns = subsets_within(self.subsets, 1)
        found: list[tuple[tuple[Subset, ...], CellKind, Fraction]] = [(columns, "points", split)]
        tables = [subsets_within(self.subsets, ways) for ways in range(2, last + 1)]
        wanted = [
            BEYOND**ways * Fraction(len(each), math.comb(len(columns), ways))
            for ways, each in enumerate(tables, start=2)
        ]
        found += [(each, "groups", (1 - split) * part / sum(wanted)) for each, part in zip(tables, wanted, strict=True)]
        return tuple(found)

    def cells(self, ways: int) -> CellKind:
        """The kind of cells that tables of so many columns are measured in.

        Particles with a direct certificate know single columns at full detail, and several together in groups that
        follow from those. The plug-in certificate counts the widest cell, so where it speaks alone cells are even.
        """
        if self.projection != "particles" or (ways > 1 and not self.certificate_share):
            return "even"
        return "points" if ways == 1 else "groups"

    def emitted_rows(self, measurement: Measurement) -> int:
        """How many rows to write: as asked; else as many as there are, or a fixed number where that is hidden."""
        if self.rows is not None:
            return self.rows
        if self.neighbours is Neighbours.ADD_REMOVE or measurement.total is None:
            return HIDDEN_ROWS
        return min(max(measurement.total, 1), MOST_ROWS)

    def proxies(self, resolution: int | None) -> Proxies:
        """How the proxy losses are computed: as printed in the paper, or as tight as they can be."""
        return Proxies(hub=Fraction(1), end=Fraction(1, resolution)) if self.as_printed and resolution else Proxies()


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a method takes where an option is left open."""

    certificate_share: Fraction = Fraction(1, 20)
    confidence: Fraction = DEFAULT_CONFIDENCE
    mechanism: str | None = None


def common_settings(
    method: str, schema: Schema, options: Mapping[str, Any], defaults: Defaults, *, sparsity: int | None
) -> Settings:
    """The settings that no method changes, from options that were checked one by one.

    How rows are fitted is left as it was asked for. The schema has the columns that are released: with named subsets,
    those that they name.
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
        neighbours=Neighbours(options["neighbours"]),
        preset=options["preset"],
        candidates=options["candidates"],
    )
