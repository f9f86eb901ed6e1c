r"""The direct certificate: the loss itself, released with a little noise.

For a fixed synthetic table the loss of the private rows moves by at most 1/n when one row changes, so it can be
released at almost no cost. docs/explanation/proofs has the proofs (sensitivity.md, direct.md); what they need of the
code is done here: the number that gets noise is an exact integer, computed from flows whose optimality is proved, on
lattices and networks that the schema alone fixes, or on nets that the schema and the synthetic table fix.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from certsynth.certificate.comparison import Distance, mean_moved
from certsynth.certificate.skipping import FINENESS, loss_in_units
from certsynth.errors import SolverFailed
from certsynth.mechanisms.guarantee import Budget, Guarantee, Neighbours, Sensitivity
from certsynth.mechanisms.samplers import Noise
from certsynth.mechanisms.scalars import NoisyScalars, measure_scalars
from certsynth.queries.fine import MOVE_UNITS, LatticeCounts, LatticeQuery
from certsynth.queries.marginals import Subset
from certsynth.transport import stretch_of

MOVED_WEIGHT = 16
"""What rows were moved to the lattice gets up to so much less noise than the loss, as long as that adds no more than
a thirty-second of a row to the sensitivity (see `moved_weight`)."""

SINGLE_SHARE = Fraction(1, 2)
"""Of the budget and the failure probability, what the bound for single columns gets beside that for more.

Means and shares of one column are what is asked most. With a quarter their bound was often no smaller than that for
pairs: its noise was three times as large (California, ε = 1: 0.0073 to 0.0081, and 0.0045 with half)."""

COUNT_WEIGHT = Fraction(1, 4)
"""Under add/remove the number of rows gets four times the noise of the loss: it only divides the loss."""


def certificate_shares(subsets: Sequence[Subset]) -> tuple[Fraction, Fraction]:
    """Shares of the budget, and of the failure probability, for all subsets together and for single columns.

    Where no subset has more than one column, single columns need no certificate of their own.
    """
    single = SINGLE_SHARE if any(len(subset) > 1 for subset in subsets) else Fraction(0)
    return 1 - single, single


def single_columns(fine: LatticeQuery) -> LatticeQuery:
    """Each column of the subsets by itself, on the lattice for one column."""
    columns = sorted({j for subset in fine.marginals.subsets for j in subset})
    return LatticeQuery.of(fine.schema, [(j,) for j in columns])


def loss_sensitivity(fine: LatticeQuery, synthetic_moved: Fraction, neighbours: Neighbours) -> int:
    """The most that the loss changes between neighbours, in multiples of 1/FINENESS rows.

    `synthetic_moved` is how far the rows of the synthetic table are moved to the lattice, on average, in the subset
    where that is most. It counts only under add/remove, where n·b_S changes with n.
    """
    change = 1 + Fraction(fine.slack(), MOVE_UNITS)
    if neighbours is Neighbours.ADD_REMOVE:
        change += synthetic_moved
    return math.ceil(FINENESS * change)


def choice_sensitivity(fine: LatticeQuery, neighbours: Neighbours) -> int:
    """The most that the loss of any synthetic table changes between neighbours: fixed by the schema."""
    if fine.wide:
        raise ValueError("tables are chosen among by subsets that have a lattice")
    return loss_sensitivity(fine, Fraction(fine.farthest(), MOVE_UNITS), neighbours)


@dataclass(frozen=True, slots=True)
class Query:
    r"""The integers that get noise, and the most that they change together between neighbours.

    In multiples of 1/FINENESS rows: `losses`, n·(g_S + a_S + b_S) for each subset S or their maximum, where g_S is the
    flow between the tables on the lattice, a_S and b_S what private and synthetic rows were moved on average; `moved`,
    the largest n·a_S, times its weight, where a lower bound is wanted; `count`, the number of rows times COUNT_WEIGHT,
    where it is hidden and was not measured before. `loss_sensitivity` is that of one loss alone.
    """

    losses: tuple[int, ...]
    moved: int | None
    count: int | None
    loss_sensitivity: int
    sensitivity: Sensitivity

    @property
    def values(self) -> tuple[int, ...]:
        return (*self.losses, *(value for value in (self.moved, self.count) if value is not None))


def exact_query(
    fine: LatticeQuery,
    found: Sequence[Distance],
    rows: int,
    *,
    neighbours: Neighbours,
    per_subset: bool = False,
    two_sided: bool = True,
    counted: bool = False,
) -> Query:
    r"""The query on exact distances between `rows` private rows and a fixed synthetic table.

    .. math:: n\,g_S = \sup_f \sum_i \bigl(f(x_i) - \textstyle\int f\,d\mu\bigr)

    over functions of oscillation at most 1, so that one row more, less or other changes it by at most 1. What a row is
    moved is at most `far`; on nets both together change by at most 1 and a little. Maxima change by no more than their
    members, and rounding up keeps whole sensitivities. How far rows were moved is not asked on nets. Subsets that were
    skipped are none that the maximum depends on. The number of rows is not asked for if it was `counted` before.
    """
    solved = [d for d in found if not d.skipped]
    if per_subset and len(solved) < len(found):
        raise ValueError("each subset's own loss is wanted: none may be skipped")
    if not all(d.proved for d in solved):
        raise SolverFailed(
            "a transport problem was not solved to proved optimality, so that the noise it needs is not known; nothing "
            "was released, and the budget of the certificate counts as spent."
        )
    two_sided = two_sided and not fine.wide
    far = Fraction(fine.farthest(), MOVE_UNITS)
    losses = [loss_in_units(d.all, rows) for d in solved]
    losses = losses if per_subset else [max(losses)]
    of_one_loss = loss_sensitivity(fine, max(d.second_moved for d in found), neighbours)
    changes = [of_one_loss] * len(losses)
    moved = count = None
    if two_sided:
        weight = moved_weight(fine)
        moved = max(math.ceil(weight * FINENESS * rows * d.first_moved) for d in found)
        changes.append(math.ceil(weight * FINENESS * far))
    if neighbours is Neighbours.ADD_REMOVE and not counted:
        count = int(FINENESS * COUNT_WEIGHT) * rows
        changes.append(int(FINENESS * COUNT_WEIGHT))
    return Query(
        losses=tuple(losses),
        moved=moved,
        count=count,
        loss_sensitivity=of_one_loss,
        sensitivity=Sensitivity(sum(changes), sum(change**2 for change in changes)),
    )


def moved_weight(fine: LatticeQuery) -> int:
    """How much less noise the summed distances to the lattice get than the loss: fixed by the schema."""
    far = Fraction(fine.farthest(), MOVE_UNITS)
    return max(1, min(MOVED_WEIGHT, math.floor(1 / (32 * far)))) if far else MOVED_WEIGHT


@dataclass(frozen=True, slots=True)
class Direct:
    """Bounds on the loss in each subset (one entry if the maximum was asked for), all valid together.

    `estimates` are the noisy losses, on average right; a bound is an estimate plus its slack. `noisy` has the integers
    that all of it is computed from.
    """

    subsets: tuple[tuple[str, ...], ...]
    bounds: tuple[float, ...]
    lowers: tuple[float, ...]
    estimates: tuple[float, ...]
    confidence: Fraction
    noisy: NoisyScalars

    @property
    def cost(self) -> Guarantee:
        return self.noisy.cost

    @property
    def releasable(self) -> bool:
        return self.noisy.releasable

    @property
    def bound(self) -> float:
        return max(self.bounds)

    @property
    def lower(self) -> float:
        return max(self.lowers)


def released(
    fine: LatticeQuery,
    found: Sequence[Distance],
    rows: int,
    *,
    budget: Budget,
    beta: Fraction,
    neighbours: Neighbours,
    per_subset: bool = False,
    two_sided: bool = True,
    counted: NoisyScalars | None = None,
    noise: Noise | None = None,
) -> Direct:
    """Bounds on the loss with confidence 1 − β, at the cost of `budget`, from exact distances of `rows` private rows to
    the synthetic ones: they get noise here.

    Without `two_sided` all of β goes to the upper bounds, and the lower ones are 0; so it is where there are nets.
    `counted` is a noisy number of rows from before: then none is asked for here.
    """
    two_sided = two_sided and not fine.wide
    query = exact_query(
        fine,
        found,
        rows,
        neighbours=neighbours,
        per_subset=per_subset,
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
        stretch=max(d.stretch for d in found),
        two_sided=two_sided,
        counted=counted,
    )


def nothing(fine: LatticeQuery, synthetic: LatticeCounts) -> list[Distance]:
    """Distances from a table without rows: none, times no rows."""
    zero, marginals = Fraction(0), fine.marginals
    grounds = zip(marginals.subsets, fine.nets_by_subset(), strict=True)
    # What is done with the noisy answer must not tell an empty table from another: the stretch is the networks' own.
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
    counted: NoisyScalars | None = None,
) -> Direct:
    r"""What noisy values say about the loss: post-processing.

    `rows` is used under replace-one only, and `synthetic_moved`, what synthetic rows were moved on average at most, for
    lower bounds only.

    With h the noiseless loss in rows and m ≥ a_S + b_S what rows were moved,

    .. math:: h/n \ge \max_S W_1^S \ge h/n - 2m

    and the failure probability β pays for the slack of h (both sides if `two_sided`, and all losses), for m and for n.
    """
    hidden = noisy.cost.neighbours is Neighbours.ADD_REMOVE
    for_count = beta / 10 if hidden else Fraction(0)
    for_moved = beta / 10 if two_sided else Fraction(0)
    for_losses = (beta - for_count - for_moved) / ((1 + two_sided) * losses)
    slack = Fraction(noisy.slack(for_losses), FINENESS)
    values = [Fraction(v, FINENESS) for v in noisy.values]
    least = most = Fraction(rows)
    if hidden:
        if counted is not None:
            n, error = Fraction(counted.values[0]), Fraction(counted.slack(for_count / 2))
        else:
            n, error = values[-1] / COUNT_WEIGHT, Fraction(noisy.slack(for_count / 2), FINENESS) / COUNT_WEIGHT
        least, most = n - error, n + error
    upper = [_up((loss + slack) / least) if least >= 1 else 1.0 for loss in values[:losses]]
    lower = [0.0] * losses
    if two_sided and synthetic_moved is not None and least >= 1:
        moved = (values[losses] + Fraction(noisy.slack(for_moved), FINENESS)) / moved_weight(fine) / least
        moved = min(max(moved, Fraction(0)), Fraction(fine.farthest(), MOVE_UNITS))
        moved += synthetic_moved
        cautious = [(loss - slack - Fraction(1, FINENESS)) / most for loss in values[:losses]]
        lower = [_down((loss - moved) / stretch - moved) for loss in cautious]
    middle = max((least + most) / 2, Fraction(1))
    names = fine.schema.names
    return Direct(
        subsets=tuple(tuple(names[j] for j in subset) for subset in fine.marginals.subsets),
        bounds=tuple(upper),
        lowers=tuple(lower),
        estimates=tuple(float(loss / middle) for loss in values[:losses]),
        confidence=1 - beta,
        noisy=noisy,
    )


def _up(value: Fraction) -> float:
    return min(1.0, max(0.0, math.nextafter(float(value), math.inf)))


def _down(value: Fraction) -> float:
    return max(0.0, math.nextafter(float(value), -math.inf))
