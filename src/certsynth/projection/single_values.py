"""Shares of single values inside runs of values, from the noisy counts of both.

A run in which some value stands out is projected onto the simplex: one number is subtracted from the noisy counts of
its values, and negative ones are cut off. In any other run, noise alone could have made the largest count, so its rows
are spread evenly. Nothing here is linear in the noise: the results shape the synthetic rows and enter no certificate.
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


def shares_of_values(runs: Floats, run_of_value: Ints, measurement: FullMeasurement, column: int) -> Floats:
    """The share of each value of a column, given the shares of its runs; values of a run follow each other.

    `run_of_value` never decreases. Without noisy counts of single values, rows of a run are spread evenly.
    """
    sizes = np.bincount(run_of_value, minlength=len(runs))
    even = (runs / np.maximum(sizes, 1))[run_of_value]
    noisy = None if measurement.values is None else measurement.values.counts(column)
    if noisy is None:
        return even
    rows = max(measurement.estimate()[1], 1.0)
    above = noisy / rows - even
    ends = np.append(np.flatnonzero(np.diff(run_of_value)) + 1, len(run_of_value))
    found, start = even.copy(), 0
    for end in ends:
        run = slice(start, end)
        if above[run].max() > _largest_by_noise(measurement, column, int(end - start)) / rows:
            found[run] = project_to_simplex(noisy[run] / rows, float(runs[run_of_value[start]]))
        start = int(end)
    return found


def _largest_by_noise(measurement: FullMeasurement, column: int, values: int) -> float:
    """What noise on this many counts exceeds with a probability of at most FALSE_PEAKS."""
    assert measurement.values is not None
    weight = measurement.values.marginals.weight(measurement.values.marginals.subsets.index((column,)))
    return tail_quantile(measurement.cost.spent.unit, measurement.scale, FALSE_PEAKS / values) / weight
