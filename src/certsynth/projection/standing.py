"""Step 3 on one grid of all columns: weights on the cells that stand out of the noise."""

from __future__ import annotations

import numpy as np

from certsynth.arrays import Floats, Ints
from certsynth.mechanisms.measure import Measurement
from certsynth.mechanisms.sparse import SparseMeasurement
from certsynth.projection.simplex import onto_simplex
from certsynth.projection.target import as_probabilities
from certsynth.queries.occupied import codes_of


def standing_points(measurement: Measurement, *, signed: bool) -> tuple[Ints, Floats]:
    """Codes of cells, and their probabilities.

    Noisy counts are lowered by what makes them weigh as much as all rows do; those that are left have weight. Nothing
    has negative weight then, so that Step 3 is done.
    """
    cells, (values,) = measurement.marginals.cells, measurement.coefficients
    places = measurement.places if isinstance(measurement, SparseMeasurement) else np.arange(len(values))
    mass = max(measurement.total or 0, 1)
    weights = onto_simplex(values, mass)
    if not weights.any():  # a table without rows, or one cell
        places, weights = np.array([measurement.marginals.sizes()[0] // 2]), np.ones(1)
    kept = np.flatnonzero(weights)
    return codes_of(cells, places[kept]), as_probabilities(weights[kept], len(kept))
