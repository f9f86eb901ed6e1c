"""Sparse linear programs: assembled in blocks, solved by HiGHS."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array

from certsynth.base.arrays import Floats, Ints
from certsynth.errors import SolverFailed
from certsynth.projection.target import Target


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """min cost·x subject to a_eq·x = b_eq, a_ub·x ≤ b_ub, x ≥ 0."""

    cost: Floats
    a_eq: csr_array
    b_eq: Floats
    a_ub: csr_array
    b_ub: Floats


def worst_plus_mean_cost(a_ub: csr_array, mean_weight: float) -> Floats:
    """Cost vector of "largest loss plus `mean_weight` times the mean loss"; row S of `a_ub` states loss_S − t ≤ 0.

    If only the largest loss counted, a solver could leave all others as large. Among the weights whose largest loss is
    minimal up to a factor of 1 + `mean_weight`, a small weight on the mean selects some whose other losses are small.
    """
    cost = mean_weight * np.asarray(a_ub.mean(axis=0)).ravel()
    cost[-1] = 1.0
    return cost


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """A primal point, its value, and the lower bound that the dual proves."""

    x: Floats
    value: float
    proved: float


class LinearProjection(ABC):
    """A projection computed by one linear program, whose first variables are the weights of the points."""

    __slots__ = ()

    @abstractmethod
    def program(self, target: Target, points: Ints) -> Program:
        """The linear program that fits weights on `points` to `target`."""

    def solution(self, target: Target, points: Ints) -> Solution:
        return solve(self.program(target, points))

    def weights(self, target: Target, points: Ints) -> Floats:
        return self.solution(target, points).x[: len(points)]


HIGHS_METHODS = ("highs-ipm", "highs-ds")
"""HiGHS methods in the order tried. Interior point with crossover is many times faster on these programs than the dual
simplex, which takes over if it fails: the privacy budget is already spent at this point."""


def solve(program: Program, *, methods: Sequence[str] = HIGHS_METHODS) -> Solution:
    """Solve the program by the first method that finds an optimal point."""
    for method in methods:
        answer = linprog(
            program.cost,
            A_ub=program.a_ub,
            b_ub=program.b_ub,
            A_eq=program.a_eq,
            b_eq=program.b_eq,
            bounds=(0, None),
            method=method,
        )
        if answer.status == 0 and answer.x is not None:
            proved = program.b_eq @ answer.eqlin.marginals + program.b_ub @ answer.ineqlin.marginals
            return Solution(x=np.asarray(answer.x), value=float(answer.fun), proved=float(proved))
    raise SolverFailed(
        "the linear program could not be solved, and the budget of the noisy counts is spent. A lower resolution, "
        "fewer public rows or the other loss may help; every further run spends its budget again."
    )
