"""The paper's preset: one layer of even cells, Haar noise along a snake order, weights that minimise the path loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from certsynth.algorithm.layered import Layered
from certsynth.algorithm.settings import Defaults, Settings
from certsynth.domain import Schema


class Paper(Layered):
    """Algorithm 1 as printed, with all constants of the paper.

    Paper: Algorithm 1 [algorithm]
    """

    name = "paper"
    defaults = Defaults(certificate_share=Fraction(0), confidence=Fraction(9, 10), mechanism="haar-noisy-total")
    linear_program_loss = "path"

    def settings(self, schema: Schema, options: Mapping[str, Any]) -> Settings:
        return replace(super().settings(schema, options), as_printed=True)

    def fits_particles(self, settings: Settings) -> bool:
        return False


PAPER = Paper()
