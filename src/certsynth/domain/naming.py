"""Names for readers: the title, the unit and the names of labels of a column, and who publishes a table.

They are shown on pages. Files, queries and rules use the names and labels of the table itself.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Naming:
    """The names of a column for readers; `labels` pairs labels with their names. Empty ones are not stated."""

    title: str = ""
    unit: str = ""
    labels: tuple[tuple[str, str], ...] = ()

    def of_labels(self, labels: Sequence[str]) -> list[str]:
        """The names of labels; a label without a name is called by itself.

        >>> Naming(labels=(("1", "private company"),)).of_labels(["1", "2"])
        ['private company', '2']
        """
        names = dict(self.labels)
        return [names.get(label, label) for label in labels]


UNNAMED = Naming()


@dataclass(frozen=True, slots=True)
class Publication:
    """Who publishes the release of a table, and the date that the publisher gives it; empty ones are not stated."""

    publisher: str = ""
    published: datetime.date | None = None


UNPUBLISHED = Publication()
