"""What a release is asked to do: every choice checked, with the defaults and what follows from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from certsynth.certificate.plug_in import DISPLACEMENT_BETA, TRANSPORT_COLUMNS, Proxies
from certsynth.domain import Schema
from certsynth.errors import InputError
from certsynth.mechanisms import STRATEGIES, Budget, Neighbours, Unit
from certsynth.mechanisms.concentrated import Privacy
from certsynth.mechanisms.strategies import LOW_DIMENSIONAL
from certsynth.projection.emit import Detail
from certsynth.queries.fine import LATTICE_COLUMNS
from certsynth.queries.marginals import Subset, maximal, within
from certsynth.request import (
    Named,
    checked_budget,
    checked_choice,
    checked_confidence,
    checked_neighbours,
    checked_resolution,
    checked_rows,
    checked_share,
    checked_subsets,
)

CellKind = Literal["even", "points", "groups"]
"""Even cells; all points of the columns' lattices; groups of those points."""

PROJECTIONS = ("auto", "particles", "public", "full-grid", "drawn")
LOSSES = ("path", "transport")
PRESETS = ("paper",)

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
MOST_CANDIDATES = 100

DIRECT_BETA = Fraction(9, 10)
"""Of the failure probability, what the direct certificate gets; the plug-in one gets the rest."""

SPLITS = (Fraction(1, 8), Fraction(1, 4), Fraction(3, 8), Fraction(1, 2))
"""Of the budget for measuring, what single columns may get where several are measured as well."""

BEYOND = 2
"""Where all tables of 2, … columns are measured, those of one column more get so many times the share."""


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
    share: Fraction
    confidence: Fraction
    neighbours: Neighbours
    preset: str | None
    candidates: int

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
        return self.beta * (1 - DIRECT_BETA) if self.share else self.beta

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
        return (1 - self.share - self.count_share) * Fraction(self.sparsity + 1, self.sparsity + 2)

    @property
    def displacement_share(self) -> Fraction:
        """Of the budget, what measuring how far rows are from the centres of their cells costs.

        The direct certificate has no use for it, and the paper takes the worst case.
        """
        return Fraction(0) if self.share or self.paper else DISPLACEMENT_SHARE

    @property
    def measurement_budget(self) -> Budget:
        others = self.share + self.selection_share + self.adaptation_share + self.displacement_share
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
        columns = within(self.subsets, 1)
        found: list[tuple[tuple[Subset, ...], CellKind, Fraction]] = [(columns, "points", split)]
        tables = [within(self.subsets, ways) for ways in range(2, last + 1)]
        wanted = [
            BEYOND**ways * Fraction(len(each), math.comb(len(columns), ways))
            for ways, each in enumerate(tables, start=2)
        ]
        found += [(each, "groups", (1 - split) * part / sum(wanted)) for each, part in zip(tables, wanted, strict=True)]
        return tuple(found)

    @property
    def lattice_columns(self) -> int:
        """Up to how many columns the direct certificate compares on a lattice.

        Rows at the centres of few cells are compared on a net of these, which is finer than a lattice of three columns.
        """
        return 2 if self.low_dimensional else LATTICE_COLUMNS

    @property
    def detail(self) -> Detail:
        """Values at the cells' centres where only the plug-in certificate speaks, which counts any other place; and on
        a grid of all columns, where the centre is nearer to rows that do not fill their cell than other places are.
        """
        return "spread" if self.share and not self.low_dimensional else "centre"

    def cells(self, ways: int) -> CellKind:
        """The kind of cells that tables of so many columns are measured in.

        Particles with a direct certificate know single columns at full detail, and several together in groups that
        follow from those. The plug-in certificate counts the widest cell, so where it speaks alone cells are even.
        """
        if self.projection != "particles" or (ways > 1 and not self.share):
            return "even"
        return "points" if ways == 1 else "groups"

    @property
    def paper(self) -> bool:
        return self.preset == "paper"

    def proxies(self, resolution: int | None) -> Proxies:
        """How the proxy losses are computed: as printed in the paper, or as tight as they can be."""
        return Proxies(hub=Fraction(1), end=Fraction(1, resolution)) if self.paper and resolution else Proxies()


def checked_settings(
    schema: Schema,
    *,
    epsilon: Any,
    delta: Any,
    rho: Any,
    sparsity: Any,
    subsets: Named | None,
    resolution: Any,
    mechanism: Any,
    projection: Any,
    loss: Any,
    rows: Any,
    share: Any,
    confidence: Any,
    neighbours: Any,
    preset: Any,
    candidates: Any,
    public: bool,
    call: str = "release",
) -> Settings:
    """The settings of a release. `public` says whether public rows were given, `call` what was called.

    The schema has the columns that are released: with named `subsets`, those that they name.
    """
    privacy = checked_budget(epsilon, delta, rho)
    if preset is not None:
        checked_choice(preset, name="preset", choices=PRESETS)
    paper = preset == "paper"
    if mechanism in (None, "auto"):
        mechanism = "haar-noisy-total" if paper else None
    else:
        checked_choice(mechanism, name="mechanism", choices=STRATEGIES)
    on_grid = mechanism in LOW_DIMENSIONAL
    if on_grid:
        asked_for = {
            "sparsity other than that of all columns": sparsity not in (None, len(schema)),
            "a workload": subsets is not None,
            "projection": projection not in (None, "auto"),
            "loss": loss is not None,
            "public rows": public,
            "preset": preset is not None,
            "candidates": candidates != 1,
        }
        _check_on_grid(mechanism, privacy, [name for name, given in asked_for.items() if given])
        sparsity = len(schema)
    chosen = checked_subsets(schema, sparsity, subsets, call=call)
    s = max(map(len, chosen))
    checked_choice(projection, name="projection", choices=PROJECTIONS)
    if projection == "public" and not public:
        raise InputError("projection public needs public rows: give --public FILE, or choose another projection.")
    if public and projection in ("full-grid", "drawn"):
        raise InputError(f"public rows are not used by the projection {projection}; leave one of the two out.")
    exact_share = checked_share(
        (0 if paper else "0.05") if share is None else share,
        name="certificate_share",
        low=Fraction(0),
        high=Fraction(1),
        rule="at least 0 and below 1, for example 0.05",
    )
    if on_grid and not exact_share:
        raise InputError(
            f"for the mechanism {mechanism} only the direct certificate can speak: certificate_share must be above 0."
        )
    if loss is not None:
        checked_choice(loss, name="loss", choices=LOSSES)
        if projection == "particles":
            raise InputError("particles have a loss of their own; leave --loss out, or choose another projection.")
    if on_grid:
        projection = "simplex" if mechanism == LOW_DIMENSIONAL[0] else "l1-ball"
    elif projection == "auto" and loss is None and exact_share and not paper:
        projection = "particles"
    if projection != "particles" and loss is None and not on_grid:
        loss = "path" if paper or s > TRANSPORT_COLUMNS else "transport"
    if loss == "transport" and s > TRANSPORT_COLUMNS:
        raise InputError(f"the transport loss is for at most {TRANSPORT_COLUMNS} columns at once; choose --loss path.")
    settings = Settings(
        privacy=privacy,
        subsets=chosen,
        named=subsets is not None,
        resolution=checked_resolution(resolution),
        mechanism=mechanism,
        projection=projection,
        loss=loss,
        rows=checked_rows(rows),
        share=exact_share,
        confidence=checked_confidence(("0.9" if paper else "0.95") if confidence is None else confidence),
        neighbours=checked_neighbours(neighbours),
        preset=preset,
        candidates=_checked_candidates(candidates, s),
    )
    if settings.measurement_budget.amount <= 0:
        raise InputError("certificate_share leaves nothing for the rows themselves; lower it.")
    return settings


def _check_on_grid(mechanism: str, privacy: Privacy, asked_for: Sequence[str]) -> None:
    """One grid of all columns fixes much: refuse what it has no use for."""
    if privacy.budget.unit is not Unit.EPSILON:
        raise InputError(f"the mechanism {mechanism} has Laplace noise, for epsilon alone: leave delta and rho out.")
    if asked_for:
        raise InputError(
            f"the mechanism {mechanism} is for statistics of all columns at once, and has no use for {asked_for[0]}: "
            "leave that out. --columns names the columns that matter."
        )


def _checked_candidates(candidates: Any, sparsity: int) -> int:
    if isinstance(candidates, bool) or not isinstance(candidates, int) or not 1 <= candidates <= MOST_CANDIDATES:
        raise InputError(f"candidates must be a whole number from 1 to {MOST_CANDIDATES}; got {candidates!r:.20}.")
    if candidates > 1 and sparsity > TRANSPORT_COLUMNS:
        raise InputError(
            f"choosing among candidates compares at most {TRANSPORT_COLUMNS} columns at once; leave --candidates out."
        )
    return candidates
