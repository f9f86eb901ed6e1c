"""Step 3 with the path loss: one linear program, as in the paper."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import block_diag, csr_array, eye_array, hstack, vstack

from certsynth.base.arrays import Ints
from certsynth.projection.linear_program import LinearProjection, Program, worst_plus_mean_cost
from certsynth.projection.target import Target
from certsynth.transport.path import Order, Path


@dataclass(frozen=True, slots=True)
class PathProgram(LinearProjection):
    r"""Weights on given points that minimise the path loss to the target.

    .. math:: \min_{\alpha \in \Delta} \max_S \sum_l w_l \Bigl| \sum_{i \le l} (\nu^S_i - (A^S\alpha)_i) \Bigr|

    where A^S maps weights to the cells of marginal S in path order. The partial sums are split into positive and
    negative parts p − q, so that consecutive cells give (p − q)_l − (p − q)_{l−1} + (Aα)_l = ν_l.

    `mean_weight` times the mean loss over S is added to the objective (`linear_program.worst_plus_mean_cost`).

    Paper: Eq. (16) [public-support]
    """

    order: Order = "snake"
    end: float = 0.0
    mean_weight: float = 0.0

    def program(self, target: Target, points: Ints) -> Program:
        paths = [Path.along(target.marginals.of(s), self.order, end=self.end) for s in target.marginals.subsets]
        incidence = vstack([a[p.order] for a, p in zip(target.incidence(points), paths, strict=True)])
        steps = block_diag([_first_difference(len(p.order)) for p in paths])
        count, cells = len(points), steps.shape[0]
        simplex = csr_array(np.r_[np.ones(count), np.zeros(2 * cells + 1)][None, :])
        per_subset = block_diag([p.steps[None, :] for p in paths])
        subsets = len(paths)
        a_ub = csr_array(hstack([csr_array((subsets, count)), per_subset, per_subset, -np.ones((subsets, 1))]))
        return Program(
            cost=worst_plus_mean_cost(a_ub, self.mean_weight),
            a_eq=csr_array(vstack([hstack([incidence, steps, -steps, csr_array((cells, 1))]), simplex])),
            b_eq=np.r_[np.concatenate([b[p.order] for b, p in zip(target.blocks, paths, strict=True)]), 1.0],
            a_ub=a_ub,
            b_ub=np.zeros(subsets),
        )


def _first_difference(size: int) -> csr_array:
    return csr_array(eye_array(size) - eye_array(size, k=-1))
