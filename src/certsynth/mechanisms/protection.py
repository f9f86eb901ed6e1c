r"""The protected unit, a row or a person, in terms of single rows.

Every mechanism is proved for tables that differ in a single row. A person has several, so that neighbouring tables are
`group` changes of a single row apart, and group privacy applies: a mechanism that is ε-DP for rows is (group · ε)-DP
for persons, and one that is ρ-zCDP is (group² · ρ)-zCDP. Where persons are added and removed, or count the same,
nothing is lost: k equal rows in one cell change a count exactly k times as much as one, in every norm.
docs/explanation/proofs/persons.md has the proofs, and what is lost where persons are replaced and rows count the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from certsynth.domain.persons import Persons
from certsynth.mechanisms.guarantee import Budget, Neighbours, Sensitivity, Unit


@dataclass(frozen=True, slots=True)
class Protection:
    """The tables that are `neighbours`: they differ in one row or, if there are `persons`, in all rows of one."""

    neighbours: Neighbours
    persons: Persons | None = None

    @property
    def of_rows(self) -> Neighbours:
        """The relation between tables that differ in a single row, from which neighbours can be reached step by step.

        Replacing a person may change the number of kept rows, so that it is private unless persons weigh alike.
        """
        if self.persons is None or self.persons.weigh_alike:
            return self.neighbours
        return Neighbours.ADD_REMOVE

    @property
    def group(self) -> int:
        """The number of such steps between neighbours, at most. A row of weight w is `w · parts` rows here.

        >>> [Protection(relation, Persons("id", 3)).group for relation in Neighbours]
        [6, 3]
        """
        if self.persons is None:
            return 1
        if self.persons.weigh_alike:
            return self.persons.parts
        return self.persons.rows * (2 if self.neighbours is Neighbours.REPLACE_ONE else 1)

    @property
    def parts(self) -> int:
        """The parts in which rows are counted: 1, unless persons weigh alike."""
        return 1 if self.persons is None else self.persons.parts

    @property
    def changed_cells(self) -> int:
        """The most by which the protected unit changes the number of occupied cells of a grid, which counts no parts.

        >>> Protection(Neighbours.ADD_REMOVE, Persons("id", 12, "persons")).changed_cells
        12
        """
        return 1 if self.persons is None else self.persons.rows

    def per_row(self, budget: Budget) -> Budget:
        """The budget for a single row with which the protected unit has this budget."""
        return budget.share(1 / self._factor(budget.unit))

    def per_unit(self, budget: Budget) -> Budget:
        """The cost for the protected unit of something that has this cost for a single row."""
        return budget.share(self._factor(budget.unit))

    def sensitivity_of_unit(self, of_row: Sensitivity) -> Sensitivity:
        """The largest change that the protected unit makes, given that of a single row."""
        return of_row * self.group

    def sensitivity_of_row(self, of_unit: Sensitivity) -> Sensitivity:
        """The inverse of `sensitivity_of_unit`."""
        g = self.group
        each = None if of_unit.each is None else of_unit.each // g
        return Sensitivity(of_unit.l1 // g, of_unit.l2_squared // g**2, each)

    def _factor(self, unit: Unit) -> Fraction:
        return Fraction(self.group if unit is Unit.EPSILON else self.group**2)
