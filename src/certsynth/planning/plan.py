"""What to expect of a release, before a row is read or any budget spent: `plan`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Unpack

from certsynth.algorithm.declaration import takes
from certsynth.algorithm.options import PlanOptions
from certsynth.certificate.quantile import rank_quantile
from certsynth.domain import Groups, Schema
from certsynth.domain.possible import check_rules
from certsynth.layers import Layer
from certsynth.limits import Size, check_grid, check_lattice, size_of_release
from certsynth.mechanisms import Budget, Unit, strategy_named
from certsynth.mechanisms.concentrated import Privacy, rho_of
from certsynth.mechanisms.guarantee import decimal_text
from certsynth.parallel import run
from certsynth.planning.cache import remembered
from certsynth.planning.choice import (
    RESOLUTIONS,
    Candidate,
    Choice,
    blank_layers,
    candidate,
    choose,
    first_guess,
    tables_at,
)
from certsynth.planning.dimensions import Grid, candidate_of, possible_grids
from certsynth.planning.noise import noise_losses
from certsynth.planning.outlook import FIRST_SEED, Outlook, expected, is_rehearsed
from certsynth.planning.rehearsal import loss, rehearse, slack
from certsynth.planning.tables import strengths
from certsynth.planning.thinning import thinned
from certsynth.progress import Progress
from certsynth.queries.fine import FineMarginals
from certsynth.queries.marginals import all_subsets
from certsynth.request import usable
from certsynth.settings import Settings

REFERENCE = "haar-noisy-total"
"""The paper's mechanism: shown beside the others, and never chosen."""

QUANTILE_TABLES = 60
"""The privatisation term is the largest over the tables on which noise costs most: over all candidates so many are
looked at for each draw, and at least two, at most ten, for each candidate."""

NETTED = 1.3
"""By how much the direct certificate of all columns exceeds the loss: rows are compared at nodes near them."""

MANY_SUBSETS, SMALL_DELTA = 100, Fraction(1, 10**6)
"""From so many subsets on it is told what the other noise would do: without δ, or with this one."""

MOST_SUBSETS, MOST_CELLS = 300, 100_000
"""Beyond so many subsets of columns a variation is not rehearsed: it is put together by the model. Of more cells, it is
left out."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A mechanism at a resolution, and what to expect of it.

    `discretisation` is what a cell may lose at worst, `privatisation` what noise on the certified tables costs at the
    plan's confidence; `predicted_bound` is the certificate to expect and `low` to `high` the range that it should be
    in. `rehearsals` says on how many made-up tables it was rehearsed: without any, it is put together by a model. Where
    there is a `dimension`, all that is meant for rows that lie on a set of it.
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
    """What would be chosen and expected if one thing were different."""

    change: str
    mechanism: str
    resolution: int | None
    predicted_bound: float


@dataclass(frozen=True, slots=True)
class Merged:
    """A column of more labels than can be told apart in tables with others: in how many groups they are counted."""

    column: str
    labels: int
    groups: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What `release` would choose for a table of this schema and size, what it chose from, and what to expect.

    `columns` is the number of columns that it would hold, and `workload` has the subsets of them that were named.
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
    merged: tuple[Merged, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """What `certsynth plan --json` prints."""
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
            }
        )


@takes(PlanOptions)
def plan(schema: Schema, **options: Unpack[PlanOptions]) -> Plan:
    """What certificate to expect for a table with this schema and so many rows, per mechanism and resolution.

    No row is read. The choice is the one that `release` makes with the same arguments for a table of so many rows;
    where that number is private, by a noisy one. Answers are remembered in a folder of the user's cache.

    Args:
        schema: What a row may hold; not a draft.
    """
    schema = usable(schema, options["columns"], options["subsets"])
    check_rules(schema)
    rows, memory, progress = options["rows"], options["memory"], options["progress"]
    public = True if options["projection"] == "public" else None
    settings = Settings.of(schema, {**options, "rows": None, "candidates": 1, "public": public})
    question = {"plan": 10, "schema": schema.to_toml()}
    question |= {name: None if value is None else str(value) for name, value in options.items() if name != "progress"}
    found = remembered(question, lambda: _planned(schema, settings, rows, memory, progress).to_json())
    try:
        return Plan.from_json(found)
    except (KeyError, TypeError):  # somebody else wrote that
        return _planned(schema, settings, rows, memory, progress)


def _planned(schema: Schema, settings: Settings, rows: int, memory: int | None, progress: Progress) -> Plan:
    if settings.certificate_share:
        check_lattice(FineMarginals.of(schema, settings.subsets), memory=memory)
    if settings.low_dimensional:
        return _planned_dimensions(schema, settings, rows)
    choice = choose(schema, settings, rows, memory=memory, progress=progress)
    terms = _terms(schema, settings, rows, choice, progress)
    outlooks = _outlooks(schema, settings, rows, choice.best, terms, progress)
    planned = {each: _describe(schema, settings, rows, each, terms[each], outlooks[each]) for each in terms}
    return Plan(
        rows=rows,
        columns=len(schema),
        sparsity=settings.sparsity,
        workload=settings.workload(schema),
        confidence=float(settings.confidence),
        privacy=settings.privacy.told(settings.privacy.budget),
        neighbours=str(settings.neighbours),
        certificate="direct" if settings.certificate_share else "plug-in",
        split=float(choice.best.split) if len(choice.layers) > 1 else None,
        choice=planned[choice.best],
        candidates=tuple(sorted(planned.values(), key=lambda c: (c.mechanism, c.resolution or 0))),
        variations=tuple(_variations(schema, settings, rows, choice.best, outlooks[choice.best].middle, progress)),
        merged=tuple(_merged(schema, choice.layers, rows)),
    )


def _planned_dimensions(schema: Schema, settings: Settings, rows: int) -> Plan:
    """For each dimension that the rows may have, the grid that suits it. At worst they fill all of the space: what is
    chosen is known only when the rows are looked at.
    """
    check_grid(schema, settings.resolution)
    planned = [_grid(schema, settings, rows, grid) for grid in possible_grids(schema, settings, rows)]
    half = _half(settings.privacy)
    others = [("twice the rows", settings, 2 * rows)]
    others += [("half of epsilon", dataclasses.replace(settings, privacy=half), rows)] if half else []
    variations = []
    for change, other, other_rows in others:
        worst = _grid(schema, other, other_rows, possible_grids(schema, other, other_rows)[-1])
        variations.append(Variation(change, worst.mechanism, worst.resolution, worst.predicted_bound))
    return Plan(
        rows=rows,
        columns=len(schema),
        sparsity=settings.sparsity,
        workload=None,
        confidence=float(settings.confidence),
        privacy=settings.privacy.told(settings.privacy.budget),
        neighbours=str(settings.neighbours),
        certificate="direct",
        split=None,
        choice=planned[-1],
        candidates=tuple(planned),
        variations=tuple(variations),
    )


def _grid(schema: Schema, settings: Settings, rows: int, grid: Grid) -> Planned:
    """What to expect of rows of the grid's dimension: a guess within a factor of 2."""
    expected, extra = grid.expected(grid.occupied), slack(schema, settings, rows)
    each = candidate_of(settings, grid)
    bound = NETTED * expected + extra
    return Planned(
        mechanism=each.strategy.name,
        growth=decimal_text(each.strategy.growth),
        resolution=grid.resolution,
        discretisation=each.discretisation,
        privatisation=min(1.0, each.privatisation),
        predicted_bound=min(1.0, bound),
        low=min(1.0, bound / 2),
        high=min(1.0, bound * 2),
        rehearsals=0,
        seconds=round(8 + 1e-4 * rows, 1),
        memory_gb=0.5,
        dimension=grid.dimension,
    )


def _merged(schema: Schema, layers: Sequence[Layer], rows: int) -> Iterator[Merged]:
    cells = blank_layers(schema, layers, rows)[-1].marginals.cells
    for column, groups in zip(schema, cells, strict=True):
        if isinstance(groups, Groups) and not len(groups.places) and groups.apart < groups.lattice.apart:
            yield Merged(column.name, groups.lattice.apart, groups.apart)


def _terms(schema: Schema, settings: Settings, rows: int, choice: Choice, progress: Progress) -> dict[Candidate, float]:
    """The privatisation term of every candidate, and of the paper's mechanism beside them."""
    known, beside = list(choice.candidates), []
    if settings.mechanism is None:
        reference = strategy_named(REFERENCE, neighbours=settings.neighbours)
        again = candidate(schema, settings, rows, choice.best.strategy, choice.best.resolution, choice.best.split)
        off = _ratio(choice.best.predicted, again.predicted)
        for resolution in dict.fromkeys(c.resolution for c in known):
            other = candidate(schema, settings, rows, reference, resolution, choice.best.split)
            beside.append(dataclasses.replace(other, predicted=off * other.predicted))
    draws = min(39, max(19, math.ceil(1 / settings.beta) - 1))
    most = max(2, min(10, QUANTILE_TABLES // len(known + beside)))
    tasks = [(schema, c.layers, rows, draws, most, settings.beta) for c in known + beside]
    found = run(_privatisation, tasks, work=10**9, phase="how large noise is", progress=progress)
    return dict(zip(known + beside, found, strict=True))


def _privatisation(schema: Schema, layers: Sequence[Layer], rows: int, draws: int, most: int, beta: Fraction) -> float:
    """What the noise of the last layer costs, at confidence 1 − β over the draws."""
    few, thin, _ = thinned(schema, layers)
    losses = noise_losses([blank_layers(few, thin, rows)[-1]], rows=rows, draws=draws, most=most)[0]
    return min(1.0, rank_quantile(losses, max(beta, Fraction(1, draws + 1))))


def _outlooks(
    schema: Schema,
    settings: Settings,
    rows: int,
    best: Candidate,
    terms: Mapping[Candidate, float],
    progress: Progress,
) -> dict[Candidate, Outlook]:
    """What to expect of each: rehearsed candidates in proportion to the best one, which alone is rehearsed so often."""
    if not is_rehearsed(settings, best):
        return {each: expected(schema, settings, rows, each, privatisation) for each, privatisation in terms.items()}
    outlook = expected(schema, settings, rows, best, terms[best], progress)
    others = {each: outlook.of(_ratio(each.predicted, best.predicted)) for each in terms}
    return others | {best: outlook}


def _describe(
    schema: Schema, settings: Settings, rows: int, each: Candidate, privatisation: float, outlook: Outlook
) -> Planned:
    size = _size(schema, settings, rows, each)
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
        eligible=each.strategy.name != REFERENCE or settings.mechanism == REFERENCE,
    )


def _size(schema: Schema, settings: Settings, rows: int, each: Candidate) -> Size:
    marginals = blank_layers(schema, each.layers, rows)[-1].marginals
    fine = FineMarginals.of(schema, settings.subsets) if settings.certificate_share else None
    return size_of_release(schema, marginals, fine, rows=rows, draws=settings.draws, program=settings.loss is not None)


def _variations(
    schema: Schema, settings: Settings, rows: int, best: Candidate, predicted: float, progress: Progress
) -> list[Variation]:
    """Twice the rows, half of ε, the other noise, other sparsities: with the mechanism that was chosen, if it fits."""
    fixed = dataclasses.replace(settings, mechanism=best.strategy.name)
    asked: list[tuple[str, Settings, int]] = [("twice the rows", fixed, 2 * rows)]
    half = _half(settings.privacy)
    if half is not None:
        asked.append(("half of epsilon", dataclasses.replace(fixed, privacy=half), rows))
    if len(settings.subsets) >= MANY_SUBSETS:
        change, other = _other_noise(settings.privacy)
        if other is not None:
            asked.append((change, dataclasses.replace(fixed, privacy=other), rows))
    for sparsity in (1, 2, 3):
        possible = sparsity <= len(schema)
        subsets = all_subsets(schema, sparsity)
        if possible and set(subsets) != set(settings.subsets):
            simple = None if sparsity == 1 else "identity"
            free = dataclasses.replace(settings, subsets=subsets, named=False, mechanism=settings.mechanism or simple)
            if sum(tables_at(schema, free, RESOLUTIONS[0], rows).sizes()) <= MOST_CELLS:
                asked.append((f"sparsity {sparsity}", free, rows))
    tasks = [(schema, other, other_rows) for _, other, other_rows in [("", settings, rows), *asked]]
    tasks.reverse()  # what takes longest comes first
    answers = run(_variation, tasks, work=10**9, phase="what would change", progress=progress)
    (now, now_rehearsed), *found = reversed(answers)
    made = []
    for (change, _, _), (guess, rehearsed) in zip(asked, found, strict=True):
        ratio = _ratio(guess.predicted, now.predicted)
        if rehearsed is not None and now_rehearsed is not None:
            ratio = _ratio(rehearsed, now_rehearsed)
        made.append(Variation(change, guess.strategy.name, guess.resolution, min(1.0, predicted * ratio)))
    return made


def _variation(schema: Schema, settings: Settings, rows: int) -> tuple[Candidate, float | None]:
    """What would be chosen without rehearsals, and its bound on one made-up table, if that can be had."""
    guess = first_guess(schema, settings, rows)
    if not is_rehearsed(settings, guess) or len(settings.subsets) > MOST_SUBSETS:
        return guess, None
    few, thin, subsets = thinned(schema, guess.layers, settings.subsets)
    made = rehearse(few, thin, rows, strength=strengths(2)[1], seed=FIRST_SEED)
    return guess, loss(few, subsets, made) + slack(schema, settings, rows)


def _ratio(expected: float, planned: float) -> float:
    return expected / planned if planned else 1.0


def _other_noise(privacy: Privacy) -> tuple[str, Privacy | None]:
    """The same ε with the other noise: Gaussian noise grows with the root of the number of tables, Laplace noise with
    the number.
    """
    if privacy.delta is not None:
        return "without delta", Privacy(Budget(privacy.epsilon), epsilon=privacy.epsilon)
    amount = rho_of(privacy.epsilon, SMALL_DELTA)
    other = Privacy(Budget(amount, Unit.RHO), epsilon=privacy.epsilon, delta=SMALL_DELTA) if amount else None
    return f"delta {float(SMALL_DELTA):g}", other


def _half(privacy: Privacy) -> Privacy | None:
    """The same with half of ε."""
    half = privacy.epsilon / 2
    if privacy.delta is None:
        return Privacy(Budget(half), epsilon=half)
    amount = rho_of(half, privacy.delta)
    return Privacy(Budget(amount, privacy.budget.unit), epsilon=half, delta=privacy.delta) if amount else None
