"""Checks of a release that need no private data, and a list of what cannot be checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from certsynth.algorithm.checks import MAX_DELTA, exact_rational
from certsynth.algorithm.expected_steps import expected_steps, steps_problem, values_problem
from certsynth.algorithm.fitting import support_name
from certsynth.algorithm.method import method_named
from certsynth.algorithm.recompute import (
    recomputed,
    recomputed_direct,
    stated_layers,
    stated_proxies,
    stated_settings,
)
from certsynth.algorithm.record import pair_records, table_record
from certsynth.algorithm.settings import CELL_BETA, DROPPED_BETA, Settings
from certsynth.algorithm.stated_cells import has_stated_cells
from certsynth.algorithm.values import ExpectedLayer
from certsynth.artefact import measurements as archive
from certsynth.artefact.certificate import (
    cells_record,
    direct_record,
    dropped_record,
    exceptions_record,
    fit_record,
    path_length,
    statistics_record,
)
from certsynth.artefact.document import form_problem
from certsynth.artefact.folder import check_plain, check_sums, read_plain
from certsynth.artefact.persons import public_weight, stated_protection
from certsynth.artefact.release import (
    CSV,
    PARQUET,
    REPORT,
    Release,
    croissant_bytes,
    package_bytes,
    report_bytes,
    sizes_in,
)
from certsynth.artefact.signature import INSTALL_COMMAND, PublicKey, have_library
from certsynth.artefact.signature_check import check_signature, signature_files
from certsynth.artefact.steps import DROPPED_ROWS, Step, stated_steps, step_on
from certsynth.artefact.table import read_table, with_derived, written_as
from certsynth.base.progress import Progress, Stage, number_stages, silent
from certsynth.certificate.coverage import STATISTICS
from certsynth.certificate.plug_in import PlugIn, Terms
from certsynth.certificate.seed import seed_of
from certsynth.domain import Column, Ordered
from certsynth.domain.rules import broken_rule
from certsynth.errors import CertsynthError, InputError
from certsynth.mechanisms import Budget, Neighbours, Unit, as_full_measurements
from certsynth.mechanisms.concentrated import epsilon_of
from certsynth.mechanisms.guarantee import decimal_text
from certsynth.planning.choice import MAX_FINER_RATIO
from certsynth.projection.diagnostic import diagnose_fit
from certsynth.queries.marginals import Subset
from certsynth.record.direct import EXCEPTION_BOUNDS
from certsynth.record.form import to_json
from certsynth.record.record import (
    DirectRecord,
    ExceptionsRecord,
    PairRecord,
    PlugInRecord,
    PlugInTerms,
    StatisticsRecord,
)
from certsynth.report import verifiable
from certsynth.report.contents import stated_sizes
from certsynth.report.fit import closeness
from certsynth.report.numerals import upward
from certsynth.report.verifiable import UNVERIFIABLE

_TOLERANCE = 1e-7  # allows for float differences between machines

Check = dict[str, Any]
Values = np.ma.MaskedArray[Any, Any]
Answer = tuple[bool, str]


STAGES = number_stages(
    "checking the files", "checking the method", "recomputing the certificate", "checking the report"
)
"""The stages of a verification, as progress reports name them."""


def verify(release: Release, *, key: str | Path | None = None, progress: Progress = silent) -> list[Check]:
    """Run every check, even if another failed. If `key` is given, the release must be signed with it."""
    folder = _folder(release)
    wanted = None if key is None else PublicKey.load(key)
    checks = [{"name": name, "ok": ok, "detail": detail} for name, ok, detail in _checks(release, progress)]
    signed = check_signature(folder, wanted)
    return checks + ([] if signed is None else [{"name": "signature", "ok": signed[0], "detail": signed[1]}])


def cannot_verify(release: Release | None, *, key: str | Path | None = None) -> list[str]:
    """What nobody can check with the folder alone, in words. Without a release, what holds of all."""
    if release is None:
        return list(UNVERIFIABLE)
    try:
        said = verifiable.cannot_verify(release.record)
    except (KeyError, TypeError, ValueError, AttributeError):  # somebody else wrote it
        said = list(UNVERIFIABLE)
    folder = _folder(release)
    if not signature_files(folder):
        said.append("who made it: the release is not signed")
    elif not have_library():
        said.append(f"who made it: to check the signature, {INSTALL_COMMAND}")
    elif key is None:
        said.append("who made it: anybody can sign with a key of their own; `key` says whose it must be")
    return said


def _folder(release: Release) -> Path:
    if release.folder is None:
        raise InputError("only a release that was written can be verified: save it first.")
    return release.folder


def _checks(release: Release, progress: Progress) -> Iterator[tuple[str, bool, str]]:
    files, method, certificate, report = STAGES
    find_layers = cache(lambda: stated_layers(release, stated_settings(release)))  # two checks need them
    checks: list[tuple[Stage, str, Callable[[Release], Answer]]] = [
        (files, "files", _files),
        (files, "certificate form", _form),
        (files, "schema", _schema),
        (files, "rows", _rows),
        (method, "measurements", _measurements),
        (method, "privacy", lambda release: _privacy(release, find_layers)),
        (method, "method", lambda release: _method(release, find_layers)),
        (method, "fit", _fit),
        (certificate, "plug-in certificate", lambda release: _plug_in(release, progress)),
        (certificate, "direct certificate", _direct),
        (certificate, "bound", _bound),
        (report, "description", _description),
        (report, "report", _report),
    ]
    for stage, name, check in checks:
        progress(stage, 0, None)
        progress(name, 0, None)
        try:
            ok, detail = check(release)
        except CertsynthError as error:
            ok, detail = False, f"could not be checked: {error}"
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError, OSError):
            ok, detail = False, "could not be checked: malformed"
        yield name, ok, detail


def _files(release: Release) -> Answer:
    problems = check_sums(_folder(release))
    return not problems, "; ".join(problems) or "every file is there and has its checksum"


def _form(release: Release) -> Answer:
    """certificate.json has the keys of a certificate, each with a value that can be."""
    problem = form_problem(to_json(release.record))
    return problem is None, problem or "certificate.json has all keys of a certificate and no other"


def _schema(release: Release) -> Answer:
    """schema.toml is as certsynth writes it, and the certificate is of the same table."""
    schema, table = release.schema, release.record.table
    if read_plain(_folder(release), "schema.toml") != schema.to_toml().encode():
        return False, "schema.toml is not written as certsynth writes that schema"
    if schema.draft:
        return False, "schema.toml is a draft, of which no release is made"
    if table != table_record(schema):
        return False, "the certificate is of a table with another name, unit or columns, or derives them otherwise"
    return True, f"{_counted(len(schema), 'column')}, as the certificate says"


def _rows(release: Release) -> Answer:
    """Values inside the schema, rules obeyed, the stated number of rows, and the same rows in both files."""
    schema, stated = release.schema, release.record.release.rows
    for column, clean in zip(schema, release.rows, strict=True):
        values = release.table[column.name]
        if not _allowed(column, values, column.decode(clean)):
            return False, f"{PARQUET}: column {column.name!r} holds a value that the schema does not allow"
        if len(values) != stated:
            return False, f"{PARQUET} has {len(values):,} rows where the certificate says {stated:,}"
    broken = broken_rule(schema.constraints, schema.columns, release.table)
    if broken is not None:
        return False, f"{PARQUET}: a row violates rule {broken.number} of the schema"
    derived = with_derived(schema, {c.name: release.table[c.name] for c in schema.measured})
    for name in sorted(schema.derived):
        if not _equal(derived[name], release.table[name]):
            return False, f"{PARQUET}: column {name!r} is not derived as the schema says"
    for column, texts in zip(schema, read_table(_folder(release) / CSV, schema), strict=True):
        if not written_as(column, texts, release.table[column.name]):
            return False, f"{CSV}: column {column.name!r} differs from {PARQUET}"
    allowed = "all values and all rows" if schema.rules else "all values"
    return True, f"{stated:,} rows, {allowed} allowed by the schema, the same in both files"


def _allowed(column: Column, values: Values, back: Values) -> bool:
    """Whether cleaning left the values unchanged: `back` are the cleaned and decoded values."""
    missing = np.ma.getmaskarray(values)
    if not np.array_equal(missing, np.ma.getmaskarray(back)):
        return False
    present = values.data[~missing]
    if isinstance(column, Ordered) and column.last_index is None:  # the last bit may change on the way
        return bool(((present >= column.low) & (present <= column.high)).all())
    return bool((present == back.data[~missing]).all())


def _equal(first: Values, second: Values) -> bool:
    """Whether two columns hold the same values, and lack the same."""
    missing = np.ma.getmaskarray(first)
    same = np.array_equal(missing, np.ma.getmaskarray(second))
    return same and bool((first.data[~missing] == second.data[~missing]).all())


def _measurements(release: Release) -> Answer:
    """measurements.npz holds the noisy integers and how to read them, word by word, and what is said to be measured."""
    made, said, schema = release.measurements, release.record.release.measured, release.schema.measured
    if not archive.is_as_written(read_plain(_folder(release), "measurements.npz"), made, schema):
        return False, "measurements.npz is not written as certsynth writes these measurements"
    if not all(_in_order(m.marginals.subsets) for m in made):
        return False, "a measurement names a subset of columns twice, or its columns out of order"
    if not all(has_stated_cells(m, part, schema) for m, part in zip(made, said, strict=True)):
        return False, "the certificate says that something else was measured"
    counts = sum(len(table.coefficients) for m in made for table in m.tables)
    tables = sum(len(m.tables) for m in made)
    return True, f"{counts:,} noisy integers for {_counted(tables, 'table')}, as the certificate says"


def _in_order(subsets: Sequence[Subset]) -> bool:
    """Each subset once, and its columns in the order of the schema."""
    return len(set(subsets)) == len(subsets) and all(list(s) == sorted(set(s)) and s for s in subsets)


def _privacy(release: Release, find_layers: Callable[[], tuple[ExpectedLayer, ...]]) -> Answer:
    """Every step has its share of the budget and the noise that this needs; the shares add up to the whole."""
    record, made = release.record, release.measurements
    privacy, protection = record.privacy, stated_protection(record)
    unit = Unit(privacy.unit)
    for m in made:
        if m.cost.spent.unit is not unit:
            return False, "certificate and measurement count privacy in different units"
        if protection.of_rows is not m.strategy.neighbours:
            return False, "certificate and measurement name different neighbour relations"
        if public_weight(record) != (m.total if m.strategy.neighbours is Neighbours.REPLACE_ONE else None):
            return False, "the number of rows is not the one of the measurements, or is told where it is hidden"
    settings, steps = stated_settings(release), stated_steps(record)
    if [step.to_record(protection) for step in steps] != list(privacy.spent):
        return False, "the parts of the budget are not written as certsynth writes them"
    expected = expected_steps(
        method_named(settings.method),
        settings,
        release.schema,
        made,
        release.rows,
        compared=len(release.record.compared),
        layers=find_layers(),
    )
    if problem := steps_problem(steps, expected) or values_problem(steps, public_weight(record)):
        return False, problem
    for m in made:
        if Step.of_measurement("", m) not in [replace(step, on="") for step in steps]:
            return False, f"the {unit} or the scale of a measurement is not the one in measurements.npz"
    of_row = sum((step.cost.spent.amount for step in steps), Fraction(0))
    whole = protection.per_unit(Budget(of_row, unit)).amount
    if decimal_text(whole) != (privacy.epsilon if unit is Unit.EPSILON else privacy.rho):
        return False, f"the parts of the budget do not add up to the stated {unit}"
    scales = ", ".join(f"{m.scale:g}" for m in made)
    stated = f"epsilon {privacy.epsilon}"
    if unit is Unit.RHO:
        delta, epsilon = exact_rational(privacy.delta), exact_rational(privacy.epsilon)
        if delta is None or not 0 < delta <= MAX_DELTA or epsilon is None or epsilon_of(whole, delta) > epsilon:
            return False, "rho means a larger epsilon than is stated"
        stated += f", delta {privacy.delta}"
    elif privacy.delta is not None:
        return False, "a delta is stated where none belongs"
    told = settings.privacy.describe(Budget(whole, unit))
    if told != {name: getattr(privacy, name) for name in told}:
        return False, "epsilon and delta are not stated as they follow from what was asked for"
    return True, f"noise of scale {scales}, as the shares of {_counted(len(steps), 'step')} need it: {stated} in all"


def _method(release: Release, find_layers: Callable[[], tuple[ExpectedLayer, ...]]) -> Answer:
    """What is said of the mechanism is what was measured, and what was chosen."""
    how, last, settings = release.record.release, release.measurement, stated_settings(release)
    compared = release.record.compared
    (chosen,) = [each for each in compared if each.chosen]
    said = how.mechanism, how.growth, how.order, settings.sparsity, len(how.measured)
    true = last.strategy.name, decimal_text(last.strategy.growth), last.strategy.order
    if said != (*true, max(map(len, last.marginals.subsets)), len(release.measurements)):
        return False, "the mechanism is not the one of the measurements"
    if not _same_length(how.path_length, path_length(last)):
        return False, "the path that cells are lined up along is not of the stated length"
    covered, columns, wide = release.subsets, len(release.schema), how.sparsity
    if not _in_order(covered) or max(map(len, covered)) != wide:
        return False, "the subsets of columns are not each named once, or not of the stated size"
    if how.workload is None and (len(covered) != math.comb(columns, wide) or min(map(len, covered)) != wide):
        return False, "some subsets of columns were not measured, and no workload says so"
    if len({j for subset in covered for j in subset}) != columns:
        return False, "the workload leaves out a column of the release"
    if covered != settings.covered:
        return False, "the subsets of columns are not those that were asked for"
    resolutions = {how.resolution, how.measured[-1].resolution, chosen.resolution}
    if chosen.mechanism != how.mechanism or len(resolutions) > 1:
        return False, "the mechanism or resolution is not the one that was chosen"
    if (how.dimension is None) is method_named(settings.method).states_dimension:
        return False, "a dimension is stated where none was chosen, or none where one was"
    tried = [each for each in compared if each.rehearsals] or compared
    least = min(each.predicted_loss for each in tried)
    if how.dimension is None and chosen.predicted_loss > MAX_FINER_RATIO * least:
        return False, "another mechanism was predicted to be better than the one that was chosen"
    if how.detail != settings.detail:
        return False, "rows were put elsewhere inside of their cells than for such a certificate"
    if problem := _unlike_asked(release, settings):
        return False, problem
    layers = find_layers()
    if len(layers) != len(how.measured) or not all(
        layer.is_measured(m.marginals, part.cells)
        for layer, m, part in zip(layers, release.measurements, how.measured, strict=True)
    ):
        return False, "other tables were measured, or in other cells, than such a release measures"
    pairs = [
        (subset, layer.resolution, dependence)
        for layer in layers
        for subset, dependence in zip(layer.tables, layer.dependence, strict=False)
    ]
    if not _same_pairs(how.pairs, pair_records(release.schema.measured, pairs)):
        return False, "the pairs that were chosen, or their dependence, are not those that the noisy scores give"
    return True, f"{how.mechanism}, as measured, and as chosen among {len(compared)}"


def _same_pairs(stated: Sequence[PairRecord] | None, true: Sequence[PairRecord] | None) -> bool:
    stated, true = stated or (), true or ()
    if [(pair.columns, pair.groups) for pair in stated] != [(pair.columns, pair.groups) for pair in true]:
        return False
    return _close([pair.dependence for pair in stated], [pair.dependence for pair in true])


def _unlike_asked(release: Release, settings: Settings) -> str:
    """What the release has otherwise than it was asked for, in words; nothing if all is as asked."""
    how, asked, last = release.record.release, release.record.asked, release.measurement
    support = support_name(settings.projection, last.marginals, public=asked.public)
    if (how.projection, how.loss) != (support, settings.loss):
        return "rows were fitted in another way than the one that was asked for"
    if (how.candidates, how.preset) != (settings.candidates, settings.preset):
        return "the number of candidates or the preset is not what was asked for"
    if how.rows != settings.emitted_rows(last):
        return "the number of synthetic rows is not what was asked for"
    if settings.mechanism not in (None, how.mechanism) or settings.resolution not in (None, how.resolution):
        return "the mechanism or resolution is not what was asked for"
    return ""


def _same_length(stated: float | None, true: float | None) -> bool:
    if stated is None or true is None:
        return stated is true
    return math.isclose(stated, true, rel_tol=_TOLERANCE)


def _fit(release: Release) -> Answer:
    """The same computation, from the noisy integers and the emitted rows."""
    stated = release.record.fit
    if stated is None:
        return True, "nothing is stated of how close the rows are to the noisy counts"
    schema = release.schema
    found = fit_record(diagnose_fit(release.measurements, schema.measured, schema.measured_part(release.rows)))
    if found is None:
        return False, "the distance from tables of several columns is stated, and there are none to compare with"
    if stated.tables != found.tables or [m.columns for m in stated.furthest] != [m.columns for m in found.furthest]:
        return False, "other tables are stated than those that the rows are furthest from"
    if not _close(*([m.misfit for m in fit.furthest] for fit in (stated, found))):
        return False, "the recomputed distances from the noisy counts differ from those stated"
    pairs = [[(f.source, f.derived) for f in fit.functions] for fit in (stated, found)]
    if pairs[0] != pairs[1] or not _close(*([f.share for f in fit.functions] for fit in (stated, found))):
        return False, "the recomputed pairs that look like functions differ from those stated"
    return True, f"recomputed from the noisy integers and the emitted rows: {closeness(found)}"


def _plug_in(release: Release, progress: Progress) -> Answer:
    """The same computation, from the noisy integers and the emitted rows."""
    certificate, how = release.record.certificate, release.record.recompute
    stated = certificate.plug_in.by_loss
    settings = stated_settings(release)
    if as_full_measurements(release.measurements) is None or not settings.plug_in:
        right = not stated and certificate.no_plug_in == settings.reason_for_no_plug_in
        return right, "there is none, and the certificate says why"
    if certificate.no_plug_in is not None:
        return False, "it is said that there is none"
    if (how.draws, how.plug_in_failure_probability) != (settings.draws, settings.plug_in_beta):
        return False, "draws or failure probability are not those for the stated confidence"
    if how.seed != f"{seed_of(release.measurements):032x}":
        return False, "the seed of the draws is not the one that the noisy integers give"
    if stated_proxies(how) != settings.proxies(release.record.release.resolution):
        return False, "the losses are computed in another way than the stated one"
    again = recomputed(release, release.rows, progress=progress)
    if set(stated) != set(again):
        return False, "the certificate lacks a proxy, or has one too many"
    for proxy, plug in again.items():
        problem = _differs(stated[proxy], plug)
        if problem:
            return False, f"with the {proxy} loss, {problem}"
    best = again.get("transport") or again["path"]
    return True, f"recomputed from the noisy integers and the emitted rows: {upward(best.bound)}"


def _differs(stated: PlugInRecord, plug: PlugIn) -> str:
    """What a stated plug-in certificate does not share with the recomputed one, in words; nothing if they are one."""
    subsets, found = stated.subsets, plug.diagnostic
    if [s.columns for s in subsets] != list(plug.subsets):
        return "the subsets are not those that were recomputed"
    if not _close([s.bound for s in subsets], [terms.bound for terms in plug.terms]):
        return "recomputed bounds differ from those stated"
    if not all(_close(_figures(s.terms), _figures(t)) for s, t in zip(subsets, plug.terms, strict=True)):
        return "recomputed terms differ from those stated"
    if stated.bound != max(s.bound for s in subsets):
        return "the stated bound is not the largest of its subsets"
    if not any((s.bound, s.terms) == (stated.bound, stated.terms) for s in subsets):
        return "the stated terms are not those of the largest bound"
    if stated.confidence != float(plug.confidence):
        return "the stated confidence is not what the failure probability allows"
    names = ("fit", "noise_mean", "noise_low", "noise_high")
    said = stated.diagnostic
    if not _close([getattr(said, name) for name in names], [getattr(found, name) for name in names]):
        return "the recomputed diagnostic differs from the one stated"
    return "" if said.worth_optimising is (said.fit > said.noise_high) else "the diagnostic contradicts itself"


def _figures(terms: Terms | PlugInTerms) -> list[float]:
    return [terms.discretisation, terms.privatisation, terms.projection]


def _direct(release: Release) -> Answer:
    """The same computation, from the noisy losses: slack and bound follow from them, the confidence and the schema."""
    stated, protection = release.record.certificate, stated_protection(release.record)
    direct = recomputed_direct(release, stated_settings(release))
    figures = (direct.whole, direct.single) if direct else (None, None)
    for said, found in zip((stated.direct, stated.single_column), figures, strict=True):
        if (said is None) != (found is None):
            return False, "there is a direct certificate too many, or one too few"
        if said is None or found is None or direct is None:
            continue
        again = direct_record(direct, found, protection)
        if (said.confidence, said.epsilon, said.rho) != (again.confidence, again.epsilon, again.rho):
            return False, f"the confidence or the {direct.cost.spent.unit} is not its share of the whole"
        if not _close([said.bound], [again.bound]):
            return False, "a recomputed bound differs from the one stated"
        terms = [[each.terms.measured_loss, each.terms.slack] for each in (said, again)]
        if not _close(*terms):
            return False, "the recomputed loss or slack differs from the one stated"
    if not _same_bounds(stated.statistics, statistics_record(direct) if direct else None):
        return False, "a recomputed bound on shares, totals or moments differs from the one stated"
    if not _same_exceptions(stated.exceptions, exceptions_record(direct) if direct else None):
        return False, "the recomputed bound of the exceptions, or of all other subsets, differs from the one stated"
    settings = stated_settings(release)
    dropped = step_on(release.record, DROPPED_ROWS)
    if stated.dropped != dropped_record(dropped, protection, settings.dropped_beta):
        return False, "a recomputed share of dropped rows differs from the one stated"
    beta = settings.cell_beta
    if stated.cells != (cells_record(direct, release.measurements, beta) if direct else None):
        return False, "a recomputed bound on the noise of single cells differs from the one stated"
    if direct is None:
        return True, "there is none, and nothing was spent on it"
    return True, f"recomputed from its noisy integers: {upward(direct.bound)}"


def _same_exceptions(said: ExceptionsRecord | None, found: ExceptionsRecord | None) -> bool:
    if said is None or found is None:
        return said is found
    return said.subsets == found.subsets and _same_numbers(said, found, EXCEPTION_BOUNDS)


def _same_bounds(said: StatisticsRecord | None, found: StatisticsRecord | None) -> bool:
    """Whether bounds on shares, group totals and moments are the same: each is there in both or in neither."""
    return said is found if said is None or found is None else _same_numbers(said, found, STATISTICS)


def _same_numbers(said: object, found: object, names: Sequence[str]) -> bool:
    pairs = [(getattr(said, name), getattr(found, name)) for name in names]
    return all((a is None) == (b is None) and (a is None or _close([a], [b])) for a, b in pairs)


def _bound(release: Release) -> Answer:
    """The headline is the smaller of its parts, and their failure probabilities make up one."""
    stated = release.record.certificate
    direct, single, plug = stated.direct, stated.single_column, stated.plug_in.tightest
    own = {s.columns: s.bound for s in plug.subsets} if plug else {}
    covered = [tuple(release.schema.names[j] for j in subset) for subset in release.subsets]
    complete = set(covered) <= set(own)  # derived columns are not in the plug-in certificate
    leading: DirectRecord | PlugInRecord | None = direct
    if plug and (direct is None or (direct.bound >= plug.bound and complete)):
        leading = plug
    if leading is None:
        return False, "there is nothing that certifies"
    least = min([leading.bound] + ([single.bound] if single else []))
    if not _close([stated.bound], [leading.bound]) or not _close([stated.single_column_bound], [least]):
        return False, "the stated bound is not the smaller one of those that cover all subsets"
    kind = "direct" if leading is direct else "plug-in"
    if stated.kind != kind or stated.terms != leading.terms:
        return False, "the stated kind or terms are not those of the smaller bound"
    most = dict.fromkeys(covered, direct.bound if direct else 1.0)
    if (apart := stated.exceptions) is not None:
        most = {columns: apart.bound if columns in apart.subsets else apart.bound_of_others for columns in covered}
    for subset, columns in zip(stated.subsets, covered, strict=True):
        if subset.columns != columns or not _close([subset.bound], [min(own.get(columns, 1.0), most[columns])]):
            return False, "the bound of a subset is not the smaller of its parts"
    if stated.confidence != float(release.record.asked.confidence):
        return False, "the stated confidence is not the one that was asked for"
    failure = sum(1 - part.confidence for part in (plug, direct, stated.cells) if part)
    spare = (1 - stated.confidence) * float(CELL_BETA) if direct and not stated.cells else 0.0
    if stated.dropped is not None:
        spare += (1 - stated.confidence) * float(DROPPED_BETA)
    if abs(failure + spare - (1 - stated.confidence)) > 1e-12:
        return False, "the parts fail together with another probability than the stated confidence allows"
    why = "the smaller of its parts" if complete or not plug else "the only part that covers all subsets"
    return True, f"{upward(stated.bound)} ({kind}) at confidence {stated.confidence!r}: {why}"


def _description(release: Release) -> Answer:
    folder, schema, record = _folder(release), release.schema, release.record
    check_plain(folder)  # or a table that has become a pipe since it was read would be waited for
    given = {
        "datapackage.json": package_bytes(schema, record),
        "croissant.json": croissant_bytes(schema, record, folder),
    }
    other = [name for name, content in given.items() if read_plain(folder, name) != content]
    if other:
        return False, f"{' and '.join(other)} {'is' if len(other) == 1 else 'are'} not what the release gives"
    return True, f"{' and '.join(given)} are the ones that the release gives"


def _report(release: Release) -> Answer:
    """The page, with the sizes that it states: another tool may since have written the same content in other bytes."""
    folder = _folder(release)
    page, sizes = read_plain(folder, REPORT), sizes_in(folder)
    stated = stated_sizes(page)
    if page != report_bytes(release, stated):
        return False, f"{REPORT} is not the one that the release gives"
    other = [name for name, size in stated.items() if sizes.get(name) != size]
    since = f"; it states another size of {' and '.join(other)}" if other else ""
    return True, f"{REPORT} is the one that the release gives{since}"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _close(first: list[float], second: list[float]) -> bool:
    return len(first) == len(second) and all(
        math.isclose(a, b, rel_tol=0, abs_tol=_TOLERANCE) for a, b in zip(first, second, strict=True)
    )
