"""How audits tell what they found: a small table on standard output, and JSON in build/audits."""

from __future__ import annotations

import importlib.metadata
import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent.parent / "build" / "audits"


def versions(*packages: str) -> dict[str, str]:
    return {"python": platform.python_version(), **{name: importlib.metadata.version(name) for name in packages}}


def say_versions(*packages: str) -> None:
    print(", ".join(f"{name} {version}" for name, version in versions(*packages).items()), flush=True)


def table(rows: Sequence[Mapping[str, Any]], *, headed: bool = True) -> str:
    """Rows as a Markdown table."""
    names = list(rows[0])
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"] if headed else []
    return "\n".join(lines + [f"| {' | '.join(_text(row[name]) for name in names)} |" for row in rows])


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def write(name: str, found: Mapping[str, Any], *packages: str) -> None:
    RESULTS.mkdir(parents=True, exist_ok=True)
    about = versions("certsynth", "opendp", "numpy", "scipy", *packages)
    (RESULTS / f"{name}.json").write_text(json.dumps({"versions": about, **found}, indent=2) + "\n", encoding="utf-8")
