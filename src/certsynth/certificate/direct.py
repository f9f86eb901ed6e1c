r"""The direct certificate: the loss itself, and the largest errors of shares, totals and moments, with a little noise.

For a fixed synthetic table each of these numbers changes by at most 1/n when one private row changes, so they can be
released at almost no cost, all with one draw of sup-norm noise. The proofs are in docs/explanation/proofs
(sensitivity.md, direct.md, statistics.md). They require that a number that receives noise is an exact integer, computed
from flows of proved optimality, on lattices and networks determined by the schema alone, or on nets determined by the
schema and the synthetic table. This module ensures that.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from certsynth.certificate.comparison import Distance, mean_moved
from certsynth.certificate.coverage import pairs_imply_singles
from certsynth.certificate.skipping import LOSS_UNITS, loss_in_units
from certsynth.certificate.statistics import OF_EXCEPTIONS
from certsynth.errors import SolverFailed
from certsynth.mechanisms.guarantee import Budget, Guarantee, Neighbours, Sensitivity
from certsynth.mechanisms.samplers import Noise
from certsynth.mechanisms.scalars import NoisyScalars, measure_scalars
from certsynth.queries.fine import MOVE_UNITS, LatticeCounts, LatticeQuery
from certsynth.queries.marginals import Subset, subsets_within
from certsynth.transport import stretch_of

MAX_MOVED_WEIGHT = 16
"""Largest factor by which the noise on distances to the lattice is smaller than that on the loss; the factor is limited
so that it adds at most 1/32 of a row to the sensitivity (see `moved_weight`)."""

COUNT_WEIGHT = Fraction(1, 4)
"""Weight of the number of rows under add/remove: it receives four times the noise of the loss, which it only
divides."""


def single_columns(fine: LatticeQuery) -> LatticeQuery:
    """The query for each single column of the subsets, on the lattice for one column."""
    return LatticeQuery.of(fine.schema, subsets_within(fine.marginals.subsets, 1))


def bounds_single_columns(subsets: Sequence[Subset]) -> bool:
    """Whether single columns have a loss of their own: where no subset is wider, that of all subsets is the same."""
    return any(len(subset) > 1 for subset in subsets)


def loss_sensitivity(fine: LatticeQuery, synthetic_moved: Fraction, neighbours: Neighbours) -> int:
    """Sensitivity of the loss, in multiples of 1/LOSS_UNITS rows.

    `synthetic_moved` is the mean distance of the synthetic rows to the lattice, maximised over the subsets. It matters
    only under add/remove, where n·b_S changes with n.
    """
    change = 1 + Fraction(fine.slack(), MOVE_UNITS)
    if neighbours is Neighbours.ADD_REMOVE:
        change += synthetic_moved
    return math.ceil(LOSS_UNITS * change)


def choice_sensitivity(fine: LatticeQuery, neighbours: Neighbours) -> int:
    """Sensitivity of the loss of any synthetic table, determined by the schema."""
    if fine.wide:
        raise ValueError("candidates can be compared only on subsets that have a lattice")
    return loss_sensitivity(fine, Fraction(fine.farthest(), MOVE_UNITS), neighbours)


@dataclass(frozen=True, slots=True)
class Query:
    r"""The integers that receive noise, and the change of each between neighbours.

    In multiples of 1/LOSS_UNITS rows: `losses`, n·(g_S + a_S + b_S) for each subset S or their maximum, where g_S is
    the flow between the tables on the lattice, and a_S and b_S are the mean distances of private and synthetic rows to
    it; `single`, the same maximum over single columns; `statistics`, the largest errors of shares, totals and moments,
    by name; `moved`, the largest n·a_S times its weight, if a lower bound is needed; `count`, the number of rows times
    COUNT_WEIGHT, if it is hidden and not measured yet.
    """

    losses: tuple[int, ...]
    changes: tuple[int, ...]
    single: int | None = None
    statistics: Mapping[str, int] = field(default_factory=dict)
    moved: int | None = None
    count: int | None = None

    @property
    def values(self) -> tuple[int, ...]:
        others = (self.single, *self.statistics.values(), self.moved, self.count)
        return (*self.losses, *(value for value in others if value is not None))

    @property
    def sensitivity(self) -> Sensitivity:
        return joint_sensitivity(self.changes)

    @property
    def loss_sensitivity(self) -> int:
        """The sensitivity of a single loss."""
        return self.changes[0]


def joint_sensitivity(changes: Sequence[int]) -> Sensitivity:
    """The sensitivity of integers that get noise together, given the largest change of each."""
    return Sensitivity(sum(changes), sum(change**2 for change in changes), each=max(changes))


@dataclass(frozen=True, slots=True, eq=False)
class SingleColumns:
    """The query for single columns, and their distances."""

    fine: LatticeQuery
    found: Sequence[Distance]


def exact_query(
    fine: LatticeQuery,
    found: Sequence[Distance],
    rows: int,
    *,
    neighbours: Neighbours,
    single: SingleColumns | None = None,
    statistics: Mapping[str, int] | None = None,
    per_subset: bool = False,
    exceptions: Sequence[int] = (),
    two_sided: bool = True,
    counted: bool = False,
) -> Query:
    r"""The query on exact distances between `rows` private rows and a fixed synthetic table.

    .. math:: n\,g_S = \sup_f \sum_i \bigl(f(x_i) - \textstyle\int f\,d\mu\bigr)

    over functions of oscillation at most 1, so adding, removing or replacing one row changes it by at most 1. A row is
    at most `far` from the lattice; on nets both terms together change by at most 1 plus `slack`. Maxima change by no
    more than their members, and rounding up preserves integer sensitivities. Distances to the lattice are not queried
    on nets. The maximum does not depend on skipped subsets. The number of rows is not queried if it was `counted`
    before. `statistics` are exact maxima in multiples of 1/LOSS_UNITS rows, each of which changes by at most one row.
    With `exceptions`, positions of subsets, there are two maxima: that of all other subsets and that of the exceptions;
    `statistics` has two for errors of pairs.
    """
    if per_subset and (exceptions or any(d.skipped for d in found)):
        raise ValueError("a loss per subset requires that no subset is skipped and none is an exception")
    two_sided = two_sided and not fine.wide
    far = Fraction(fine.farthest(), MOVE_UNITS)
    losses = _losses(found, rows) if per_subset else [max(_losses(part, rows)) for part in _parts(found, exceptions)]
    changes = [_loss_change(fine, found, neighbours)] * len(losses)
    if single is not None:
        changes.append(_loss_change(single.fine, single.found, neighbours))
    statistics = statistics or {}
    changes += [LOSS_UNITS] * len(statistics)
    moved = count = None
    if two_sided:
        weight = moved_weight(fine)
        moved = max(math.ceil(weight * LOSS_UNITS * rows * d.first_moved) for d in found)
        changes.append(math.ceil(weight * LOSS_UNITS * far))
    if neighbours is Neighbours.ADD_REMOVE and not counted:
        count = int(LOSS_UNITS * COUNT_WEIGHT) * rows
        changes.append(int(LOSS_UNITS * COUNT_WEIGHT))
    return Query(
        losses=tuple(losses),
        changes=tuple(changes),
        single=None if single is None else max(_losses(single.found, rows)),
        statistics=statistics,
        moved=moved,
        count=count,
    )


def _parts(found: Sequence[Distance], exceptions: Sequence[int]) -> list[Sequence[Distance]]:
    """The distances of all other subsets, and those of the exceptions, if there are any."""
    if not exceptions:
        return [found]
    return [[d for j, d in enumerate(found) if j not in exceptions], [found[j] for j in exceptions]]


def flow_losses(found: Sequence[Distance], rows: int) -> list[int]:
    """n·g_S for each subset, in multiples of 1/LOSS_UNITS rows, each of which changes by at most one row."""
    return [loss_in_units(d.upper, rows) for d in _proved(found)]


def _losses(found: Sequence[Distance], rows: int) -> list[int]:
    return [loss_in_units(d.all, rows) for d in _proved([d for d in found if not d.skipped])]


def _proved(solved: Sequence[Distance]) -> Sequence[Distance]:
    if not all(d.proved for d in solved):
        raise SolverFailed(
            "a transport problem was not solved to proved optimality, so the noise that it needs is unknown; nothing "
            "was released, and the budget of the certificate counts as spent."
        )
    return solved


def _loss_change(fine: LatticeQuery, found: Sequence[Distance], neighbours: Neighbours) -> int:
    return loss_sensitivity(fine, max(d.second_moved for d in found), neighbours)


def moved_weight(fine: LatticeQuery) -> int:
    """Factor by which the noise on summed distances to the lattice is smaller than on the loss; fixed by the schema."""
    far = Fraction(fine.farthest(), MOVE_UNITS)
    return max(1, min(MAX_MOVED_WEIGHT, math.floor(1 / (32 * far)))) if far else MAX_MOVED_WEIGHT


@dataclass(frozen=True, slots=True)
class Figure:
    """A noisy number as a share of rows, with bounds on its exact value. The estimate is unbiased."""

    estimate: float
    bound: float
    lower: float = 0.0


def largest(figures: Sequence[Figure]) -> Figure:
    """The largest of several numbers, with bounds on it."""
    return Figure(*(max(getattr(each, name) for each in figures) for name in ("estimate", "bound", "lower")))


@dataclass(frozen=True, slots=True)
class Direct:
    """Bounds on the loss in each subset (a single entry for the maximum) and in single columns, and on the errors of
    `statistics`, all valid simultaneously.

    `exceptions` are subsets with a maximum of their own: then there are two losses, that of all others and theirs, and
    `of_pairs` has two bounds for each error of pairs of columns, the larger of which is in `statistics`.
    `single` is None if no subset has more than one column. The number of rows lies between `fewest_rows` and
    `most_rows`, on the same event. `noisy` holds the integers from which everything else is computed.
    """

    subsets: tuple[tuple[str, ...], ...]
    losses: tuple[Figure, ...]
    single: Figure | None
    statistics: Mapping[str, Figure]
    fewest_rows: Fraction
    most_rows: Fraction
    confidence: Fraction
    noisy: NoisyScalars
    exceptions: tuple[tuple[str, ...], ...] = ()
    of_pairs: Mapping[str, tuple[Figure, Figure]] = field(default_factory=dict)

    @property
    def cost(self) -> Guarantee:
        return self.noisy.cost

    @property
    def releasable(self) -> bool:
        return self.noisy.releasable

    @property
    def whole(self) -> Figure:
        """The largest loss of all subsets."""
        return largest(self.losses)

    @property
    def of_each_subset(self) -> tuple[Figure, ...]:
        """The bounds of each subset. A largest loss bounds every loss from above, but only a sole one from below."""
        if len(self.losses) == len(self.subsets) and not self.exceptions:
            return self.losses
        sizes = len(self.subsets) - len(self.exceptions), len(self.exceptions)
        shared = [
            each if size == 1 else replace(each, lower=0.0) for each, size in zip(self.losses, sizes, strict=False)
        ]
        return tuple(shared[columns in self.exceptions] for columns in self.subsets)

    @property
    def bound(self) -> float:
        return self.whole.bound

    @property
    def lower(self) -> float:
        return self.whole.lower


def direct_certificate(
    fine: LatticeQuery,
    found: Sequence[Distance],
    rows: int,
    *,
    budget: Budget,
    beta: Fraction,
    neighbours: Neighbours,
    single: SingleColumns | None = None,
    statistics: Mapping[str, int] | None = None,
    per_subset: bool = False,
    exceptions: Sequence[int] = (),
    two_sided: bool = True,
    counted: NoisyScalars | None = None,
    noise: Noise | None = None,
) -> Direct:
    """Add noise to the exact distances between `rows` private rows and the synthetic ones, and to the largest errors
    of `statistics`, at the cost of `budget`; return bounds that hold together with confidence 1 − β.

    Without `two_sided`, and always on nets, all of β goes to the upper bounds and the lower bounds are 0.
    `counted` is a noisy number of rows measured earlier; then the number is not queried again. `exceptions` are the
    positions of subsets that get a bound of their own; they must be public or have been chosen privately.
    """
    two_sided = two_sided and not fine.wide
    query = exact_query(
        fine,
        found,
        rows,
        neighbours=neighbours,
        single=single,
        statistics=statistics,
        per_subset=per_subset,
        exceptions=exceptions,
        two_sided=two_sided,
        counted=counted is not None,
    )
    noisy = measure_scalars(
        query.values, sensitivity=query.sensitivity, budget=budget, neighbours=neighbours, noise=noise
    )
    return bounds(
        fine,
        max(d.second_moved for d in found),
        noisy,
        rows=rows,
        beta=beta,
        losses=len(query.losses),
        exceptions=exceptions,
        stretch=max(d.stretch for d in found),
        two_sided=two_sided,
        single=single is not None,
        statistics=tuple(query.statistics),
        counted=counted,
    )


def distances_to_empty(fine: LatticeQuery, synthetic: LatticeCounts) -> list[Distance]:
    """Distances for a private table without rows, where n times any distance is 0."""
    zero, marginals = Fraction(0), fine.marginals
    grounds = zip(marginals.subsets, fine.nets_by_subset(), strict=True)
    # Post-processing must not reveal that the table is empty, so the stretch is that of the actual networks.
    stretches = [stretch_of(marginals.of(subset)) if net is None else Fraction(1) for subset, net in grounds]
    moved = [mean_moved(m, synthetic.rows) for m in synthetic.moved]
    return [Distance(zero, zero, stretch, zero, b) for stretch, b in zip(stretches, moved, strict=True)]


def bounds(
    fine: LatticeQuery,
    synthetic_moved: Fraction | None,
    noisy: NoisyScalars,
    *,
    rows: int,
    beta: Fraction,
    losses: int,
    stretch: Fraction,
    two_sided: bool,
    exceptions: Sequence[int] = (),
    single: bool = False,
    statistics: Sequence[str] = (),
    counted: NoisyScalars | None = None,
    used: int | None = None,
) -> Direct:
    r"""Bounds on losses and errors from noisy values: post-processing.

    `rows` is used under replace-one only; `synthetic_moved`, the largest mean distance of synthetic rows to the
    lattice, for lower bounds only. `losses`, `single` and `statistics` say what the values are, in this order; with
    `exceptions`, positions of subsets, the two losses are those of all other subsets and of the exceptions, and so are
    the errors of pairs.

    With h the noiseless loss in rows and m ≥ a_S + b_S,

    .. math:: h/n \ge \max_S W_1^S \ge h/n - 2m

    One slack holds for all values together: on one side, or on both if there are lower bounds. The event on which it
    does covers m as well, and n if it is one of the values; otherwise a hidden n has its own share of β. With `used`,
    bounds hold only for that many losses and errors together, chosen without looking at the values: then none is
    lowered to another.
    """
    hidden = noisy.cost.neighbours is Neighbours.ADD_REMOVE
    for_count = beta / 10 if hidden and counted is not None else Fraction(0)
    if used is not None and hidden and counted is None:
        used += 1  # n divides every one of them
    slack = Fraction(noisy.joint_slack(beta - for_count, both_sides=two_sided, used=used), LOSS_UNITS)
    values = [Fraction(v, LOSS_UNITS) for v in noisy.values]
    least = most = Fraction(rows)
    if hidden:
        if counted is not None:
            n, error = Fraction(counted.values[0]), Fraction(counted.slack(for_count / 2))
        else:
            n, error = values[-1] / COUNT_WEIGHT, slack / COUNT_WEIGHT
        least, most = n - error, n + error
    middle = max((least + most) / 2, Fraction(1))

    def figure(value: Fraction) -> Figure:
        upper = _up((value + slack) / least) if least >= 1 else 1.0
        lower = _down((value - slack - Fraction(1, LOSS_UNITS)) / most) if two_sided and least >= 1 else 0.0
        return Figure(float(value / middle), upper, lower)

    found = [figure(value) for value in values[: losses + single + len(statistics)]]
    first = losses + single + len(statistics)
    moved = None
    if two_sided and synthetic_moved is not None and least >= 1:
        moved = (values[first] + slack) / moved_weight(fine) / least
        moved = min(max(moved, Fraction(0)), Fraction(fine.farthest(), MOVE_UNITS)) + synthetic_moved
    names = fine.schema.names
    subsets = tuple(tuple(names[j] for j in subset) for subset in fine.marginals.subsets)
    errors = dict(zip(statistics, found[losses + single :], strict=True))
    pairs = [(name, errors.pop(own)) for name, own in OF_EXCEPTIONS.items() if own in errors]
    of_pairs = {name: (errors[name], own) for name, own in pairs}
    errors |= {name: largest(both) for name, both in of_pairs.items()}
    for one, two in pairs_imply_singles(fine.schema, fine.marginals.subsets).items():
        if used is None and {one, two} <= set(errors):
            errors[one] = replace(errors[one], bound=min(errors[one].bound, errors[two].bound))
    return Direct(
        subsets=subsets,
        losses=tuple(_of_true_distances(each, moved, stretch) for each in found[:losses]),
        single=_of_true_distances(found[losses], None, stretch) if single else None,
        statistics=errors,
        fewest_rows=least,
        most_rows=most,
        confidence=1 - beta,
        noisy=noisy,
        exceptions=tuple(subsets[j] for j in exceptions),
        of_pairs=of_pairs,
    )


def _of_true_distances(loss: Figure, moved: Fraction | None, stretch: Fraction) -> Figure:
    """A loss whose lower bound holds for distances of the rows themselves; 0 if it is unknown how far rows moved."""
    if moved is None:
        return replace(loss, lower=0.0)
    return replace(loss, lower=_down((Fraction(loss.lower) - moved) / stretch - moved))


def _up(value: Fraction) -> float:
    return min(1.0, max(0.0, math.nextafter(float(value), math.inf)))


def _down(value: Fraction) -> float:
    return max(0.0, math.nextafter(float(value), -math.inf))
