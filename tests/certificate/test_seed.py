"""The seed of the draws: one for each measurement, whatever is done with it, and another for any other."""

from __future__ import annotations

import dataclasses

import numpy as np

from certsynth import Release, release
from certsynth.certificate.seed import seed_of
from small import NATIVE, FixedOutput, native

QUICK = {"epsilon": 3, "resolution": 2, "mechanism": "identity", "noise": FixedOutput()}


def test_measurements_have_one_seed_whatever_is_done_with_them():
    """Other rows, more of them, other names: the draws stay, so that none of it can be used to try others."""
    seeds = set()
    for asked in ({"seed": 1}, {"seed": 2}, {"rows": 30}, {"candidates": 2, "seed": 5}):
        made = release(native(60), NATIVE, **(QUICK | asked))
        assert made.document["recompute"]["seed"] == f"{seed_of(made.measurements):032x}"
        seeds.add(seed_of([dataclasses.replace(m, scale=1.0) for m in made.measurements]))
    assert len(seeds) == 1
    other = dataclasses.replace(NATIVE, name="another name", unit="one row is one visit")
    made = release(native(60), other, **QUICK)
    assert seed_of([dataclasses.replace(m, scale=1.0) for m in made.measurements]) in seeds


def test_any_other_noisy_integer_or_law_gives_another_seed():
    made: Release = release(native(60), NATIVE, **QUICK)
    first, *rest = made.measurements
    seeds = {seed_of(made.measurements)}
    places = [(j, i) for j, block in enumerate(first.coefficients) for i in range(len(block))]
    for j, i in places:
        blocks = [np.array(block) for block in first.coefficients]
        blocks[j][i] += 1
        seeds.add(seed_of([dataclasses.replace(first, coefficients=tuple(blocks)), *rest]))
    seeds.add(seed_of([dataclasses.replace(first, scale=2 * first.scale), *rest]))
    seeds.add(seed_of([dataclasses.replace(first, total=1), *rest]))
    seeds.add(seed_of([first]))
    assert len(seeds) == len(places) + 4
