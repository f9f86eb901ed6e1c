"""Results as files: what was asked, what came out, and what it was made with."""

from __future__ import annotations

import importlib.metadata
import json
import platform
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "results"
PACKAGES = ("certsynth", "numpy", "scipy", "opendp", "pylmcf", "duckdb", "numba")


def versions() -> dict[str, str]:
    """Of Python and of the packages that figures depend on."""
    return {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in PACKAGES}}


def save(name: str, settings: dict[str, Any], points: list[dict[str, Any]], *, folder: Path = FOLDER) -> Path:
    """Write NAME.json: `settings` tell the data and the seeds, `points` are one dict for each thing that was run."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    found = {"name": name, "settings": settings, "versions": versions(), "points": points}
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return path


def load(name: str, *, folder: Path = FOLDER) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    return found
