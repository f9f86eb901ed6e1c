"""docs/benchmarks-privpgd.md from the results; `docs/make_figures.py` draws its figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from race.tables import ROOT

PAGE = ROOT / "docs" / "benchmarks-privpgd.md"


@dataclass(frozen=True, slots=True)
class Mode:
    """The privacy of a release, apart from ε."""

    title: str
    options: dict[str, Any]


MODES = {
    "delta-replace": Mode("with δ", {"delta": "1e-5", "neighbours": "replace-one"}),
    "pure-replace": Mode("pure ε", {"neighbours": "replace-one"}),
    "delta-add": Mode("with δ, add-remove", {"delta": "1e-5", "neighbours": "add-remove"}),
    "pure-add": Mode("pure ε, add-remove", {"neighbours": "add-remove"}),
}


def write() -> Path:
    return PAGE
