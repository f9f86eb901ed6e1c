"""Keeps the runs of a table in a file, so that a race that was stopped goes on where it was."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from race.watching import THREADS

OUTCOMES = ("done", "failed", "late", "not installed")

Run = dict[str, Any]


def machine() -> dict[str, Any]:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return {
        "cores": len(os.sched_getaffinity(0)),
        "memory GB": round(memory),
        "system": platform.system(),
        "threads of a run": THREADS,
    }


def about_releases(documents: Sequence[dict[str, Any]]) -> str:
    """A section on the versions, the machine, and the time and memory of releases, for a page."""
    runs = [run for each in documents for run in each["runs"] if run["outcome"] == "done"]
    versions = dict.fromkeys(", ".join(f"{name} {number}" for name, number in run["versions"].items()) for run in runs)
    machines = {json.dumps(each["machine"], sort_keys=True): each["machine"] for each in documents}
    text = ["## Versions", f"{len(runs)} releases: {'; '.join(versions)}."]
    text += [
        f"On {each['system']} with {each['cores']} cores and {each['memory GB']} GB of memory, shared with other work. "
        f"A release used {min(run['cpu'] for run in runs):.0f} to {max(run['cpu'] for run in runs):.0f} seconds of "
        f"processor time and at most {max(run['peak MB'] for run in runs) / 1024:.1f} GB of memory."
        for each in machines.values()
    ]
    return "\n\n".join(text)


def time_of_runs(documents: Sequence[dict[str, Any]]) -> str:
    """A sentence on the processor time of all runs, failed ones included, for a page."""
    times = [run["cpu"] for each in documents for run in each["runs"] if "cpu" in run]
    return f"The {len(times)} runs on this page used {sum(times) / 3600:.1f} hours of processor time."


class RunFile:
    """The runs of one table, in a file that is whole at any time. `keys` tell two runs apart."""

    def __init__(self, path: Path, *, keys: tuple[str, ...]) -> None:
        self.path = path
        self.keys = keys
        self.document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"runs": []}

    def refuse_others(self, settings: dict[str, Any]) -> None:
        """Stop if the file is about other rows or settings than these. One without runs need not state them all."""
        known = self.document if self.document["runs"] else {**settings, **self.document}
        if any(known.get(key) != value for key, value in settings.items()):
            raise SystemExit(f"{self.path.name} has runs with other rows or other settings: move it away first.")

    def run(self, *key: Any) -> Run | None:
        """The run with these values of the keys."""
        return next((run for run in self.document["runs"] if tuple(run[name] for name in self.keys) == key), None)

    def add(self, run: Run) -> None:
        """With the runs that another process has added meanwhile."""
        if self.path.exists():
            self.document["runs"] = json.loads(self.path.read_text(encoding="utf-8"))["runs"]
        others = self.document["runs"]
        known = any(self._is_same(other, run) for other in others)
        self.document["runs"] = [run if self._is_same(other, run) else other for other in others] + [run] * (not known)
        self.write()

    def write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_suffix(".part")
        partial.write_text(json.dumps(self.document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        partial.replace(self.path)

    def _is_same(self, run: Run, other: Run) -> bool:
        return all(run[key] == other[key] for key in self.keys)


class Results(RunFile):
    """Runs of contenders, with the machine and the settings that they have in common."""

    def __init__(self, path: Path, settings: dict[str, Any], *, keys: tuple[str, ...] = ("contender", "seed")) -> None:
        super().__init__(path, keys=keys)
        self.refuse_others(settings)
        self.document = {**self.document, **settings, "machine": machine()}

    def has(self, wanted: Run, *, again: bool = False) -> bool:
        """Whether there is nothing to do: a run with another setting does not count."""
        enough = ("done",) if again else OUTCOMES
        return any(
            self._is_same(run, wanted)
            and run["outcome"] in enough
            and run.get("setting", wanted["setting"]) == wanted["setting"]
            for run in self.document["runs"]
        )

    def is_late(self, wanted: Run) -> bool:
        """Whether it took too long with some seed and ε, and no other was done."""
        apart = [key for key in self.keys if key not in ("seed", "epsilon")]
        own = {run["outcome"] for run in self.document["runs"] if all(run[key] == wanted[key] for key in apart)}
        return "late" in own and "done" not in own
