"""Releases of every kind, made once; and `forging` made importable whatever import mode pytest is told to use."""

import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from forging import VARIANTS

from certsynth import Release, release
from certsynth.planning import choice
from small import DERIVED, NATIVE, derived, native


def unclipped(folder: Path, asked: dict[str, Any]) -> Release:
    """A release whose direct bounds are above 0. Once in a hundred times noise makes one 0, and half of that is 0.

    With "derived": True the table has derived columns.
    """
    whole = asked.pop("derived", False)
    for trial in range(8):
        made = release(derived(200), DERIVED, **asked) if whole else release(_native(asked), NATIVE, **asked)
        certificate = made.document["certificate"]
        bounds = [part["bound"] for key in ("direct", "single_column") if (part := certificate[key])]
        bounds += [bound for bound in certificate.get("statistics", {}).values() if bound is not None]
        if trial == 7 or min(bounds, default=1) > 0:
            break
    return made.save(folder)


def _native(asked: dict[str, Any]) -> pl.DataFrame:
    """A small table, with a column that names persons if one is asked for."""
    table = native(200)
    return table.with_columns(pl.Series("who", [row % 90 for row in range(200)])) if "person" in asked else table


@pytest.fixture(scope="session")
def variants(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Release]:
    """Releases of a small table, each made when it is first asked for: not to be changed.

    Where single columns are measured as well they get a quarter of the budget, so that no two parts are alike.
    """
    here, made = tmp_path_factory.mktemp("variants"), {}

    def variant(name: str) -> Release:
        if name not in made:
            asked = {"resolution": 2, "mechanism": "identity", "seed": 4} | VARIANTS[name]
            asked |= {} if "rho" in asked else {"epsilon": asked.get("epsilon", 3)}
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(choice, "_best_split", lambda *_: Fraction(1, 4))
                made[name] = unclipped(here / name.replace(" ", "-"), asked)
        return made[name]

    return variant
