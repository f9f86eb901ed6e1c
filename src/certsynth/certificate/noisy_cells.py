"""Bounds on the noise of single cells: the noisy counts themselves say how many rows share a label or a heavy value.

Where noise is added cell by cell, the noisy count of a cell is its exact count, times a public weight, plus noise of a
known distribution. A union bound over all cells of a measurement makes the bounds valid for any number of questions,
whatever they were chosen by. Cells of later measurements depend on the noise of earlier ones, which is independent of
their own, so that the bound holds given the cells. docs/explanation/proofs/statistics.md has the proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from certsynth.mechanisms import FullMeasurement, Measurement
from certsynth.mechanisms.identity import Identity
from certsynth.mechanisms.samplers import tail_quantile


def cell_slacks(measurements: Sequence[Measurement], beta: Fraction) -> dict[int, int]:
    """For each measurement with noise on every cell, by its position, a number that no noise in it exceeds, in either
    direction; all hold together with probability 1 − β."""
    counted = {
        i: sum(map(len, m.coefficients))
        for i, m in enumerate(measurements)
        if isinstance(m, FullMeasurement) and isinstance(m.strategy, Identity)
    }
    counted = {i: cells for i, cells in counted.items() if cells}
    return {
        i: tail_quantile(measurements[i].cost.spent.unit, measurements[i].scale, beta / (2 * len(counted) * cells))
        for i, cells in counted.items()
    }
