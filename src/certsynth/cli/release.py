"""certsynth release: a private table in, a release folder out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from certsynth.algorithm.options import ReleaseOptions
from certsynth.cli import layout, options, words
from certsynth.cli import ledger as ledgers
from certsynth.cli.failure import note_target, say
from certsynth.cli.progress import bars
from certsynth.record.form import to_json
from certsynth.record.record import CertificateRecord, FitRecord, MethodRecord, TableRecord

if TYPE_CHECKING:
    from certsynth.artefact import Release
    from certsynth.report.headline import Headline

CHECK_NOTE = (
    "note: a release does not say how well the schema fits the rows: `certsynth check` does, for the owner of the data."
)
"""The same for every table: whether the schema fits depends on private rows."""

MORE = "With --verbose: what the bound is made of, and the largest bounds."


@click.command("release", cls=options.GroupedCommand, short_help="Private rows in, a release folder out.")
@click.argument("data", type=options.TABLE)
@options.of(options.SchemaOptions, options.ReadingOptions, ReleaseOptions, options.DetailOptions)
def command(data: str, schema_file: Path, out: Path, quiet: bool, verbose: bool, as_json: bool, **choices: Any) -> None:
    """Write a synthetic table for DATA, and the certificate that comes with it.

    DATA is a file of CSV, JSON lines, Excel or Parquet; with --sql it is a query, and with --engine spark it may be the
    name of a table. Columns that the schema does not name are ignored. The folder holds the rows (synthetic.csv,
    synthetic.parquet), certificate.json, report.html and all that `certsynth verify` needs.
    """
    from certsynth import Schema, release

    table = options.table(data, choices)
    schema = Schema.load(schema_file)
    options.read_workload(choices)
    options.warn_of_omissions(schema, choices)
    note_target(out)
    with bars(quiet=quiet) as progress:
        made = release(table, schema, out=out, progress=progress, **choices)
    options.warn_of_missing_ledger(choices)
    if not quiet:
        say(CHECK_NOTE)
    if as_json:
        words.print_json(result(made, out) | ledgers.ledger_json(choices["ledger"]))
    else:
        layout.show(lines(made, out, choices["ledger"], verbose=verbose))


def result(made: Release, out: Path) -> dict[str, Any]:
    """A release as JSON."""
    record, privacy = made.record, made.record.privacy
    return {
        "out": str(out),
        **words.budget_numbers(privacy.epsilon, privacy.delta, privacy.rho),
        "neighbours": privacy.neighbours,
        "rows": record.release.rows,
        "release": to_json(record.release),
        "privacy": to_json(privacy),
        "certificate": to_json(record.certificate),
        "fit": None if record.fit is None else to_json(record.fit),
    }


def method(how: MethodRecord) -> str:
    """What was measured and how rows were fitted, in one line."""
    loss = "" if how.loss is None else f", {how.loss} loss"
    dimension = "" if how.dimension is None else f", for rows of dimension {how.dimension}"
    if how.pairs is not None:
        tables = words.counted(len(how.pairs), "pair")
        return f"adaptive: {tables} of columns measured, chosen by private scores; projection {how.projection}"
    return f"{words.measured(how.mechanism, how.resolution)}{dimension}, projection {how.projection}{loss}"


def fit_lines(fit: FitRecord | None) -> list[str]:
    """How close the rows are to the noisy tables, in one line, and one for each pair that looks like a function."""
    from certsynth.report.fit import closeness, likely_functions  # imports what --help does without

    if fit is None:
        return []
    return [f"fit: {closeness(fit)}", *(f"note: {each}" for each in likely_functions(fit))]


def derived_lines(table: TableRecord) -> list[str]:
    """The derived columns in one line, if there are any."""
    columns = [f"{each.column} from {' and '.join(each.sources)}" for each in table.derived or ()]
    return [f"derived, not measured: {', '.join(columns)}"] if columns else []


def persons_lines(made: Release) -> list[str]:
    """Whose rows are protected, and which of them were kept; nothing if single rows are protected."""
    from certsynth.report import persons  # imports what --help does without

    if made.schema.persons is None:
        return []
    dropped = persons.dropped_rows(made.record.certificate.dropped, made.schema.persons)
    return [f"persons: {persons.protection(made.schema.persons)}", *([dropped] if dropped else [])]


def readings_line(table: TableRecord) -> list[str]:
    """The columns with options for reading texts in one line, if there are any."""
    columns = [each.column for each in table.readings or ()]
    return [f"read by options of the schema: {', '.join(columns)}"] if columns else []


def statistics_lines(certificate: CertificateRecord, table: TableRecord) -> list[str]:
    """The certified errors of shares, group totals and moments; nothing if there are none."""
    from certsynth.report import statistics  # imports what --help does without

    found = certificate.statistics
    if found is None:
        return []
    apart = certificate.exceptions
    other = statistics.other_figures(found, table.by_ratios or (), apart)
    return [statistics.promise(found, words.percent(certificate.confidence), apart), *([other] if other else [])]


def lines(made: Release, out: Path, ledger: Path | None = None, *, verbose: bool = False) -> list[str]:
    """A release in words: what it means, the margins of statistics, the exact promise, and how it was made."""
    following = layout.command(["certsynth", "verify", str(out)])
    return [*summary(made, out, ledger, verbose=verbose), "", *following]


def summary(made: Release, out: Path, ledger: Path | None = None, *, verbose: bool = False) -> list[str]:
    """A release in words, without the command to type next."""
    from certsynth.report import headline  # imports what --help does without

    certificate, table = made.record.certificate, made.record.table
    subsets = _subsets(certificate)
    meaning = headline.certified(made.record, made.schema, made.table, made.rows)
    return [
        layout.strong(meaning.sentence(percent=words.percent)),
        f"The file to open: {out / 'report.html'}",
        "",
        *margin_lines(meaning, certificate),
        *statistics_lines(certificate, table),
        words.promise(
            certificate.bound,
            confidence=certificate.confidence,
            columns=words.covered(subsets, made.record.release.workload),
            weighted=any(column.weight != 1 for column in made.schema),
        ),
        *words.exceptions(certificate.exceptions, subsets),
        f"For statistics of one column: {words.upward(certificate.single_column_bound)}.",
        "",
        *_how(made, out, ledger),
        *(_details(made, subsets) if verbose else [MORE]),
    ]


def margin_lines(meaning: Headline, certificate: CertificateRecord) -> list[str]:
    """The margins of statistics as a table, and an empty line; nothing if there are none."""
    from certsynth.report import statistics  # imports what --help does without

    rows = [("shares of one column" if each.what == "shares" else each.what, each) for each in meaning.statements]
    texts = [(what, f"± {each.margin} {each.unit}".rstrip()) for what, each in rows]
    bounds = certificate.statistics
    known = {what for what, _ in texts} | {"means"}
    found = statistics.figures(bounds, certificate.exceptions) if bounds else []
    others = [each for each in found if each[0] not in known]
    texts += [(what, margin.replace("%", " %")) for what, margin in others]
    return [*words.table(texts), ""] if texts else []


def _subsets(certificate: CertificateRecord) -> list[dict[str, Any]]:
    """The subsets of columns with their bounds, and with their plug-in bounds if there are any."""
    subsets: list[dict[str, Any]] = [{"columns": s.columns, "bound": s.bound} for s in certificate.subsets]
    plug_in = certificate.plug_in.tightest
    if plug_in is None:
        return subsets
    by_columns = {subset.columns: subset.bound for subset in plug_in.subsets}
    return [subset | {"plug_in": by_columns.get(subset["columns"])} for subset in subsets]


def _how(made: Release, out: Path, ledger: Path | None) -> list[str]:
    """How the release was made: its size, its budget, its method, and how close its rows are to the noisy counts."""
    from certsynth.report import persons as person_words  # imports what --help does without

    how, privacy, table = made.record.release, made.record.privacy, made.record.table
    spent = words.budget(privacy.epsilon, privacy.delta, privacy.rho)
    known = person_words.public_number(privacy, made.schema.persons)
    return [
        f"{out}: {words.counted(how.rows, 'synthetic row')}, {words.counted(len(made.schema), 'column')}",
        f"privacy: {spent} under {privacy.neighbours} neighbours; {known}",
        *persons_lines(made),
        f"method: {method(how)}",
        *derived_lines(table),
        *readings_line(table),
        *ledgers.ledger_lines(ledger),
        *fit_lines(made.record.fit),
    ]


def _details(made: Release, subsets: Sequence[Mapping[str, Any]]) -> list[str]:
    """The terms of the bound, the subsets of columns with the largest bounds, and whether a better fit would help."""
    certificate = made.record.certificate
    figures = [figure for figure in ("bound", "plug_in") if figure in subsets[0]]
    return [
        "",
        "What the bound is made of:",
        *words.terms(certificate),
        "",
        f"The largest bounds, of {len(subsets):,}:",
        *words.worst(subsets, *figures),
        "",
        words.diagnostic(certificate),
    ]
