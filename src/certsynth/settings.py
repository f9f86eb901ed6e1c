"""What a release is asked to do: every choice checked, with the defaults and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from certsynth.algorithm.options import LOW_DIMENSIONAL
from certsynth.certificate.plug_in import DISPLACEMENT_BETA, TRANSPORT_COLUMNS, Proxies
from certsynth.domain import Schema
from certsynth.errors import InputError
from certsynth.mechanisms import Budget, Neighbours, Unit
from certsynth.mechanisms.concentrated import Privacy
from certsynth.projection.emit import Detail
from certsynth.queries.marginals import Subset, maximal
from certsynth.request import DEFAULT_CONFIDENCE, checked_budget, checked_subsets

CellKind = Literal["even", "points", "groups"]
"""Even cells; all points of the columns' lattices; groups of those points."""

MOST_ROWS = 1_000_000
HIDDEN_ROWS = 100_000
"""Rows emitted by default: as many as there are, up to a million, where that number is public; else this many."""

MOST_DRAWS = 2_000

SELECTION_SHARE = Fraction(1, 20)

ADAPTATION_SHARE = Fraction(1, 10)
"""Of the budget, what choosing the resolution for rows of unknown dimension costs."""

COUNT_SHARE = Fraction(1, 50)
"""Of the budget, what the number of rows costs where it is hidden: what is best for a hundred thousand is not for three
thousand, and the direct certificate divides by it."""

DISPLACEMENT_SHARE = Fraction(1, 50)
"""Of the budget, what measuring the discretisation costs where the plug-in certificate speaks alone."""

DIRECT_BETA = Fraction(9, 10)
"""Of the failure probability, what the direct certificate gets; the plug-in one gets the rest."""


@dataclass(frozen=True, slots=True)
class Settings:
    """A release's choices, checked. What a person left open is None where the data or the plan decide.

    `subsets` are those that the certificate covers, and `named` says that they were named one by one: else they are all
    of one size.
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

    @classmethod
    def of(cls, schema: Schema, options: Mapping[str, Any]) -> Settings:
        """The settings of a release, from options that were checked one by one.

        The schema has the columns that are released: with named `subsets`, those that they name.
        """
        privacy = checked_budget(options["epsilon"], options["delta"], options["rho"])
        paper, mechanism = options["preset"] == "paper", options["mechanism"]
        projection, loss, share = options["projection"], options["loss"], options["certificate_share"]
        if share is None:
            share = Fraction(0) if paper else Fraction(1, 20)
        if mechanism in (None, "auto"):
            mechanism = "haar-noisy-total" if paper else None
        on_grid = mechanism in LOW_DIMENSIONAL
        if on_grid:
            _check_on_grid(schema, options, privacy)
        sparsity = len(schema) if on_grid else options["sparsity"]
        subsets = checked_subsets(schema, sparsity, options["subsets"])
        largest = max(map(len, subsets))
        _check_public(projection, public=options["public"] is not None)
        if on_grid:
            projection = "simplex" if mechanism == LOW_DIMENSIONAL[0] else "l1-ball"
        else:
            if projection == "auto" and loss is None and share and not paper:
                projection = "particles"
            if loss is not None or projection != "particles":
                loss = _chosen_loss(loss, projection, largest, paper=paper)
        if options["candidates"] > 1 and largest > TRANSPORT_COLUMNS:
            raise InputError(
                f"choosing among candidates compares at most {TRANSPORT_COLUMNS} columns at once; leave `candidates` "
                "out."
            )
        confidence = options["confidence"]
        settings = cls(
            privacy=privacy,
            subsets=subsets,
            named=options["subsets"] is not None,
            resolution=options["resolution"],
            mechanism=mechanism,
            projection=projection,
            loss=loss,
            rows=options["rows"],
            certificate_share=share,
            confidence=(Fraction(9, 10) if paper else DEFAULT_CONFIDENCE) if confidence is None else confidence,
            neighbours=Neighbours(options["neighbours"]),
            preset=options["preset"],
            candidates=options["candidates"],
        )
        if settings.measurement_budget.amount <= 0:
            raise InputError("`certificate_share` leaves nothing for the rows themselves; lower it.")
        return settings

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
        return maximal(self.subsets)

    @property
    def beta(self) -> Fraction:
        return 1 - self.confidence

    @property
    def plug_in_beta(self) -> Fraction:
        """What the plug-in certificate may fail with: all of β if it speaks alone."""
        return self.beta * (1 - DIRECT_BETA) if self.certificate_share else self.beta

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
    def low_dimensional(self) -> bool:
        """Whether one grid of all columns is measured, as fine as the rows' own dimension allows."""
        return self.mechanism in LOW_DIMENSIONAL

    @property
    def adaptation_share(self) -> Fraction:
        """Of the budget, what choosing the resolution of that grid costs.

        In the paper's way every support size has as much as the counts: of d + 2 equal parts, d + 1.
        """
        if not self.low_dimensional or self.resolution is not None:
            return Fraction(0)
        if self.mechanism == LOW_DIMENSIONAL[0]:
            return ADAPTATION_SHARE
        return (1 - self.certificate_share - self.count_share) * Fraction(self.sparsity + 1, self.sparsity + 2)

    @property
    def displacement_share(self) -> Fraction:
        """Of the budget, what measuring how far rows are from the centres of their cells costs.

        The direct certificate has no use for it, and the paper takes the worst case.
        """
        return Fraction(0) if self.certificate_share or self.paper else DISPLACEMENT_SHARE

    @property
    def measurement_budget(self) -> Budget:
        others = self.certificate_share + self.selection_share + self.adaptation_share + self.displacement_share
        return self.privacy.budget.share(1 - others - self.count_share)

    @property
    def detail(self) -> Detail:
        """Values at the cells' centres where only the plug-in certificate speaks, which counts any other place; and on
        a grid of all columns, where the centre is nearer to rows that do not fill their cell than other places are.
        """
        return "spread" if self.certificate_share and not self.low_dimensional else "centre"

    def cells(self, ways: int) -> CellKind:
        """The kind of cells that tables of so many columns are measured in.

        Particles with a direct certificate know single columns at full detail, and several together in groups that
        follow from those. The plug-in certificate counts the widest cell, so where it speaks alone cells are even.
        """
        if self.projection != "particles" or (ways > 1 and not self.certificate_share):
            return "even"
        return "points" if ways == 1 else "groups"

    @property
    def paper(self) -> bool:
        return self.preset == "paper"

    def proxies(self, resolution: int | None) -> Proxies:
        """How the proxy losses are computed: as printed in the paper, or as tight as they can be."""
        return Proxies(hub=Fraction(1), end=Fraction(1, resolution)) if self.paper and resolution else Proxies()


def _check_public(projection: str, *, public: bool) -> None:
    if projection == "public" and not public:
        raise InputError("the projection public needs public rows: give `public`, or choose another `projection`.")
    if public and projection in ("full-grid", "drawn"):
        raise InputError(
            f"public rows are not used by the projection {projection}; leave out `public` or `projection`."
        )


def _chosen_loss(loss: str | None, projection: str, sparsity: int, *, paper: bool) -> str:
    """What a linear program makes small."""
    if loss is None:
        return "path" if paper or sparsity > TRANSPORT_COLUMNS else "transport"
    if projection == "particles":
        raise InputError("particles have a loss of their own; leave `loss` out, or choose another `projection`.")
    if loss == "transport" and sparsity > TRANSPORT_COLUMNS:
        raise InputError(
            f'the transport loss is for at most {TRANSPORT_COLUMNS} columns at once; choose `loss="path"`.'
        )
    return loss


def _check_on_grid(schema: Schema, options: Mapping[str, Any], privacy: Privacy) -> None:
    """One grid of all columns fixes much: refuse what it has no use for."""
    mechanism = options["mechanism"]
    if privacy.budget.unit is not Unit.EPSILON:
        raise InputError(
            f"the mechanism {mechanism} has Laplace noise, for `epsilon` alone: leave `delta` and `rho` out."
        )
    useless = {
        "a `sparsity` other than that of all columns": options["sparsity"] not in (None, len(schema)),
        "`subsets`": options["subsets"] is not None,
        "`projection`": options["projection"] != "auto",
        "`loss`": options["loss"] is not None,
        "`public`": options["public"] is not None,
        "`preset`": options["preset"] is not None,
        "`candidates`": options["candidates"] != 1,
    }
    for name, given in useless.items():
        if given:
            raise InputError(
                f"the mechanism {mechanism} is for statistics of all columns at once, and has no use for {name}: leave "
                "that out. `columns` names the columns that matter."
            )
    if options["certificate_share"] == 0:
        raise InputError(
            f"for the mechanism {mechanism} only the direct certificate can speak: `certificate_share` must be above 0."
        )
