"""The release folder: whole or absent, checkable without the private rows, and silent about them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import certsynth.pipeline as pipeline
from certsynth import Release, Schema, evaluate, release
from certsynth.artefact import measurements
from certsynth.artefact.folder import write_folder
from certsynth.domain import Ordered
from certsynth.errors import InputError, TooLarge, UnsafeNoise
from certsynth.report import render_report
from small import MIXED, FixedOutput, NoNoise, emitted, people

QUICK = {"epsilon": 2, "resolution": 4, "seed": 3}


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
    assert [c["name"] for c in checks] == ["files", "rows", "privacy", "plug-in certificate", "bound", "report"]
    assert all(c["ok"] for c in checks), checks


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
    """Bounds with which a written number, read back, is another in its last bit, and may be in another cell."""
    odd = Schema(
        tuple(Ordered(name=n, kind="number", low=a, high=b) for n, a, b in (("x", 4.12, 46.0), ("y", 18.22, 1013.417)))
    )
    frame = pl.DataFrame({"x": np.linspace(4, 46, 500), "y": np.linspace(18, 1013, 500)})
    moved = 0
    for resolution in (3, 8, 16):
        made = release(frame, odd, epsilon=5, resolution=resolution, out=tmp_path / str(resolution))
        again = Release.load(tmp_path / str(resolution))
        assert all(c["ok"] for c in again.verify())
        for column, mine, theirs in zip(odd, made.rows, again.rows, strict=True):
            assert np.array_equal(mine, theirs)
            assert again.table[column.name].tolist() == made.table[column.name].tolist()
            moved += (column.clean(column.decode(mine)) != mine).sum()
    assert moved > 0


@pytest.mark.parametrize(
    "name",
    ["synthetic.parquet", "synthetic.csv", "certificate.json", "measurements.npz", "report.html", "datapackage.json"],
)
def test_a_changed_byte_is_seen(folder, tmp_path, name):
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in folder.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / name).write_bytes(bytes(content))
    try:
        checks = Release.load(copy).verify()
    except InputError:
        return  # it could not even be read
    assert not all(c["ok"] for c in checks)


def _tampered(folder: Path, tmp_path: Path, change) -> list[dict]:
    """Checks of a copy whose certificate was changed, and whose checksums were made to fit."""
    document = json.loads((folder / "certificate.json").read_text())
    change(document)
    files = {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "SHA256SUMS"}
    write_folder(tmp_path / "forged", files | {"certificate.json": json.dumps(document).encode()})
    return Release.load(tmp_path / "forged").verify()


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
        (lambda d: d.pop("recompute"), "plug-in certificate"),
        (lambda d: d["recompute"].update(draws=10**12), "plug-in certificate"),
    ],
)
def test_a_forged_certificate_with_fitting_checksums_is_seen(folder, tmp_path, change, check):
    checks = {c["name"]: c["ok"] for c in _tampered(folder, tmp_path, change)}
    assert checks["files"]
    assert not checks[check]


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
    monkeypatch.setattr(pipeline, "open_source", lambda *a, **k: opened.append(a))
    with pytest.raises(
        TooLarge, match=r"[\d,]+ cells, about .* GB .* more than the .* GB at hand: lower the resolution"
    ):
        release("private.csv", MIXED, epsilon=1, resolution=1024, sparsity=3)
    with pytest.raises(TooLarge, match="GB"):
        release("private.csv", MIXED, epsilon=1, memory=1000)
    with pytest.raises(InputError, match="exists already"):
        release("private.csv", MIXED, epsilon=1, out=Path(__file__))
    assert opened == []


def test_noise_made_for_tests_is_never_written(tmp_path):
    made = release(people(50), MIXED, noise=FixedOutput(), **QUICK)
    with pytest.raises(UnsafeNoise, match="test noise"):
        made.save(tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_nothing_but_the_noisy_integers_crosses(monkeypatch, neighbours):
    """Tables that share nothing but their length give the same bytes once the noisy vectors are the same."""
    monkeypatch.setattr(pipeline.secrets, "randbits", lambda bits: 7)
    seen = []
    other = people(200, seed=1).with_columns(pl.lit(3).alias("age"), pl.lit("CANARY").alias("sex"))
    for frame in (people(200), other):
        told: list[tuple] = []
        made = release(
            frame,
            MIXED,
            noise=FixedOutput(),
            neighbours=neighbours,
            progress=lambda *event, told=told: told.append(event),
            **QUICK,
        )
        files = [
            json.dumps(made.document),
            measurements.to_bytes(made.measurement, MIXED),
            render_report(made.document, MIXED, made.table),
            emitted(made).write_csv(),
        ]
        seen.append((files, told, repr(made)))
    assert seen[0] == seen[1]
    assert "CANARY" not in str(seen)


def test_the_number_of_rows_is_hidden_under_add_remove(tmp_path):
    canary = 7919
    release(people(canary), MIXED, out=tmp_path / "out", neighbours="add-remove", rows=500, **QUICK)
    number = re.compile(rf"(?<![\d.])(?:{canary}|{canary:,})(?!\d)")
    for path in (tmp_path / "out").iterdir():
        assert not number.search(path.read_bytes().decode("latin-1")), path.name
    assert number.search(f'"rows": {canary},')
    assert Release.load(tmp_path / "out").measurement.estimate()[1] != canary


def test_the_printed_budget_is_what_the_mechanisms_returned():
    made = release(people(100), MIXED, certificate_share="0.1", candidates=2, **QUICK)
    spent = {part["on"]: Fraction(part["epsilon"]) for part in made.document["privacy"]["spent"]}
    assert sum(spent.values()) == 2
    assert spent["choosing among 2 tables"] == Fraction(1, 10)
    assert spent["loss of the rows"] == Fraction(3, 20)
    assert made.document["privacy"]["epsilon"] == "2"


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_no_row_or_one_row_works_with_a_vacuous_certificate(rows, neighbours, tmp_path):
    asked = {"neighbours": neighbours, "rows": 20, "epsilon": "0.1", "resolution": 2}
    assert release(people(rows), MIXED, noise=NoNoise(), **asked).certificate.bound == 1.0
    made = release(people(rows), MIXED, out=tmp_path / "out", **asked)
    assert made.certificate.bound <= 1.0
    assert all(c["ok"] for c in Release.load(tmp_path / "out").verify())


def test_one_column_and_one_cell_work():
    made = release(people(50), MIXED, epsilon=1, resolution=1, columns=["age"], confidence="0.999999")
    assert made.certificate.bound <= 1
    assert evaluate(people(50), emitted(made), MIXED, columns=["age"]).lower <= made.certificate.bound


@pytest.mark.parametrize("asked", [{"preset": "paper"}, {"certificate_share": 0, "mechanism": "identity"}])
def test_a_release_that_costs_nothing_is_written_and_says_so(tmp_path, asked):
    """One cell holds every row, whatever they are: no noise is needed, and nothing is spent."""
    made = release(people(20), MIXED, epsilon=1, resolution=1, columns=["age"], out=tmp_path / "out", **asked)
    assert made.document["privacy"]["epsilon"] == "0"
    assert made.certificate.bound == pytest.approx(0.5, abs=0.03)  # half a unit of discretisation, and the shift
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
        ({"sparsity": 7}, "sparsity can be 1 to 6"),
        ({"sparsity": 0}, "sparsity can be 1 to 6"),
        ({"resolution": 0}, "from 1 to 1024"),
        ({"confidence": 1}, "below 1"),
        ({"certificate_share": 1}, "below 1"),
        ({"rows": 0}, "from 1 to"),
        ({"neighbours": "nearby"}, "replace-one or add-remove"),
        ({"mechanism": "magic"}, "one of"),
        ({"projection": "public"}, "--public"),
        ({"loss": "huge"}, "one of"),
        ({"preset": "mine"}, "one of paper"),
        ({"columns": ["agee"]}, "'agee' is not in the schema"),
        ({"candidates": 0}, "from 1 to 100"),
    ],
)
def test_bad_arguments_are_refused_with_the_rule(arguments, rule):
    with pytest.raises(InputError, match=rule):
        release(people(5), MIXED, **({"epsilon": 1} | arguments))


def test_rows_of_a_release_are_not_in_the_order_of_the_points():
    made = release(people(500), MIXED, **QUICK)
    assert not (np.diff(np.asarray(made.rows[0])) >= 0).all()
