r"""The direct certificate: the loss itself, released with a little noise.

For a fixed synthetic table the loss changes by at most 1/n when one private row changes, so it can be released at
almost no cost. The proofs are in docs/explanation/proofs (sensitivity.md, direct.md). They require that the number that
receives noise is an exact integer, computed from flows of proved optimality, on lattices and networks determined by the
schema alone, or on nets determined by the schema and the synthetic table. This module ensures that.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from certsynth.certificate.comparison import Distance, mean_moved
from certsynth.certificate.skipping import LOSS_UNITS, loss_in_units
from certsynth.errors import SolverFailed
from certsynth.mechanisms.guarantee import Budget, Guarantee, Neighbours, Sensitivity
from certsynth.mechanisms.samplers import Noise
from certsynth.mechanisms.scalars import NoisyScalars, measure_scalars
from certsynth.queries.fine import MOVE_UNITS, LatticeCounts, LatticeQuery
from certsynth.queries.marginals import Subset
from certsynth.transport import stretch_of

MAX_MOVED_WEIGHT = 16
"""Largest factor by which the noise on distances to the lattice is smaller than that on the loss; the factor is limited
so that it adds at most 1/32 of a row to the sensitivity (see `moved_weight`)."""

SINGLE_SHARE = Fraction(1, 2)
"""Share of the certificate's budget and failure probability for the bound on single columns.

Means and shares of one column are the most frequent queries. With a share of 1/4 their bound was often no smaller than
that for pairs, since its noise was three times as large (California, ε = 1: 0.0073 to 0.0081; 0.0045 with 1/2)."""

COUNT_WEIGHT = Fraction(1, 4)
"""Weight of the number of rows under add/remove: it receives four times the noise of the loss, which it only
divides."""


def certificate_shares(subsets: Sequence[Subset]) -> tuple[Fraction, Fraction]:
    """Shares of the budget, and of the failure probability, for all subsets together and for single columns.

    Where no subset has more than one column, single columns need no certificate of their own.
    """
    single = SINGLE_SHARE if any(len(subset) > 1 for subset in subsets) else Fraction(0)
    return 1 - single, single


def single_columns(fine: LatticeQuery) -> LatticeQuery:
    """The query for each single column of the subsets, on the lattice for one column."""
    columns = sorted({j for subset in fine.marginals.subsets for j in subset})
    return LatticeQuery.of(fine.schema, [(j,) for j in columns])


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
    r"""The integers that receive noise, and their joint sensitivity.

    In multiples of 1/LOSS_UNITS rows: `losses`, n·(g_S + a_S + b_S) for each subset S or their maximum, where g_S is
    the flow between the tables on the lattice, and a_S and b_S are the mean distances of private and synthetic rows to
    it; `moved`, the largest n·a_S times its weight, if a lower bound is needed; `count`, the number of rows times
    COUNT_WEIGHT, if it is hidden and not measured yet. `loss_sensitivity` is that of a single loss.
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

    over functions of oscillation at most 1, so adding, removing or replacing one row changes it by at most 1. A row is
    at most `far` from the lattice; on nets both terms together change by at most 1 plus `slack`. Maxima change by no
    more than their members, and rounding up preserves integer sensitivities. Distances to the lattice are not queried
    on nets. The maximum does not depend on skipped subsets. The number of rows is not queried if it was `counted`
    before.
    """
    solved = [d for d in found if not d.skipped]
    if per_subset and len(solved) < len(found):
        raise ValueError("a loss per subset requires that no subset is skipped")
    if not all(d.proved for d in solved):
        raise SolverFailed(
            "a transport problem was not solved to proved optimality, so the noise that it needs is unknown; nothing "
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
        moved = max(math.ceil(weight * LOSS_UNITS * rows * d.first_moved) for d in found)
        changes.append(math.ceil(weight * LOSS_UNITS * far))
    if neighbours is Neighbours.ADD_REMOVE and not counted:
        count = int(LOSS_UNITS * COUNT_WEIGHT) * rows
        changes.append(int(LOSS_UNITS * COUNT_WEIGHT))
    return Query(
        losses=tuple(losses),
        moved=moved,
        count=count,
        loss_sensitivity=of_one_loss,
        sensitivity=Sensitivity(sum(changes), sum(change**2 for change in changes)),
    )


def moved_weight(fine: LatticeQuery) -> int:
    """Factor by which the noise on summed distances to the lattice is smaller than on the loss; fixed by the schema."""
    far = Fraction(fine.farthest(), MOVE_UNITS)
    return max(1, min(MAX_MOVED_WEIGHT, math.floor(1 / (32 * far)))) if far else MAX_MOVED_WEIGHT


@dataclass(frozen=True, slots=True)
class Direct:
    """Bounds on the loss in each subset (a single entry for the maximum), all valid simultaneously.

    `estimates` are the noisy losses, which are unbiased; a bound is an estimate plus its slack. `noisy` holds the
    integers from which everything else is computed.
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


def direct_certificate(
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
    """Add noise to the exact distances between `rows` private rows and the synthetic ones, at the cost of `budget`, and
    return bounds on the loss with confidence 1 − β.

    Without `two_sided`, and always on nets, all of β goes to the upper bounds and the lower bounds are 0. `counted` is
    a noisy number of rows measured earlier; then the number is not queried again.
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
    counted: NoisyScalars | None = None,
) -> Direct:
    r"""Bounds on the loss from noisy values: post-processing.

    `rows` is used under replace-one only; `synthetic_moved`, the largest mean distance of synthetic rows to the
    lattice, for lower bounds only.

    With h the noiseless loss in rows and m ≥ a_S + b_S,

    .. math:: h/n \ge \max_S W_1^S \ge h/n - 2m

    and the failure probability β pays for the slack of h (both sides if `two_sided`, and all losses), for m and for n.
    """
    hidden = noisy.cost.neighbours is Neighbours.ADD_REMOVE
    for_count = beta / 10 if hidden else Fraction(0)
    for_moved = beta / 10 if two_sided else Fraction(0)
    for_losses = (beta - for_count - for_moved) / ((1 + two_sided) * losses)
    slack = Fraction(noisy.slack(for_losses), LOSS_UNITS)
    values = [Fraction(v, LOSS_UNITS) for v in noisy.values]
    least = most = Fraction(rows)
    if hidden:
        if counted is not None:
            n, error = Fraction(counted.values[0]), Fraction(counted.slack(for_count / 2))
        else:
            n, error = values[-1] / COUNT_WEIGHT, Fraction(noisy.slack(for_count / 2), LOSS_UNITS) / COUNT_WEIGHT
        least, most = n - error, n + error
    upper = [_up((loss + slack) / least) if least >= 1 else 1.0 for loss in values[:losses]]
    lower = [0.0] * losses
    if two_sided and synthetic_moved is not None and least >= 1:
        moved = (values[losses] + Fraction(noisy.slack(for_moved), LOSS_UNITS)) / moved_weight(fine) / least
        moved = min(max(moved, Fraction(0)), Fraction(fine.farthest(), MOVE_UNITS))
        moved += synthetic_moved
        cautious = [(loss - slack - Fraction(1, LOSS_UNITS)) / most for loss in values[:losses]]
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
