"""A toy method in one file: the columns of a table are shuffled, so that none depends on another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from certsynth.algorithm.fitting import Fitting
from certsynth.algorithm.layered import Layered
from certsynth.algorithm.settings import Settings
from certsynth.artefact.table import Table
from certsynth.base.progress import Progress
from certsynth.domain import Schema
from certsynth.mechanisms import Measurement


class Independent(Layered):
    name = "independent"

    def settings(self, schema: Schema, options: Mapping[str, Any]) -> Settings:
        return replace(super().settings(schema, {**options, "mechanism": None}), method=self.name, mechanism=None)

    def fit(
        self,
        measurements: Sequence[Measurement],
        schema: Schema,
        how: Fitting,
        rows: int,
        rng: np.random.Generator,
        *,
        public: Sequence[np.ndarray] | None = None,
        other_loss: bool = False,
        progress: Progress,
    ) -> tuple[Table, str]:
        table, support = super().fit(measurements, schema, how, rows, rng, progress=progress)
        shuffled = {name: values[rng.permutation(rows)] for name, values in table.items()}
        return shuffled, support


INDEPENDENT = Independent()
