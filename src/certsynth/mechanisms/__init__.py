"""The only place where noise meets data."""

from certsynth.mechanisms.guarantee import Guarantee, Neighbours, exact_epsilon
from certsynth.mechanisms.measure import Measurement, measure
from certsynth.mechanisms.strategy import STRATEGIES, Haar, Identity, Strategy

__all__ = [
    "STRATEGIES",
    "Guarantee",
    "Haar",
    "Identity",
    "Measurement",
    "Neighbours",
    "Strategy",
    "exact_epsilon",
    "measure",
]
