"""A toy method in one file: the columns of a table are shuffled, so that none depends on another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from certsynth.algorithm.fitting import FitRequest
from certsynth.algorithm.layered import Layered
from certsynth.algorithm.settings import Settings
from certsynth.artefact.table import Table
from certsynth.domain import Schema


class Independent(Layered):
    name = "independent"

    def settings(self, schema: Schema, options: Mapping[str, Any]) -> Settings:
        return replace(super().settings(schema, {**options, "mechanism": None}), method=self.name, mechanism=None)

    def fit(self, request: FitRequest) -> tuple[Table, str]:
        table, support = super().fit(request)
        shuffled = {name: values[request.rng.permutation(request.rows)] for name, values in table.items()}
        return shuffled, support


INDEPENDENT = Independent()
