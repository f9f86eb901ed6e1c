"""A release: the synthetic rows, the certificate, and the noisy measurements with which anybody can check it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np

from certsynth.algorithm.checks import column_names
from certsynth.answers import Answer, Basis, TableAnswer, Unanswered, answer, answer_function, answer_or_reason
from certsynth.answers.alone import numbers_for_function, numbers_for_text
from certsynth.answers.noisy_cells import NoisyCells
from certsynth.artefact import frames, measurements
from certsynth.artefact.certificate import noisy_cells
from certsynth.artefact.croissant import describe_croissant
from certsynth.artefact.datapackage import describe_package
from certsynth.artefact.document import read_record, to_json
from certsynth.artefact.folder import check_plain, digest, read_plain, write_folder
from certsynth.artefact.notebook import certificate_html, release_html, spent_text
from certsynth.artefact.signature import SIGNER, Signer, as_signer
from certsynth.artefact.table import Table, as_table, cleaned_table, read_table, write_table
from certsynth.base.progress import Progress, silent
from certsynth.domain import Schema
from certsynth.errors import InputError, UnsafeNoise
from certsynth.mechanisms import Measurement
from certsynth.queries.marginals import Subset, all_subsets
from certsynth.record import form
from certsynth.record.record import CertificateRecord, FitRecord, Record
from certsynth.report import render_report
from certsynth.report.contents import SIZED, size_text
from certsynth.report.numerals import upward
from certsynth.report.words import omitted_rules

CSV, PARQUET, REPORT = "synthetic.csv", "synthetic.parquet", "report.html"


@dataclass(frozen=True, slots=True)
class Certificate:
    """A summary of a release's certificate; `record` is the whole certificate, and `details` its JSON.

    `kind` says which of the two certificates gives the `bound`: "direct" or "plug-in". `subsets` lists the columns and
    the bound of every covered subset.
    """

    bound: float
    confidence: float
    kind: str
    single_column_bound: float
    subsets: tuple[tuple[tuple[str, ...], float], ...]
    record: CertificateRecord | None = field(default=None, repr=False)

    @classmethod
    def of(cls, record: CertificateRecord) -> Certificate:
        return cls(
            bound=record.bound,
            confidence=record.confidence,
            kind=record.kind,
            single_column_bound=record.single_column_bound,
            subsets=tuple((subset.columns, subset.bound) for subset in record.subsets),
            record=record,
        )

    @property
    def details(self) -> dict[str, Any]:
        """The whole certificate, as in certificate.json."""
        return {} if self.record is None else form.to_json(self.record)

    def _repr_html_(self) -> str:
        return certificate_html(self)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Release:
    """A release, as `release` returns it and `Release.load` reads it from a folder.

    `record` is the content of certificate.json, and `folder` the release folder, if it was written. `table` has the
    written values, column by column, with missing ones masked; `rows` are the same values after reading them back and
    cleaning, and are what is certified. `measurements` are the noisy counts. A release with test noise is not
    `releasable`.
    """

    schema: Schema
    record: Record
    measurements: tuple[Measurement, ...]
    table: Table
    folder: Path | None = None
    releasable: bool = True
    rows: Sequence[np.ndarray] = ()

    def __post_init__(self) -> None:
        if not self.rows:
            object.__setattr__(self, "rows", cleaned_table(self.schema, self.table))

    @property
    def document(self) -> dict[str, Any]:
        """The whole of certificate.json, as JSON."""
        return form.to_json(self.record)

    @property
    def measurement(self) -> Measurement:
        """The last measurement, whose tables have the most columns."""
        return self.measurements[-1]

    @property
    def subsets(self) -> tuple[Subset, ...]:
        """The subsets of columns that the certificate covers: the named workload, or all subsets of one size."""
        named = self.record.release.workload
        if named is None:
            return all_subsets(self.schema, self.record.release.sparsity)
        return tuple(tuple(self.schema.names.index(name) for name in names) for names in named)

    @property
    def fit(self) -> FitRecord | None:
        """How close the rows are to the noisy tables of several columns, and pairs that look like functions."""
        return self.record.fit

    @property
    def certificate(self) -> Certificate:
        """A summary of the certificate."""
        return Certificate.of(self.record.certificate)

    def __repr__(self) -> str:
        certificate, spent = self.certificate, spent_text(self.record.privacy)
        omitted = omitted_rules(self.record.release.omitted_rules or ())
        return (
            f"Release({len(self.rows[0]):,} rows × {len(self.schema)} columns, {spent}, "
            f"off by at most {upward(certificate.bound)} with confidence {certificate.confidence!r}"
            f"{'' if self.schema.persons is None else f', about {self.schema.persons.kept}'}"
            f"{'; ' * bool(omitted)}{omitted})"
        )

    def _repr_html_(self) -> str:
        return release_html(self.schema, self.record, self.table, self.folder)

    def to_pandas(self) -> Any:
        """Return the certified rows as a pandas data frame."""
        return frames.to_pandas(self.schema, self.table, self.rows)

    def to_polars(self) -> Any:
        """Return the certified rows as a polars data frame."""
        return frames.to_polars(self.schema, self.table, self.rows)

    def to_arrow(self) -> Any:
        """Return the certified rows as an Arrow table."""
        return frames.to_arrow(self.schema, self.table, self.rows)

    def save(self, folder: str | Path, *, sign: str | Path | Signer | None = None) -> Release:
        """Write the release folder, completely or not at all; an existing folder is never overwritten.

        `sign` is a file with an Ed25519 private key, with which the folder is signed. A release that had no folder yet
        has this one from then on, as the returned one does.
        """
        if not all(m.releasable for m in self.measurements) or not self.releasable:
            raise UnsafeNoise("this release was made with test noise, which protects nobody; it is not written.")
        folder, signer = Path(folder), as_signer(sign)
        record, table = self.record, self.table
        files = {
            "certificate.json": to_json(form.to_json(record)),
            "measurements.npz": measurements.to_bytes(self.measurements, self.schema.measured),
            "schema.toml": self.schema.to_toml().encode(),
            "datapackage.json": package_bytes(self.schema, record),
        }
        if signer:
            files[SIGNER] = signer.public.pem

        def write_rows_and_report(path: Path) -> None:
            write_table(table, parquet=path / PARQUET, csv=path / CSV, schema=self.schema)
            (path / "croissant.json").write_bytes(croissant_bytes(self.schema, record, path))
            (path / REPORT).write_bytes(report_bytes(self, sizes_in(path)))  # last: it states the sizes of the others

        write_folder(folder, files, write_rows_and_report, sign=signer.sign if signer else None)
        if self.folder is None:  # so that `made.save(folder)` can be followed by `made.verify()`
            object.__setattr__(self, "folder", folder)
        return replace(self, folder=folder)

    @classmethod
    def load(cls, folder: str | Path) -> Release:
        """Read a release folder without checking its claims; `verify` checks them."""
        folder = Path(folder)
        check_plain(folder)
        record = read_record(read_plain(folder, "certificate.json"))
        content = read_plain(folder, "measurements.npz")
        schema = Schema.load(folder / "schema.toml")
        return cls(
            schema=schema,
            record=record,
            measurements=measurements.from_bytes(content, schema.measured),
            table=as_table(schema, read_table(folder / PARQUET, schema)),
            folder=folder,
        )

    def verify(self, *, key: str | Path | None = None, progress: Progress = silent) -> list[dict[str, Any]]:
        """Check the folder without the private data; return a list of checks, each with a name, `ok` and a sentence.

        With `key`, a file with an Ed25519 public key, the release must be signed with that key. `progress` is called
        with the name of each stage.
        """
        from certsynth.algorithm.verify import verify

        return verify(self, key=key, progress=progress)

    @overload
    def answer(
        self,
        query: str | Callable[..., Any],
        *,
        columns: Sequence[str] = ...,
        lipschitz: float | None = ...,
        slopes: Mapping[str, float] | None = ...,
        bounds: tuple[float, float] | None = ...,
        row_by_row: bool = ...,
        alone: bool = ...,
        errors: Literal["raise"] = ...,
    ) -> Answer | TableAnswer: ...

    @overload
    def answer(
        self, query: list[str] | tuple[str, ...], *, alone: bool = ..., errors: Literal["raise"] = ...
    ) -> list[Answer | TableAnswer]: ...

    @overload
    def answer(
        self, query: str, *, alone: bool = ..., errors: Literal["return"]
    ) -> Answer | TableAnswer | Unanswered: ...

    @overload
    def answer(
        self, query: list[str] | tuple[str, ...], *, alone: bool = ..., errors: Literal["return"]
    ) -> list[Answer | TableAnswer | Unanswered]: ...

    def answer(
        self,
        query: str | Callable[..., Any] | list[str] | tuple[str, ...],
        *,
        columns: Sequence[str] = (),
        lipschitz: float | None = None,
        slopes: Mapping[str, float] | None = None,
        bounds: tuple[float, float] | None = None,
        row_by_row: bool = False,
        alone: bool = False,
        errors: Literal["raise", "return"] = "raise",
    ) -> Any:
        """Answer a statistic, with an interval that is certified to contain the true value.

        `query` is a text like `mean(age)`, `fraction(age > 65)` or the difference of two such statistics, or a function
        of `columns` that is averaged over the rows. `table(region, employed)`, `histogram(age)` and
        `mean(age) by region` return a `TableAnswer` with an answer for each cell or group. A list of texts returns the
        list of their answers.

        A function takes arrays of synthetic values in the columns' own units and returns an array, or with `row_by_row`
        takes the values of one row and returns a number. `slopes` bounds its rate of change in each column, in the
        column's own units; alternatively `lipschitz` bounds it for columns scaled to length 1, with respect to the
        largest of their differences. `bounds` are its smallest and largest possible values. These claims are not
        checked.

        A query that cannot be answered raises an `InputError`. With `errors="return"`, an `Unanswered` with the reason
        in `error` takes the place of its answer, and the others are answered; the `error` of an answer is empty.

        All answers hold simultaneously. With `alone`, the interval is narrower, but valid for this question only.
        """
        if errors not in ("raise", "return"):
            raise InputError('`errors` is "raise" or "return".')
        clean = dict(zip(self.schema.names, self.rows, strict=True))
        about = "" if self.schema.persons is None else self.schema.persons.kept
        columns = column_names("columns", columns) if isinstance(columns, str) else columns
        basis = Basis.read(self.schema, self.table, clean, self.record, noisy=self.noisy_cells)
        if callable(query):
            found = answer_function(
                self._basis_for_one_question(basis, query, columns) if alone else basis,
                query,
                columns=columns,
                lipschitz=lipschitz,
                slopes=slopes,
                bounds=bounds,
                row_by_row=row_by_row,
            )
            return replace(found, alone=alone, about=about)
        reply = answer if errors == "raise" else answer_or_reason

        def one(text: str) -> Answer | TableAnswer | Unanswered:
            found = reply(self._basis_for_one_question(basis, text, ()) if alone else basis, text)
            return found if isinstance(found, Unanswered) else replace(found, alone=alone, about=about)

        return [one(text) for text in query] if isinstance(query, (list, tuple)) else one(query)

    @property
    def noisy_cells(self) -> NoisyCells:
        """The noisy counts whose errors are certified."""
        return noisy_cells(self.schema.measured, self.record.certificate, self.measurements)

    def _basis_for_one_question(self, basis: Basis, query: str | Callable[..., Any], columns: Sequence[str]) -> Basis:
        from certsynth.algorithm.recompute import certificate_for_one_question

        used = numbers_for_function(basis, columns) if callable(query) else numbers_for_text(basis, query)
        return replace(basis, certificate=certificate_for_one_question(self, used))

    def cannot_verify(self, *, key: str | Path | None = None) -> list[str]:
        """List, in words, what the checks do not cover because nobody can check it from the folder alone."""
        from certsynth.algorithm.verify import cannot_verify

        return cannot_verify(self, key=key)


def sizes_in(folder: Path) -> dict[str, str]:
    """Return the sizes of the files of a folder that the report states."""
    return {name: size_text((folder / name).lstat().st_size) for name in SIZED if os.path.lexists(folder / name)}


def report_bytes(release: Release, sizes: Mapping[str, str]) -> bytes:
    """Return report.html, with these sizes of the other files."""
    page = render_report(
        release.record, release.schema, release.table, rows=release.rows, noisy=release.noisy_cells, sizes=sizes
    )
    return page.encode()


def package_bytes(schema: Schema, record: Record) -> bytes:
    """Return datapackage.json, which is determined by the schema and the certificate."""
    return to_json(describe_package(schema, record, parquet=PARQUET, csv=CSV))


def croissant_bytes(schema: Schema, record: Record, folder: Path) -> bytes:
    """Return croissant.json, which is determined by the schema, the certificate and the tables in the folder."""
    named = {name: (name, digest(folder / name)) for name in (PARQUET, CSV)}
    return to_json(describe_croissant(schema, record, parquet=named[PARQUET], csv=named[CSV]))
