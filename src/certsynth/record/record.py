"""The record of a release, part by part as certificate.json has it: what was done, what it cost, what is promised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal

from certsynth.record.values import (
    CROSS_CHECKED,
    ON_TRUST,
    RECOMPUTED,
    Bound,
    Candidates,
    Columns,
    Confidence,
    Count,
    Decimal,
    Dimension,
    Draws,
    EmittedRows,
    HexFloat,
    Identifier,
    Limits,
    Loss,
    Name,
    Noisy,
    Number,
    Purpose,
    Rational,
    Rehearsals,
    Resolution,
    Seed,
    Sha256,
    Square,
    Version,
    Ways,
    said,
    said_if_any,
)

FORMAT: Final = "certsynth-certificate/2"

NO_PLUG_IN: Final = (
    "there is no plug-in certificate: of a grid with so many cells only those that stand out are kept, and the law of "
    "their error is not known without the rows"
)

Format = Literal["certsynth-certificate/2"]
Definition = Literal["pure epsilon-differential privacy", "zero-concentrated differential privacy"]
Relation = Literal["replace-one", "add-remove"]
LossName = Literal["path", "transport"]
Kind = Literal["direct", "plug-in"]
MechanismName = Literal[
    "identity",
    "haar",
    "haar-hilbert",
    "haar-tour",
    "haar-weighted",
    "quad-tree",
    "haar-noisy-total",
    "low-dimensional",
    "low-dimensional-l1",
]
NoPlugIn = Literal[
    "there is no plug-in certificate: of a grid with so many cells only those that stand out are kept, and the law of "
    "their error is not known without the rows"
]

AT_LEAST_ONE = Limits({"minItems": 1})

ONE_UNIT: Mapping[str, Any] = {
    "oneOf": [
        {"required": ["epsilon"], "not": {"required": ["rho"]}},
        {"required": ["rho"], "not": {"required": ["epsilon"]}},
    ]
}
"""Costs are counted in ε or in ρ."""


def _conditional(
    key: str, holds: Mapping[str, Any], then: Mapping[str, Any], otherwise: Mapping[str, Any]
) -> dict[str, Any]:
    """What other keys are where a key is so, and what they are where it is not."""
    return {
        "if": {"properties": {key: holds}, "required": [key]},
        "then": {"properties": then},
        "else": {"properties": otherwise},
    }


@dataclass(frozen=True, slots=True)
class TableRecord:
    name: Name = said("The name of the table.", RECOMPUTED)
    unit: Name = said("What one row is.", RECOMPUTED)
    columns: Columns = said("The columns that were released, in order.", RECOMPUTED)


@dataclass(frozen=True, slots=True)
class SensitivityRecord:
    l1: Count = said("The sum of the changes of all integers.", RECOMPUTED)
    l2_squared: Square = said("The sum of the squares of these changes.", RECOMPUTED)


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A part of the budget, and the noise that it paid for."""

    CONDITIONS: ClassVar = ONE_UNIT

    on: Purpose = said("What the part was spent on.", RECOMPUTED)
    epsilon: Rational | None = said_if_any(
        "Its share of the budget as an exact rational, in ε, where noise is Laplace.", RECOMPUTED
    )
    rho: Rational | None = said_if_any(
        "Its share of the budget as an exact rational, in ρ, where noise is Gaussian.", RECOMPUTED
    )
    sensitivity: SensitivityRecord | None = said(
        "The most that the integers of the step change together between neighbours; null where grids are compared by "
        "scores, each of which has its own.",
        RECOMPUTED,
    )
    scale: HexFloat | None = said(
        "The scale of the noise as a hexadecimal float: the one that sensitivity and share give; null for a private "
        "choice, which has no noise.",
        RECOMPUTED,
    )
    values: Annotated[tuple[Noisy, ...], Limits({"minItems": 1, "maxItems": 2002})] | None = said(
        "The noisy integers themselves: all that a step tells of the rows. Null where they are in measurements.npz, "
        "and for a private choice. They must not be further below 0 than noise goes, nor a displacement above what "
        "rows can make it.",
        ON_TRUST,
    )
    worth: Rational | None = said(
        "What 1 in these integers stands for: rows, occupied cells, or rows times a distance; null where there are "
        "none.",
        RECOMPUTED,
    )


@dataclass(frozen=True, slots=True)
class PrivacyRecord:
    CONDITIONS: ClassVar = {
        "allOf": [
            _conditional(
                "rho",
                {"type": "null"},
                {
                    "delta": {"type": "null"},
                    "definition": {"const": "pure epsilon-differential privacy"},
                    "spent": {"items": {"required": ["epsilon"]}},
                },
                {
                    "delta": {"type": "string"},
                    "definition": {"const": "zero-concentrated differential privacy"},
                    "spent": {"items": {"required": ["rho"]}},
                },
            ),
            _conditional(
                "neighbours", {"const": "add-remove"}, {"rows": {"type": "null"}}, {"rows": {"type": "integer"}}
            ),
        ]
    }

    definition: Definition = said("Which definition of differential privacy the costs are counted in.", CROSS_CHECKED)
    epsilon: Decimal = said(
        "The ε of the whole release, never rounded down; with a delta, an ε that ρ means at that δ, or a larger one.",
        RECOMPUTED,
    )
    delta: Decimal | None = said("The δ that the ε is told at; null for pure privacy.", RECOMPUTED)
    rho: Decimal | None = said("The ρ of the whole release, never rounded down; null for pure privacy.", RECOMPUTED)
    neighbours: Relation = said(
        "Which tables are neighbours: one row replaced, or one row added or removed.", CROSS_CHECKED
    )
    rows: Count | None = said(
        "How many rows the private table has, as the measurements have it; null where that is hidden, under "
        "add-remove.",
        CROSS_CHECKED,
    )
    spent: Annotated[tuple[StepRecord, ...], AT_LEAST_ONE] = said(
        "The parts of the budget, in the order in which they were spent; they add up to the whole.", RECOMPUTED
    )

    @property
    def unit(self) -> Literal["epsilon", "rho"]:
        """What the parts of the budget are counted in, and add up in."""
        return "epsilon" if self.rho is None else "rho"


@dataclass(frozen=True, slots=True)
class AskedRecord:
    """The options as they were given."""

    epsilon: Rational | None = said("The ε that was asked for; null where only ρ was.", CROSS_CHECKED)
    delta: Rational | None = said("The δ that was asked for; null where none was.", CROSS_CHECKED)
    rho: Rational | None = said("The ρ that was asked for; null where none was.", CROSS_CHECKED)
    sparsity: Ways | None = said(
        "How many columns a statistic may look at; null where that was left open, or where subsets were named.",
        CROSS_CHECKED,
    )
    resolution: Resolution | None = said("The resolution that was asked for; null for the best one.", CROSS_CHECKED)
    mechanism: Identifier | None = said(
        "The mechanism that was asked for; null or auto for the best one.", CROSS_CHECKED
    )
    projection: Literal["auto", "particles", "public", "full-grid", "drawn"] = said(
        "How rows were to be fitted.", ON_TRUST
    )
    loss: LossName | None = said("What a linear program was to make small; null where that was left open.", ON_TRUST)
    rows: Count | None = said("How many rows were asked for; null for the default number.", CROSS_CHECKED)
    neighbours: Relation = said("The neighbour relation that was asked for.", CROSS_CHECKED)
    preset: Identifier | None = said(
        "The preset that was asked for; null for none. Shares of the budget and proxy losses must fit it.", ON_TRUST
    )
    candidates: Candidates = said("How many tables one was chosen from.", CROSS_CHECKED)
    certificate_share: Rational = said(
        "The share of the budget for the direct certificates; 0 where there are none.", CROSS_CHECKED
    )
    confidence: Rational = said(
        "The confidence of the whole certificate, which all slacks and quantiles must fit. That it was chosen before "
        "the noise was drawn cannot be seen.",
        ON_TRUST,
    )
    public: bool = said("Whether public rows were given.", ON_TRUST)


@dataclass(frozen=True, slots=True)
class LayerRecord:
    columns_at_once: Ways = said("How many columns its widest table has.", RECOMPUTED)
    cells: Literal["even", "points", "groups"] = said(
        "Even cells, all points of the columns' lattices, or groups of such points.", CROSS_CHECKED
    )
    resolution: Resolution | None = said(
        "Cells along a column, or the most groups of values; null for all values.", CROSS_CHECKED
    )


@dataclass(frozen=True, slots=True)
class MethodRecord:
    """What was measured, and how rows were fitted."""

    CONDITIONS: ClassVar = _conditional(
        "projection",
        {"enum": ["particles", "simplex", "l1-ball"]},
        {"loss": {"type": "null"}},
        {"loss": {"type": "string"}},
    )

    sparsity: Ways = said("How many columns a statistic may look at: the size of the largest subset.", RECOMPUTED)
    workload: Annotated[tuple[Columns, ...], AT_LEAST_ONE] | None = said(
        "The subsets of columns that were named; null if all of one size are covered.", CROSS_CHECKED
    )
    resolution: Resolution | None = said(
        "Cells, or groups of values, along a column in the last measurement; null for all values.", CROSS_CHECKED
    )
    dimension: Dimension | None = said(
        "The dimension of the rows that the grid of all columns suits, as it was chosen; null where that is not what "
        "was measured.",
        ON_TRUST,
    )
    mechanism: MechanismName = said("How counts were combined before they got noise.", RECOMPUTED)
    growth: Decimal = said("By which power of 2 weights grow from level to level.", RECOMPUTED)
    order: Literal["snake", "hilbert", "tour"] = said("The order that cells are lined up in.", RECOMPUTED)
    path_length: Loss | None = said(
        "The length of the longest path that cells are lined up along; null where they are too many for it.",
        RECOMPUTED,
    )
    measured: Annotated[tuple[LayerRecord, ...], AT_LEAST_ONE] = said("The measurements, in order.", CROSS_CHECKED)
    projection: Literal["particles", "public", "full-grid", "drawn", "simplex", "l1-ball"] = said(
        "How rows were fitted to the noisy counts.", CROSS_CHECKED
    )
    loss: LossName | None = said("What the linear program made small; null where there was none.", CROSS_CHECKED)
    detail: Literal["spread", "centre"] = said(
        "Where rows were put inside of a cell: spread out where there is a direct certificate, else at the centre.",
        CROSS_CHECKED,
    )
    candidates: Candidates = said(
        "How many tables were made from the noisy counts, of which one was chosen.", CROSS_CHECKED
    )
    preset: Identifier | None = said("The preset that all was done by; null for none.", CROSS_CHECKED)
    rows: EmittedRows = said("How many rows were emitted.", RECOMPUTED)


@dataclass(frozen=True, slots=True)
class ComparedRecord:
    mechanism: MechanismName = said("The mechanism.", ON_TRUST)
    resolution: Resolution | None = said("Its resolution; null for all values.", ON_TRUST)
    discretisation: Loss = said("What a cell may lose.", ON_TRUST)
    privatisation: Loss = said("What its noise costs on average.", ON_TRUST)
    predicted_loss: Loss = said(
        "The loss to expect; the smallest was chosen, of the rehearsed ones if there are any.", ON_TRUST
    )
    rehearsals: Rehearsals = said("How often it was tried on made-up tables.", ON_TRUST)
    chosen: bool = said("Whether it was chosen; one is.", CROSS_CHECKED)


@dataclass(frozen=True, slots=True)
class PlugInTerms:
    NAME: ClassVar = "plug_in_terms"

    discretisation: Loss = said("What is lost inside of a cell.", RECOMPUTED)
    privatisation: Loss = said("What the noise adds, at the stated confidence.", RECOMPUTED)
    projection: Loss = said("How far the emitted rows are from the noisy counts.", RECOMPUTED)


@dataclass(frozen=True, slots=True)
class DirectTerms:
    NAME: ClassVar = "direct_terms"

    measured_loss: Number = said(
        "The noisy loss itself, from the noisy integer of its step; noise can take it below 0 or above 1.", RECOMPUTED
    )
    slack: Number = said(
        "What is added so that the bound holds at its confidence; the two add up to the bound.", RECOMPUTED
    )


@dataclass(frozen=True, slots=True)
class SubsetRecord:
    columns: Columns = said("The columns of the subset.", RECOMPUTED)
    bound: Bound = said("The bound for statistics of these columns.", RECOMPUTED)


@dataclass(frozen=True, slots=True)
class PlugInSubset:
    columns: Columns = said("The columns of the subset.", RECOMPUTED)
    bound: Bound = said("The bound for statistics of these columns.", RECOMPUTED)
    terms: PlugInTerms = said("What this bound is the sum of.", RECOMPUTED)


@dataclass(frozen=True, slots=True)
class DiagnosticRecord:
    fit: Loss = said("How far the emitted rows are from the noisy counts, in the worst subset.", RECOMPUTED)
    noise_mean: Loss = said("How far noise alone moves counts, on average over draws.", RECOMPUTED)
    noise_low: Loss = said("The same, exceeded in 95 of 100 draws.", RECOMPUTED)
    noise_high: Loss = said("The same, exceeded in 5 of 100 draws.", RECOMPUTED)
    worth_optimising: bool = said("Whether the fit is worse than what noise explains.", RECOMPUTED)


@dataclass(frozen=True, slots=True)
class PlugInRecord:
    NAME: ClassVar = "plug_in"

    bound: Bound = said("The largest bound of its subsets.", RECOMPUTED)
    confidence: Confidence = said("The probability that all of its bounds hold together.", RECOMPUTED)
    terms: PlugInTerms = said("What the largest bound is the sum of; a sum above 1 says no more than 1.", RECOMPUTED)
    subsets: Annotated[tuple[PlugInSubset, ...], AT_LEAST_ONE] = said(
        "Every subset of columns that the certificate covers.", RECOMPUTED
    )
    diagnostic: DiagnosticRecord = said(
        "Whether a better fit would help: the loss of the fit beside that of the noise.", RECOMPUTED
    )


@dataclass(frozen=True, slots=True)
class DirectRecord:
    NAME: ClassVar = "direct"
    CONDITIONS: ClassVar = ONE_UNIT

    bound: Bound = said("The noisy loss with its slack, between 0 and 1.", RECOMPUTED)
    confidence: Confidence = said("The probability that it holds.", RECOMPUTED)
    epsilon: Decimal | None = said_if_any(
        "What measuring it cost, never rounded down, in ε, where noise is Laplace.", RECOMPUTED
    )
    rho: Decimal | None = said_if_any(
        "What measuring it cost, never rounded down, in ρ, where noise is Gaussian.", RECOMPUTED
    )
    terms: DirectTerms = said("What the bound is the sum of.", RECOMPUTED)


@dataclass(frozen=True, slots=True)
class PlugInRecords:
    """By their loss; there are none where the law of the error is not known."""

    transport: PlugInRecord | None = said_if_any(
        "With the transport loss; for subsets of at most three columns.", RECOMPUTED
    )
    path: PlugInRecord | None = said_if_any("With the paper's path loss.", RECOMPUTED)

    @property
    def tightest(self) -> PlugInRecord | None:
        """The one with the transport loss where there is one: it is never the larger in practice."""
        return self.transport or self.path

    @property
    def by_loss(self) -> dict[LossName, PlugInRecord]:
        found: dict[LossName, PlugInRecord | None] = {"transport": self.transport, "path": self.path}
        return {name: each for name, each in found.items() if each is not None}


@dataclass(frozen=True, slots=True)
class CertificateRecord:
    """No 1-Lipschitz statistic of the columns of one of the subsets is off by more than `bound`.

    The smaller of the direct and the plug-in bound, valid at `confidence`: each has its share of the failure
    probability, so that choosing between them after looking is allowed. Where there is no plug-in certificate, the
    direct one has all of it.
    """

    CONDITIONS: ClassVar = _conditional(
        "no_plug_in", {"type": "null"}, {"plug_in": {"required": ["path"]}}, {"plug_in": {"maxProperties": 0}}
    )

    bound: Bound = said(
        "No 1-Lipschitz statistic of the columns of a subset is off by more: the smaller of the direct and the plug-in "
        "bound.",
        RECOMPUTED,
    )
    confidence: Confidence = said("The probability that all bounds hold.", CROSS_CHECKED)
    kind: Kind = said("Which of the two bounds is the smaller one.", RECOMPUTED)
    terms: PlugInTerms | DirectTerms = said("What the bound is the sum of.", RECOMPUTED)
    single_column_bound: Bound = said("The bound for statistics of one column: never above that for more.", RECOMPUTED)
    subsets: Annotated[tuple[SubsetRecord, ...], AT_LEAST_ONE] = said(
        "The bound of each subset: the smaller of its plug-in bound and the direct bound.", RECOMPUTED
    )
    direct: DirectRecord | None = said(
        "The direct certificate, of all subsets together; null if there is none.", RECOMPUTED
    )
    single_column: DirectRecord | None = said(
        "The direct certificate of single columns; null if there is none, or no subset has more columns.", RECOMPUTED
    )
    plug_in: PlugInRecords = said(
        "The plug-in certificates, which anybody can compute again; none where the law of the error is not known.",
        RECOMPUTED,
    )
    no_plug_in: NoPlugIn | None = said("Why there is no plug-in certificate; null where there is one.", RECOMPUTED)


@dataclass(frozen=True, slots=True)
class RecomputeRecord:
    plug_in_failure_probability: Rational = said(
        "What the plug-in certificate may fail with; an exact rational.", RECOMPUTED
    )
    draws: Draws = said("How many draws of the noise's law were simulated.", RECOMPUTED)
    seed: Seed = said(
        "The seed of these draws, which follows from the noisy integers of all measurements; it is no seed of the "
        "noise.",
        RECOMPUTED,
    )
    hub: Rational | None = said("How far the hub of the transport loss is; null for half the diameter.", RECOMPUTED)
    end: Rational = said("The weight of the last partial sum in the path loss.", RECOMPUTED)


ONE_CHOSEN = Limits(
    {
        "minItems": 1,
        "contains": {"properties": {"chosen": {"const": True}}, "required": ["chosen"]},
        "maxContains": 1,
    }
)


@dataclass(frozen=True, slots=True)
class Record:
    """All of certificate.json."""

    HEAD: ClassVar = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:certsynth:certificate:2",
        "title": "certificate.json of a release of certsynth",
        "description": "What was done, what it cost and what is promised. Bounds are losses between 0 and 1, on "
        "columns scaled to length 1 or to their weights.",
    }

    format: Format = said("Which form of certificate this is.", CROSS_CHECKED)
    certsynth: Version = said("The version of certsynth that made the release.", ON_TRUST)
    table: TableRecord = said("What the rows are, as schema.toml says it.", RECOMPUTED)
    privacy: PrivacyRecord = said("What was spent, and under which definition of privacy.", RECOMPUTED)
    asked: AskedRecord = said(
        "The options that the release was made with. Its settings follow from them: shares of the budget and of the "
        "failure probability, draws, layers, and how rows are fitted.",
        CROSS_CHECKED,
    )
    release: MethodRecord = said("How the rows were made.", CROSS_CHECKED)
    compared: Annotated[tuple[ComparedRecord, ...], ONE_CHOSEN] = said(
        "What was chosen from before any row was read: predictions, which promise nothing.", CROSS_CHECKED
    )
    certificate: CertificateRecord = said("What is promised.", RECOMPUTED)
    recompute: RecomputeRecord = said(
        "What the plug-in certificate is computed from, beside the noisy counts and the emitted rows.", CROSS_CHECKED
    )
    ledger: Sha256 | None = said(
        "The reservation in the owner's ledger that this release was charged to, as a SHA-256; null if there is none.",
        ON_TRUST,
    )
