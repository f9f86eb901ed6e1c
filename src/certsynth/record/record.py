"""The record of a release, with the structure of certificate.json: the method, its cost, and the certificate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal

from certsynth.record.direct import CellsRecord, DroppedRecord, ExceptionsRecord, StatisticsRecord
from certsynth.record.table import TableRecord
from certsynth.record.values import (
    AT_LEAST_ONE,
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
    RuleNumber,
    Seed,
    Sha256,
    Square,
    Version,
    Ways,
    said,
    said_if_any,
)

FORMAT: Final = "certsynth-certificate/3"

NO_PLUG_IN: Final = (
    "there is no plug-in certificate: of a grid with so many cells only those that stand out are kept, and the law of "
    "their error is not known without the rows"
)
PAIRS_LEFT_OUT: Final = "there is no plug-in certificate: it would say nothing about pairs that were not measured"

Format = Literal["certsynth-certificate/3"]
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
    "their error is not known without the rows",
    "there is no plug-in certificate: it would say nothing about pairs that were not measured",
]

ONE_UNIT: Mapping[str, Any] = {
    "oneOf": [
        {"required": ["epsilon"], "not": {"required": ["rho"]}},
        {"required": ["rho"], "not": {"required": ["epsilon"]}},
    ]
}
"""Constraint: a cost is stated in exactly one of ε and ρ."""


def _conditional(
    key: str, holds: Mapping[str, Any], then: Mapping[str, Any], otherwise: Mapping[str, Any]
) -> dict[str, Any]:
    """Constrain other keys, depending on whether `key` satisfies `holds`."""
    return {
        "if": {"properties": {key: holds}, "required": [key]},
        "then": {"properties": then},
        "else": {"properties": otherwise},
    }


@dataclass(frozen=True, slots=True)
class SensitivityRecord:
    l1: Count = said("The sum of the changes of all integers.", RECOMPUTED)
    l2_squared: Square = said("The sum of the squares of these changes.", RECOMPUTED)
    each: Count | None = said_if_any(
        "The largest change of each single integer, where noise is drawn for all of them together.", RECOMPUTED
    )


@dataclass(frozen=True, slots=True)
class StepRecord:
    """A part of the budget, and the noise that was added for it."""

    CONDITIONS: ClassVar = ONE_UNIT

    on: Purpose = said("The step on which this part was spent.", RECOMPUTED)
    epsilon: Rational | None = said_if_any(
        "Its share of the budget as an exact rational, in ε, if noise is Laplace or of the sup norm.", RECOMPUTED
    )
    rho: Rational | None = said_if_any(
        "Its share of the budget as an exact rational, in ρ, if noise is Gaussian.", RECOMPUTED
    )
    noise: Literal["sup-norm"] | None = said_if_any(
        "The distribution of the noise, if it is that of the sup norm: the probability of a vector falls with its "
        "largest entry, and the scale follows from the largest change of each integer. Otherwise Laplace or Gaussian.",
        RECOMPUTED,
    )
    sensitivity: SensitivityRecord | None = said(
        "The largest total change of the step's integers between neighbours; null if grids are compared by scores, "
        "each of which has its own sensitivity.",
        RECOMPUTED,
    )
    scale: HexFloat | None = said(
        "The scale of the noise as a hexadecimal float, as sensitivity and share determine it; null for a private "
        "choice, which adds no noise.",
        RECOMPUTED,
    )
    values: Annotated[tuple[Noisy, ...], Limits({"minItems": 1, "maxItems": 10_000})] | None = said(
        "The noisy integers themselves: all that the step reveals about the rows. Null if they are in "
        "measurements.npz, and for a private choice. They must not be further below 0 than noise can take them, and a "
        "displacement must not exceed the largest that rows can have.",
        ON_TRUST,
    )
    worth: Rational | None = said(
        "The quantity that 1 in these integers stands for: rows, occupied cells, or rows times a distance; null if "
        "there are no integers.",
        RECOMPUTED,
    )


@dataclass(frozen=True, slots=True)
class PrivacyRecord:
    CONDITIONS: ClassVar = _conditional(
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
    )

    definition: Definition = said("The definition of differential privacy in which costs are stated.", CROSS_CHECKED)
    epsilon: Decimal = said(
        "The ε of the whole release, never rounded down; with a delta, at least the ε that ρ implies at that δ.",
        RECOMPUTED,
    )
    delta: Decimal | None = said("The δ at which ε is stated; null for pure privacy.", RECOMPUTED)
    rho: Decimal | None = said("The ρ of the whole release, never rounded down; null for pure privacy.", RECOMPUTED)
    neighbours: Relation = said(
        "Which tables are neighbours: one row replaced, or one row added or removed. If the table names persons, all "
        "rows of one person are.",
        CROSS_CHECKED,
    )
    rows: Count | None = said(
        "The number of rows of the private table, which must agree with the measurements; null where it is private: "
        "under add-remove, and where persons are protected.",
        CROSS_CHECKED,
    )
    spent: Annotated[tuple[StepRecord, ...], AT_LEAST_ONE] = said(
        "The parts of the budget, in the order in which they were spent; they add up to the whole.", RECOMPUTED
    )
    persons: Count | None = said_if_any(
        "The number of persons in the private table, where persons are protected, count the same, and may be replaced: "
        "then it is public and determines the weight of all rows.",
        CROSS_CHECKED,
    )

    @property
    def unit(self) -> Literal["epsilon", "rho"]:
        """The unit in which the parts of the budget are stated and add up."""
        return "epsilon" if self.rho is None else "rho"


@dataclass(frozen=True, slots=True)
class AskedRecord:
    """The options of the release, as given."""

    epsilon: Rational | None = said("The requested ε; null if only ρ was given.", CROSS_CHECKED)
    delta: Rational | None = said("The requested δ; null if none was given.", CROSS_CHECKED)
    rho: Rational | None = said("The requested ρ; null if none was given.", CROSS_CHECKED)
    sparsity: Ways | None = said(
        "The requested number of columns that a statistic may use; null for the default, or if subsets were named.",
        CROSS_CHECKED,
    )
    resolution: Resolution | None = said("The requested resolution; null for the best one.", CROSS_CHECKED)
    mechanism: Identifier | None = said("The requested mechanism; null or auto for the best one.", CROSS_CHECKED)
    projection: Literal["auto", "particles", "public", "full-grid", "drawn"] = said(
        "The requested way of fitting rows.", ON_TRUST
    )
    loss: LossName | None = said("The loss that a linear program was to minimise; null for the default.", ON_TRUST)
    rows: Count | None = said("The requested number of rows; null for the default.", CROSS_CHECKED)
    neighbours: Relation = said("The requested neighbour relation.", CROSS_CHECKED)
    preset: Identifier | None = said(
        "The requested preset; null for none. Shares of the budget and proxy losses must agree with it.", ON_TRUST
    )
    candidates: Candidates = said("The number of candidate tables.", CROSS_CHECKED)
    certificate_share: Rational = said(
        "The share of the budget for the direct certificates; 0 if there are none.", CROSS_CHECKED
    )
    confidence: Rational = said(
        "The confidence of the whole certificate, with which all slacks and quantiles must agree. Whether it was "
        "chosen before the noise was drawn cannot be checked.",
        ON_TRUST,
    )
    public: bool = said("Whether public rows were given.", ON_TRUST)
    target: Name | None = said_if_any(
        "The column whose pairs were to be measured in any case; absent if none was named.", CROSS_CHECKED
    )
    exceptions: Count | None = said_if_any(
        "The requested number of exceptions; absent for the default, which the numbers of pairs and of rows determine.",
        CROSS_CHECKED,
    )
    measure_dropped: Literal[True] | None = said_if_any(
        "Whether the share of dropped rows was to be measured; absent if it was not.", CROSS_CHECKED
    )


@dataclass(frozen=True, slots=True)
class LayerRecord:
    columns_at_once: Ways = said("The number of columns of its widest table.", RECOMPUTED)
    cells: Literal["even", "points", "groups"] = said(
        "The kind of cells: even cells, all points of the columns' lattices, or groups of such points.", CROSS_CHECKED
    )
    resolution: Resolution | None = said(
        "Cells along a column, or groups of values, at most (twice that if it is long); null for all values.",
        CROSS_CHECKED,
    )


@dataclass(frozen=True, slots=True)
class PairRecord:
    columns: Columns = said("The two columns.", RECOMPUTED)
    groups: Resolution = said("Groups of values along a column, at most; twice that if it is long.", RECOMPUTED)
    dependence: Loss = said(
        "The noisy share of rows that are elsewhere than if the columns were independent, beyond chance; where noise "
        "hides it, a part of the mean over all pairs.",
        RECOMPUTED,
    )


@dataclass(frozen=True, slots=True)
class OmittedRuleRecord:
    number: RuleNumber = said("The position of the rule in the given schema, from 1.", ON_TRUST)
    columns: Columns = said("The columns that it mentions and that were left out.", ON_TRUST)


@dataclass(frozen=True, slots=True)
class MethodRecord:
    """The measurements, and the method that fitted rows."""

    CONDITIONS: ClassVar = _conditional(
        "projection",
        {"enum": ["particles", "simplex", "l1-ball"]},
        {"loss": {"type": "null"}},
        {"loss": {"type": "string"}},
    )

    sparsity: Ways = said("The number of columns that a statistic may use: the size of the largest subset.", RECOMPUTED)
    workload: Annotated[tuple[Columns, ...], AT_LEAST_ONE] | None = said(
        "The subsets of columns that were named; null if all of one size are covered.", CROSS_CHECKED
    )
    resolution: Resolution | None = said(
        "Cells, or groups of values, along a column in the last measurement; null for all values.", CROSS_CHECKED
    )
    dimension: Dimension | None = said(
        "The dimension of rows for which the grid of all columns was chosen; null if no such grid was measured.",
        ON_TRUST,
    )
    mechanism: MechanismName = said("The mechanism: how counts were combined before noise was added.", RECOMPUTED)
    growth: Decimal = said("The power of 2 by which weights grow from level to level.", RECOMPUTED)
    order: Literal["snake", "hilbert", "tour"] = said("The order of the cells along the path.", RECOMPUTED)
    path_length: Loss | None = said(
        "The length of the longest path through cells; null if there are too many cells to order them.",
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
    rows: EmittedRows = said("The number of emitted rows.", RECOMPUTED)
    pairs: Annotated[tuple[PairRecord, ...], AT_LEAST_ONE] | None = said_if_any(
        "The pairs of columns that were measured because private scores were large; absent if scores were not used.",
        RECOMPUTED,
    )
    omitted_rules: Annotated[tuple[OmittedRuleRecord, ...], AT_LEAST_ONE] | None = said_if_any(
        "The rules of the given schema that mention columns which were left out: they were not applied, and are not in "
        "schema.toml. Absent if there are none.",
        ON_TRUST,
    )


@dataclass(frozen=True, slots=True)
class ComparedRecord:
    mechanism: MechanismName = said("The mechanism.", ON_TRUST)
    resolution: Resolution | None = said("Its resolution; null for all values.", ON_TRUST)
    discretisation: Loss = said("The largest loss within a cell.", ON_TRUST)
    privatisation: Loss = said("The expected loss due to its noise.", ON_TRUST)
    predicted_loss: Loss = said(
        "The predicted loss. Among the rehearsed ones, if there are any, the finest was chosen of those within 3 % of "
        "the smallest.",
        ON_TRUST,
    )
    rehearsals: Rehearsals = said("The number of rehearsals on simulated tables.", ON_TRUST)
    chosen: bool = said("Whether it was chosen; exactly one is.", CROSS_CHECKED)


@dataclass(frozen=True, slots=True)
class PlugInTerms:
    NAME: ClassVar = "plug_in_terms"

    discretisation: Loss = said("The loss within cells.", RECOMPUTED)
    privatisation: Loss = said("The loss due to noise, at the stated confidence.", RECOMPUTED)
    projection: Loss = said("The distance of the emitted rows from the noisy counts.", RECOMPUTED)


@dataclass(frozen=True, slots=True)
class DirectTerms:
    NAME: ClassVar = "direct_terms"

    measured_loss: Number = said(
        "The noisy loss, from the noisy integer of its step; noise can take it below 0 or above 1.", RECOMPUTED
    )
    slack: Number = said(
        "The allowance for noise that makes the bound hold at its confidence; the two terms add up to the bound.",
        RECOMPUTED,
    )


@dataclass(frozen=True, slots=True)
class SubsetRecord:
    columns: Columns = said("The columns of the subset.", RECOMPUTED)
    bound: Bound = said("The bound for statistics of these columns.", RECOMPUTED)


@dataclass(frozen=True, slots=True)
class PlugInSubset:
    columns: Columns = said("The columns of the subset.", RECOMPUTED)
    bound: Bound = said("The bound for statistics of these columns.", RECOMPUTED)
    terms: PlugInTerms = said("The terms that add up to this bound.", RECOMPUTED)


@dataclass(frozen=True, slots=True)
class DiagnosticRecord:
    fit: Loss = said("The distance of the emitted rows from the noisy counts, in the worst subset.", RECOMPUTED)
    noise_mean: Loss = said("The distance by which noise alone moves counts, averaged over draws.", RECOMPUTED)
    noise_low: Loss = said("The same, exceeded in 95 of 100 draws.", RECOMPUTED)
    noise_high: Loss = said("The same, exceeded in 5 of 100 draws.", RECOMPUTED)
    worth_optimising: bool = said("Whether the fit is worse than noise explains.", RECOMPUTED)


@dataclass(frozen=True, slots=True)
class PlugInRecord:
    NAME: ClassVar = "plug_in"

    bound: Bound = said("The largest bound of its subsets.", RECOMPUTED)
    confidence: Confidence = said("The probability that all of its bounds hold together.", RECOMPUTED)
    terms: PlugInTerms = said("The terms that add up to the largest bound; a sum above 1 is a bound of 1.", RECOMPUTED)
    subsets: Annotated[tuple[PlugInSubset, ...], AT_LEAST_ONE] = said(
        "Every subset of columns that the certificate covers: only measured columns.", RECOMPUTED
    )
    diagnostic: DiagnosticRecord = said(
        "Whether a better fit would help: the loss of the fit compared with that of the noise.", RECOMPUTED
    )


@dataclass(frozen=True, slots=True)
class DirectRecord:
    NAME: ClassVar = "direct"
    CONDITIONS: ClassVar = ONE_UNIT

    bound: Bound = said("The noisy loss plus its slack, clipped to between 0 and 1.", RECOMPUTED)
    confidence: Confidence = said(
        "The probability that all bounds of the direct certificate hold together.", RECOMPUTED
    )
    epsilon: Decimal | None = said_if_any(
        "The cost of measuring the loss together with all other errors, never rounded down, in ε, if noise is that of "
        "the sup norm.",
        RECOMPUTED,
    )
    rho: Decimal | None = said_if_any(
        "The cost of measuring the loss together with all other errors, never rounded down, in ρ, if noise is "
        "Gaussian.",
        RECOMPUTED,
    )
    terms: DirectTerms = said("The terms that add up to the bound.", RECOMPUTED)


@dataclass(frozen=True, slots=True)
class PlugInRecords:
    """The plug-in certificates by loss; none if the distribution of the error is unknown."""

    transport: PlugInRecord | None = said_if_any(
        "The certificate with the transport loss; for subsets of at most three columns.", RECOMPUTED
    )
    path: PlugInRecord | None = said_if_any("The certificate with the paper's path loss.", RECOMPUTED)

    @property
    def tightest(self) -> PlugInRecord | None:
        """The certificate with the transport loss if there is one: in practice it is never the larger."""
        return self.transport or self.path

    @property
    def by_loss(self) -> dict[LossName, PlugInRecord]:
        found: dict[LossName, PlugInRecord | None] = {"transport": self.transport, "path": self.path}
        return {name: each for name, each in found.items() if each is not None}


@dataclass(frozen=True, slots=True)
class CertificateRecord:
    """No 1-Lipschitz statistic of the columns of one of the subsets is off by more than `bound`.

    `bound` is the smaller of the direct and the plug-in bound, valid at `confidence`: each has its share of the failure
    probability, so choosing the smaller after seeing both is allowed. Without a plug-in certificate, the direct one has
    the whole failure probability.
    """

    CONDITIONS: ClassVar = _conditional(
        "no_plug_in", {"type": "null"}, {"plug_in": {"required": ["path"]}}, {"plug_in": {"maxProperties": 0}}
    )

    bound: Bound = said(
        "No 1-Lipschitz statistic of the columns of a subset is off by more than this: the smaller of the direct and "
        "the plug-in bound; the direct one if there are derived columns.",
        RECOMPUTED,
    )
    confidence: Confidence = said("The probability that all bounds hold.", CROSS_CHECKED)
    kind: Kind = said("Which of the two bounds it is.", RECOMPUTED)
    terms: PlugInTerms | DirectTerms = said("The terms that add up to the bound.", RECOMPUTED)
    single_column_bound: Bound = said("The bound for statistics of one column: never above `bound`.", RECOMPUTED)
    subsets: Annotated[tuple[SubsetRecord, ...], AT_LEAST_ONE] = said(
        "The bound of each subset: the smaller of its plug-in bound, if it has one, and its direct bound.", RECOMPUTED
    )
    direct: DirectRecord | None = said(
        "The direct certificate for all subsets together; null if there is none.", RECOMPUTED
    )
    single_column: DirectRecord | None = said(
        "The direct certificate for single columns; null if there is none, or if no subset has more than one column.",
        RECOMPUTED,
    )
    plug_in: PlugInRecords = said(
        "The plug-in certificates, which anybody can recompute; none if the distribution of the error is unknown.",
        RECOMPUTED,
    )
    no_plug_in: NoPlugIn | None = said(
        "The reason why there is no plug-in certificate; null if there is one.", RECOMPUTED
    )
    statistics: StatisticsRecord | None = said_if_any(
        "Bounds on shares, group totals and moments; absent without a direct certificate.", RECOMPUTED
    )
    cells: CellsRecord | None = said_if_any(
        "Noisy counts that have bounds of their own; absent without a direct certificate, and if no measurement has "
        "noise on every cell.",
        RECOMPUTED,
    )
    exceptions: ExceptionsRecord | None = said_if_any(
        "Subsets with a direct bound of their own, chosen privately; absent if there are none.", RECOMPUTED
    )
    dropped: DroppedRecord | None = said_if_any(
        "The share of rows that were dropped because their person has too many; absent if it was not measured.",
        RECOMPUTED,
    )


@dataclass(frozen=True, slots=True)
class MisfitRecord:
    columns: Columns = said("The columns of the table.", RECOMPUTED)
    misfit: Loss = said(
        "The distance of the emitted rows from its noisy counts, as a multiple of the distance that noise gives the "
        "real rows: about 1 for those.",
        RECOMPUTED,
    )


@dataclass(frozen=True, slots=True)
class FunctionRecord:
    source: Name = said("The column that seems to determine the other.", RECOMPUTED)
    derived: Name = said("The column that looks like a function of it.", RECOMPUTED)
    share: Loss = said("The estimated share of the rows that contradict the function.", RECOMPUTED)


@dataclass(frozen=True, slots=True)
class FitRecord:
    """How close the emitted rows are to the noisy tables. No bound depends on it."""

    tables: Count = said("The number of noisy tables of several columns.", RECOMPUTED)
    furthest: Annotated[tuple[MisfitRecord, ...], Limits({"minItems": 1, "maxItems": 5})] = said(
        "The tables that the rows are furthest from, the furthest first.", RECOMPUTED
    )
    functions: Annotated[tuple[FunctionRecord, ...], Limits({"maxItems": 5})] = said(
        "Pairs of columns whose noisy counts look like a function. If it is one, declaring it in the schema saves "
        "budget.",
        RECOMPUTED,
    )


@dataclass(frozen=True, slots=True)
class RecomputeRecord:
    plug_in_failure_probability: Rational = said(
        "The failure probability of the plug-in certificate; an exact rational.", RECOMPUTED
    )
    draws: Draws = said("The number of simulated draws of the noise.", RECOMPUTED)
    seed: Seed = said(
        "The seed of these draws, derived from the noisy integers of all measurements; it is not a seed of the noise.",
        RECOMPUTED,
    )
    hub: Rational | None = said("The distance of the transport loss's hub; null for half the diameter.", RECOMPUTED)
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
    """The whole of certificate.json."""

    HEAD: ClassVar = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:certsynth:certificate:3",
        "title": "certificate.json of a release of certsynth",
        "description": "The method, its cost and the certificate. Bounds are losses between 0 and 1, on "
        "columns scaled to length 1 or to their weights.",
    }
    CONDITIONS: ClassVar = _conditional(
        "table",
        {"required": ["persons"]},
        {"privacy": {"properties": {"rows": {"type": "null"}}}},
        {
            "privacy": {
                **_conditional(
                    "neighbours", {"const": "add-remove"}, {"rows": {"type": "null"}}, {"rows": {"type": "integer"}}
                ),
                "not": {"required": ["persons"]},
            }
        },
    )

    format: Format = said("The format of this certificate.", CROSS_CHECKED)
    certsynth: Version = said("The version of certsynth that made the release.", ON_TRUST)
    table: TableRecord = said("The released table, as described in schema.toml.", RECOMPUTED)
    privacy: PrivacyRecord = said("The budget that was spent, and the definition of privacy.", RECOMPUTED)
    asked: AskedRecord = said(
        "The options of the release. They determine its settings: shares of the budget and of the failure probability, "
        "draws, layers, and how rows are fitted.",
        CROSS_CHECKED,
    )
    release: MethodRecord = said("How the rows were made.", CROSS_CHECKED)
    compared: Annotated[tuple[ComparedRecord, ...], ONE_CHOSEN] = said(
        "The candidates from which the method was chosen, with their predicted losses, which are not guarantees.",
        CROSS_CHECKED,
    )
    certificate: CertificateRecord = said("The certified bounds.", RECOMPUTED)
    fit: FitRecord | None = said_if_any(
        "How close the rows are to the noisy counts; absent if no table of several columns has all its counts, and in "
        "releases of earlier versions.",
        RECOMPUTED,
    )
    recompute: RecomputeRecord = said(
        "The inputs of the plug-in certificate, besides the noisy counts and the emitted rows.", CROSS_CHECKED
    )
    ledger: Sha256 | None = said(
        "The SHA-256 of the reservation in the owner's ledger for this release; null if there is none.",
        ON_TRUST,
    )
