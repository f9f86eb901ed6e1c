"""Results kept point by point, so that a run that was interrupted goes on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Task = dict[str, Any]
Point = dict[str, Any]


class Points:
    """A file of JSON lines, which only grows. Each is one task with what came out.

    The last line may be torn, if its writer was stopped: it counts for nothing, and its task is done again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._found: dict[str, Point] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                try:
                    kept = json.loads(line)
                except json.JSONDecodeError:
                    continue
                self._found[_key(kept["task"])] = kept["point"]

    def get(self, task: Task) -> Point | None:
        return self._found.get(_key(task))

    def keep(self, task: Task, point: Point) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            file.write(b"" if _ends_a_line(self.path) else b"\n")
            file.write(json.dumps({"task": task, "point": point}).encode() + b"\n")
        self._found[_key(task)] = point

    def compute(self, tasks: Iterable[Task], work: Callable[[Task], Point], say: Callable[[str], None]) -> None:
        """Do the tasks that are not done yet."""
        left = [task for task in tasks if self.get(task) is None]
        for at, task in enumerate(left, start=1):
            point = work(task)
            self.keep(task, point)
            taken = f": {point['seconds']:.0f} s" if "seconds" in point else ""
            say(f"[{at}/{len(left)}] {describe(task)}{taken}")

    def answers(self, tasks: Iterable[Task], work: Callable[[Task], Point], say: Callable[[str], None]) -> list[Point]:
        """What comes out of all tasks, those that are kept and those that are left."""
        tasks = list(tasks)
        self.compute(tasks, work, say)
        return [self._found[_key(task)] for task in tasks]

    def whole_runs(self, tasks: Iterable[Task]) -> list[Point]:
        """What is there of these tasks, each as one flat dict; runs that are not through are left out."""
        tasks = list(tasks)
        missing = {task["run"] for task in tasks if self.get(task) is None}
        return [{**task, **self._found[_key(task)]} for task in tasks if task["run"] not in missing]


def describe(task: Task) -> str:
    return ", ".join(f"{name} {value}" for name, value in task.items() if value is not None)


def _key(task: Task) -> str:
    return json.dumps(task, sort_keys=True)


def _ends_a_line(path: Path) -> bool:
    return path.read_bytes()[-1:] in (b"", b"\n")
