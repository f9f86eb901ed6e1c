"""The methods by name: one line for each. Nothing is imported before a method is needed, so `--help` stays quick."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from certsynth.algorithm.method import Method


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


def method_named(name: str) -> Method:
    entry = METHODS[name]
    method: Method = getattr(importlib.import_module(entry.module), entry.name)
    return method


def method_for(options: Mapping[str, Any]) -> Method:
    """The method that options ask for, or that the record of a release says it was made with."""
    asked = (name for name, entry in METHODS.items() if entry.option and options[entry.option] == name)
    return method_named(next(asked, DEFAULT))
