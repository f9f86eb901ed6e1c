"""Exceptions in a release: its record, what `verify` sees of forged ones, and who uses the smaller bound."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from forging import Json, restated, spent_on

from certsynth import Release, Schema, certify, release
from certsynth.algorithm import method
from certsynth.algorithm.recompute import certificate_for_one_question, stated_settings
from certsynth.algorithm.sample import sample
from certsynth.algorithm.task import Task
from certsynth.answers.alone import SHARE_2
from certsynth.answers.basis import Basis, raise_bound
from certsynth.answers.shares import share
from certsynth.artefact.steps import ERRORS_OF_ROWS, step_on
from certsynth.certificate.coverage import statistic_names
from certsynth.certificate.skipping import LOSS_UNITS
from certsynth.certificate.statistics import StatisticMaxima
from certsynth.domain.meaning import Reader
from certsynth.planning.rehearsal import certified_bound
from certsynth.report.verifiable import UNVERIFIABLE_EXCEPTIONS
from small import settled

SCHEMA = Schema.parse(
    "\n".join(f'[[column]]\nname = "{name}"\nkind = "integer"\nlow = 0\nhigh = 5\n' for name in "abcd")
)
ASKED: dict[str, dict[str, Any]] = {
    "pairs": {"epsilon": 4, "exceptions": 2},
    "hidden rows": {"epsilon": 4, "exceptions": 1, "neighbours": "add-remove", "rows": 300},
    "rho": {"rho": "0.5", "exceptions": 2},
    "workload": {"epsilon": 4, "exceptions": 2, "subsets": [["a", "b"], ["c"], ["c", "d"], ["d"]]},
    "adaptive": {"epsilon": 4, "exceptions": 1, "mechanism": "adaptive"},
}


def table(rows: int = 300) -> pl.DataFrame:
    rng = np.random.default_rng(0)
    columns = {name: rng.integers(0, 6, rows) for name in "abcd"}
    return pl.DataFrame(columns | {"b": columns["a"]})


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Release]:
    here, made = tmp_path_factory.mktemp("exceptions"), {}

    def of(kind: str) -> Release:
        if kind not in made:
            asked = {"seed": 1, "resolution": None if kind == "adaptive" else 3} | ASKED[kind]
            made[kind] = release(table(), SCHEMA, out=here / kind.replace(" ", "-"), **asked)
        return made[kind]

    return of


def refused(made: Release, folder: Path, change: Callable[[Json], Any]) -> set[str]:
    """Checks that fail for a folder that was written anew with a changed certificate."""
    document = made.document
    change(document)
    forged = dataclasses.replace(restated(made, document), folder=None).save(folder)
    return {check["name"] for check in Release.load(forged.folder).verify() if not check["ok"]}


@pytest.mark.parametrize("kind", ASKED)
def test_a_release_with_exceptions_is_verified(releases, kind):
    made = Release.load(releases(kind).folder)
    assert all(check["ok"] for check in made.verify()), made.verify()
    found, number = made.record.certificate.exceptions, ASKED[kind]["exceptions"]
    assert len(set(found.subsets)) == len(found.subsets) == number
    assert made.record.asked.exceptions == number
    step = next(step for step in made.record.privacy.spent if step.on.startswith("choosing"))
    assert step.on == f"choosing {number} exception{'s' if number > 1 else ''}"
    assert (step.scale, step.values, step.sensitivity.l1) == (None, None, LOSS_UNITS)
    assert UNVERIFIABLE_EXCEPTIONS in made.cannot_verify()


@pytest.mark.parametrize("kind", ASKED)
def test_every_subset_has_its_own_direct_bound_or_a_smaller_plug_in_one(releases, kind):
    certificate = releases(kind).record.certificate
    found, plug_in = certificate.exceptions, certificate.plug_in.tightest
    own = {subset.columns: subset.bound for subset in plug_in.subsets} if plug_in else {}
    assert certificate.direct.bound == max(found.bound, found.bound_of_others)
    for subset in certificate.subsets:
        direct = found.bound if subset.columns in found.subsets else found.bound_of_others
        assert subset.bound == min(direct, own.get(subset.columns, 1.0))


def test_a_release_without_exceptions_says_nothing_about_them():
    made = release(table(), SCHEMA, epsilon=4, resolution=3, seed=1)
    assert "exceptions" not in made.document["certificate"]
    assert "exceptions" not in made.document["asked"]
    assert not any("exception" in step.on for step in made.record.privacy.spent)


def moved(document: Json) -> None:
    """Another subset in place of one that was chosen."""
    found = document["certificate"]["exceptions"]["subsets"]
    found[0] = next(each["columns"] for each in document["certificate"]["subsets"] if each["columns"] not in found)


def moved_with_its_bounds(document: Json) -> None:
    moved(document)
    certificate = document["certificate"]
    found = certificate["exceptions"]
    plug_in = certificate["plug_in"].get("transport", {"subsets": certificate["subsets"]})["subsets"]
    own = {tuple(each["columns"]): each["bound"] for each in plug_in}
    for each in certificate["subsets"]:
        direct = found["bound" if each["columns"] in found["subsets"] else "bound_of_others"]
        each["bound"] = min(own[tuple(each["columns"])], direct)


def dropped(document: Json) -> None:
    del document["certificate"]["exceptions"]


def never_asked_for(document: Json) -> None:
    dropped(document)
    document["asked"]["exceptions"] = 0


def one_more_asked_for(document: Json) -> None:
    document["asked"]["exceptions"] += 1


def by_default(document: Json) -> None:
    del document["asked"]["exceptions"]


def twice_the_same(document: Json) -> None:
    found = document["certificate"]["exceptions"]["subsets"]
    found[1] = found[0]


def of_no_subset(document: Json) -> None:
    document["certificate"]["exceptions"]["subsets"][0] = ["a", "a"]


def the_other_way_round(document: Json) -> None:
    document["certificate"]["exceptions"]["subsets"][0].reverse()


def with_a_smaller_bound_of_others(document: Json) -> None:
    document["certificate"]["exceptions"]["bound_of_others"] /= 2


def with_a_smaller_bound(document: Json) -> None:
    document["certificate"]["exceptions"]["bound"] /= 2


def with_a_smaller_error_of_other_shares(document: Json) -> None:
    document["certificate"]["exceptions"]["share_of_others"] /= 2


def with_a_smaller_error_of_its_shares(document: Json) -> None:
    document["certificate"]["exceptions"]["share"] /= 2


def with_a_smaller_error_of_other_totals(document: Json) -> None:
    document["certificate"]["exceptions"]["group_total_of_others"] /= 2


def with_a_smaller_error_of_its_totals(document: Json) -> None:
    document["certificate"]["exceptions"]["group_total"] /= 2


def without_errors_of_totals(document: Json) -> None:
    del document["certificate"]["exceptions"]["group_total"]
    del document["certificate"]["exceptions"]["group_total_of_others"]


def as_of_an_earlier_version(document: Json) -> None:
    """Without bounds on shares and totals, which are among the noisy integers all the same."""
    without_errors_of_totals(document)
    del document["certificate"]["exceptions"]["share"]
    del document["certificate"]["exceptions"]["share_of_others"]


def chosen_for_less(document: Json) -> None:
    spent_on(document, "choosing 2 exceptions")["epsilon"] = "1/1000"


def chosen_by_smaller_changes(document: Json) -> None:
    spent_on(document, "choosing 2 exceptions")["sensitivity"] = {"l1": 1, "l2_squared": 1}


def under_another_name(document: Json) -> None:
    spent_on(document, "choosing 2 exceptions")["on"] = "choosing 1 exception"


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize(
    ("change", "check"),
    [
        (moved, "bound"),
        (dropped, "direct certificate"),
        (never_asked_for, "privacy"),
        (one_more_asked_for, "privacy"),
        (by_default, "privacy"),
        (twice_the_same, "direct certificate"),
        (of_no_subset, "direct certificate"),
        (the_other_way_round, "direct certificate"),
        (with_a_smaller_bound_of_others, "direct certificate"),
        (with_a_smaller_bound, "direct certificate"),
        (with_a_smaller_error_of_other_shares, "direct certificate"),
        (with_a_smaller_error_of_its_shares, "direct certificate"),
        (with_a_smaller_error_of_other_totals, "direct certificate"),
        (with_a_smaller_error_of_its_totals, "direct certificate"),
        (without_errors_of_totals, "direct certificate"),
        (as_of_an_earlier_version, "privacy"),
        (chosen_for_less, "privacy"),
        (chosen_by_smaller_changes, "privacy"),
        (under_another_name, "privacy"),
    ],
    ids=lambda each: getattr(each, "__name__", each),
)
def test_forged_exceptions_are_seen(releases, tmp_path, change, check):
    assert check in refused(releases("pairs"), tmp_path / "forged", change)


def test_which_subsets_were_chosen_is_on_trust(releases, tmp_path):
    """All that follows from the choice was adapted: nobody can see it, and `verify` says so."""
    assert refused(releases("adaptive"), tmp_path / "forged", dropped)
    found = refused(releases("pairs"), tmp_path / "moved", moved_with_its_bounds)
    assert found == set()


def test_answers_and_samples_use_the_bound_of_their_subset(releases):
    made = releases("adaptive")
    found = made.record.certificate.exceptions
    bounds = dict(made.certificate.subsets)
    assert bounds[found.subsets[0]] == found.bound
    assert {bound for columns, bound in bounds.items() if columns not in found.subsets} == {found.bound_of_others}
    clean = dict(zip(made.schema.names, made.rows, strict=True))
    basis = Basis.read(made.schema, made.table, clean, made.record)
    for columns, bound in bounds.items():
        assert bound <= basis.bound(columns) <= bound + 1e-6
    through = dict(sample(made, 200, seed=1).through_release.subsets)
    between = {columns: through[columns] - bounds[columns] for columns in bounds if through[columns] < 1}
    assert all(0 <= distance < 1 for distance in between.values())
    assert "All pairs of columns but one are within" in (made.folder / "report.html").read_text()


@pytest.mark.parametrize("kind", ASKED)
def test_answers_use_the_errors_of_their_pair(releases, kind):
    """The errors that the record states for the pair: exactly those, whichever way round the columns are named."""
    made = releases(kind)
    certificate = made.record.certificate
    apart, known = certificate.exceptions, certificate.statistics
    assert known.share_of_two_columns == max(apart.share, apart.share_of_others)
    assert known.group_total == max(apart.group_total, apart.group_total_of_others)
    clean = dict(zip(made.schema.names, made.rows, strict=True))
    basis = Basis.read(made.schema, made.table, clean, made.record)
    pairs = [subset.columns for subset in certificate.subsets if len(subset.columns) == 2]
    for first, second in pairs:
        own = (first, second) in apart.subsets
        for names in ((first, second), (second, first)):
            assert basis.errors(names).two == raise_bound(apart.share if own else apart.share_of_others)
            total = apart.group_total if own else apart.group_total_of_others
            assert basis.group_error(names) == raise_bound(total)
    assert basis.errors(["a"]).one == raise_bound(known.share_of_one_column)


def test_an_answer_is_as_wide_as_the_error_of_its_pair():
    """b is half a copy of a in the private table, and independent of it in the synthetic one: only that pair is off.

    A whole copy would be off by a quarter: then the range of a < 3 and b < 3 ends where b < 3 alone ends, and which of
    the two claims is narrower depends on the noise.
    """
    rng = np.random.default_rng(5)
    columns = {name: rng.integers(0, 6, 4_000) for name in "abcd"}
    private = columns | {"b": np.where(np.arange(4_000) % 2 == 0, columns["a"], columns["b"])}
    found = certify(pl.DataFrame(private), pl.DataFrame(columns), SCHEMA, epsilon=4, exceptions=1)
    assert found.exceptions.subsets == (("a", "b"),)
    made = release(pl.DataFrame(columns), SCHEMA, epsilon=4, resolution=3, exceptions=1, seed=1)
    stated = made.record.certificate
    subsets = tuple(dataclasses.replace(subset, bound=1.0) for subset in stated.subsets)
    certificate = dataclasses.replace(
        stated, exceptions=found.exceptions, statistics=found.statistics, cells=None, subsets=subsets
    )
    record = dataclasses.replace(made.record, certificate=certificate)
    basis = Basis.read(made.schema, made.table, dict(zip(made.schema.names, made.rows, strict=True)), record)
    reader = Reader(list(made.schema))
    bad, good = (share(basis, reader.read(text))[1] for text in ("a < 3 and b < 3", "c < 3 and d < 3"))
    assert bad.bound == raise_bound(found.exceptions.share)
    assert good.bound == raise_bound(found.exceptions.share_of_others) < bad.bound / 2


def test_a_question_alone_uses_the_error_of_its_pair_only(releases):
    """Both errors of pairs are among the noisy integers, and count as two of those that one question rests on."""
    made = releases("pairs")
    apart = certificate_for_one_question(made, frozenset({SHARE_2})).exceptions
    stated = made.record.certificate.exceptions
    assert apart.share < stated.share
    assert apart.share_of_others < stated.share_of_others
    assert {apart.bound, apart.bound_of_others, apart.group_total, apart.group_total_of_others} == {1.0}
    settings = stated_settings(made)
    noisy = step_on(made.record, ERRORS_OF_ROWS)
    beta = settings.beta - settings.cell_beta
    slack = Fraction(noisy.joint_slack(beta, used=2), LOSS_UNITS) / 300
    names = statistic_names(SCHEMA, settings.covered, exceptions=True)
    value = Fraction(noisy.values[3 + names.index("share_of_two_columns")], LOSS_UNITS) / 300
    assert apart.share_of_others == pytest.approx(float(value + slack))


def test_a_release_of_an_earlier_version_is_verified(monkeypatch, tmp_path):
    """It had bounds on losses only: errors of pairs were measured once, and exceptions chosen by losses alone."""
    monkeypatch.setattr(StatisticMaxima, "losses_with", lambda self, exceptions: self.losses)
    made = release(table(), SCHEMA, epsilon=4, exceptions=2, resolution=3, seed=1, out=tmp_path / "earlier")
    monkeypatch.undo()
    found = Release.load(made.folder)
    apart = found.record.certificate.exceptions
    assert apart.share is None
    assert all(check["ok"] for check in found.verify()), found.verify()
    clean = dict(zip(found.schema.names, found.rows, strict=True))
    basis = Basis.read(found.schema, found.table, clean, found.record)
    known = found.record.certificate.statistics
    assert {basis.errors(pair).two for pair in apart.subsets} == {raise_bound(known.share_of_two_columns)}


WIDE = Schema.parse("\n".join(f'[[column]]\nname = "c{j}"\nkind = "boolean"\n' for j in range(15)))


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_the_default_number_follows_from_the_public_number_of_rows(neighbours, tmp_path):
    """Of 105 pairs, more than three where many rows make the choice reliable. `verify` finds the same number."""
    for count, number in ((1_000, 13), (40, 3)):
        rows = pl.DataFrame({name: [True, False] * (count // 2) for name in WIDE.names})
        out = tmp_path / f"{count}"
        made = release(rows, WIDE, epsilon=90, seed=1, neighbours=neighbours, rows=100, out=out)
        assert made.record.asked.exceptions is None
        assert len(made.record.certificate.exceptions.subsets) == number
        assert all(check["ok"] for check in Release.load(out).verify())
        fewer = refused(made, tmp_path / f"forged {count}", lambda d: d["certificate"]["exceptions"]["subsets"].pop())
        assert {"privacy", "direct certificate"} & fewer


def test_three_exceptions_by_default_are_those_of_an_earlier_version(monkeypatch, tmp_path):
    rows = pl.DataFrame({name: [True, False] * 20 for name in WIDE.names})
    monkeypatch.setattr(StatisticMaxima, "losses_with", lambda self, exceptions: self.losses)
    monkeypatch.setattr(method, "number_of_exceptions", lambda asked, subsets, default: 3)
    earlier = release(rows, WIDE, epsilon=90, seed=1, out=tmp_path / "earlier")
    monkeypatch.undo()
    assert earlier.record.asked.exceptions is None
    assert stated_settings(earlier).exceptions == 3
    assert all(check["ok"] for check in Release.load(earlier.folder).verify())


def test_a_plan_counts_three_more_numbers_and_the_cost_of_choosing():
    """The certificate's share of the budget stays; that of the measurements pays."""
    plain, apart = (settled(SCHEMA, epsilon=1, exceptions=number, certificate_share="0.1") for number in (0, 5))
    assert apart.measurement_budget.amount == plain.measurement_budget.amount - Fraction(3, 100)
    bounds = [certified_bound(Task(SCHEMA, each, 1_000), 0.1) for each in (plain, apart)]
    assert bounds[0] < bounds[1] < bounds[0] * 1.3
