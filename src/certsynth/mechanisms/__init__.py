"""Mechanisms: the only modules that add noise to data."""

from certsynth.mechanisms.guarantee import Budget, Guarantee, Neighbours, Sensitivity, Unit
from certsynth.mechanisms.measure import FullMeasurement, Measurement, ValueCounts, as_full_measurements, measure
from certsynth.mechanisms.registry import strategy_named
from certsynth.mechanisms.scalars import NoisyScalars, measure_scalars, measure_together
from certsynth.mechanisms.strategy import Strategy

__all__ = [
    "Budget",
    "FullMeasurement",
    "Guarantee",
    "Measurement",
    "Neighbours",
    "NoisyScalars",
    "Sensitivity",
    "Strategy",
    "Unit",
    "ValueCounts",
    "as_full_measurements",
    "measure",
    "measure_scalars",
    "measure_together",
    "strategy_named",
]
