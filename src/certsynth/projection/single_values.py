"""Shares of single values inside runs of values, from the noisy counts of both.

A run in which some value stands out is projected onto the simplex: one number is subtracted from the noisy counts of
its values, and negative ones are cut off. In any other run, noise alone could have made the largest count, so its rows
are spread evenly, or written at the middle where that costs less. Nothing here is linear in the noise: results shape
the synthetic rows and enter no certificate.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from certsynth.base.arrays import Floats, Ints
from certsynth.mechanisms.measure import FullMeasurement
from certsynth.mechanisms.samplers import tail_quantile
from certsynth.projection.simplex import project_to_simplex

FALSE_PEAKS = Fraction(1, 10)
"""Probability, at most, that a value of a run with even counts stands out by noise alone."""


def shares_of_values(
    runs: Floats, run_of_value: Ints, measurement: FullMeasurement, column: int, *, evenly: bool = True
) -> Floats:
    """The share of each value of a column, given the shares of its runs; `run_of_value` never decreases.

    A run in which no value stands out is spread `evenly`, or else written at its middle.
    """
    starts = np.flatnonzero(np.diff(run_of_value, prepend=-1))
    sizes = np.diff(starts, append=len(run_of_value))
    even = np.repeat(runs[run_of_value[starts]] / sizes, sizes)
    found = even.copy()
    if not evenly:
        found[:] = 0.0
        found[starts + (sizes - 1) // 2] = runs[run_of_value[starts]]
    noisy = None if measurement.values is None else measurement.values.counts(column)
    if noisy is None:
        return found
    rows = max(measurement.estimate()[1], 1.0)
    above = np.maximum.reduceat(noisy / rows - even, starts)
    for start, size, peak in zip(starts.tolist(), sizes.tolist(), above, strict=True):
        if peak > _largest_by_noise(measurement, column, size) / rows:
            run = slice(start, start + size)
            found[run] = project_to_simplex(noisy[run] / rows, float(runs[run_of_value[start]]))
    return found


def _largest_by_noise(measurement: FullMeasurement, column: int, values: int) -> float:
    """What noise on this many counts exceeds with a probability of at most FALSE_PEAKS."""
    assert measurement.values is not None
    weight = measurement.values.marginals.weight(measurement.values.marginals.subsets.index((column,)))
    return tail_quantile(measurement.cost.spent.unit, measurement.scale, FALSE_PEAKS / values) / weight
