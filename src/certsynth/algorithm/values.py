"""Values that the steps of the algorithm pass on; each carries its cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from certsynth.algorithm.settings import CellKind
from certsynth.algorithm.task import Task
from certsynth.artefact.steps import Step
from certsynth.artefact.table import Table
from certsynth.base.progress import Progress
from certsynth.mechanisms import FullMeasurement, Measurement
from certsynth.mechanisms.scalars import NoisyScalars
from certsynth.mechanisms.spending import Spending
from certsynth.planning.choice import Choice
from certsynth.queries.contributions import Contributions
from certsynth.queries.marginals import Marginals, Subset
from certsynth.queries.tally import Rows
from certsynth.record.record import CertificateRecord


@dataclass(frozen=True, slots=True, eq=False)
class PrivateTable:
    """Access to the private rows, which stay at their source: only sums come back. Each purpose has its own query."""

    counting: Rows
    placing: Rows
    displacing: Rows
    count: Callable[[], int]
    contributions: Callable[[], Contributions] | None = None
    """Totals over persons, if these are protected."""


@dataclass(frozen=True, slots=True, eq=False)
class Means:
    """Resources of the steps: random generator, budget, memory in bytes, and the progress callback.

    `rng` is for randomness that needs no privacy. `spending` is the only source of noise, and never exceeds the
    requested budget.
    """

    rng: np.random.Generator
    spending: Spending
    memory: int | None
    progress: Progress


@dataclass(frozen=True, slots=True)
class Chosen:
    """The chosen design, the candidates, and the cost of choosing.

    `dimension` is that of the rows, if the method estimated it; `measurements` are those made in order to choose,
    and `dependence` is the noisy dependence of the pairs that were chosen by it.
    """

    choice: Choice
    dimension: int | None = None
    spent: tuple[Step, ...] = ()
    measurements: tuple[FullMeasurement, ...] = ()
    dependence: Mapping[Subset, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Counted:
    """The task with a public number of rows, and the noisy number if the true one is private."""

    task: Task
    noisy: NoisyScalars | None = None
    spent: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True)
class ExpectedLayer:
    """A layer as settings and earlier noisy integers determine it: its tables, kind of cells, and share of the
    measurement budget, and the weights, resolution and noisy dependence of its tables if these are chosen.
    """

    tables: tuple[Subset, ...]
    cells: CellKind
    share: Fraction
    weights: tuple[int, ...] = ()
    resolution: int | None = None
    dependence: tuple[float, ...] = ()

    @property
    def ways(self) -> int:
        return max(map(len, self.tables))

    def is_measured(self, marginals: Marginals, cells: str) -> bool:
        """Whether these marginals, in cells of this kind, are those of the layer."""
        return (marginals.subsets, cells) == (self.tables, self.cells) and self.weights in ((), marginals.weights)


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """The noisy integers of each layer in order; `resolution` is that of the last layer."""

    measurements: tuple[Measurement, ...]
    resolution: int | None
    spent: tuple[Step, ...]

    @property
    def last(self) -> Measurement:
        return self.measurements[-1]


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """The table that will be written, its `rows` after reading back and cleaning, and the name of its support."""

    table: Table
    rows: Sequence[np.ndarray]
    support: str
    spent: tuple[Step, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Certified:
    """The certificate of the fitted rows."""

    certificate: CertificateRecord
    spent: tuple[Step, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The results of all steps."""

    counted: Counted
    chosen: Chosen
    measured: Measured
    fitted: Fitted
    certified: Certified

    @property
    def spent(self) -> tuple[Step, ...]:
        """The parts of the budget in the order in which they were spent."""
        steps = (self.counted, self.chosen, self.measured, self.fitted, self.certified)
        return tuple(part for step in steps for part in step.spent)
