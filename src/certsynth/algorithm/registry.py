"""The methods by name, and which one a request means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from certsynth.algorithm.request import checked_choice
from certsynth.algorithm.layered import Layered
from certsynth.algorithm.low_dimensional.method import LowDimensional
from certsynth.algorithm.method import Method
from certsynth.algorithm.paper import Paper
from certsynth.algorithm.settings import PRESETS, Request, Settings
from certsynth.errors import InputError
from certsynth.mechanisms import STRATEGIES

METHODS: dict[str, Method] = {
    method.name: method for method in (Layered(), Paper(), LowDimensional(signed=False), LowDimensional(signed=True))
}
"""A method is asked for by its name, as `mechanism` or as `preset`; the first is the default."""


def method_for(options: Mapping[str, Any]) -> Method:
    """The method that options ask for."""
    mechanism, preset = options["mechanism"], options["preset"]
    if preset is not None:
        checked_choice(preset, name="preset", choices=PRESETS)
    if mechanism not in (None, "auto"):
        checked_choice(mechanism, name="mechanism", choices=STRATEGIES)
    for asked in (mechanism, preset):
        if asked in METHODS:
            return METHODS[asked]
    return next(iter(METHODS.values()))


def method_of(document: Mapping[str, Any]) -> Method:
    """The method that a release was made with."""
    return method_for(document["release"])


def checked_settings(request: Request) -> Settings:
    """What a request means, with the defaults of its method; what cannot be is refused."""
    settings = method_for(request.options).settings(request)
    if settings.measurement_budget.amount <= 0:
        raise InputError("certificate_share leaves nothing for the rows themselves; lower it.")
    return settings
