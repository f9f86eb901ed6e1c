"""The paper's preset: one layer of even cells, Haar noise along a snake, weights that make the path loss small."""

from __future__ import annotations

from certsynth.algorithm.layered import Layered
from certsynth.algorithm.settings import Defaults, Settings


class Paper(Layered):
    """Algorithm 1 as it is printed: every constant is the paper's.

    Paper: Algorithm 1 [algorithm]
    """

    name = "paper"
    defaults = Defaults(certificate_share="0", confidence="0.9", mechanism="haar-noisy-total", as_printed=True)
    linear_program_loss = "path"

    def fits_particles(self, settings: Settings) -> bool:
        return False
