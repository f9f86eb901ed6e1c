"""The only place where noise meets data."""

from certsynth.mechanisms.guarantee import Budget, Guarantee, Neighbours, Sensitivity, Unit, exact_epsilon
from certsynth.mechanisms.measure import Measurement, measure
from certsynth.mechanisms.registry import STRATEGIES, strategy_named
from certsynth.mechanisms.strategy import Strategy

__all__ = [
    "STRATEGIES",
    "Budget",
    "Guarantee",
    "Measurement",
    "Neighbours",
    "Sensitivity",
    "Strategy",
    "Unit",
    "exact_epsilon",
    "measure",
    "strategy_named",
]
