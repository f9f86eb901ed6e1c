"""The methods by name, one line each. They are imported on demand, so that `--help` starts quickly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Entry:
    """The module and name of a method, and the option that selects it by the method's name."""

    module: str
    name: str
    option: Literal["mechanism", "preset"] | None = None


DEFAULT, ADAPTIVE = "layered", "adaptive"
"""The methods among which the default is chosen: measure all tables, or those pairs that are worth it."""

METHODS = {
    DEFAULT: Entry("certsynth.algorithm.layered", "LAYERED"),
    "paper": Entry("certsynth.algorithm.paper", "PAPER", "preset"),
    "low-dimensional": Entry("certsynth.algorithm.low_dimensional.method", "ON_SIMPLEX", "mechanism"),
    ADAPTIVE: Entry("certsynth.algorithm.adaptive.method", "ADAPTIVE", "mechanism"),
    "low-dimensional-l1": Entry("certsynth.algorithm.low_dimensional.method", "IN_L1_BALL", "mechanism"),
}


def method_names(option: str) -> tuple[str, ...]:
    """Return the names of the methods that an option selects."""
    return tuple(name for name, entry in METHODS.items() if entry.option == option)
