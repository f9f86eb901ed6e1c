"""Plan an adaptive release: rehearse it on made-up tables."""

from __future__ import annotations

from certsynth.algorithm.task import Task
from certsynth.base.progress import Progress
from certsynth.planning.plan import Plan


def plan_adaptive(task: Task, *, memory: int | None, progress: Progress) -> Plan:
    raise NotImplementedError
