"""The sentences of the report, for readers without a statistical background. Numbers are passed in as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from certsynth.base.clock import CLOCKS
from certsynth.record.record import LayerRecord, OmittedRuleRecord, PairRecord
from certsynth.report.numerals import text

KINDS = {"direct": "direct certificate", "plug-in": "plug-in certificate"}

PROXIES = {"transport": "transport loss", "path": "path loss"}

CERTIFICATES = {
    "direct": (
        "Direct certificate",
        "The distance between the real and the synthetic rows, measured once with noise.",
    ),
    "single_column": (
        "Direct certificate, single columns",
        "The same for each column alone: it covers statistics of a single column.",
    ),
    "transport": (
        "Plug-in certificate, transport loss",
        "Computed from noisy measurements and the synthetic rows, so anybody can recompute it. The worst subset of "
        "columns determines the bound.",
    ),
    "path": (
        "Plug-in certificate, path loss",
        "The same with a simpler distance: faster to compute, but usually looser.",
    ),
}

SEVERAL = (
    "The release carries several certificates, and each is true at its own confidence. The bound on this page is the "
    "smaller of the direct and the plug-in one. The two share one failure probability, so choosing the smaller is "
    "allowed."
)
SEVERAL_WITH_DERIVED = (
    "The release carries several certificates, and each is true at its own confidence. The bound on this page is the "
    "direct one. The plug-in certificate covers measured columns only, not those that are derived from others."
)
ONLY_PLUG_IN = (
    "The release carries a plug-in certificate and no direct one: no budget was set aside for measuring the distance "
    "itself. If it is computed with two distances, the transport loss gives the bound."
)


def only_direct(why: str) -> str:
    """Introduce a release without a plug-in certificate; `why` gives the reason."""
    return (
        "The release carries a direct certificate, and one for single columns: the distance between the rows was "
        f"itself measured. {why[:1].upper()}{why[1:]}."
    )


# The role of each term of a certificate, which is its colour in the chart.
TERMS = {
    "measured_loss": "rows",
    "slack": "noise",
    "discretisation": "cells",
    "privatisation": "noise",
    "projection": "rows",
}

ROLES = {
    "rows": (
        "measured loss or projection",
        "Direct: the measured loss, including its noise, which may be positive or negative. Plug-in: the projection, "
        "which is the distance of the synthetic rows from the noisy counts.",
    ),
    "noise": (
        "slack or privatisation",
        "Allowances for noise. Direct: the slack, for the noise in that measurement. Plug-in: the privatisation, for "
        "the noise in the counts (a quantile of its distribution).",
    ),
    "cells": (
        "discretisation",
        "Plug-in only: values were counted in cells, which can lose up to half a cell.",
    ),
}

SPENT = {
    "noisy single columns": (
        "the noisy single columns",
        "how often each value occurs; they determine which values are counted together",
    ),
    "noisy marginals of 2 columns": (
        "the noisy pairs of columns",
        "a finer look at two columns at a time",
    ),
    "number of rows": (
        "the noisy number of rows",
        "the number of rows that the release is planned for and that the direct certificate divides by",
    ),
    "scores of pairs": (
        "the noisy scores of pairs",
        "how far each pair of columns is from independent columns; they determine which pairs are measured",
    ),
    "choosing the resolution": (
        "the choice of the resolution",
        "how fine a grid the rows’ own dimension allows, judged by how many of its cells hold rows",
    ),
    "noisy marginals": (
        "the noisy counts",
        "the synthetic rows are fitted to them, and the plug-in certificate, if there is one, is computed from them",
    ),
    "mean displacement": (
        "the distance to the centres of cells",
        "one noisy number: how far real rows are from the centres of their cells, which a plug-in certificate includes",
    ),
    "dropped rows of persons": (
        "the share of dropped rows",
        "four noisy numbers: how many persons have more rows than are kept, and how many rows were dropped",
    ),
    "errors of the rows": (
        "the errors of the synthetic rows",
        "a few noisy numbers, from which all bounds of the direct certificate are computed",
    ),
}

CHOOSING_EXCEPTIONS = "subsets of columns with large errors, which get bounds of their own"


def spent_on_choice(name: str) -> tuple[str, str]:
    """Describe a step by its own name if it is a private choice."""
    return name, CHOOSING_EXCEPTIONS if "exception" in name else ""


SIGNS = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}

NEIGHBOURS = {
    "replace-one": "Two tables are neighbours if one row of the first is replaced by any other row (replace-one).",
    "add-remove": "Two tables are neighbours if one of them has one more row than the other (add-remove).",
}

HIDDEN_ROWS = "not published: under add-remove neighbours, the number of rows is itself private"

SPENDS_AGAIN = "Every further release of the same rows spends its budget again."

VACUOUS = (
    "A bound of 1 says nothing: it is true of any two tables. More rows, a larger budget or fewer columns help. "
    f"{SPENDS_AGAIN}"
)

VERDICTS = {
    False: (
        "The fit is as close to the measurement as the real rows are likely to be: optimising further would not help. "
        "The remaining distance is noise."
    ),
    True: (
        "The fit is further from the measurement than the real rows are likely to be: optimising further, or another "
        "set of points to put weight on, could give a better table from the same measurement, at no cost in privacy. A "
        "further run of `certsynth release` measures anew, and spends its budget again."
    ),
}

HEADLINE = {
    "shares": "share of rows, by one column",
    "shares of two columns": "share of rows, by two columns",
    "shares of labels": "share of a label",
    "shares of labels of two columns": "share of labels of two columns",
}
"""What the margins of shares at the top of the page are about."""

SETTINGS = {
    "format of the certificate": "format of the certificate",
    "sparsity": "sparsity (columns at once)",
    "workload": "workload (number of named subsets)",
    "resolution": "resolution (cells along a column)",
    "dimension": "dimension of rows for which the grid is meant, chosen privately",
    "measured": "measurements, in order",
    "mechanism": "mechanism (how counts are combined before noise)",
    "growth": "growth (of weights, as a power of 2 per finer level)",
    "order": "order of the cells",
    "projection": "projection (how rows were fitted)",
    "loss": "loss that was minimised",
    "detail": "position of rows within a cell",
    "candidates": "candidate tables",
    "rows": "synthetic rows",
    "pairs": "pairs of columns measured, chosen by private scores",
}

MAX_NAMED_PAIRS = 5
"""Chosen pairs that the report names, at most; certificate.json lists all."""


def looks_at(sparsity: int, complete: bool = True) -> str:
    """Say which columns a certified statistic may use."""
    if not complete:
        return "at the columns of one of the named subsets"
    return "at one column" if sparsity == 1 else f"at no more than {sparsity} columns"


def statement(promise: Mapping[str, Any]) -> str:
    return (
        f"With {promise['confidence_text']} confidence, no statistic that looks {promise['looks_at']} and is "
        f"1-Lipschitz differs by more than {promise['bound_text']} between the real rows and the synthetic rows."
    )


def plainly(promise: Mapping[str, Any]) -> str:
    return (
        f"Take any average or share of the synthetic rows that looks {promise['looks_at']}. How far the same statistic "
        f"of the real rows can be from it is certified, with {promise['confidence_text']} confidence."
    )


def scaled(
    weights: Mapping[str, str], trees: Sequence[str], metrics: Sequence[str], by_ratios: Sequence[str] = ()
) -> str:
    """Explain distances between values that are not the usual ones; names and numbers are passed in as text."""
    said = []
    if weights:
        each = ", ".join(f"“{name}” to {weight}" for name, weight in weights.items())
        said.append(f"Columns whose differences count less are scaled to their weight instead: {each}.")
    if trees:
        said.append(f"Codes of {_listed(trees)} are as far apart as in the tree, as a share of its longest path.")
    if metrics:
        said.append(
            f"Labels of {_listed(metrics)} are as far apart as the schema says, as a share of the largest distance."
        )
    if by_ratios:
        said.append(
            f"Values of {_listed(by_ratios)} are compared by ratios: they are as far apart as their places in a list "
            "of round numbers. Rules on this page that multiply a bound by a range are about these places, not about "
            "the values, whose means and medians are stated below, column by column."
        )
    return " ".join(said)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"“{name}”" for name in names)


def mean_example(column: Mapping[str, Any], kind: str, width: str) -> str:
    """Explain the bound with the mean of a column that has no missing values."""
    fact = column["facts"][0]
    unit = "places" if kind == "ordinal" else CLOCKS[kind].unit if kind in CLOCKS else ""
    measure = f"{width} {unit}".rstrip()
    extent = f"which has {column['range']}" if kind == "ordinal" else f"which runs from {column['range']}"
    return (
        f"Take “{column['name']}”, {extent}: a range of {measure}. Its {fact['what']} is {fact['value']} in the "
        f"synthetic rows, and within ± {fact['plus_minus_text']} of that in the real rows."
    )


def categories(columns: int, *, complete: bool = True) -> str:
    """Name the groups whose shares are certified.

    `complete`: any columns, up to this number, are covered together; otherwise only those of one named subset.
    """
    if complete:
        return "any category" if columns == 1 else f"any combination of categories in up to {columns} columns"
    return f"any {'category' if columns == 1 else 'combination of categories'} in the columns of one named subset"


MAX_NAMED_COLUMNS = 3
"""Columns that a sentence lists by name; more are described by their common property."""


def share_example(what: str, points: str, near: Sequence[str] = (), points_near: str | None = None) -> str:
    """Explain the bound with shares of rows.

    `near`: columns whose labels are less than 1 apart. Shares that involve one of them are off by at most
    `points_near`; None: by anything.
    """
    said = f"The share of rows with {what}, or with any group of them, is right within ± {points} percentage points"
    if not near:
        return f"{said}."
    many = len(near) > MAX_NAMED_COLUMNS
    which = f"one of the {len(near):,} columns whose labels are less than 1 apart" if many else _listed(near)
    off = "it can be anything" if points_near is None else f"within ± {points_near}"
    return f"{said}; where {which} {'is' if len(near) == 1 or many else 'are'} among the columns, {off}."


def privacy(definition: str, stated: Mapping[str, str | None]) -> str:
    if stated["rho"] is None:
        return f"The release satisfies {definition} with ε = {stated['epsilon']}."
    return (
        f"The release satisfies {definition} with ρ = {stated['rho']}, and therefore (ε, δ)-differential privacy with "
        f"ε = {stated['epsilon']} and δ = {stated['delta']}."
    )


def spent(sign: str, *, rounded: bool) -> str:
    up = " Parts with many digits are rounded up." if rounded else ""
    return f"How {sign} was spent. The parts add up to the total.{up}"


def outcomes(factor: str, unit: str = "row") -> str:
    return (
        f"A single {unit} makes no outcome of the release more than {factor} times (e to the power ε) as likely, apart "
        "from a chance of δ."
    )


def delta(chance: str, unit: str = "row") -> str:
    return (
        f"That chance, up to {chance}, is what ε does not cover: within it more may be learned about a {unit}, and ρ "
        "alone limits how much."
    )


def odds(factor: str, unit: str = "row") -> str:
    return (
        f"Whatever somebody already knows, this release changes the odds of any conclusion about a single {unit} "
        f"by a factor of at most {factor} (e to the power ε)."
    )


def subsets_of(sizes: set[int]) -> str:
    """Name subsets of these sizes."""
    names = {1: "columns", 2: "pairs of columns", 3: "triples of columns"}
    if len(sizes) > 1:
        return "subsets of columns"
    (size,) = sizes
    return names.get(size, f"subsets of {size} columns")


def subsets_title(sizes: set[int]) -> str:
    return {2: "Pair by pair", 1: "Bounds of the columns"}.get(max(sizes) if len(sizes) == 1 else 0, "Subset by subset")


def subsets_text(what: str, rows: Sequence[Mapping[str, Any]], *, uniform: bool) -> str:
    """Introduce the table of subsets. `uniform`: all have the same certified bound."""
    number, bound = f"{len(rows):,}", rows[0]["bound_text"]
    if len(rows) == 1:
        return f"There is one subset of columns; its bound is {bound}."
    if uniform:
        return f"One certified bound, {bound}, covers all {number} {what}."
    return f"Each of the {number} {what} has a bound of its own, and all of them hold together."


def subsets_caption(what: str, number: int, most: int, *, plug_in: bool = True) -> str:
    terms = ", with the terms of the plug-in bound" if plug_in else ""
    if number <= most:
        return f"All {what}, largest bound first{terms}."
    return f"The {most} {what} with the largest bounds, of {number:,}{terms}. The others are in certificate.json."


def subsets_folded(what: str, number: int) -> str:
    return "The bound of the subset, as a table" if number == 1 else f"The bounds of the {number:,} {what}, as a table"


def commands() -> list[dict[str, str]]:
    """List commands that check the release; DIR is the folder that contains this report."""
    rows = [
        ("certsynth verify DIR", "checks the release without the private data"),
        ("certsynth verify DIR --key publisher.pem", "also checks that the publisher signed it"),
        ("sha256sum -c SHA256SUMS", "checks only the checksums, from inside the folder, without certsynth"),
        ("certsynth report DIR --out again.html", "writes this page again, byte for byte"),
    ]
    return [{"command": command, "what": what} for command, what in rows]


SIGNATURE = (
    "A release may be signed. The folder then holds a signature of the checksums, and thereby of every file in it, "
    "including this page. Obtain the public key from the publisher separately from the release: anybody can sign with "
    "a key of their own."
)


def answer(names: Sequence[str]) -> str:
    """Return a command that answers a statistic of the table; `names` are the columns that have a mean."""
    plain = [name for name in names if name.isascii() and name.isidentifier()]
    return f'certsynth answer DIR "mean({plain[0] if plain else "COLUMN"})"'


def ledger(entry: str | None) -> str:
    """Say whether the release was charged to a ledger; `entry` is a prefix of the hash of its entry."""
    if entry is None:
        return "not charged to a ledger: the budget of other releases from the same rows is not added up here"
    return f"charged to the owner’s ledger, which adds up all releases from the same rows: entry {entry}"


def rules(number: int) -> str:
    """Explain what the schema’s rules mean for the rows; empty if there are none."""
    if not number:
        return ""
    which = "The schema has one rule" if number == 1 else f"The schema has {number:,} rules"
    return (
        f"{which} about values that cannot occur together in a row, and no synthetic row breaks "
        f"{'it' if number == 1 else 'any'}. Real rows may: they were not changed, and the bound compares with "
        "them unchanged."
    )


def omitted_rules(rules: Sequence[OmittedRuleRecord]) -> str:
    """Say which rules of the given schema were not applied; empty if all were.

    >>> omitted_rules([OmittedRuleRecord(2, ("age", "sex")), OmittedRuleRecord(3, ("age",))])
    'rules 2 and 3 of the schema mention columns that were left out (age, sex), and were not applied'
    """
    if not rules:
        return ""
    *first, last = [str(rule.number) for rule in rules]
    which = f"rules {', '.join(first)} and {last}" if first else f"rule {last}"
    columns = list(dict.fromkeys(text(name) for rule in rules for name in rule.columns))
    left_out = "columns that were" if len(columns) > 1 else "a column that was"
    verb, applied = ("mention", "were") if first else ("mentions", "was")
    return f"{which} of the schema {verb} {left_out} left out ({', '.join(columns)}), and {applied} not applied"


def derived(columns: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Explain derived columns, given with the columns that each is computed from; empty if there are none."""
    if not columns:
        return ""
    named = "; ".join(f"{name} from {' and '.join(sources)}" for name, sources in columns)
    return (
        f"Derived columns were not measured. They are computed from other columns of each synthetic row, as the schema "
        f"says: {named}. Real rows need not follow the schema here: they were not changed, and the bound compares with "
        "them unchanged."
    )


def readings(columns: Sequence[tuple[str, Sequence[str]]]) -> str:
    """Name the columns with options for reading texts, each with its options; empty if there are none."""
    if not columns:
        return ""
    named = "; ".join(f"{name} ({', '.join(options)})" for name, options in columns)
    return (
        f"Everything here is about the rows as the schema reads them. It says how the texts of some columns are to be "
        f"read: {named}."
    )


def calculator(columns: int, most: int) -> str:
    said = (
        "Choose a statistic, columns, and labels or ranges of these, and read off the synthetic figure and the range "
        "in which the real one lies."
    )
    return said if columns <= most else f"{said} The first {most} of the {columns:,} columns can be chosen."


def columns(confidence: str, *, shares: bool) -> str:
    """Introduce the columns. `shares`: errors of shares and means are certified as well, and not only distances."""
    together = f"All of these hold together with {confidence} confidence."
    if shares:
        return (
            "The synthetic rows, one column at a time, and what the certificate means in the column’s own units. Each "
            "figure uses the bound that says most about it, on shares, on means or on distances. It allows for the "
            f"rounding of the figure before it. {together}"
        )
    return (
        "The synthetic rows, one column at a time, and what the bound means in the column’s own units: ± is the bound "
        "times the length of the range for a mean, and the bound for the share of a label. It grows if a column has "
        "a smaller weight, if labels are less than 1 apart or if values may be missing, and allows for the rounding of "
        "the figure before it. Shares of rows up to a value can be off by more, since rows near the value may have "
        f"crossed it: these shares lie in the band. {together}"
    )


SHARES_EXACTLY = (
    "A share is that of the rows whose value lies in a range of an ordered column, with or without the missing values, "
    "or among some labels. A column with more values than were measured one by one has ranges of whole measured cells; "
    "for others, the calculator and certsynth answer take the cells at both ends into account. Of two columns, it "
    "is the share of rows that lie in such a set of each; if both have labels, one of the two sets is a single label."
)
"""The sets of rows whose shares are certified."""


CELLS = {
    "even": "in {resolution} even cells along a column",
    "points": "value by value",
    "groups": "in at most {resolution} groups of neighbouring values",
}


def chosen_pairs(pairs: Sequence[PairRecord]) -> str:
    """Describe the pairs that were measured because of their scores, in one line."""
    named = [f"{' × '.join(pair.columns)} ({pair.dependence:.3f})" for pair in pairs[:MAX_NAMED_PAIRS]]
    more = f", and {len(pairs) - len(named):,} more" if len(pairs) > len(named) else ""
    share = "the noisy share of rows elsewhere than if columns were independent"
    return f"{len(pairs):,}; those that depend most, with {share}: {', '.join(named)}{more}"


def measured(layers: Sequence[LayerRecord]) -> str:
    """Describe the layers of a measurement in one line."""
    said = []
    for layer in layers:
        ways = layer.columns_at_once
        tables = "single columns" if ways == 1 else f"{ways} columns at once"
        said.append(f"{tables}, {CELLS[layer.cells].format(resolution=layer.resolution)}")
    return "; ".join(said)
