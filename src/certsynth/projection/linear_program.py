"""Sparse linear programs, assembled block by block and solved by HiGHS."""

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
    """min cost·x subject to equal·x = to, below·x ≤ most, x ≥ 0."""

    cost: Floats
    equal: csr_array
    to: Floats
    below: csr_array
    most: Floats


def worst_plus_mean_cost(below: csr_array, mean_weight: float) -> Floats:
    """The cost "largest loss plus `mean_weight` times the mean loss", where row S of `below` says loss_S − t ≤ 0.

    Where only the largest loss counts, a solver may leave all others as bad as that one. A small weight on their mean
    picks, among the weights whose largest loss is least up to a factor of 1 + `mean_weight`, some with small others.
    """
    cost = mean_weight * np.asarray(below.mean(axis=0)).ravel()
    cost[-1] = 1.0
    return cost


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """A primal point, its value, and the value that the dual proves to be the least."""

    x: Floats
    value: float
    proved: float


class LinearProjection(ABC):
    """A projection that is one linear program, whose first variables are the weights of the points."""

    __slots__ = ()

    @abstractmethod
    def program(self, target: Target, points: Ints) -> Program:
        """The program of fitting weights on `points` to `target`."""

    def solution(self, target: Target, points: Ints) -> Solution:
        return solve(self.program(target, points))

    def weights(self, target: Target, points: Ints) -> Floats:
        return self.solution(target, points).x[: len(points)]


HIGHS_METHODS = ("highs-ipm", "highs-ds")
"""Interior point with crossover first: many times faster than the simplex on these programs. Budget has been spent by
the time they are solved, so that a failure is not the end: the simplex takes over."""


def solve(program: Program, *, methods: Sequence[str] = HIGHS_METHODS) -> Solution:
    """An optimal point, by the first method that finds one."""
    for method in methods:
        answer = linprog(
            program.cost,
            A_ub=program.below,
            b_ub=program.most,
            A_eq=program.equal,
            b_eq=program.to,
            bounds=(0, None),
            method=method,
        )
        if answer.status == 0 and answer.x is not None:
            proved = program.to @ answer.eqlin.marginals + program.most @ answer.ineqlin.marginals
            return Solution(x=np.asarray(answer.x), value=float(answer.fun), proved=float(proved))
    raise SolverFailed(
        "the linear program was not solved, and the budget of the noisy counts is spent: try a lower resolution, fewer "
        "public rows, or the other loss."
    )
