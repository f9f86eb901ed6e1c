"""`plan`: predict what a release would choose and certify, before any row is read or any budget spent."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from certsynth.algorithm.layers import LayerSpec
from certsynth.algorithm.sizes import Size, size_of_release
from certsynth.algorithm.task import Task
from certsynth.base.parallel import run
from certsynth.base.progress import Progress, number_stages
from certsynth.certificate.quantile import rank_quantile
from certsynth.domain import Groups, Schema
from certsynth.mechanisms import Budget, Neighbours, Unit, strategy_named
from certsynth.mechanisms.concentrated import Privacy, rho_of
from certsynth.mechanisms.guarantee import decimal_text
from certsynth.planning.choice import (
    RESOLUTIONS,
    Choice,
    Design,
    blank_layers,
    choose,
    first_guess,
    predict_design,
    tables_at,
)
from certsynth.planning.contributions import Contribution
from certsynth.planning.noise import noise_losses
from certsynth.planning.outlook import OUTLOOK_SEED, Outlook, expect_bound, is_rehearsed
from certsynth.planning.rehearsal import certified_bound, rehearse, rehearsed_loss
from certsynth.planning.share import GUESSED_MECHANISM, settle_share
from certsynth.planning.subsample import subsample
from certsynth.planning.tables import ORDINARY
from certsynth.queries.fine import LatticeQuery
from certsynth.queries.marginals import all_subsets

REFERENCE_MECHANISM = "haar-noisy-total"
"""The paper's mechanism, shown for comparison and never chosen automatically."""

MAX_QUANTILE_TABLES = 60
"""Tables examined for each noise draw, over all designs, at most; each design has 2 to 10 of them. The privatisation
term is the largest over the tables on which noise costs most."""

MIN_SUBSETS_FOR_OTHER_NOISE, OTHER_NOISE_DELTA = 100, Fraction(1, 10**6)
"""Subsets from which the plan also shows a release with the other noise: without δ, or with this δ."""

MAX_REHEARSED_SUBSETS, MAX_VARIATION_CELLS = 300, 100_000
"""Subsets up to which a variation is rehearsed (beyond, the model predicts it), and cells of all tables beyond which it
is left out."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A mechanism at a resolution, and what to expect of it.

    `discretisation` is the worst loss inside a cell, `privatisation` the loss by noise on the certified tables at the
    plan's confidence, `predicted_bound` the expected certificate and `low` to `high` the range in which nine of ten
    real tables are expected. `rehearsals` is the number of made-up tables it was rehearsed on; if it is 0, a model
    predicts the bound, and the range is rougher. If there is a `dimension`, the figures are for rows on a set of that
    dimension.
    """

    mechanism: str
    growth: str
    resolution: int | None
    discretisation: float
    privatisation: float
    predicted_bound: float
    low: float
    high: float
    rehearsals: int
    seconds: float
    memory_gb: float
    eligible: bool = True
    dimension: int | None = None


@dataclass(frozen=True, slots=True)
class Variation:
    """The choice and the expected bound if one thing were different."""

    change: str
    mechanism: str
    resolution: int | None
    predicted_bound: float


@dataclass(frozen=True, slots=True)
class Merged:
    """A column with too many labels to count each of them in tables with other columns, and its number of groups."""

    column: str
    labels: int
    groups: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What `release` would choose for a table of this schema and size, the alternatives, and what to expect.

    `columns` is the number of columns released, `workload` lists the subsets of them that were named, and
    `certificate_share` is the share of the budget for the direct certificate. `statistics` are the bounds of shares,
    group totals and moments to expect, by the names that a certificate gives them; empty if the release was not
    rehearsed. If the schema names persons, `rows` are the rows that are kept at most, or the number of persons if they
    weigh alike; `persons` are the schema's entries about them, and `contributions` says what other numbers of rows per
    person cost.
    """

    rows: int
    columns: int
    sparsity: int
    workload: list[list[str]] | None
    confidence: float
    privacy: dict[str, str | None]
    neighbours: str
    certificate: str
    split: float | None
    choice: Planned
    candidates: tuple[Planned, ...]
    variations: tuple[Variation, ...]
    merged: tuple[Merged, ...]
    certificate_share: float
    statistics: Mapping[str, float] = dataclasses.field(default_factory=dict)
    persons: dict[str, Any] | None = None
    contributions: tuple[Contribution, ...] = ()

    @classmethod
    def of(
        cls,
        task: Task,
        *,
        choice: Planned,
        candidates: Iterable[Planned],
        variations: Iterable[Variation],
        split: Fraction | None = None,
        merged: Iterable[Merged] = (),
        statistics: Mapping[str, float] | None = None,
    ) -> Plan:
        """The plan of a task: what was asked for, and what is expected of it."""
        settings, persons = task.settings, task.settings.protection.persons
        return cls(
            rows=task.units,
            columns=len(task.schema),
            sparsity=settings.sparsity,
            workload=settings.workload(task.schema),
            confidence=float(settings.confidence),
            privacy=settings.privacy.describe(settings.privacy.budget),
            neighbours=str(settings.protection.neighbours),
            certificate="direct" if settings.certificate_share else "plug-in",
            split=None if split is None else float(split),
            choice=choice,
            candidates=tuple(candidates),
            variations=tuple(variations),
            merged=tuple(merged),
            certificate_share=float(settings.certificate_share),
            statistics=dict(statistics or {}),
            persons=None if persons is None else persons.entries(),
        )

    @property
    def hides_its_rows(self) -> bool:
        """Whether the number of rows, or of persons if they weigh alike, is private."""
        if self.persons is None or self.persons["rows_per_person"] == 1 or self.persons.get("weigh") == "persons":
            return self.neighbours == Neighbours.ADD_REMOVE
        return True

    def to_json(self) -> dict[str, Any]:
        """The output of `certsynth plan --json`."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Plan:
        return cls(
            **{
                **found,
                "choice": Planned(**found["choice"]),
                "candidates": tuple(Planned(**c) for c in found["candidates"]),
                "variations": tuple(Variation(**v) for v in found["variations"]),
                "merged": tuple(Merged(**m) for m in found["merged"]),
                "contributions": tuple(Contribution(**c) for c in found["contributions"]),
            }
        )


STAGES = number_stages("choosing a mechanism", "predicting its bound", "trying other settings")
"""The stages of a plan, as progress reports name them."""


def plan_layers(task: Task, *, memory: int | None, progress: Progress) -> Plan:
    """Plan a release that measures tables layer by layer."""
    choosing, predicting, varying = STAGES
    progress(choosing, 0, None)
    choice = choose(task, memory=memory, progress=progress)
    progress(predicting, 0, None)
    terms = _privatisation_terms(task, choice, progress)
    outlooks = _outlooks(task, choice.best, terms, progress)
    planned = {each: _describe(task, each, terms[each], outlooks[each]) for each in terms}
    progress(varying, 0, None)
    return Plan.of(
        task,
        choice=planned[choice.best],
        candidates=sorted(planned.values(), key=lambda c: (c.mechanism, c.resolution or 0)),
        variations=_variations(task, choice.best, outlooks[choice.best].middle, progress),
        split=choice.best.split if len(choice.layers) > 1 else None,
        merged=_merged(task.schema, choice.layers, task.rows),
        statistics=outlooks[choice.best].statistics,
    )


def _merged(schema: Schema, layers: Sequence[LayerSpec], rows: int) -> Iterator[Merged]:
    cells = blank_layers(schema, layers, rows)[-1].marginals.cells
    for column, groups in zip(schema, cells, strict=True):
        if isinstance(groups, Groups) and not len(groups.places) and groups.off_line < groups.lattice.off_line:
            yield Merged(column.name, groups.lattice.off_line, groups.off_line)


def predict_quickly(task: Task) -> float:
    """The bound of the best design by the model alone: for comparison with that of other tasks."""
    task = settle_share(task)
    if task.settings.mechanism is None and task.settings.sparsity > 1:
        task = task.with_settings(mechanism=GUESSED_MECHANISM)
    loss = first_guess(task).predicted
    return certified_bound(task, loss) if task.settings.certificate_share else loss


def _privatisation_terms(task: Task, choice: Choice, progress: Progress) -> dict[Design, float]:
    """The privatisation term of every design, and of the paper's mechanism for comparison."""
    known, references = list(choice.designs), []
    if task.settings.mechanism is None:
        reference = strategy_named(REFERENCE_MECHANISM, neighbours=task.settings.neighbours)
        again = predict_design(task, choice.best.strategy, choice.best.resolution, choice.best.split)
        off = _ratio(choice.best.predicted, again.predicted)
        for resolution in dict.fromkeys(c.resolution for c in known):
            other = predict_design(task, reference, resolution, choice.best.split)
            references.append(dataclasses.replace(other, predicted=off * other.predicted))
    draws = min(39, max(19, math.ceil(1 / task.settings.beta) - 1))
    most = max(2, min(10, MAX_QUANTILE_TABLES // len(known + references)))
    tasks = [(task.schema, c.layers, task.rows, draws, most, task.settings.beta) for c in known + references]
    found = run(_privatisation, tasks, work=10**9, phase="how large noise is", progress=progress)
    return dict(zip(known + references, found, strict=True))


def _privatisation(
    schema: Schema, layers: Sequence[LayerSpec], rows: int, draws: int, most: int, beta: Fraction
) -> float:
    """The loss by noise of the last layer, at confidence 1 − β over the draws."""
    few, layers_of_few, _ = subsample(schema, layers)
    losses = noise_losses([blank_layers(few, layers_of_few, rows)[-1]], rows=rows, draws=draws, most=most)[0]
    return min(1.0, rank_quantile(losses, max(beta, Fraction(1, draws + 1))))


def _outlooks(
    task: Task,
    best: Design,
    terms: Mapping[Design, float],
    progress: Progress,
) -> dict[Design, Outlook]:
    """The outlook of each design. If designs are rehearsed, only the best is here; the others are scaled from it."""
    if not is_rehearsed(task.settings, best):
        return {each: expect_bound(task, each, privatisation) for each, privatisation in terms.items()}
    outlook = expect_bound(task, best, terms[best], progress)
    others = {each: outlook.of(_ratio(each.predicted, best.predicted)) for each in terms}
    return others | {best: outlook}


def _describe(task: Task, each: Design, privatisation: float, outlook: Outlook) -> Planned:
    size = _size(task, each)
    return Planned(
        mechanism=each.strategy.name,
        growth=decimal_text(each.strategy.growth),
        resolution=each.resolution,
        discretisation=each.discretisation,
        privatisation=privatisation,
        predicted_bound=min(1.0, outlook.middle),
        low=min(1.0, outlook.low),
        high=min(1.0, outlook.high),
        rehearsals=outlook.rehearsals or len(each.rehearsed),
        seconds=round(size.seconds, 1),
        memory_gb=round(size.bytes / 2**30, 2),
        eligible=each.strategy.name != REFERENCE_MECHANISM or task.settings.mechanism == REFERENCE_MECHANISM,
    )


def _size(task: Task, each: Design) -> Size:
    marginals = blank_layers(task.schema, each.layers, task.rows)[-1].marginals
    fine = LatticeQuery.of(task.schema, task.settings.subsets) if task.settings.certificate_share else None
    return size_of_release(
        task.schema, marginals, fine, rows=task.units, draws=task.settings.draws, program=task.settings.loss is not None
    )


def _variations(task: Task, best: Design, predicted: float, progress: Progress) -> list[Variation]:
    """Twice the rows, half of ε, the other noise, other sparsities: with the chosen mechanism where possible."""
    settings, fixed = task.settings, task.with_settings(mechanism=best.strategy.name)
    variants = [("twice the rows", dataclasses.replace(fixed, rows=2 * task.rows))]
    if (half := halved(settings.privacy)) is not None:
        variants.append(("half of epsilon", fixed.with_settings(privacy=half)))
    if len(settings.subsets) >= MIN_SUBSETS_FOR_OTHER_NOISE:
        change, other = other_noise(settings.privacy)
        if other is not None:
            variants.append((change, fixed.with_settings(privacy=other)))
    variants += _other_sparsities(task)
    tasks = [(other,) for _, other in [("", task), *variants]]
    tasks.reverse()  # longest first
    answers = run(_variation, tasks, work=10**9, phase="what would change", progress=progress)
    (now, now_rehearsed), *found = reversed(answers)
    made = []
    for (change, _), (guess, rehearsed) in zip(variants, found, strict=True):
        ratio = _ratio(guess.predicted, now.predicted)
        if rehearsed is not None and now_rehearsed is not None:
            ratio = _ratio(rehearsed, now_rehearsed)
        made.append(Variation(change, guess.strategy.name, guess.resolution, min(1.0, predicted * ratio)))
    return made


def _other_sparsities(task: Task) -> Iterator[tuple[str, Task]]:
    """Tasks for all subsets of one, two and three columns, if they differ from this one and are not too large."""
    for sparsity in range(1, min(3, len(task.schema)) + 1):
        subsets = all_subsets(task.schema, sparsity)
        if set(subsets) == set(task.settings.subsets):
            continue
        mechanism = task.settings.mechanism or (None if sparsity == 1 else "identity")
        other = task.with_settings(subsets=subsets, named=False, mechanism=mechanism)
        if sum(tables_at(other, RESOLUTIONS[0]).sizes()) <= MAX_VARIATION_CELLS:
            yield f"sparsity {sparsity}", other


def _variation(task: Task) -> tuple[Design, float | None]:
    """The best design by the model, and its bound on one made-up table if it can be rehearsed."""
    settings, guess = task.settings, first_guess(task)
    if not is_rehearsed(settings, guess) or len(settings.subsets) > MAX_REHEARSED_SUBSETS:
        return guess, None
    few, layers_of_few, subsets = subsample(task.schema, guess.layers, settings.subsets)
    made = rehearse(few, layers_of_few, task.rows, kind=ORDINARY, seed=OUTLOOK_SEED)
    return guess, certified_bound(task, rehearsed_loss(few, subsets, made))


def _ratio(expected: float, planned: float) -> float:
    return expected / planned if planned else 1.0


def other_noise(privacy: Privacy) -> tuple[str, Privacy | None]:
    """The same ε with the other noise: the scale of Gaussian noise grows with the square root of the number of tables,
    that of Laplace noise with the number.
    """
    if privacy.delta is not None:
        return "without delta", Privacy(Budget(privacy.epsilon), epsilon=privacy.epsilon)
    amount = rho_of(privacy.epsilon, OTHER_NOISE_DELTA)
    other = Privacy(Budget(amount, Unit.RHO), epsilon=privacy.epsilon, delta=OTHER_NOISE_DELTA) if amount else None
    return f"delta {float(OTHER_NOISE_DELTA):g}", other


def halved(privacy: Privacy) -> Privacy | None:
    """The same guarantee with half of ε; None if that leaves no budget."""
    half = privacy.epsilon / 2
    if privacy.delta is None:
        return Privacy(Budget(half), epsilon=half)
    amount = rho_of(half, privacy.delta)
    return Privacy(Budget(amount, privacy.budget.unit), epsilon=half, delta=privacy.delta) if amount else None
