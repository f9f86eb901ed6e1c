"""The only place where noise meets data."""

from certsynth.mechanisms.guarantee import Budget, Guarantee, Neighbours, Sensitivity, Unit, exact_epsilon
from certsynth.mechanisms.measure import FullMeasurement, Measurement, in_full, measure
from certsynth.mechanisms.registry import STRATEGIES, strategy_named
from certsynth.mechanisms.strategy import Strategy

__all__ = [
    "STRATEGIES",
    "Budget",
    "FullMeasurement",
    "Guarantee",
    "Measurement",
    "Neighbours",
    "Sensitivity",
    "Strategy",
    "Unit",
    "exact_epsilon",
    "in_full",
    "measure",
    "strategy_named",
]
