"""Step 3 on one grid of all columns: weights on the cells with large noisy counts."""

from __future__ import annotations

import numpy as np

from certsynth.base.arrays import Floats, Ints
from certsynth.mechanisms.measure import Measurement
from certsynth.mechanisms.sparse import SparseMeasurement
from certsynth.projection.simplex import project_to_l1_ball, project_to_solid_simplex
from certsynth.projection.target import as_probabilities
from certsynth.queries.occupied import codes_of


def heavy_cells(measurement: Measurement, *, signed: bool) -> tuple[Ints, Floats]:
    r"""Codes of cells and their probabilities: the probability measure nearest to the projected counts ν.

    On the simplex it is ν itself, normalised. In the ℓ1 ball, which also keeps negative counts,

    .. math:: \min_{\mu} U(\nu, \mu) = hub \cdot (1 - \textstyle\sum_z \nu_z)

    over all probability measures μ on the support: the constant function shows that it is no less, and ν⁺ with the
    missing mass placed anywhere attains it (docs/explanation/proofs/low-dimensional.md). So no program is solved.
    """
    cells, (values,) = measurement.marginals.cells, measurement.coefficients
    places = measurement.places if isinstance(measurement, SparseMeasurement) else np.arange(len(values))
    mass = max(measurement.total or 0, 1)
    weights = np.maximum(project_to_l1_ball(values, mass), 0.0) if signed else project_to_solid_simplex(values, mass)
    if not weights.any():  # a table without rows, or one cell
        places, weights = np.array([measurement.marginals.sizes()[0] // 2]), np.ones(1)
    kept = np.flatnonzero(weights)
    return codes_of(cells, places[kept]), as_probabilities(weights[kept], len(kept))
