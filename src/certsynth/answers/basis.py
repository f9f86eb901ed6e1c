"""The basis of answers: the synthetic rows, the columns, and the bounds of one certificate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from certsynth.answers.boxes import Errors
from certsynth.answers.kernels import GRID_STEPS, MAX_EXACT_ROWS, merge_rows
from certsynth.answers.lattices import Lattice, Points, has_monotone_codes
from certsynth.answers.nearness import Boxes, Nearness
from certsynth.answers.noisy_cells import NoisyCells
from certsynth.answers.remembered import Truths
from certsynth.base.arrays import Floats
from certsynth.domain import Category, Column, Ordered, Schema
from certsynth.domain.condition import Condition, figures
from certsynth.errors import InputError
from certsynth.queries.statistics import has_bands
from certsynth.record.record import CertificateRecord, Record

Table = Mapping[str, "np.ma.MaskedArray[Any, Any]"]


class _Figures(dict[str, Floats]):
    """Numeric columns of the cleaned rows, computed on first access."""

    def __init__(self, basis: Basis) -> None:
        super().__init__()
        self.basis = basis

    def __contains__(self, name: object) -> bool:
        return name in self.basis.columns

    def __missing__(self, name: str) -> Floats:
        column, clean = self.basis.columns[name], self.basis.clean[name]
        if isinstance(column, Category):
            found = np.where(clean == len(column.labels), np.nan, clean).astype(float)
        elif isinstance(column, Ordered) and column.grid:
            found = np.where(np.isnan(clean), np.nan, column.figures_at(column.index(np.nan_to_num(clean))))
        elif isinstance(column, Ordered) and column.whole:
            found = clean + column.low
        else:  # as written: converting to a place and back may change the last bit
            assert isinstance(column, Ordered)
            written = np.clip(figures(column, self.basis.table[name]), column.low, column.high)
            found = np.where(np.isnan(written) & ~np.isnan(clean), float(column.low), written)
        self[name] = found
        return found


MAX_CERTIFIED_ROWS = 5_000
"""Most distinct rows from which distances are bounded if shares and moments are certified, too, and mostly decide."""

COARSEST_STEPS = 32


@dataclass(frozen=True, eq=False)
class Distinct:
    """Distinct combinations of values of some columns, and their shares of all rows. `moved` is the mean distance by
    which rows were rounded."""

    columns: Mapping[str, Column]
    rows: Mapping[str, Floats]
    shares: Floats
    moved: float = 0.0

    @cached_property
    def nearness(self) -> Nearness:
        return Nearness(self.columns, self.rows)


@dataclass(frozen=True, eq=False)
class Basis:
    """`clean` and `table` are the same rows, cleaned and as they are written. `certificate` is that of
    the record. `private_rows` is the number of private rows where it is public. `named`: the subsets of columns
    were chosen. `noisy`: the noisy counts that have bounds of their own. If persons count the same and their number is
    public, `private_rows` is that number, and `counted` is "persons".

    All bounds of one certificate hold together, at its confidence: that is why any number of answers does.
    """

    schema: Schema
    table: Table
    clean: Mapping[str, np.ndarray]
    certificate: CertificateRecord
    private_rows: int | None = None
    named: bool = False
    noisy: NoisyCells = field(default_factory=NoisyCells)
    counted: Literal["rows", "persons"] = "rows"
    columns: Mapping[str, Column] = field(init=False)
    rows: Mapping[str, Floats] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", dict(zip(self.schema.names, self.schema, strict=True)))
        object.__setattr__(self, "rows", _Figures(self))

    @classmethod
    def read(
        cls,
        schema: Schema,
        table: Table,
        clean: Mapping[str, np.ndarray],
        record: Record,
        *,
        noisy: NoisyCells | None = None,
    ) -> Basis:
        """From the record of a release. It may be somebody else's: its columns may be others than the schema's."""
        certificate = record.certificate
        if not all(set(subset.columns) <= set(schema.names) for subset in certificate.subsets):
            raise InputError("certificate.json is not one that certsynth writes; run certsynth verify.")
        if not len(next(iter(clean.values()))):
            raise InputError("the release has no rows, so there is nothing to ask.")
        named, privacy = record.release.workload is not None, record.privacy
        counted: Literal["rows", "persons"] = "rows" if privacy.persons is None else "persons"
        number = privacy.rows if privacy.persons is None else privacy.persons
        return cls(schema, table, clean, certificate, number, named, noisy or NoisyCells(), counted)

    @property
    def confidence(self) -> float:
        return self.certificate.confidence

    @property
    def size(self) -> int:
        return len(next(iter(self.clean.values())))

    @cached_property
    def nearness(self) -> Nearness:
        return Nearness(self.columns, self.rows)

    @cached_property
    def truths(self) -> Truths:
        """The truth of conditions for all rows."""
        return Truths(self.rows)

    @cached_property
    def _distinct(self) -> dict[tuple[str, ...], Distinct]:
        return {}

    def distinct(self, names: Iterable[str]) -> Distinct:
        """The distinct combinations of values of some columns among the rows, and their shares."""
        wanted = tuple(sorted(set(names)))
        if wanted not in self._distinct:
            arrays, shares = merge_rows(*(self.rows[name] for name in wanted))
            self._distinct[wanted] = Distinct(self.columns, dict(zip(wanted, arrays, strict=True)), shares)
        return self._distinct[wanted]

    def few_distinct(self, names: Iterable[str]) -> Distinct:
        """The same with few rows: if there are many, those of several columns are rounded to an even grid, as coarse as
        it takes. By the triangle inequality the bound on the distance holds for them if `moved` is added to it."""
        rows = self.distinct(names)
        key = (*sorted(rows.rows), "few")
        if key not in self._distinct:
            self._distinct[key] = self.fewer(rows)
        return self._distinct[key]

    def fewer(self, rows: Distinct) -> Distinct:
        """These rows, rounded if they are many."""
        most = MAX_EXACT_ROWS if self.certificate.statistics is None else MAX_CERTIFIED_ROWS
        if len(rows.shares) <= most or len(rows.rows) == 1:
            return rows
        few, steps = _rounded(rows, GRID_STEPS[2]), GRID_STEPS[2]
        while len(few.shares) > most and steps > COARSEST_STEPS:
            steps //= 2
            few = _rounded(rows, steps)
        return few

    # ------------------------------------------------------------ bounds on shares, group totals and moments

    def errors(self, names: Iterable[str]) -> Errors:
        """The certified errors of shares of these columns; infinite where there is no bound."""
        known = self.certificate.statistics
        if known is None:
            return Errors(math.inf, math.inf)
        two = self._of_pair(names, known.share_of_two_columns, "share", "share_of_others")
        return Errors(raise_bound(known.share_of_one_column), _raised(two))

    def group_error(self, names: Iterable[str]) -> float:
        """The certified error of group totals of these two columns; infinite if there is no bound."""
        known = self.certificate.statistics
        if known is None:
            return math.inf
        return _raised(self._of_pair(names, known.group_total, "group_total", "group_total_of_others"))

    def _of_pair(self, names: Iterable[str], of_all: float | None, own: str, of_others: str) -> float | None:
        """The bound of a pair of columns: that of all pairs, or a smaller one if some pairs are exceptions."""
        apart, pair = self.certificate.exceptions, frozenset(names)
        if of_all is None or apart is None or len(pair) != 2:
            return of_all
        found: float | None = getattr(apart, own if pair in self._exceptions else of_others)
        return of_all if found is None else min(of_all, found)

    @cached_property
    def _exceptions(self) -> frozenset[frozenset[str]]:
        apart = self.certificate.exceptions
        return frozenset() if apart is None else apart.pairs

    @property
    def moment_error(self) -> float:
        """The certified error of means, squares and products; infinite if there is no bound."""
        known = self.certificate.statistics
        return math.inf if known is None else _raised(known.moment)

    @cached_property
    def _lattices(self) -> dict[tuple[tuple[str, ...], bool], Lattice]:
        return {}

    def lattice(self, *names: str, shares: bool = False) -> Lattice | None:
        """The synthetic rows on the lattice of one or two columns, for group totals and moments or for `shares`; None
        if nothing is certified on it.

        Callers ask for `bound` of the same columns first, so that some subset of the certificate contains them.
        """
        columns = [self.columns[name] for name in names]
        if self.certificate.statistics is None or len(names) > 2 or not all(map(has_monotone_codes, columns)):
            return None
        if len(names) == 2 and math.isinf(self.errors(names).two):
            return None
        key = names, shares and len(names) == 1
        if key not in self._lattices:
            of_one = Lattice.of_shares(columns[0], self.clean) if key[1] else None
            self._lattices[key] = of_one or Lattice.of(columns, self.clean)
        return self._lattices[key]

    def band_lattice(self, *names: str) -> tuple[Lattice, Errors] | None:
        """The synthetic rows in the bands of one or two columns, and the certified errors of sets of these; None if no
        column has bands."""
        known, columns = self.certificate.statistics, [self.columns[name] for name in names]
        if known is None or len(names) > 2 or not any(map(has_bands, columns)):
            return None
        error = _raised(known.band_of_one_column if len(names) == 1 else known.band_of_two_columns)
        if math.isinf(error):
            return None
        if names not in self._band_lattices:
            self._band_lattices[names] = Lattice.of_bands(columns, self.clean)
        return self._band_lattices[names], Errors(error, math.inf) if len(names) == 1 else Errors(math.inf, error)

    @cached_property
    def _band_lattices(self) -> dict[tuple[str, ...], Lattice]:
        return {}

    def boxes(self, condition: Condition) -> Boxes | None:
        """The condition as a union of boxes; None if there is none, or codes of a column are not in order."""
        if not all(has_monotone_codes(self.columns[name]) for name in condition.columns):
            return None
        return self.nearness.boxes(condition)

    def points(self, boxes: Boxes, *, first: str | None = None) -> tuple[Lattice, Points, Points] | None:
        """A lattice, and the points on it where a condition holds for all values and for some; None if nothing is
        certified about its columns together.

        `first`: a column that the lattice must have, as its first.
        """
        names = sorted(boxes.names - {first}, key=self.schema.names.index)
        lattice = self.lattice(*(names if first is None else [first, *names]), shares=True)
        return None if lattice is None else (lattice, *lattice.inner_and_outer(boxes))

    # ------------------------------------------------------------ bounds on the distance

    def bound(self, names: Iterable[str]) -> float:
        """The smallest bound that covers statistics of these columns: that of any subset that holds them all.

        A little is added: bounds and distances are floats, and a number that is written has another place than the one
        that was certified.
        """
        wanted = frozenset(names)
        found = [bound for columns, bound in self._subsets_with(wanted) if wanted <= columns]
        if not found:
            raise InputError(self._not_covered(sorted(wanted, key=self.schema.names.index)))
        if len(wanted) == 1:
            found.append(self.certificate.single_column_bound)
        last_bits = max(last_bit(self.columns[name]) for name in wanted)
        return min(1.0, raise_bound(min(found)) + last_bits)

    def covers(self, names: Iterable[str]) -> bool:
        """Whether a subset of the certificate holds all of these columns."""
        wanted = frozenset(names)
        return any(wanted <= columns for columns, _ in self._subsets_with(wanted))

    def _subsets_with(self, names: frozenset[str]) -> Sequence[tuple[frozenset[str], float]]:
        """The subsets with one of these columns, and their bounds: of many columns few subsets hold a given one."""
        return self._subsets_by_column.get(min(names), ()) if names else self._all_subsets

    @cached_property
    def _all_subsets(self) -> list[tuple[frozenset[str], float]]:
        return [(frozenset(subset.columns), subset.bound) for subset in self.certificate.subsets]

    @cached_property
    def _subsets_by_column(self) -> dict[str, list[tuple[frozenset[str], float]]]:
        found: dict[str, list[tuple[frozenset[str], float]]] = {}
        for columns, bound in self._all_subsets:
            for name in columns:
                found.setdefault(name, []).append((columns, bound))
        return found

    def _not_covered(self, names: Sequence[str]) -> str:
        listed = ", ".join(f"{name!r:.60}" for name in names)
        if self.named:
            return (
                f"no subset of the release's workload holds {listed} together, so nothing is certified about them; "
                "release with a workload that names them."
            )
        most = max(len(subset.columns) for subset in self.certificate.subsets)
        return (
            f"{listed} are {len(names)} columns, and this release certifies statistics of at most {most}; ask about "
            "fewer at once, or release with a larger `sparsity`."
        )


def _rounded(rows: Distinct, steps: int) -> Distinct:
    """Rows with the values of ordered columns rounded to `steps` equal parts of their ranges."""
    found, far = dict(rows.rows), np.zeros(len(rows.shares))
    for name, old in rows.rows.items():
        column = rows.columns[name]
        if isinstance(column, Ordered) and column.grid:
            last, ranks = len(column.grid) - 1, rank(column, old)
            new = np.rint(np.floor(ranks / last * steps + 0.5) / steps * last)
            found[name] = np.where(np.isnan(old), np.nan, column.figures_at(new.astype(np.int64)))
            away = np.where(np.isnan(old), 0.0, np.abs(new - ranks)) / last * float(column.weight)
            far = np.maximum(far, away)
        elif isinstance(column, Ordered) and span(column) > 0:
            low, length = float(column.low), span(column)
            new = low + np.floor((old - low) / length * steps + 0.5) / steps * length
            found[name] = np.clip(np.floor(new + 0.5) if column.whole else new, low, float(column.high))
            away = np.abs(found[name] - old) / length * float(column.weight)
            far = np.maximum(far, np.nan_to_num(away))  # missing values stay
    arrays, shares = merge_rows(*found.values(), shares=rows.shares)
    moved = float(np.dot(rows.shares, far)) * (1 + 1e-9)
    return Distinct(rows.columns, dict(zip(found, arrays, strict=True)), shares, moved)


def raise_bound(bound: float) -> float:
    """Add more to a bound than sums of many floats can be off by; `calculator.js` adds the same."""
    return bound * (1 + 1e-9) + 1e-12


def _raised(bound: float | None) -> float:
    return math.inf if bound is None else raise_bound(bound)


def last_bit(column: Column) -> float:
    """Twice the largest gap between adjacent floats in a numeric column, as a distance: a large part of a short range
    that is far from 0."""
    if not isinstance(column, Ordered) or column.whole or column.grid or not span(column) > 0:
        return 0.0
    return 2 * math.ulp(max(abs(column.low), abs(column.high))) / span(column) * float(column.weight)


def span(column: Ordered) -> float:
    """The length of the column's range in its own units; for ordinals, in ranks."""
    return float(column.high - column.low)


def place(column: Ordered, figures: Floats) -> Floats:
    """Positions of values in the column's range, from 0 to 1. Missing values are placed in the middle, where they have
    no effect: they are at distance `weight` from all others."""
    where = (figures - float(column.low)) / (span(column) or 1.0)
    return np.where(np.isnan(where), 0.5, where)


def rank(column: Ordered, figures: Floats) -> Floats:
    """The ranks of values of a column that is compared by ratios; 0 for missing values."""
    return np.searchsorted(np.array(column.grid), np.where(np.isnan(figures), column.low, figures)).astype(float)
