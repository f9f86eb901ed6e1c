"""The view of a release: one plain dict with every number and sentence of the report. Later steps only lay it out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from certsynth.answers import Basis
from certsynth.answers.noisy_cells import NoisyCells
from certsynth.base.clock import CLOCKS
from certsynth.domain import Category, Column, Ordered, Schema
from certsynth.record.form import said_of
from certsynth.record.record import (
    CertificateRecord,
    DirectRecord,
    DirectTerms,
    FitRecord,
    PlugInRecord,
    PlugInRecords,
    PlugInTerms,
    PrivacyRecord,
    Record,
    SubsetRecord,
)
from certsynth.report import by_ratio, exceptions, limits, numerals, statistics, use_words, verifiable, words
from certsynth.report import persons as person_words
from certsynth.report.calculator import calculator_view
from certsynth.report.choice import choice_view
from certsynth.report.columns import column_view, span
from certsynth.report.contents import contents_view, publication_text
from certsynth.report.fit import closeness, likely_functions, table_name
from certsynth.report.headline import Headline, certified
from certsynth.report.noisy_counts import noisy_counts_view
from certsynth.report.pair_answers import NO_PAIRS, PairAnswers
from certsynth.report.small_multiples import small_multiples
from certsynth.report.uses import uses_view

MAX_DRAWN_COLUMNS = 60
"""Columns that have a chart; the others are listed, so that wide tables give a page of readable length."""
MAX_LISTED_SUBSETS = 60
"""Subsets in the table, largest bound first; certificate.json has them all."""
MAX_MAPPED_COLUMNS = 60
"""Columns up to which all pairs are drawn as a map: with more, cells are too small to see."""

MAX_EXACT_CHARACTERS = 9
"""Characters up to which a part of the budget is shown exactly; longer ones are rounded up to four digits."""
MAP_SHADES = 6
"""Shades of the map: as many as can be told apart."""

Json = dict[str, Any]


def view(
    record: Record,
    schema: Schema,
    table: Mapping[str, Any],
    *,
    rows: Sequence[np.ndarray] | None = None,
    noisy: NoisyCells | None = None,
    sizes: Mapping[str, str] | None = None,
) -> Json:
    """Return everything that the report states about the release with this record.

    `rows` are the cleaned columns of the table, if they are known, and `noisy` the noisy counts with certified errors.
    `sizes` has the sizes of the files as texts, if they are known.
    """
    certificate = record.certificate
    if rows is None:
        rows = [column.encode(np.ma.asarray(table[column.name])) for column in schema]
    asked = answer_basis(record, schema, table, rows, noisy)
    basis = asked if certificate.statistics is not None else None
    bounds = column_bounds(certificate, schema.names)
    covered = {name for subset in certificate.subsets for name in subset.columns}
    columns = [column_view(c, table[c.name], bounds[c.name], basis if c.name in covered else None) for c in schema]
    numbers = [column.pop("numbers") for column in columns][:MAX_DRAWN_COLUMNS]
    drawn = schema.columns[:MAX_DRAWN_COLUMNS]
    pairs = NO_PAIRS if basis is None else PairAnswers.of(basis, dict(enumerate(drawn)))
    return {
        "name": numerals.text(schema.name, most=200),
        "rows": numerals.count(record.release.rows),
        "width": numerals.count(len(schema)),
        "real_rows": "" if schema.persons is None else person_words.real_rows(schema.persons),
        "publication": publication_text(schema),
        "headline": _headline(certified(record, schema, table, rows)),
        "promise": _promise(record, schema, columns),
        "uses": {
            "introduction": use_words.INTRODUCTION,
            "kinds": uses_view(
                asked, columns, sparsity=record.release.sparsity, named=record.release.workload is not None
            ),
            "rules": [{"verdict": verdict, "rule": rule} for verdict, rule in use_words.RULES],
        },
        "contents": contents_view(record, schema, table, sizes),
        "privacy": _privacy(record, schema),
        "certificates_text": _certificates_text(certificate, derived=bool(schema.derivations)),
        "certificates": _certificates(certificate),
        "diagnostic": _diagnostic(certificate.plug_in),
        "fit": _fit(record.fit),
        "choice": choice_view(record),
        "subsets": _subsets(certificate, schema),
        "columns_text": words.columns(numerals.confidence(certificate.confidence), shares=says_shares(certificate)),
        "columns": {"drawn": columns[:MAX_DRAWN_COLUMNS], "listed": columns[MAX_DRAWN_COLUMNS:]},
        "calculator": calculator_view(certificate, drawn, numbers, asked, pairs),
        "small_multiples": small_multiples(pairs),
        "noisy_counts": [] if basis is None else noisy_counts_view(basis),
        "calculator_text": words.calculator(len(schema), MAX_DRAWN_COLUMNS),
        "rules_of_thumb": _rules_of_thumb(certificate),
        "rules": words.rules(len(schema.rules)),
        "omitted_rules": _sentence(words.omitted_rules(record.release.omitted_rules or ())),
        "derived": words.derived(
            [(numerals.text(name), list(map(numerals.text, sources))) for name, sources in schema.sources.items()]
        ),
        "by_ratios": by_ratio.explanation([c for c in schema if isinstance(c, Ordered) and c.grid]),
        "readings": words.readings(
            [(numerals.text(each.column), each.options) for each in record.table.readings or ()]
        ),
        "verify": {
            "commands": words.commands(),
            "can": verifiable.can_verify(record.privacy.unit),
            "cannot": verifiable.cannot_verify(record),
            "signature": words.SIGNATURE,
            "answer": words.answer([c.name for c in schema if isinstance(c, Ordered)]),
        },
        "limits": limits.list_limits(record.privacy, _unit_limits(record, schema), shares=says_shares(certificate)),
        "made_with": _made_with(record),
    }


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}." if text else ""


KINDS_WITH_DISTANCES = ("tree", "metric")
"""Kinds of columns whose labels have distances of their own."""


def answer_basis(
    record: Record,
    schema: Schema,
    table: Mapping[str, Any],
    rows: Sequence[np.ndarray],
    noisy: NoisyCells | None = None,
) -> Basis | None:
    """Return the release as `answers` reads it; None if there are no rows."""
    if not len(table[schema.names[0]]):
        return None
    return Basis.read(schema, table, dict(zip(schema.names, rows, strict=True)), record, noisy=noisy)


def _headline(headline: Headline) -> Json:
    return {
        "statements": [
            {"what": _meaning_of(each.what), "margin": each.margin, "unit": each.unit} for each in headline.statements
        ],
        "confidence": numerals.confidence(headline.confidence),
        "budget": numerals.text(headline.budget),
        "protected": headline.protected,
        "sentence": None if headline.statements else headline.sentence(),
    }


def _meaning_of(what: str) -> str:
    kind, but, exceptions = what.partition(", all but ")
    return f"{words.HEADLINE.get(kind, kind)}{but}{exceptions}"


def column_bounds(certificate: CertificateRecord, names: Sequence[str]) -> dict[str, float]:
    """Return the smallest bound of each column: the bound of a subset also holds for each of its columns."""
    bounds = dict.fromkeys(names, 1.0)
    for subset in certificate.subsets:
        for name in subset.columns:
            bounds[name] = min(bounds[name], subset.bound, certificate.single_column_bound)
    return bounds


def _promise(record: Record, schema: Schema, columns: Sequence[Json]) -> Json:
    certificate, sparsity = record.certificate, record.release.sparsity
    complete = _covers_all_subsets(certificate, schema, sparsity)
    bound, single = certificate.bound, certificate.single_column_bound
    shown = {
        "bound": bound,
        "bound_text": numerals.upward(bound),
        "confidence": certificate.confidence,
        "confidence_text": numerals.confidence(certificate.confidence),
        "kind": certificate.kind,
        "kind_text": words.KINDS[certificate.kind],
        "single_column_bound": single,
        "single_column_bound_text": numerals.upward(single),
        "sparsity": sparsity,
        "looks_at": words.looks_at(sparsity, complete=complete),
    }
    return shown | {
        "shares": _shares_promise(certificate, _by_ratios(schema)),
        "plainly": words.plainly(shown),
        "statement": words.statement(shown),
        "in_plain_words": _examples(schema, columns, certificate, complete=complete),
        "scaled": _scaling_text(schema),
    }


def _by_ratios(schema: Schema) -> list[str]:
    """The names of the columns that are compared by ratios."""
    return [numerals.text(c.name) for c in schema if isinstance(c, Ordered) and c.grid]


def _shares_promise(certificate: CertificateRecord, by_ratios: Sequence[str]) -> Json | None:
    """State the bounds on shares, group totals and means; None if there are none."""
    bounds, apart = certificate.statistics, certificate.exceptions
    if bounds is None:
        return None
    one = bounds.share_of_one_column
    return {
        "sentence": statistics.promise(bounds, numerals.confidence(certificate.confidence), apart),
        "others": statistics.other_figures(bounds, by_ratios, apart).replace(" %", "%"),
        "number": f"± {statistics.points(one)}" if one < 1 else None,
        "exactly": words.SHARES_EXACTLY,
        "figures": [{"what": what, "text": text} for what, text in statistics.figures(bounds, apart)[one < 1 :]],
    }


def says_shares(certificate: CertificateRecord) -> bool:
    """Whether the certificate says something about shares of one column."""
    return certificate.statistics is not None and certificate.statistics.share_of_one_column < 1


def _rules_of_thumb(certificate: CertificateRecord) -> list[Json]:
    replaced = use_words.RULES_WITH_SHARES if says_shares(certificate) else {}
    rules = [(what, *replaced.get(what, (off, example))) for what, off, example in use_words.RULES_OF_THUMB]
    return [{"statistic": what, "off": off, "example": example} for what, off, example in rules]


def _scaling_text(schema: Schema) -> str:
    """Explain weights and distances of labels that are not 1."""
    kinds = {
        kind: [numerals.text(c.name) for c in schema if getattr(c, "kind", "") == kind] for kind in KINDS_WITH_DISTANCES
    }
    weights = {numerals.text(c.name): numerals.plain(float(c.weight)) for c in schema if c.weight != 1}
    return words.scaled(weights, kinds["tree"], kinds["metric"], _by_ratios(schema))


def _covers_all_subsets(certificate: CertificateRecord, schema: Schema, sparsity: int) -> bool:
    """Whether the certificate covers every subset of `sparsity` columns, not only a named workload."""
    covered = {frozenset(subset.columns) for subset in certificate.subsets if len(subset.columns) == sparsity}
    return len(covered) == math.comb(len(schema), sparsity)


def _examples(schema: Schema, columns: Sequence[Json], certificate: CertificateRecord, *, complete: bool) -> list[str]:
    """Explain the bound with this table: the mean of the first column that has one, and shares of categories.

    `complete`: all subsets of one size are covered.
    """
    bound = certificate.bound
    if bound >= 1:
        return [words.VACUOUS]
    said = []
    lines = [(c, shown) for c, shown in zip(schema, columns, strict=True) if isinstance(c, Ordered)]
    kinds = (("integer", "number"), tuple(CLOCKS), ("ordinal",))
    ranked = [(c, shown) for wanted in kinds for c, shown in lines if c.kind in wanted and not (c.missing or c.grid)]
    if ranked:
        column, shown = ranked[0]
        said.append(words.mean_example(shown, column.kind, numerals.plain(_as_int_if_whole(span(column)))))
    shares = _share_example(schema, certificate, complete=complete)
    return said + ([shares] if shares else [])


def _share_example(schema: Schema, certificate: CertificateRecord, *, complete: bool) -> str:
    """Explain the bound with shares of categories: for all categorical columns, and for those whose labels are 1 apart.

    The indicator of some labels in the columns T of a subset changes by 1 over at least the smallest distance of two
    labels in T, so its share is off by at most bound / that distance.
    """
    closest = {c.name: c.min_label_distance for c in schema if isinstance(c, Category)}
    near = [name for name, distance in closest.items() if distance < 1]
    together, off, off_apart = 0, 0.0, 0.0
    for subset in certificate.subsets:
        labels = [name for name in subset.columns if name in closest]
        together = max(together, len(labels))
        off = max(off, _share_error(subset, labels, closest, certificate))
        off_apart = max(
            off_apart, _share_error(subset, [name for name in labels if name not in near], closest, certificate)
        )
    if not together or (off >= 1 and (off_apart >= 1 or not off_apart)):
        return ""
    if together <= _columns_with_shares(certificate):
        return ""  # the bounds on shares say more
    what = words.categories(together, complete=complete)
    if not near or not off_apart:
        return words.share_example(what, numerals.points(off))
    names = [numerals.text(name) for name in near]
    return words.share_example(what, numerals.points(off_apart), names, numerals.points(off) if off < 1 else None)


def _columns_with_shares(certificate: CertificateRecord) -> int:
    """Return how many columns at once have certified errors of shares."""
    known = certificate.statistics
    if known is None or known.share_of_one_column >= 1:
        return 0
    _, two, _ = statistics.share_bounds(known, certificate.exceptions)
    return 2 if two is not None and two < 1 else 1


def _share_error(
    subset: SubsetRecord, labels: Sequence[str], closest: Mapping[str, Fraction], certificate: CertificateRecord
) -> float:
    """Bound the error of the share of rows that have given labels in these columns of the subset."""
    if not labels:
        return 0.0
    bound = subset.bound
    if len(labels) == 1:
        bound = min(bound, certificate.single_column_bound)
    exact = Fraction(repr(bound)) / min(closest[name] for name in labels)
    return float(exact) if Fraction(repr(float(exact))) >= exact else math.nextafter(float(exact), math.inf)


def _as_int_if_whole(value: float) -> float | int:
    return int(value) if abs(value) < 2**53 and value == int(value) else value


def _unit_limits(record: Record, schema: Schema) -> list[tuple[str, str]]:
    """List the limits of the guarantee for the protected unit: a row, or a person."""
    if schema.persons is None:
        return limits.row_limits(record.privacy, numerals.text(schema.unit, most=200))
    return limits.person_limits(record.privacy, schema.persons, record.certificate.dropped)


def _privacy(record: Record, schema: Schema) -> Json:
    privacy, unit = record.privacy, record.privacy.unit
    budget = {"epsilon": privacy.epsilon, "delta": privacy.delta, "rho": privacy.rho}
    stated = {key: None if budget[key] is None else numerals.text(budget[key]) for key in words.SIGNS}
    whole = numerals.rational(privacy.rho or privacy.epsilon) or Fraction(1)  # a table of one cell costs nothing
    relation, rows, persons = privacy.neighbours, privacy.rows, schema.persons
    neighbours, one_row = (words if persons is None else person_words).NEIGHBOURS, numerals.text(schema.unit, most=200)
    number = words.HIDDEN_ROWS if rows is None else f"{numerals.count(rows)}, which is public"
    spent = [_spent(part.on, part.rho if part.epsilon is None else part.epsilon, whole) for part in privacy.spent]
    return {
        "definition": numerals.text(privacy.definition),
        **stated,
        "sign": words.SIGNS[unit],
        "total": stated[unit],
        "statement": words.privacy(numerals.text(privacy.definition), stated),
        "meaning": _meaning(privacy, "row" if persons is None else "person"),
        "neighbours": relation,
        "neighbours_text": neighbours.get(relation, relation),
        "unit": one_row if persons is None else person_words.privacy_unit(persons, one_row),
        "rows": rows,
        "ledger_text": words.ledger(_entry_prefix(record.ledger)),
        "rows_text": number if persons is None else person_words.rows_text(privacy),
        "synthetic_rows": numerals.count(record.release.rows),
        "spent": spent,
        "caption": words.spent(words.SIGNS[unit], rounded=any(part["rounded"] for part in spent)),
    }


def _entry_prefix(stated: str | None) -> str | None:
    """Shorten the hash of a ledger entry to its first digits."""
    return numerals.text(stated, most=13) if stated else None


def _spent(what: str, part: Fraction | None, whole: Fraction) -> Json:
    """Return one part of the budget. Its amount is exact or rounded up, never down."""
    part = Fraction(0) if part is None else part
    on, why = words.SPENT.get(what) or words.spent_on_choice(numerals.text(what))
    scaled = Decimal(-(-part.numerator * 10**12 // part.denominator)).scaleb(-12)
    exact = f"{scaled.normalize():f}"
    return {
        "on": on,
        "why": why,
        "amount": exact if len(exact) <= MAX_EXACT_CHARACTERS else numerals.upward(float(scaled)),
        "rounded": len(exact) > MAX_EXACT_CHARACTERS,
        "part": float(part / whole),
        "share": numerals.share(part.numerator * whole.denominator, part.denominator * whole.numerator),
    }


def _meaning(privacy: PrivacyRecord, unit: str) -> list[str]:
    """Explain the guarantee for one `unit`, a row or a person.

    Only pure ε bounds the odds; a δ, or another definition, does not. ρ implies (ε, δ): the
    probability of any set of outcomes is at most e^ε P + δ, which is what the sentences say.
    """
    factor = numerals.odds(numerals.rational(privacy.epsilon))
    if privacy.delta is not None:
        return [words.outcomes(factor, unit), words.delta(numerals.chance(numerals.rational(privacy.delta)), unit)]
    pure = privacy.definition.startswith("pure") and privacy.rho is None
    return [words.odds(factor, unit)] if pure else []


def _certificates_text(certificate: CertificateRecord, *, derived: bool) -> str:
    """Introduce the certificates, and name the exceptions, if there are any."""
    parts = [_certificates_introduction(certificate, derived=derived), _exceptions_text(certificate)]
    return " ".join(part for part in parts if part)


def _exceptions_text(certificate: CertificateRecord) -> str:
    found = certificate.exceptions
    if found is None:
        return ""
    sizes = {len(subset.columns) for subset in certificate.subsets}
    names = [" × ".join(map(numerals.text, each)) for each in found.subsets]
    return exceptions.promise(
        found, sizes, names, (numerals.upward(found.bound_of_others), numerals.upward(found.bound))
    )


def _certificates_introduction(certificate: CertificateRecord, *, derived: bool) -> str:
    if certificate.plug_in.tightest is None:
        return words.only_direct(numerals.text(certificate.no_plug_in, most=400))
    if derived:
        return words.SEVERAL_WITH_DERIVED
    return words.SEVERAL if certificate.direct else words.ONLY_PLUG_IN


def _certificates(certificate: CertificateRecord) -> list[Json]:
    """List the certificates of the release with their terms: the direct ones first, then the plug-in ones."""
    found: list[tuple[str, DirectRecord | PlugInRecord | None]] = [
        ("direct", certificate.direct),
        ("single_column", certificate.single_column),
        *certificate.plug_in.by_loss.items(),
    ]
    decides = "direct" if certificate.kind == "direct" else next(iter(certificate.plug_in.by_loss))
    return [
        {
            "key": key,
            "name": words.CERTIFICATES[key][0],
            "note": words.CERTIFICATES[key][1],
            "decides": key == decides,
            "bound": each.bound,
            "bound_text": numerals.upward(each.bound),
            "vacuous": each.bound >= 1,
            "confidence": each.confidence,
            "confidence_text": numerals.confidence(each.confidence),
            "terms": _terms(each.terms),
        }
        for key, each in found
        if each
    ]


def _terms(terms: PlugInTerms | DirectTerms) -> list[Json]:
    return [
        {
            "name": name.replace("_", " "),
            "role": words.TERMS[name],
            "value": float(value),
            "text": numerals.figure(value),
        }
        for name, value in said_of(terms)
    ]


def _diagnostic(plug_in: PlugInRecords) -> Json | None:
    tightest = plug_in.tightest
    if tightest is None:
        return None
    return {
        "worth_optimising": tightest.diagnostic.worth_optimising,
        "verdict": words.VERDICTS[tightest.diagnostic.worth_optimising],
        "rows": [
            {
                "proxy": words.PROXIES[proxy],
                "worth_optimising": each.diagnostic.worth_optimising,
                "fit": numerals.figure(each.diagnostic.fit),
                "noise_mean": numerals.figure(each.diagnostic.noise_mean),
                "noise_low": numerals.figure(each.diagnostic.noise_low),
                "noise_high": numerals.figure(each.diagnostic.noise_high),
            }
            for proxy, each in plug_in.by_loss.items()
        ],
    }


def _fit(fit: FitRecord | None) -> Json | None:
    if fit is None:
        return None
    return {
        "sentence": f"The {closeness(fit)}.",
        "furthest": [
            {"columns": table_name(each.columns), "misfit": numerals.figure(each.misfit)} for each in fit.furthest
        ],
        "functions": [f"{each}." for each in likely_functions(fit)],
    }


def _subsets(certificate: CertificateRecord, schema: Schema) -> Json:
    """List subsets by their bounds, then by their plug-in bounds, which those with derived columns lack.

    A map shows the certified bounds of pairs, if these differ.
    """
    found = certificate.plug_in.tightest
    plug = {subset.columns: subset for subset in found.subsets} if found else {}
    blank = [term | {"text": "–"} for term in _terms(found.terms)] if found else []
    titles = {column.name: column.title for column in schema}
    rows: list[Json] = []
    for subset in certificate.subsets:
        own = plug.get(subset.columns)
        rows.append(
            {
                "columns": [numerals.text(titles[name]) for name in subset.columns],
                "places": [schema.names.index(name) for name in subset.columns],
                "bound": subset.bound,
                "bound_text": numerals.upward(subset.bound),
                "plug_in": own.bound if own else None,
                "plug_in_text": numerals.upward(own.bound) if own else "–",
                "terms": _terms(own.terms) if own else blank,
            }
        )
    uniform = len({row["bound"] for row in rows}) == 1
    ranked = sorted(rows, key=lambda row: (-row["bound"], -(row["plug_in"] or 0.0), row["places"]))
    sizes = {len(row["columns"]) for row in rows}
    mapped = sizes == {2} and 2 < len(schema) <= MAX_MAPPED_COLUMNS and not uniform
    what = words.subsets_of(sizes)
    return {
        "title": words.subsets_title(sizes),
        "number": len(rows),
        "has_plug_in": bool(found),
        "caption": words.subsets_caption(what, len(rows), MAX_LISTED_SUBSETS, plug_in=bool(found)),
        "introduction": words.subsets_text(what, rows, uniform=uniform),
        "folded": words.subsets_folded(what, len(rows)),
        "map": _map(rows, schema.columns) if mapped else None,
        "rows": ranked[:MAX_LISTED_SUBSETS],
    }


def _map(rows: Sequence[Json], columns: Sequence[Column]) -> Json:
    """Return all pairs as cells in `MAP_SHADES` levels of the certified bound, from 0 to the largest."""
    largest = max(rows, key=lambda row: row["bound"])
    return {
        "columns": [numerals.text(column.title) for column in columns],
        "high_text": largest["bound_text"],
        "cells": [
            {
                "places": sorted(row["places"]),
                "value": row["bound"],
                "text": row["bound_text"],
                "short": numerals.short(row["bound"]),
                "level": min(MAP_SHADES - 1, int(MAP_SHADES * row["bound"] / largest["bound"])),
            }
            for row in rows
        ],
    }


_IN_WORDS: Mapping[str, Callable[[Any], Any]] = {
    "measured": words.measured,
    "workload": len,
    "pairs": words.chosen_pairs,
}


def _made_with(record: Record) -> list[Json]:
    made: list[tuple[str, Any]] = [("certsynth", record.certsynth), ("format of the certificate", record.format)]
    for key, value in said_of(record.release):
        if value is None or (key == "growth" and value == "0"):  # weights that do not grow are not listed
            continue
        made.append((key, _IN_WORDS[key](value) if key in _IN_WORDS else value))
    return [{"what": words.SETTINGS.get(key, key), "value": _setting(value)} for key, value in made]


def _setting(value: Any) -> str:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return numerals.count(value) if whole else numerals.text(value)
