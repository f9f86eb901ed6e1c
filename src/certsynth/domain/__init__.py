"""Public knowledge about records: columns as metric spaces of diameter at most 1, their cells, and rules."""

from certsynth.domain.category import Category
from certsynth.domain.cells import Cells, Groups
from certsynth.domain.column import Column, Ordered
from certsynth.domain.rules import Rule
from certsynth.domain.schema import Schema

__all__ = ["Category", "Cells", "Column", "Groups", "Ordered", "Rule", "Schema"]
