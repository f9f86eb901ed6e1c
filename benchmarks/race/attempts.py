"""Runs a contender once in a process of its own. That it fails, or takes too long, is a result."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from race.contenders import ALL_PEERS, Contender
from race.environments import NoEnvironment, environment, tidy
from race.watching import watched


def attempt(contender: Contender, request: dict[str, Any], *, work: Path, limit: float, build: Path) -> dict[str, Any]:
    """What became of it. The report of a run that was done names the tables that it made, in `work`."""
    found: dict[str, Any] = {"load before": round(os.getloadavg()[1], 1)}
    try:
        python = environment(ALL_PEERS[contender.peer], build)
    except NoEnvironment as error:
        return found | {"outcome": "not installed", "error": str(error)}
    asked, report = work / "request.json", work / "report.json"
    report.unlink(missing_ok=True)
    asked.write_text(json.dumps({**request, "report": str(report)}), encoding="utf-8")
    alone = ALL_PEERS[contender.peer].requirements is not None
    seen = watched([str(python), str(contender.runner), str(asked)], limit=limit, alone=alone)
    found |= {"wall": seen.wall, "cpu": seen.cpu, "peak MB": seen.peak}
    if seen.late:
        return found | {"outcome": "late", "error": f"stopped after {limit:.0f} s"}
    if seen.code or not report.exists():
        return found | {"outcome": "failed", "error": tidy(seen.errors)}
    told: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    return found | told | {"outcome": "done"}


def command_line(contender: Contender, work: Path, *, limit: float, build: Path) -> dict[str, float]:
    """The time of the second script of a contender, asked the same; nothing if it has none or if that fails."""
    if contender.command is None:
        return {}
    python = environment(ALL_PEERS[contender.peer], build)
    seen = watched([str(python), str(contender.command), str(work / "request.json")], limit=limit)
    return {} if seen.code else {"command line": seen.wall, "command line cpu": seen.cpu}
