"""What the steps of the algorithm hand on: each value carries what it spent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from certsynth.algorithm.task import Task
from certsynth.artefact.steps import Step
from certsynth.artefact.table import Table
from certsynth.base.progress import Progress
from certsynth.mechanisms import Measurement
from certsynth.mechanisms.scalars import NoisyScalars
from certsynth.mechanisms.spending import Spending
from certsynth.planning.choice import Choice
from certsynth.queries.tally import Rows
from certsynth.record.record import CertificateRecord


@dataclass(frozen=True, slots=True, eq=False)
class PrivateTable:
    """The private rows, which stay at their source: only sums come back. There is one way to ask for each purpose."""

    counting: Rows
    placing: Rows
    displacing: Rows
    count: Callable[[], int]


@dataclass(frozen=True, slots=True, eq=False)
class Means:
    """What steps work with: generator, budget, memory, and who is told about progress.

    `rng` is for what needs no privacy. `spending` is the only way to noise, and never gives more than was asked for.
    """

    rng: np.random.Generator
    spending: Spending
    memory: int | None
    progress: Progress


@dataclass(frozen=True, slots=True)
class Chosen:
    """What will be measured, what it was compared with, and what choosing it cost.

    `dimension` is that of the rows, where the method estimated it.
    """

    choice: Choice
    dimension: int | None = None
    spent: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class Counted:
    """The task with a public number of rows, and the noisy number where the true one is hidden."""

    task: Task
    noisy: NoisyScalars | None = None
    spent: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """The noisy integers, one layer after the other; `resolution` is that of the last layer."""

    measurements: tuple[Measurement, ...]
    resolution: int | None
    spent: tuple[Step, ...]

    @property
    def last(self) -> Measurement:
        return self.measurements[-1]


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """The table as it will be written, `rows` as whoever reads it back cleans them, and where its points come from."""

    table: Table
    rows: Sequence[np.ndarray]
    support: str
    spent: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Certified:
    """What can be promised about the fitted rows, and all that anybody needs to compute it again."""

    certificate: CertificateRecord
    seed: int
    spent: tuple[Step, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What all steps together found."""

    counted: Counted
    chosen: Chosen
    measured: Measured
    fitted: Fitted
    certified: Certified

    @property
    def spent(self) -> tuple[Step, ...]:
        """All parts of the budget, in the order in which they were spent."""
        steps = (self.counted, self.chosen, self.measured, self.fitted, self.certified)
        return tuple(part for step in steps for part in step.spent)
