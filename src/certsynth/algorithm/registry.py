"""The methods by name, one line for each. They are imported when they are needed, so that `--help` is quick."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a method is, as module and name in it; and the option whose value, the method's name, asks for it."""

    module: str
    name: str
    option: Literal["mechanism", "preset"] | None = None


DEFAULT = "layered"

METHODS = {
    DEFAULT: Entry("certsynth.algorithm.layered", "LAYERED"),
    "paper": Entry("certsynth.algorithm.paper", "PAPER", "preset"),
    "low-dimensional": Entry("certsynth.algorithm.low_dimensional.method", "ON_SIMPLEX", "mechanism"),
    "low-dimensional-l1": Entry("certsynth.algorithm.low_dimensional.method", "IN_L1_BALL", "mechanism"),
}


def method_names(option: str) -> tuple[str, ...]:
    """The methods that an option asks for by name."""
    return tuple(name for name, entry in METHODS.items() if entry.option == option)
