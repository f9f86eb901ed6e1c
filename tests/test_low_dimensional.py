"""Releases for statistics of all columns at once, of rows on a set of unknown dimension: from end to end."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import ot
import polars as pl
import pytest
from click.testing import CliRunner

from certsynth import Release, Schema, evaluate, plan, release
from certsynth.algorithm.low_dimensional.adaptation import choose_grid
from certsynth.algorithm.low_dimensional.grids import possible_grids
from certsynth.algorithm.sample import sample
from certsynth.algorithm.task import Task
from certsynth.artefact import measurements
from certsynth.cli import main
from certsynth.errors import InputError
from certsynth.mechanisms.samplers import Noise
from certsynth.mechanisms.sparse import SparseMeasurement
from certsynth.mechanisms.spending import Spending
from certsynth.queries.occupied import count_occupied, joint_grid
from certsynth.queries.tally import in_memory
from small import EVERY_KIND, SURE, FixedOutput, LyingNoise, NoNoise, cube, emitted, failures_allowed, settled, workers


def points(rows: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    return rng.random((5, columns))[rng.choice(5, rows, p=[0.4, 0.3, 0.15, 0.1, 0.05])]


def curve(rows: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    along = rng.random((rows, 1))
    return 0.5 + 0.45 * np.sin(np.pi * along * np.arange(1, columns + 1))


def surface(rows: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    u, v = rng.random((2, rows, 1))
    turns = np.arange(columns)
    return 0.5 + 0.45 * np.sin(np.pi * (u * (1 + turns % 2) + v * (turns % 3)))


def filled(rows: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    return rng.random((rows, columns))


def frame(values: np.ndarray) -> pl.DataFrame:
    return pl.DataFrame({f"x{j}": column for j, column in enumerate(values.T)})


@pytest.mark.parametrize(("kind", "dimension"), [(points, 0), (curve, 1), (surface, 2), (filled, 3)])
def test_the_grid_of_the_least_score_is_that_of_the_rows_dimension(kind, dimension):
    """100,000 rows of three columns at ε = 1. What is chosen privately has its price."""
    schema, rows = cube(3), 100_000
    table = kind(rows, 3, np.random.default_rng(1))
    settings = settled(schema, mechanism="low-dimensional", epsilon=1)
    grids = possible_grids(Task(schema, settings, rows))
    found = count_occupied(schema, [joint_grid(schema, grid.resolution) for grid in grids], [list(table.T)])
    scores = [grid.score(len(each.places)) for grid, each in zip(grids, found, strict=True)]
    assert grids[int(np.argmin(scores))].dimension == dimension
    spending = Spending(settings.privacy.charge(settings.protection), settings.budget, what="", account=None)
    made = choose_grid(in_memory(list(table.T)), Task(schema, settings, rows), spending=spending)
    (spent,) = made.spent
    assert spent.cost.spent.amount == settings.privacy.budget.amount / 10
    assert [c.resolution for c in made.choice.designs] == [grid.resolution for grid in grids]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Release:
    table = frame(curve(5_000, 4, np.random.default_rng(0)))
    out = tmp_path_factory.mktemp("low") / "out"
    return release(table, cube(4), epsilon=1, confidence=SURE, mechanism="low-dimensional", out=out, seed=1)


def test_every_check_of_a_release_succeeds(made: Release) -> None:
    assert isinstance(made.measurement, SparseMeasurement)
    assert [check for check in made.verify() if not check["ok"]] == []
    assert made.document["certificate"]["plug_in"] == {}
    assert "law of" in made.document["certificate"]["no_plug_in"]
    assert made.certificate.kind == "direct"
    assert made.certificate.subsets[0][0] == ("x0", "x1", "x2", "x3")
    assert made.document["privacy"]["epsilon"] == "1"


def test_the_certificate_covers_the_true_loss_in_all_columns(made: Release) -> None:
    table = frame(curve(5_000, 4, np.random.default_rng(0)))
    true = evaluate(table, emitted(made), cube(4), sparsity=4)
    assert true.lower <= made.certificate.bound
    assert true.upper > made.certificate.bound / 8  # and is not far above it, but for a chance of e⁻³⁰


def test_what_is_written_is_read_back(made: Release) -> None:
    assert made.folder is not None
    back = Release.load(made.folder).measurement
    assert isinstance(back, SparseMeasurement)
    assert np.array_equal(back.places, made.measurement.places)  # type: ignore[attr-defined]
    assert np.array_equal(back.coefficients[0], made.measurement.coefficients[0])
    assert back.above == made.measurement.above  # type: ignore[attr-defined]


def test_statistics_of_all_columns_have_answers(made: Release) -> None:
    table = curve(5_000, 4, np.random.default_rng(0))
    found = made.answer("mean(x0)")
    assert found.low <= table[:, 0].mean() <= found.high
    whole = made.answer(lambda *x: np.max(x, axis=0), columns=["x0", "x1", "x2", "x3"], lipschitz=1, bounds=(0, 1))
    assert whole.low <= table.max(axis=1).mean() <= whole.high


def test_new_rows_have_the_bound_by_way_of_the_released_rows(made: Release) -> None:
    new = sample(made, 100)
    assert new.certificate is None  # the law of the error is unknown, so there is no plug-in certificate
    assert new.bound >= made.certificate.bound


def _changed(made: Release, folder: Path, **arrays: Any) -> list[str]:
    """Names of the checks that fail on a copy whose noisy counts were changed; checksums are right."""
    assert made.folder is not None
    shutil.copytree(made.folder, folder)
    with np.load(folder / "measurements.npz") as found:
        np.savez_compressed(folder / "measurements.npz", **{**found, **arrays})
    from certsynth.artefact.folder import SUMS, digest

    lines = [line.split("  ")[1] for line in (folder / SUMS).read_text().splitlines()]
    (folder / SUMS).write_text("".join(f"{digest(folder / name)}  {name}\n" for name in lines))
    try:
        return [check["name"] for check in Release.load(folder).verify() if not check["ok"]]
    except InputError:
        return ["load"]


def test_changed_counts_are_seen(made: Release, tmp_path: Path) -> None:
    assert isinstance(made.measurement, SparseMeasurement)
    places, values = made.measurement.places, made.measurement.coefficients[0]
    low = values.copy()
    low[0] = made.measurement.above
    wrong: list[dict[str, Any]] = [
        {"places": places[::-1]},
        {"places": places[:-1]},
        {"places": np.append(places[:-1], 2**61)},
        {"places": np.append(places[:-1], places[-2])},
        {"coefficients": low},
        {"coefficients": values[:-1], "places": places[:-1]},
    ]
    for number, arrays in enumerate(wrong):
        assert _changed(made, tmp_path / str(number), **arrays) == ["load"], arrays


def test_an_archive_of_few_cells_that_claims_all_is_refused(made: Release) -> None:
    """`places` without a threshold, and a threshold without `places`."""
    content = measurements.to_bytes(made.measurements, made.schema)
    assert measurements.is_as_written(content, made.measurements, made.schema)
    about = json.loads(measurements._about_bytes(made.measurements, made.schema))
    for key in ("above", "kept"):
        import io

        without = [{k: v for k, v in about[0].items() if k != key}]
        buffer = io.BytesIO()
        np.savez_compressed(
            buffer,
            about=np.frombuffer(json.dumps(without).encode(), np.uint8),
            coefficients=made.measurement.coefficients[0],
            places=made.measurement.places,  # type: ignore[attr-defined]
        )
        with pytest.raises(InputError, match="does not fit"):
            measurements.from_bytes(buffer.getvalue(), made.schema)


# ------------------------------------------------------------ coverage


STEPS = Schema.parse(
    "\n".join(f'[[column]]\nname = "x{j}"\nkind = "integer"\nlow = 0\nhigh = 4' for j in range(3))
    + '\n[[column]]\nname = "c"\nkind = "category"\nvalues = ["a", "b"]'
)


def true_loss(first: pl.DataFrame, second: pl.DataFrame) -> float:
    """W1 in all columns, by a solver of others."""

    def placed(table: pl.DataFrame) -> np.ndarray:
        numbers = [table[f"x{j}"].to_numpy() / 4 for j in range(3)]
        return np.stack([*numbers, (table["c"] == "a").to_numpy().astype(float)], axis=1)

    a, b = placed(first), placed(second)
    return float(ot.emd2([], [], np.abs(a[:, None] - b[None]).max(axis=2)))


@pytest.mark.quick_cases(1)
@pytest.mark.parametrize("mechanism", ["low-dimensional", "low-dimensional-l1"])
def test_the_certificate_holds_as_often_as_it_says(mechanism):
    """60 whole releases at confidence 0.9 against the exact loss; noise 25 times as wide as it says must fail."""

    def failures(runs: int, noise: Noise | None) -> int:
        failed = 0
        for run in range(runs):
            rng = np.random.default_rng(run)
            t = rng.integers(0, 5, 80)
            table = pl.DataFrame(
                {"x0": t, "x1": 4 - t, "x2": np.minimum(t, 2), "c": np.where(rng.random(80) < 0.3, "a", "b")}
            )
            made = release(
                table, STEPS, epsilon=4, mechanism=mechanism, resolution=5, confidence="0.9", noise=noise, rows=80
            )
            failed += true_loss(table, emitted(made)) > made.certificate.bound
        return failed

    allowed = failures_allowed(60, 0.1)
    assert failures(60, None) <= allowed
    assert failures(60, LyingNoise(60)) > allowed


# ------------------------------------------------------------ what an onlooker sees


def test_neighbours_with_the_same_noisy_counts_give_the_same_release():
    """One row moves between two cells that hold others: with the same noise everything that comes out is the same."""
    schema = cube(4)
    first = np.repeat(np.random.default_rng(0).random((6, 4)), 5, axis=0)
    second = first.copy()
    second[0] = first[-1]
    seen = []
    for table in (first, second):
        made = release(
            frame(table), schema, epsilon=1, mechanism="low-dimensional", resolution=9, seed=3, noise=FixedOutput()
        )
        document = {k: v for k, v in made.document.items() if k != "recompute"}
        seen.append((document, {n: c.tolist() for n, c in made.table.items()}, made.measurement.places.tolist()))  # type: ignore[attr-defined]
    assert seen[0] == seen[1]


@pytest.mark.parametrize("mechanism", ["low-dimensional", "low-dimensional-l1"])
@pytest.mark.parametrize(
    ("neighbours", "rows"), [("replace-one", 1), ("replace-one", 2), ("add-remove", 0), ("add-remove", 1)]
)
def test_tables_with_hardly_a_row_work(mechanism, neighbours, rows):
    asked = {"mechanism": mechanism, "neighbours": neighbours, "epsilon": 1, "rows": 50}
    made = release(workers(rows), EVERY_KIND, **asked, noise=NoNoise())  # real noise may hide that a bound says nothing
    assert made.certificate.bound == 1.0
    assert len(made.rows[0]) == 50


# ------------------------------------------------------------ what can be asked for


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"sparsity": 1}, "all columns at once"),
        ({"subsets": [["x0", "x1"]]}, "all columns at once"),
        ({"delta": "1e-6"}, "Laplace"),
        ({"rho": "0.1", "epsilon": None}, "Laplace"),
        ({"projection": "particles"}, "projection"),
        ({"loss": "path"}, "loss"),
        ({"public": frame(np.zeros((3, 2)))}, "no use for `public`"),
        ({"preset": "paper"}, "preset"),
        ({"candidates": 3}, "candidates"),
        ({"certificate_share": 0}, "certificate_share"),
        ({"certificate_share": "0.95"}, "nothing for the rows"),
        ({"mechanism": "low-dimension"}, "low-dimensional"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(asked, said):
    table = frame(np.zeros((3, 2)))
    with pytest.raises(InputError, match=said):
        release(table, cube(2), **({"epsilon": 1, "mechanism": "low-dimensional"} | asked))


@pytest.mark.parametrize("columns", [10, 120])
def test_a_grid_whose_cells_cannot_be_numbered_is_refused_before_rows_are_read(columns):
    """Also if their number is beyond all floats."""
    with pytest.raises(InputError, match="more than can be numbered"):
        release("no such file.csv", cube(columns), epsilon=1, mechanism="low-dimensional", resolution=1024)


def test_plan_and_release_speak_of_the_same_grids(made: Release) -> None:
    planned = plan(cube(4), rows=5_000, epsilon=1, mechanism="low-dimensional")
    assert [each.resolution for each in planned.candidates] == [c["resolution"] for c in made.document["compared"]]
    assert {each.dimension for each in planned.candidates} >= {0, 1, 4}
    assert planned.choice == planned.candidates[-1]
    assert planned.certificate_share == float(made.record.asked.certificate_share)
    (chosen,) = [each for each in planned.candidates if each.resolution == made.document["release"]["resolution"]]
    assert chosen.low / 2 < made.certificate.bound < 2 * chosen.high


def test_the_command_line_makes_plans_and_tells_them(tmp_path: Path, made: Release) -> None:
    schema, table, out = tmp_path / "schema.toml", tmp_path / "table.csv", tmp_path / "out"
    schema.write_text(cube(3).to_toml())
    frame(surface(3000, 3, np.random.default_rng(0))).write_csv(table)
    runner = CliRunner()
    asked = ["--schema", str(schema), "--epsilon", "1", "--mechanism", "low-dimensional"]
    told = runner.invoke(main, ["plan", *asked, "--rows", "3000"], catch_exceptions=False)
    assert told.exit_code == 0
    assert "a surface (2)" in " ".join(told.stdout.split())
    done = runner.invoke(main, ["release", str(table), *asked, "--out", str(out), "--verbose"], catch_exceptions=False)
    assert done.exit_code == 0
    assert "for rows of dimension" in done.stdout
    assert "no plug-in certificate" in done.stdout or "plug-in certificate (" in done.stdout
    checked = runner.invoke(main, ["verify", str(out), "--json"], catch_exceptions=False)
    assert json.loads(checked.stdout)["ok"] is True
    page = (out / "report.html").read_text()
    assert "Chosen privately" in page
