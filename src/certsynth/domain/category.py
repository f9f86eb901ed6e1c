"""Columns of labels: categories, booleans, codes in a tree, and labels with distances of their own."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from certsynth.base.arrays import Floats, Ints
from certsynth.domain import cleaning
from certsynth.domain.cells import Cells, Groups
from certsynth.domain.column import Column
from certsynth.domain.covering import cover
from certsynth.domain.label_metric import LabelMetric, cached_matrix_metric, cached_tree_metric

CategoryKind = Literal["category", "boolean", "tree", "metric"]

PATH_SEPARATOR = "/"
"""Separates the codes of a path in a tree."""


@dataclass(frozen=True, slots=True)
class Category(Column):
    """Labels, each at distance `weight` from every other. A cleaned value is the index of its label.

    After the listed labels come the indices of `other` and of missing, in that order, where they are declared. An
    unlisted value becomes `other`, else missing, else the first label; an absent value becomes missing, else `other`,
    else the first label.

    In a tree, `paths` holds for each label its codes from the root, and distances are along the tree. In a column of
    kind metric, `distances` holds them. In both, `other` and missing are at distance `weight` from all labels.
    """

    kind: CategoryKind = "category"
    values: tuple[str, ...] = ()
    other: bool = False
    paths: tuple[tuple[str, ...], ...] = ()
    distances: tuple[tuple[Fraction, ...], ...] = ()

    OTHER_LABEL = "other"

    @property
    def labels(self) -> tuple[str, ...]:
        return (*self.values, self.OTHER_LABEL) if self.other else self.values

    @property
    def label_metric(self) -> LabelMetric | None:
        """Distances among the listed labels; None if all are equal."""
        if self.kind == "tree":
            return cached_tree_metric(self.paths)
        return cached_matrix_metric(self.distances) if self.kind == "metric" else None

    @property
    def min_label_distance(self) -> Fraction:
        """The smallest distance between two labels: indicators of labels are Lipschitz with one over it."""
        if self.label_metric is None or self.label_metric.size < 2:
            return self.weight
        distances = self.label_metric.distances[: self.label_metric.size, : self.label_metric.size]
        return self.weight * Fraction(int(distances[distances > 0].min()), self.label_metric.unit)

    def clean(self, raw: cleaning.Raw) -> Ints:
        found = cleaning.each_once(raw, self._indices)
        return self._indices(raw) if found is None else found

    @property
    def distinguished_texts(self) -> tuple[str, ...] | None:
        if self.kind == "boolean" or not self.reading.is_plain:  # texts may have surrounding blanks and capitals
            return None
        return tuple(dict.fromkeys([*self.listed_texts, ""]))

    @property
    def listed_texts(self) -> tuple[str, ...]:
        labels = self.reading.truths if self.kind == "boolean" else self.labels
        texts = [*map(PATH_SEPARATOR.join, self.paths), *labels, *self.reading.missing_codes]
        return tuple(dict.fromkeys(map(self.reading.label_key, texts)))

    def _indices(self, raw: cleaning.Raw) -> Ints:
        read = cleaning.as_truths if self.kind == "boolean" else cleaning.as_labels
        key = self.reading.label_key
        other, missing = len(self.values), len(self.labels)
        unlisted = other if self.other else missing if self.missing else 0
        absent = missing if self.missing else other if self.other else 0
        index: dict[str | None, int] = {key(PATH_SEPARATOR.join(path)): i for i, path in enumerate(self.paths)}
        index |= {key(label): i for i, label in enumerate(self.labels)}
        index.setdefault("", absent)  # an empty field of a text file is absent, unless "" is a label
        index[None] = absent
        return np.fromiter((index.get(x, unlisted) for x in read(raw, self.reading)), np.int64, len(raw))

    def cells(self, resolution: int) -> Cells:
        labels = self._points(resolution)
        if (metric := labels.label_metric) is None:
            return labels
        centres, nearest = cover(metric, float(1 / (2 * resolution * self.weight)))
        if len(centres) == metric.size:
            return labels
        isolated = np.arange(labels.isolated)
        return Groups.of(
            self._points(1),
            np.empty(0, np.int64),
            np.concatenate([nearest, len(centres) + isolated]),
            np.concatenate([centres, metric.size + isolated]),
        )

    def lattice(self, steps: int, *, native: bool = True) -> Cells:
        return self._points(1 if native else steps)

    def _points(self, steps: int) -> Cells:
        return Cells(
            places=np.empty(0, np.int64),
            steps=steps,
            off_line=len(self.labels) + self.missing,
            weight=self.weight,
            label_metric=self.label_metric,
        )

    def _to_cells(self, clean: Ints, cells: Cells) -> Ints:
        return clean

    def to_lattice(self, clean: Ints, lattice: Cells) -> tuple[Ints, Floats]:
        return clean, np.zeros(len(clean))

    def to_units(self, clean: Ints, per: int) -> tuple[Ints, np.ndarray]:
        return clean, np.zeros(len(clean), dtype=bool)

    def on_lattice(self, lattice: Cells) -> Ints:
        return np.arange(lattice.size)

    def covering_radius(self, lattice: Cells) -> Fraction:
        return Fraction(0)

    def _distance_to_centre(self, clean: Ints, cells: Cells) -> Floats:
        return np.zeros(len(clean))

    def _distance_to_middle(self, clean: Ints, groups: Groups) -> Floats:
        return np.asarray(
            groups.lattice.distance(clean, groups.representatives[groups.group_of_label[clean]]), dtype=float
        )

    def _centres(self, cells: Cells) -> Ints:
        return np.arange(cells.size)

    def decode(self, clean: Ints) -> np.ma.MaskedArray[Any, Any]:
        absent = clean == len(self.labels)
        shown = np.where(absent, 0, clean)
        values = shown == 1 if self.kind == "boolean" else np.array(self.labels, dtype=object)[shown]
        return np.ma.masked_array(values, mask=absent)
