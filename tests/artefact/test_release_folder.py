"""The release folder: whole or absent, checkable without the private rows, and silent about them."""

from __future__ import annotations

import copy
import io
import json
import re
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from forging import VARIANTS, packed, remeasured, spent_on, tampered, unit_of, unpacked

import certsynth.algorithm.release as releasing
from certsynth import Release, Schema, evaluate, release
from certsynth.algorithm import layers
from certsynth.artefact import measurements
from certsynth.artefact.folder import write_folder
from certsynth.artefact.persons import stated_protection
from certsynth.domain import Groups, Ordered
from certsynth.errors import InputError, TooLarge, UnsafeNoise
from certsynth.mechanisms import Measurement, Neighbours, Unit
from certsynth.planning import choice
from certsynth.planning.cache import CACHE_VARIABLE
from small import EVERY_KIND, MIXED, NATIVE, FixedOutput, NoNoise, emitted, native, people, workers

QUICK = {"epsilon": 2, "resolution": 4, "mechanism": "identity", "seed": 3}
FEW = ["age", "sex", "education", "employed"]
NO_ROOM = 1e9  # rows to a cell of which labels are so few that no more groups of them are made than of values on a line
LABELLED = EVERY_KIND.select(["region", "job", "colour"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A release of a private file that has been deleted since."""
    here = tmp_path_factory.mktemp("release")
    private = here / "private.csv"
    people(800).write_csv(private)
    release(private, MIXED, out=here / "out", **QUICK)
    private.unlink()
    return here / "out"


def test_verifies_without_the_private_file(folder):
    checks = Release.load(folder).verify()
    names = ["files", "certificate form", "schema", "rows", "measurements", "privacy", "method"]
    assert [c["name"] for c in checks] == [
        *names,
        "fit",
        "plug-in certificate",
        "direct certificate",
        "bound",
        "description",
        "report",
    ]
    assert all(c["ok"] for c in checks), checks


@pytest.mark.slow
def test_verifies_in_a_process_that_cannot_import_the_sources(folder):
    script = (
        "import sys; sys.modules['certsynth.sources'] = None\n"
        "from certsynth import Release\n"
        f"assert all(c['ok'] for c in Release.load({str(folder)!r}).verify())\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_holds_what_the_design_promises_and_nothing_else(folder):
    assert {path.name for path in folder.iterdir()} == {
        "synthetic.parquet",
        "synthetic.csv",
        "certificate.json",
        "measurements.npz",
        "schema.toml",
        "report.html",
        "datapackage.json",
        "croissant.json",
        "SHA256SUMS",
    }


def test_emitted_values_have_the_schemas_types_and_are_the_same_in_both_files(folder):
    parquet, text = pl.read_parquet(folder / "synthetic.parquet"), pl.read_csv(folder / "synthetic.csv")
    assert dict(parquet.schema) == {
        "age": pl.Int64,
        "sex": pl.String,
        "income": pl.Float64,
        "education": pl.String,
        "employed": pl.Boolean,
        "since": pl.Date,
    }
    assert parquet.height == text.height == 800
    assert parquet["income"].null_count() == text["income"].null_count() > 0
    assert set(parquet["sex"]) <= {"f", "m", "other"}
    assert parquet["age"].is_between(0, 20).all()
    assert text["since"].to_list() == [str(day) for day in parquet["since"]]


def test_a_release_read_back_is_the_one_that_was_written(folder):
    again = Release.load(folder)
    assert again.schema == MIXED
    for name, column in again.table.items():
        assert column.tolist() == pl.read_parquet(folder / "synthetic.parquet")[name].to_list()
    assert again.certificate.bound == json.loads((folder / "certificate.json").read_text())["certificate"]["bound"]
    assert "off by at most" in repr(again)


def test_what_is_certified_is_what_comes_back_from_the_file_to_the_last_bit(tmp_path):
    """Bounds with which offset × length + low, read back, may be another in its last bit, and in another cell."""
    odd = Schema(
        tuple(Ordered(name=n, kind="number", low=a, high=b) for n, a, b in (("x", 4.12, 46.0), ("y", 0.1, 0.7)))
    )
    frame = pl.DataFrame({"x": np.linspace(4.12, 46, 257).repeat(2), "y": np.linspace(0.1, 0.7, 257).repeat(2)})
    made = release(frame, odd, epsilon=100, resolution=4, out=tmp_path / "out")
    again = Release.load(tmp_path / "out")
    assert all(c["ok"] for c in again.verify())
    for column, mine, theirs in zip(odd, made.rows, again.rows, strict=True):
        assert np.array_equal(mine, theirs)
        assert again.table[column.name].tolist() == made.table[column.name].tolist()
        assert np.array_equal(column.clean(column.decode(mine)), mine)


@pytest.mark.parametrize(
    "name",
    [
        "synthetic.parquet",
        "synthetic.csv",
        "certificate.json",
        "measurements.npz",
        "report.html",
        "datapackage.json",
        "croissant.json",
    ],
)
def test_a_changed_byte_is_seen(variants, tmp_path, name):
    changed = tmp_path / "changed"
    changed.mkdir()
    for path in variants("pairs").folder.iterdir():
        (changed / path.name).write_bytes(path.read_bytes())
    content = bytearray((changed / name).read_bytes())
    content[len(content) // 2] ^= 1
    (changed / name).write_bytes(bytes(content))
    try:
        checks = Release.load(changed).verify()
    except InputError:
        return  # it could not even be read
    assert not all(c["ok"] for c in checks)


def test_a_folder_of_an_earlier_version_that_states_no_fit_is_read_and_verified(variants, tmp_path):
    made = variants("pairs")
    assert made.fit is not None
    replace(made, record=replace(made.record, fit=None), folder=None).save(tmp_path / "earlier")
    earlier = Release.load(tmp_path / "earlier")
    assert earlier.fit is None
    assert "fit" not in earlier.document
    assert all(c["ok"] for c in earlier.verify())


@pytest.mark.parametrize("name", ["one column", "single columns without direct certificate"])
def test_without_noisy_tables_of_several_columns_no_fit_is_stated(variants, tmp_path, name):
    made = variants(name)
    assert made.fit is None
    other = variants("pairs").document["fit"]
    assert not tampered(made, tmp_path / "forged", lambda d: d.update(fit=other))["fit"]


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize(
    ("change", "check"),
    [
        (lambda d: d["certificate"].update(bound=d["certificate"]["bound"] / 2), "bound"),
        (lambda d: d["certificate"].update(confidence=0.999), "bound"),
        (lambda d: d["certificate"]["plug_in"]["transport"]["subsets"][0].update(bound=0.01), "plug-in certificate"),
        (lambda d: d["certificate"]["plug_in"]["path"].update(bound=0.01), "plug-in certificate"),
        (lambda d: d["privacy"].update(epsilon="0.5"), "privacy"),
        (lambda d: d["privacy"]["spent"][0].update(epsilon="1/10"), "privacy"),
        (lambda d: d["privacy"].update(neighbours="add-remove"), "privacy"),
        (lambda d: d["release"].update(rows=801), "rows"),
        (lambda d: d["fit"]["furthest"][0].update(misfit=0.5), "fit"),
        (lambda d: d["fit"]["furthest"].pop(0), "fit"),
        (lambda d: d["fit"]["furthest"].reverse(), "fit"),
        (lambda d: d["fit"].update(tables=1), "fit"),
        (lambda d: d["fit"]["functions"].append({"source": "age", "derived": "sex", "share": 0.01}), "fit"),
        (lambda d: d.pop("recompute"), "plug-in certificate"),
        (lambda d: d["recompute"].update(draws=10**12), "plug-in certificate"),
    ],
)
def test_a_forged_certificate_with_fitting_checksums_is_seen(variants, tmp_path, change, check):
    checks = tampered(variants("pairs"), tmp_path / "forged", change)
    assert checks["files"]
    assert not checks[check]


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["privacy"].update(epsilon="50"),
        lambda d: d["privacy"]["spent"][2].update(epsilon="1/1000"),
        lambda d: d["privacy"]["spent"].pop(),
        lambda d: d["privacy"].update(epsilon="1e30000"),
    ],
)
def test_a_budget_that_is_not_the_sum_of_its_parts_is_seen(variants, tmp_path, change):
    checks = tampered(variants("pairs"), tmp_path / "forged", change)
    assert not checks["privacy"]


FORGED = [
    None,  # as if all pairs were covered
    [["a", "b"], ["b"]],
    [["a", "b"], ["b"], ["c"], ["a", "c"]],
    [["a", "b"], ["b"], ["d"]],
    [["c"], ["a", "b"], ["b"]],
    [[["a"]]],
]


@pytest.mark.parametrize("workload", FORGED, ids=str)
def test_a_forged_workload_is_seen(variants, tmp_path, workload):
    def forge(document):
        document["release"]["workload"] = workload

    assert not tampered(variants("workload"), tmp_path / "forged", forge)["plug-in certificate"]


def test_refuses_measurements_that_would_fill_the_memory(folder, monkeypatch):
    content = (folder / "measurements.npz").read_bytes()
    measurements.from_bytes(content, MIXED)
    monkeypatch.setattr(measurements, "MAX_BYTES", len(content))  # unpacked it is larger
    with pytest.raises(InputError, match="too large"):
        measurements.from_bytes(content, MIXED)


def test_never_overwrites_and_leaves_nothing_behind(folder, tmp_path):
    for target in (tmp_path / "file", tmp_path / "folder", tmp_path / "link"):
        if target.name == "file":
            target.write_text("mine")
        elif target.name == "folder":
            target.mkdir()
        else:
            target.symlink_to(tmp_path / "nowhere")
        before = sorted(tmp_path.iterdir())
        with pytest.raises(InputError, match="never overwritten"):
            release(people(20), MIXED, out=target, **QUICK)
        assert sorted(tmp_path.iterdir()) == before


def test_a_failure_while_writing_leaves_nothing_visible(tmp_path):
    def full(path: Path) -> None:
        (path / "half").write_text("x")
        raise OSError(28, "No space left on device")

    with pytest.raises(InputError, match="No space left on device"):
        write_folder(tmp_path / "out", {"a": b"1"}, full)
    assert list(tmp_path.iterdir()) == []


def test_refuses_before_anything_is_read_when_it_cannot_fit(monkeypatch):
    opened = []
    monkeypatch.setattr(releasing, "open_source", lambda *a, **k: opened.append(a))
    with pytest.raises(
        TooLarge, match=r"[\d,]+ cells, about .* GB .* more than the .* GB at hand: lower the resolution"
    ):
        release("private.csv", MIXED, epsilon=1, resolution=1024, sparsity=3, memory=4 * 2**30)
    with pytest.raises(TooLarge, match="GB"):
        release("private.csv", MIXED, epsilon=1, memory=1000)
    for memory in ("1GB", 0, -1, True, 4e9):
        with pytest.raises(InputError, match=r"memory must be a whole number of bytes, like 4 \* 2\*\*30; got"):
            release("private.csv", MIXED, epsilon=1, memory=memory)
    with pytest.raises(InputError, match="exists already"):
        release("private.csv", MIXED, epsilon=1, out=Path(__file__))
    assert opened == []


def test_noise_made_for_tests_is_never_written(tmp_path):
    made = release(people(50), MIXED, noise=FixedOutput(), columns=FEW, **QUICK)
    with pytest.raises(UnsafeNoise, match="test noise"):
        made.save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


class Passing(FixedOutput):
    """Lets a release be written, so that whole folders can be compared."""

    releasable = True


LAPLACE, GAUSSIAN = {"epsilon": 2}, {"rho": "0.5"}


OTHER = people(200, seed=1).with_columns(pl.lit(3).alias("age"), pl.lit("CANARY").alias("sex"))
WOVEN_OTHER = workers(200, seed=1).with_columns(pl.lit("CANARY").alias("job"), pl.lit("CANARY").alias("colour"))
COUPLED = {
    "mixed": (MIXED, ["age", "sex", "income"], people(200), OTHER),
    "woven": (EVERY_KIND, ["income", "job", "colour"], workers(200), WOVEN_OTHER),
}
"""Schemas, columns, and two tables of them that share nothing but their length."""


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("case", COUPLED)
@pytest.mark.parametrize("share", [None, 0], ids=["direct", "displacement"])
@pytest.mark.parametrize("budget", [LAPLACE, GAUSSIAN], ids=["epsilon", "rho"])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_nothing_but_the_noisy_integers_crosses(monkeypatch, tmp_path, neighbours, budget, share, case):
    """Tables that share nothing but their length give the same bytes once the noisy vectors are the same.

    Nothing is remembered: what progress tells of a plan depends on whether it was asked for before.
    """
    monkeypatch.setenv(CACHE_VARIABLE, "off")
    seen = []
    schema, columns, one, other = COUPLED[case]
    tables = [("one", one, 0), ("other", other, 0)]
    tables += [("control", one, 1)] if neighbours == "replace-one" else []
    for name, frame, noise in tables:
        told: list[tuple] = []
        made = release(
            frame,
            schema,
            noise=Passing(noise),
            neighbours=neighbours,
            certificate_share=share,
            progress=lambda *event, told=told: told.append(event),
            rows=100,
            columns=columns,
            out=tmp_path / name,
            **(QUICK | {"epsilon": None} | budget),
        )
        files = {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        seen.append((files, told, repr(made).replace(name, "")))
        assert ("mean displacement" in [s["on"] for s in made.document["privacy"]["spent"]]) == (share is not None)
    assert seen[0] == seen[1]
    assert len(seen[0][0]) == 9
    assert not any(b"CANARY" in content for content in seen[1][0].values())
    for files, *_ in seen[2:]:  # control: other noisy vectors give other bytes wherever they can
        same = {name for name, content in files.items() if content == seen[0][0][name]}
        assert same <= {"schema.toml", "datapackage.json"}
        assert "schema.toml" in same


def test_the_number_of_rows_is_hidden_under_add_remove(tmp_path):
    canary = 7919
    release(people(canary), MIXED, out=tmp_path / "out", neighbours="add-remove", rows=500, columns=FEW, **QUICK)
    number = re.compile(rf"(?<![\d.])(?:{canary}|{canary:,})(?!\d)")
    noisy = spent_on(json.loads((tmp_path / "out" / "certificate.json").read_text()), "number of rows")["values"]
    if noisy == [canary]:  # noise of 0 is drawn as well
        return
    for path in (tmp_path / "out").iterdir():
        assert not number.search(path.read_bytes().decode("latin-1")), path.name
    assert number.search(f'"rows": {canary},')
    assert Release.load(tmp_path / "out").measurement.estimate()[1] != canary


def test_the_printed_budget_is_what_the_mechanisms_returned():
    made = release(people(100), MIXED, certificate_share="0.1", candidates=2, columns=FEW, **QUICK)
    spent = {part["on"]: Fraction(part["epsilon"]) for part in made.document["privacy"]["spent"]}
    assert sum(spent.values()) == 2
    assert list(spent.values())[:2] == [m.cost.spent.amount for m in made.measurements]
    assert sum(list(spent.values())[:2]) == Fraction(17, 10)
    assert spent["choosing among 2 tables"] == Fraction(1, 10)
    assert spent["errors of the rows"] == Fraction(2, 10)
    assert made.document["privacy"]["epsilon"] == "2"


@pytest.mark.parametrize(("rows", "neighbours"), [(1, "replace-one"), (1, "add-remove"), (0, "add-remove")])
def test_no_row_or_one_row_works_with_a_vacuous_certificate(rows, neighbours, tmp_path):
    asked = {"neighbours": neighbours, "rows": 20, "columns": FEW[:3], **QUICK, "epsilon": "0.1", "resolution": 2}
    assert release(people(rows), MIXED, noise=NoNoise(), **asked).certificate.bound == 1.0
    made = release(people(rows), MIXED, out=tmp_path / "out", **asked)
    assert made.certificate.bound <= 1.0
    assert all(c["ok"] for c in Release.load(tmp_path / "out").verify())


@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"rho": "0.1"}], ids=str)
def test_no_row_works_where_the_plan_chooses(budget):
    asked = {"columns": FEW[:2], "rows": 20, "neighbours": "add-remove", **budget}
    made = release(people(0), MIXED, noise=NoNoise(), **asked)
    assert made.certificate.bound == 1.0


def test_no_row_is_refused_where_the_number_of_rows_is_public(tmp_path):
    """Before anything is spent. Where that number is hidden, an empty table is one like any other."""
    header = tmp_path / "people.csv"
    header.write_text(",".join(MIXED.names) + "\n")
    for empty in (people(0), header):
        with pytest.raises(InputError, match=r"nothing to release\.\nNothing was spent\.$"):
            release(empty, MIXED, epsilon=1, ledger=tmp_path / "ledger", cap=1, out=tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["people.csv"]


def test_a_release_can_be_verified_once_it_is_saved(tmp_path):
    made = release(people(60), MIXED, columns=FEW[:2], **QUICK)
    with pytest.raises(InputError, match="save it first"):
        made.verify()
    saved = made.save(tmp_path / "out")
    assert all(check["ok"] for check in made.verify())
    assert made.cannot_verify() == saved.cannot_verify()
    assert made.save(tmp_path / "copy").folder == tmp_path / "copy"
    assert made.folder == saved.folder == tmp_path / "out"
    with pytest.raises(InputError, match=r"`columns` is a list of column names: write \['age'\] for a single column"):
        made.answer(lambda age: age, columns="age", lipschitz=1)


def test_one_column_and_one_cell_work():
    made = release(people(50), MIXED, epsilon=1, resolution=1, columns=["age"], confidence="0.999999")
    assert made.certificate.bound <= 1
    assert evaluate(people(50), emitted(made), MIXED, columns=["age"]).lower <= made.certificate.bound


@pytest.mark.parametrize(
    ("asked", "spent", "least"),
    [({"preset": "paper"}, "0", 0.47), ({"certificate_share": 0, "mechanism": "identity"}, "0.02", 0)],
)
def test_a_release_that_costs_nothing_is_written_and_says_so(tmp_path, asked, spent, least):
    """One cell holds every row, whatever they are: no noise is needed, and only the displacement is paid for."""
    made = release(people(20), MIXED, epsilon=1, resolution=1, columns=["age"], out=tmp_path / "out", **asked)
    assert made.document["privacy"]["epsilon"] == spent
    assert least <= made.certificate.bound < 0.53  # half a unit of discretisation, and the shift
    assert all(c["ok"] for c in Release.load(tmp_path / "out").verify())


def test_refuses_a_draft_schema():
    draft = Schema(columns=MIXED.columns, draft=True)
    with pytest.raises(InputError, match="draft = true"):
        release(people(5), draft, epsilon=1)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"epsilon": 0}, "above 0"),
        ({"epsilon": True}, "above 0"),
        ({"epsilon": 101}, "at most 100"),
        ({"sparsity": 7}, "`sparsity` can be 1 to 6"),
        ({"sparsity": 0}, "`sparsity` can be 1 to 6"),
        ({"resolution": 0}, "from 1 to 1024"),
        ({"confidence": 1}, "below 1"),
        ({"certificate_share": 1}, "below 1"),
        ({"rows": 0}, "from 1 to"),
        ({"neighbours": "nearby"}, "replace-one or add-remove"),
        ({"mechanism": "magic"}, "one of"),
        ({"projection": "public"}, "give `public`"),
        ({"loss": "huge"}, "`loss` must be path or transport"),
        ({"preset": "mine"}, "`preset` must be paper"),
        ({"columns": ["agee"]}, "'agee' is not in the schema"),
        ({"candidates": 0}, "from 1 to 100"),
    ],
)
def test_bad_arguments_are_refused_with_the_rule(arguments, rule):
    with pytest.raises(InputError, match=rule):
        release(people(5), MIXED, **({"epsilon": 1} | arguments))


def test_rows_of_a_release_are_not_in_the_order_of_the_points():
    made = release(people(500), MIXED, columns=FEW, **QUICK)
    assert not (np.diff(np.asarray(made.rows[0])) >= 0).all()


# ------------------------------------------------------------ releases of every kind


@pytest.mark.quick_cases(6)
@pytest.mark.parametrize("name", VARIANTS)
def test_a_release_of_any_kind_verifies(variants, name):
    checks = Release.load(variants(name).folder).verify()
    assert all(c["ok"] for c in checks), checks


def _same(first: Measurement, second: Measurement) -> None:
    for mine, theirs in zip(first.marginals.cells, second.marginals.cells, strict=True):
        assert type(mine) is type(theirs)
        assert np.array_equal(mine.places, theirs.places)
        assert (mine.steps, mine.off_line, mine.weight) == (theirs.steps, theirs.off_line, theirs.weight)
        assert (mine.label_metric is None) == (theirs.label_metric is None)
        if mine.label_metric is not None and theirs.label_metric is not None:
            assert (mine.label_metric.size, mine.label_metric.unit) == (
                theirs.label_metric.size,
                theirs.label_metric.unit,
            )
            assert np.array_equal(mine.label_metric.distances, theirs.label_metric.distances)
        if isinstance(mine, Groups):
            for part in ("starts", "group_of_label", "representatives"):
                assert np.array_equal(getattr(mine, part), getattr(theirs, part))
            assert np.array_equal(mine.lattice.places, theirs.lattice.places)
            assert (mine.lattice.steps, mine.lattice.off_line) == (theirs.lattice.steps, theirs.lattice.off_line)
    assert first.marginals.subsets == second.marginals.subsets
    for mine, theirs in zip(first.coefficients, second.coefficients, strict=True):
        assert mine.dtype == theirs.dtype
        assert np.array_equal(mine, theirs)
    assert (first.strategy, first.total) == (second.strategy, second.total)
    assert (first.scale, first.cost) == (second.scale, second.cost)
    assert second.releasable


@pytest.mark.quick_cases(8)
@pytest.mark.parametrize("name", VARIANTS)
def test_measurements_come_back_from_the_file_as_they_were(variants, name):
    made = variants(name)
    again = Release.load(made.folder).measurements
    assert len(again) == len(made.measurements) == len(made.document["release"]["measured"])
    for first, second in zip(made.measurements, again, strict=True):
        _same(first, second)


def test_measurements_of_all_kinds_of_columns_come_back_as_they_were(folder):
    """Groups of integers, numbers, dates and ordinals, labels and missing values, at two resolutions."""
    content = (folder / "measurements.npz").read_bytes()
    made = measurements.from_bytes(content, MIXED)
    assert [all(isinstance(grid, Groups) for grid in m.marginals.cells) for m in made] == [True, True]
    assert [len(m.marginals.cells[-1].places) for m in made] == [366, 4]
    again = measurements.to_bytes(made, MIXED)
    assert again == content
    for first, second in zip(made, measurements.from_bytes(again, MIXED), strict=True):
        _same(first, second)


@pytest.mark.parametrize("name", VARIANTS)
def test_the_parts_of_the_budget_are_those_of_the_measurements_and_the_rest(variants, name):
    made = variants(name)
    privacy, unit = made.document["privacy"], made.measurement.cost.spent.unit
    assert (privacy["rho"] is None) == (privacy["delta"] is None) == (unit is Unit.EPSILON)
    parts = [Fraction(part[unit]) for part in privacy["spent"]]
    keys = {"on", unit, "sensitivity", "scale", "values", "worth"}
    on = [part["on"] for part in privacy["spent"]]
    for part in privacy["spent"]:
        joint = part["on"] in ("scores of pairs", "errors of the rows", "dropped rows of persons")
        assert set(part) == keys | ({"noise"} if joint and unit is Unit.EPSILON else set())
        assert part["sensitivity"] is None or ("each" in part["sensitivity"]) == joint
    protection = stated_protection(made.record)
    hidden = protection.of_rows is Neighbours.ADD_REMOVE
    assert on.count("number of rows") == hidden
    others = hidden + ("scores of pairs" in on) + ("choosing the resolution" in on)
    measured = [protection.per_unit(m.cost.spent).amount for m in made.measurements]
    assert parts[others:][: len(measured)] == measured
    if unit is Unit.EPSILON:
        assert sum(parts) == Fraction(privacy["epsilon"]) == VARIANTS[name].get("epsilon", 3)
    else:
        assert sum(parts) <= Fraction(privacy["rho"]) < sum(parts) + Fraction(1, 10**12)
    assert on.count("errors of the rows") == (made.document["certificate"]["direct"] is not None)
    assert ("mean displacement" in on) == (
        not made.document["certificate"]["direct"] and "preset" not in VARIANTS[name]
    )


# ------------------------------------------------------------ forged measurements


def test_measurements_packed_again_verify(variants, tmp_path):
    """Control for what follows: it is not the packing that is seen."""
    made = variants("triples")
    assert all(remeasured(made, tmp_path / "same", *unpacked(made)).values())


LAYERED = [("pairs", 0), ("pairs", 1), ("triples", 0), ("triples", 1), ("triples", 2), ("hidden rows", 0)]
LAYERED += [("weights", 1), ("with delta", 0), ("rho, triples", 1), ("rho, weights", 1), ("rho, hidden rows", 1)]


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize(("name", "layer"), LAYERED)
def test_noise_that_is_too_small_for_its_cost_is_seen_in_every_layer(variants, tmp_path, name, layer):
    made = variants(name)
    about, flat = unpacked(made)
    scale = float.fromhex(about[layer]["scale"])
    for lower in (scale * 0.999, 1e-100):
        about[layer]["scale"] = lower.hex()
        checks = remeasured(made, tmp_path / lower.hex(), about, flat)
        assert checks["files"]
        assert not checks["privacy"]


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize(("name", "layer"), LAYERED)
def test_another_cost_of_a_layer_is_seen(variants, tmp_path, name, layer):
    """A lower one is not what the noise gives; a higher one is not what the certificate says."""
    made = variants(name)
    about, flat = unpacked(made)
    spent = Fraction(about[layer]["spent"])
    for other in (spent * Fraction(999, 1000), spent * Fraction(1001, 1000)):
        about[layer]["spent"] = str(other)
        assert not remeasured(made, tmp_path / str(other.numerator), about, flat)["privacy"]


def _without(made: Release, layer: int, folder: Path) -> dict[str, bool]:
    about, flat = unpacked(made)
    lengths = [sum(map(len, m.coefficients)) for m in made.measurements]
    start = sum(lengths[:layer])
    left = np.r_[flat[:start], flat[start + lengths[layer] :]]
    return remeasured(made, folder, about[:layer] + about[layer + 1 :], left)


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize(("name", "layer"), LAYERED)
def test_a_layer_that_was_dropped_is_seen(variants, tmp_path, name, layer):
    checks = _without(variants(name), layer, tmp_path / "forged")
    assert checks["files"]
    assert not (checks["privacy"] and checks["plug-in certificate"])
    assert not checks["method"]


def test_a_layer_that_was_dropped_is_seen_whatever_its_share(monkeypatch, tmp_path):
    """Half of the budget for single columns: then the part of the one that is left is no smaller."""
    monkeypatch.setattr(choice, "_best_split", lambda *_: Fraction(1, 2))
    made = release(native(50), NATIVE, out=tmp_path / "out", **QUICK)
    assert not _without(made, 0, tmp_path / "forged")["method"]


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize(("name", "layer"), LAYERED)
def test_another_neighbour_relation_of_a_layer_is_seen(variants, tmp_path, name, layer):
    made = variants(name)
    about, flat = unpacked(made)
    relations = ["replace-one", "add-remove"]
    about[layer]["neighbours"] = relations[1 - relations.index(about[layer]["neighbours"])]
    assert not remeasured(made, tmp_path / "forged", about, flat)["privacy"]


@pytest.mark.quick_cases(3)
@pytest.mark.parametrize(("name", "layer"), LAYERED)
def test_a_lower_part_of_the_budget_is_seen(variants, tmp_path, name, layer):
    def lower(document: dict[str, Any]) -> None:
        part = document["privacy"]["spent"][layer]
        unit = unit_of(document)
        part[unit] = str(Fraction(part[unit]) * Fraction(9, 10))

    checks = tampered(variants(name), tmp_path / "forged", lower)
    assert checks["files"]
    assert not checks["privacy"]


@pytest.mark.parametrize("layer", [0, 1])
def test_a_scale_below_zero_is_seen(variants, tmp_path, layer):
    made = variants("pairs")
    about, flat = unpacked(made)
    about[layer]["scale"] = (-1e-9).hex()
    try:
        checks = remeasured(made, tmp_path / "forged", about, flat)
    except InputError:
        return
    assert not checks["privacy"]


@pytest.mark.parametrize("scale", ["0x0p0", "nan", "inf", "-inf"])
def test_a_scale_that_is_no_number_is_seen(variants, tmp_path, scale):
    made = variants("pairs")
    about, flat = unpacked(made)
    about[0]["scale"] = scale
    try:
        checks = remeasured(made, tmp_path / "forged", about, flat)
    except InputError:
        return
    assert not checks["privacy"]


@pytest.mark.parametrize(
    "asked", [{}, {"certificate_share": 0}, {"neighbours": "add-remove"}], ids=["groups", "even", "hidden"]
)
def test_measurements_of_merged_labels_come_back_as_they_were(tmp_path, monkeypatch, asked):
    monkeypatch.setattr(layers, "MIN_ROWS_PER_DEVIATION", NO_ROOM)
    made = release(workers(200), LABELLED, out=tmp_path / "out", **QUICK | {"resolution": 2} | asked)
    cells = made.measurement.marginals.cells
    assert any(isinstance(c, Groups) and c.label_metric is not None and c.off_line < c.lattice.off_line for c in cells)
    again = Release.load(tmp_path / "out")
    for first, second in zip(made.measurements, again.measurements, strict=True):
        _same(first, second)
    assert all(c["ok"] for c in again.verify())


# ------------------------------------------------------------ hostile measurements


def _put(*path: Any) -> Callable[[list], None]:
    """A change of the second layer: the last of `path` is put where the others lead."""

    def change(about: list) -> None:
        place = about[1]
        for key in path[:-2]:
            place = place[key]
        place[path[-2]] = path[-1]

    return change


def _lacks(*path: str) -> Callable[[list], None]:
    def change(about: list) -> None:
        place = about[1]
        for key in path[:-1]:
            place = place[key]
        del place[path[-1]]

    return change


A = ("cells", "starts", "a")

HOSTILE = {
    "starts that fall": _put(*A, [0, 3, 2]),
    "starts that repeat": _put(*A, [0, 3, 3]),
    "starts that leave out the first point": _put(*A, [1, 3]),
    "starts beyond the lattice": _put(*A, [0, 7]),
    "a start before the lattice": _put(*A, [0, -1]),
    "a start that is no machine word": _put(*A, [0, 10**30]),
    "no starts": _put(*A, []),
    "starts of starts": _put(*A, [[0, 3]]),
    "a number of starts": _put(*A, 2),
    "starts that are nothing": _put(*A, None),
    "starts as a text": _put(*A, "03"),
    "starts where there is no line": _put("cells", "starts", "c", [0]),
    "one start too many": _put(*A, [0, 1, 2]),
    "a lattice of many steps": _put("cells", "lattice", "a", 10**18),
    "a lattice of more steps than any": _put("cells", "lattice", "a", 2**21 + 1),
    "a lattice without steps": _put("cells", "lattice", "a", 0),
    "a lattice of a negative number of steps": _put("cells", "lattice", "a", -6),
    "a lattice of NaN steps": _put("cells", "lattice", "a", float("nan")),
    "a lattice of infinitely many steps": _put("cells", "lattice", "a", float("inf")),
    "a lattice of a text": _put("cells", "lattice", "a", "6"),
    "a lattice of another column": _put("cells", "lattice", {"b": 4, "c": 1, "d": 6}),
    "lattices in a list": _put("cells", "lattice", [6, 4, 1]),
    "even cells without number": _put("cells", {"resolution": None}),
    "many even cells": _put("cells", {"resolution": 10**9}),
    "as many even cells as are allowed": _put("cells", {"resolution": 1024}),
    "cells that are nothing": _put("cells", None),
    "no cells": _lacks("cells"),
    "no lattice": _lacks("cells", "lattice"),
    "no lattice of a column": _lacks("cells", "lattice", "b"),
    "no starts of a column": _lacks("cells", "starts", "b"),
    "no subsets": _lacks("subsets"),
    "no scale": _lacks("scale"),
    "no total": _lacks("total"),
    "no cost": _lacks("spent"),
    "no unit": _lacks("unit"),
    "no growth": _lacks("growth"),
    "no mechanism": _lacks("mechanism"),
    "no neighbours": _lacks("neighbours"),
    "a mechanism that there is not": _put("mechanism", "magic"),
    "a mechanism in a list": _put("mechanism", ["identity"]),
    "a neighbour relation that there is not": _put("neighbours", "nearby"),
    "a scale that is no text": _put("scale", 3.5),
    "a scale that is no number": _put("scale", "wide"),
    "a cost that is no number": _put("spent", "small"),
    "a cost over zero": _put("spent", "1/0"),
    "a cost that is no text": _put("spent", 0.5),
    "columns that there are not": _put("subsets", [["a", "d"]]),
    "the same column twice": _put("subsets", [["a", "a"]] * 3),
    "an empty list of subsets": _put("subsets", []),
    "an empty subset": _put("subsets", [[]]),
    "a subset that is a text": _put("subsets", ["abc"]),
    "more cells than coefficients": _put("subsets", [["a", "b", "c"]] * 5_000),
    "a layer that is nothing": lambda about: about.__setitem__(1, None),
    "a layer too many": lambda about: about.append(copy.deepcopy(about[1])),
    "a layer too few": lambda about: about.pop(),
    "no layer": lambda about: about.clear(),
    "starts between points": _put(*A, [0.0, 3.7]),
    "starts that are texts": _put(*A, ["0", "3"]),
    "starts that are truths": _put(*A, [False, True]),
    "a lattice of half steps": _put("cells", "lattice", "a", 6.5),
    "a negative scale": _put("scale", "-0x1p0"),
    "a scale of NaN": _put("scale", "nan"),
    "a negative cost": _put("spent", "-1"),
    "a cost with a million digits": _put("spent", "1e1000000"),
    "a unit that there is not": _put("unit", "sigma"),
    "a unit that is nothing": _put("unit", None),
    "growth beyond any": _put("growth", "5"),
    "growth below zero": _put("growth", "-1"),
    "growth over zero": _put("growth", "1/0"),
    "growth with a million digits": _put("growth", "1e1000000"),
    "growth that is no text": _put("growth", 0.25),
    "a total that is a text": _put("total", "many"),
    "a total that is a list": _put("total", [1, 2]),
    "a total that is NaN": _put("total", float("nan")),
    "a total that no float holds": _put("total", 10**400),
}


@pytest.mark.parametrize(
    "change", [c if isinstance(c, type(pytest.param())) else pytest.param(c) for c in HOSTILE.values()], ids=HOSTILE
)
def test_measurements_that_make_no_sense_are_refused_in_one_line(variants, change):
    about, flat = unpacked(variants("pairs"))
    assert len(measurements.from_bytes(packed(about, flat), NATIVE)) == 2
    change(about)
    hostile = packed(about, flat)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"^[^\n]+\.$"):
            measurements.from_bytes(hostile, NATIVE)
        assert tracemalloc.get_traced_memory()[1] < 50 * 2**20
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def labelled(tmp_path_factory) -> Release:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layers, "MIN_ROWS_PER_DEVIATION", NO_ROOM)
        folder = tmp_path_factory.mktemp("labelled") / "out"
        return release(workers(200), LABELLED, out=folder, **QUICK | {"epsilon": 100})


def _changed(column: str, part: str, change: Callable[[list[int]], Any]) -> Callable[[dict], None]:
    def apply(cells: dict) -> None:
        cells[part][column] = change(cells[part][column])

    return apply


def _hands_over(column: str, group: int) -> Callable[[dict], None]:
    """Labels that stand for no group go to another one, which may be counted from the end."""

    def apply(cells: dict) -> None:
        kin, heads = cells["kin"][column], cells["heads"][column]
        cells["kin"][column] = [own if i in heads else group % len(heads) for i, own in enumerate(kin)]

    return apply


def _merges(column: str) -> Callable[[dict], None]:
    """What is missing joins the first group, and a label that stood for none is one of its own: as many as before."""

    def apply(cells: dict) -> None:
        kin, heads = cells["kin"][column], cells["heads"][column]
        freed = next(i for i in range(len(kin)) if i not in heads)
        kin[-1], kin[freed], heads[-1] = 0, kin[-1], freed

    return apply


HOSTILE_LABELS = {
    "kin that is a text": _changed("job", "kin", lambda kin: "".join(map(str, kin))),
    "kin of texts": _changed("job", "kin", lambda kin: list(map(str, kin))),
    "kin of floats": _changed("job", "kin", lambda kin: [k + 0.5 for k in kin]),
    "kin of truths": _changed("job", "kin", lambda kin: [k > 0 for k in kin]),
    "kin of kin": _changed("job", "kin", lambda kin: [kin]),
    "kin that is nothing": _changed("job", "kin", lambda kin: None),
    "kin of too few": _changed("job", "kin", lambda kin: kin[:-1]),
    "kin of too many": _changed("region", "kin", lambda kin: [*kin, 0]),
    "a group beyond the last": _changed("region", "kin", lambda kin: [*kin[:-1], max(kin) + 1]),
    "a group before the first": _changed("region", "kin", lambda kin: [kin[0] - max(kin) - 1, *kin[1:]]),
    "a head beyond the last": _changed("job", "heads", lambda heads: [*heads[:-1], 10**6]),
    "a head that is no machine word": _changed("job", "heads", lambda heads: [*heads[:-1], 10**30]),
    "a head counted from the end": _changed("region", "heads", lambda heads: [heads[0] - 41, *heads[1:]]),
    "a head of the tree counted from the end": _changed("job", "heads", lambda heads: [heads[0] - 10, *heads[1:]]),
    "heads of other groups": _changed("region", "heads", lambda heads: heads[::-1]),
    "no heads": lambda cells: cells["heads"].pop("job"),
    "no kin": lambda cells: cells["kin"].pop("job"),
    "no heads at all": lambda cells: cells.pop("heads"),
    "a code of the tree among the missing": _hands_over("job", -1),
    "what is missing among codes of the tree": _merges("job"),
}


@pytest.mark.parametrize("change", HOSTILE_LABELS.values(), ids=HOSTILE_LABELS)
def test_groups_of_labels_that_make_no_sense_are_refused_in_one_line(labelled, tmp_path, change):
    about, flat = unpacked(labelled)
    assert len(measurements.from_bytes(packed(about, flat), LABELLED)) == 2
    change(about[1]["cells"])
    with pytest.raises(InputError, match=r"^[^\n]+\.$"):
        remeasured(labelled, tmp_path / "forged", about, flat)


def test_other_groups_of_labels_are_seen(labelled, tmp_path):
    """Groups that could be, but were not measured: the certificate is another."""
    about, flat = unpacked(labelled)
    _hands_over("job", 1)(about[1]["cells"])
    assert not remeasured(labelled, tmp_path / "forged", about, flat)["plug-in certificate"]


@pytest.mark.parametrize(
    "change",
    [
        lambda flat: flat.astype(float),
        lambda flat: flat.astype(np.int32),
        lambda flat: flat.astype(str),
        lambda flat: flat.astype(complex),
        lambda flat: flat > 0,
        lambda flat: flat[:-1],
        lambda flat: flat[:0],
        lambda flat: np.r_[flat, 0],
        lambda flat: np.zeros(10**6, np.int64),
        lambda flat: flat[None],
        lambda flat: flat[0],
    ],
)
def test_coefficients_that_are_not_a_row_of_integers_of_the_right_length_are_refused(variants, change):
    about, flat = unpacked(variants("pairs"))
    with pytest.raises(InputError, match="does not fit"):
        measurements.from_bytes(packed(about, change(flat)), NATIVE)


def _zipped(**parts: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            archive.writestr(f"{name}.npy", part)
    return buffer.getvalue()


def _array(array: np.ndarray, *, length: int | None = None) -> bytes:
    """An array as a file, whose header may claim to be longer than it is."""
    buffer = io.BytesIO()
    shape = array.shape if length is None else (length,)
    header = {"descr": array.dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, header)
    return buffer.getvalue() + array.tobytes()


def test_archives_that_are_not_what_they_say_are_refused(variants):
    content = (variants("pairs").folder / "measurements.npz").read_bytes()
    about, flat = unpacked(variants("pairs"))
    text = np.frombuffer(json.dumps(about).encode(), np.uint8)
    deep = np.frombuffer(b"[" * 100_000 + b"]" * 100_000, np.uint8)
    pickled = io.BytesIO()
    np.save(pickled, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    good = {"about": _array(text), "coefficients": _array(flat)}
    assert len(measurements.from_bytes(_zipped(**good), NATIVE)) == 2
    hostile = [
        b"",
        b"PK",
        content[: len(content) // 2],
        _zipped(),
        _zipped(about=good["about"]),
        _zipped(coefficients=good["coefficients"]),
        _zipped(**good | {"coefficients": _array(flat, length=10**13)}),
        _zipped(**good | {"coefficients": _array(flat, length=len(flat) + 1)}),
        _zipped(**good | {"coefficients": b"not an array"}),
        _zipped(**good | {"coefficients": pickled.getvalue()}),
        _zipped(**good | {"about": pickled.getvalue()}),
        _zipped(**good | {"about": _array(deep)}),
        _zipped(**good | {"about": _array(text[:-1])}),
        _zipped(**good | {"about": _array(np.frombuffer(b"\xff\xfe{}", np.uint8))}),
        *(_zipped(**good | {"about": _array(np.frombuffer(t, np.uint8))}) for t in (b"null", b"{}", b"3", b'"a"')),
    ]
    for bad in hostile:
        with pytest.raises(InputError, match=r"^[^\n]+\.$"):
            measurements.from_bytes(bad, NATIVE)


def test_measurements_of_another_schema_are_refused(variants):
    content = (variants("pairs").folder / "measurements.npz").read_bytes()
    with pytest.raises(InputError, match="does not fit"):
        measurements.from_bytes(content, MIXED)
