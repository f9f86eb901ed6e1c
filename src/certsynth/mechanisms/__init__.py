"""The only place where noise meets data."""

from certsynth.mechanisms.guarantee import Budget, Guarantee, Neighbours, Sensitivity, Unit
from certsynth.mechanisms.measure import Measurement, measure
from certsynth.mechanisms.strategies import strategy_named
from certsynth.mechanisms.strategy import Strategy

__all__ = [
    "Budget",
    "Guarantee",
    "Measurement",
    "Neighbours",
    "Sensitivity",
    "Strategy",
    "Unit",
    "measure",
    "strategy_named",
]
