"""What audits share: options of those that ask for answers, a table on standard output, and JSON in build/audits."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent.parent / "build" / "audits"


def asked_for(doc: str | None, *, answers: int, quick: int) -> tuple[int, int]:
    """How many answers the command line asks for, and the seed of made-up schemas, tables and queries."""
    options = argparse.ArgumentParser(description=(doc or "").partition("\n")[0])
    options.add_argument("--quick", action="store_true", help=f"{quick:,} answers instead of {answers:,}")
    options.add_argument("--answers", type=int, help="how many answers to ask for")
    options.add_argument("--seed", type=int, default=0, help="of the made-up schemas, tables and queries")
    chosen = options.parse_args()
    return chosen.answers or (quick if chosen.quick else answers), chosen.seed


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
