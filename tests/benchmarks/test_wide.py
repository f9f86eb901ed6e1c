"""The race on wide tables: its measures against slow oracles, that it goes on, and that its page is true."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from many.tables import Column, Rows, Table
from race.contenders import Contender
from wide import measures, page, run
from wide.contenders import CONTENDERS, setting

COLUMNS = (
    Column("a", "integer", 0, 63, missing=True),
    Column("b", "category", values=("0", "1", "2")),
    Column("c", "ordinal", values=("0", "1", "2", "3")),
    Column("d", "category", values=("0", "1")),
)


def drawn(seed: int, rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"a": pd.array(rng.integers(0, 64, rows), "Int64"), "b": rng.integers(0, 3, rows)})
    frame["c"] = rng.integers(0, 4, rows)
    frame["d"] = (frame["a"].astype(float) / 64 + frame["c"] / 4 + rng.normal(0, 0.1, rows) > 1).astype(int)
    frame.loc[rng.random(rows) < 0.1, "a"] = pd.NA
    return frame


SMALL = Table("adult", "Small", COLUMNS, lambda: Rows(drawn(1, 300), drawn(2, 200)), target="d")


# ------------------------------------------------------------ measures


def listed(frame: pd.DataFrame) -> list[tuple[int | None, ...]]:
    return [tuple(None if pd.isna(x) else int(x) for x in row) for row in frame.itertuples(index=False)]


def slow_variation(first: list[Any], second: list[Any]) -> float:
    ours, theirs = Counter(first), Counter(second)
    return sum(abs(ours[cell] / len(first) - theirs[cell] / len(second)) for cell in ours | theirs) / 2


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("measured")
    for name, frame in (("private", drawn(1, 300)), ("synthetic", drawn(3, 250))):
        frame.to_parquet(folder / f"{name}.parquet", index=False)
    return measures.measure(SMALL, SMALL.rows(), folder / "private.parquet", folder / "synthetic.parquet", lattice=16)


def test_variations_of_pairs_and_triples_are_what_counting_says(found: dict[str, Any]) -> None:
    rows = [[(None if r[0] is None else r[0] // 2, *r[1:]) for r in listed(drawn(*x))] for x in ((1, 300), (3, 250))]
    for size, name in ((2, "pairs"), (3, "triples")):
        slow = [
            slow_variation(*([tuple(row[j] for j in subset) for row in side] for side in rows))
            for subset in itertools.combinations(range(4), size)
        ]
        assert found[name] == pytest.approx(np.mean(slow))
        if size == 2:
            assert found["pairs largest"] == pytest.approx(max(slow))


def test_the_workload_error_counts_every_value_of_triples_with_the_target(found: dict[str, Any]) -> None:
    rows = [listed(drawn(*x)) for x in ((1, 300), (3, 250))]
    slow = [
        2 * slow_variation(*([(row[a], row[b], row[3]) for row in side] for side in rows))
        for a, b in itertools.combinations(range(3), 2)
    ]
    assert found["workload"] == pytest.approx(np.mean(slow))


def test_range_queries_are_what_counting_says_and_missing_values_are_in_no_range(found: dict[str, Any]) -> None:
    def is_inside(row: tuple[int | None, ...], box: measures.Box) -> bool:
        for place, allowed in zip(box.columns, box.sides, strict=True):
            value = row[place]
            if isinstance(allowed, frozenset):
                if value not in allowed:
                    return False
            elif value is None or not allowed[0] <= value <= allowed[1]:
                return False
        return True

    boxes = measures.random_boxes(COLUMNS)
    rows = [listed(drawn(*x)) for x in ((1, 300), (3, 250))]
    slow = [
        abs(np.subtract(*(sum(is_inside(row, box) for row in side) / len(side) for side in rows))) for box in boxes[:50]
    ]
    sides = [measures.codes(SMALL, drawn(*x)) for x in ((1, 300), (3, 250))]
    assert measures.box_errors(*sides, boxes[:50]) == pytest.approx(slow)
    assert found["ranges"] == pytest.approx(np.mean(measures.box_errors(*sides, boxes)))


def test_boxes_depend_on_the_schema_alone_and_use_all_columns() -> None:
    boxes = measures.random_boxes(COLUMNS, 200)
    assert boxes == measures.random_boxes(COLUMNS, 200)
    assert all(len(set(box.columns)) == 3 for box in boxes)
    assert {place for box in boxes for place in box.columns} == {0, 1, 2, 3}
    ends = [box.sides[box.columns.index(2)] for box in boxes if 2 in box.columns]
    assert {end for low, high in ends for end in (low, high)} == {0, 1, 2, 3}


def test_all_triples_are_taken_of_few_columns_and_a_fixed_sample_of_many() -> None:
    assert len(measures.triples(14)) == 364
    sample = measures.triples(30)
    assert len(set(sample)) == measures.SAMPLED_TRIPLES
    assert sample == measures.triples(30)
    assert all(len(set(triple)) == 3 and max(triple) < 30 for triple in sample)


def test_logistic_regression_learns_the_target_from_real_rows_and_nothing_from_noise() -> None:
    training, held_out = drawn(1, 600), drawn(2, 300)
    assert measures.logistic_area(SMALL, training, held_out) > 0.85
    shuffled = training.assign(d=training["d"].sample(frac=1, random_state=1).to_numpy())
    assert measures.logistic_area(SMALL, shuffled, held_out) < 0.75
    assert measures.logistic_area(SMALL, training.assign(d=0), held_out) == 0.5


def test_rows_that_are_the_real_ones_have_no_loss(tmp_path: Path) -> None:
    file = tmp_path / "rows.parquet"
    drawn(1, 300).to_parquet(file, index=False)
    same = measures.measure(SMALL, SMALL.rows(), file, file, lattice=16)
    assert {same[name] for name in ("W1 largest", "W1 mean", "pairs", "triples", "workload", "ranges")} == {0}


# ------------------------------------------------------------ runs


def test_rows_of_a_contender_are_rounded_into_the_schema_and_a_code_after_the_last_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "made.csv"
    path.write_text("d,a,b,c\n1,64,2,3\n0.0,,1,0\n1,-3.4,0,7\n0,12.6,1.0,2\n", encoding="utf-8")
    made, replaced = run.read_made(path, SMALL)
    assert replaced == 0
    assert listed(made) == [(None, 2, 3, 1), (None, 1, 0, 0), (0, 0, 3, 1), (13, 1, 2, 0)]


def test_a_few_missing_values_of_a_column_without_any_are_replaced_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "made.csv"
    path.write_text("a,b,c,d\n1,,2,1\n" + "1,2,2,1\n" * 199, encoding="utf-8")
    made, replaced = run.read_made(path, SMALL)
    assert replaced == 1
    assert set(made["b"]) == {2}
    path.write_text("a,b,c,d\n1,,2,1\n" + "1,2,2,1\n" * 9, encoding="utf-8")
    with pytest.raises(ValueError, match="10% of column b is missing"):
        run.read_made(path, SMALL)


def test_a_runner_gets_labels_as_codes_and_is_told_of_missing_values() -> None:
    asked = [run.to_json(column) for column in COLUMNS]
    assert asked[0] == {"name": "a", "kind": "integer", "low": 0, "high": 63, "missing": True}
    assert asked[1] == {"name": "b", "kind": "category", "low": 0, "high": 2}
    assert (asked[2]["kind"], asked[2]["high"]) == ("integer", 3)


def test_the_budget_of_a_setting_is_that_of_the_race() -> None:
    rho = setting(CONTENDERS["opendp-aim-delta"], "1", None)
    assert rho is not None
    assert rho["rho"] == 0.03055
    target = setting(CONTENDERS["certsynth-target"], "1", "d")
    assert target is not None
    assert target["options"] == {"neighbours": "add-remove", "delta": "1e-5", "target": "d"}
    assert setting(CONTENDERS["certsynth-target"], "1", None) is None


def test_epsilon_one_of_all_tables_comes_first_and_wide_tables_have_no_other() -> None:
    order = list(run.order(["adult", "fire"], ["1", "3"], 2))
    assert order == [
        ("adult", "1", 1),
        ("fire", "1", 1),
        ("adult", "1", 2),
        ("fire", "1", 2),
        ("adult", "3", 1),
        ("adult", "3", 2),
    ]


@pytest.fixture
def track(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, int]]:
    """A race on a small table in which the attempts are noted, and give back the private rows."""
    ran: list[tuple[str, str, int]] = []

    def noted(contender: Contender, request: dict[str, Any], *, work: Path, **other: Any) -> dict[str, Any]:
        ran.append((contender.key, str(request["epsilon"]), request["seed"]))
        if contender.key == "smartnoise-mst":
            return {"outcome": "failed", "error": "no luck"}
        Path(request["out"]).write_bytes(Path(request["data"]).read_bytes())
        return DONE | {"tables": {"": request["out"]}}

    monkeypatch.setitem(run.TABLES, "adult", SMALL)
    monkeypatch.setattr(run, "attempt", noted)
    return ran


DONE = {
    "outcome": "done",
    "seconds": 2.0,
    "wall": 3.0,
    "cpu": 4.0,
    "peak MB": 512.0,
    "spent": {"epsilon": 1.0, "delta": 1e-5},
    "versions": {"fake": "1"},
}


def test_a_race_goes_on_where_it_was_and_repeats_what_it_is_asked_to(track: list, tmp_path: Path) -> None:
    go = {"limit": 9, "lattice": 8, "results": tmp_path / "results", "build": tmp_path / "build", "epsilons": ["1"]}
    names = ["certsynth-delta", "dpmm-aim", "smartnoise-mst"]
    run.race(["adult"], names, seeds=2, **go)
    # A slow contender has one seed.
    assert track == [(key, "1.0", 1) for key in names] + [("certsynth-delta", "1.0", 2), ("smartnoise-mst", "1.0", 2)]
    run.race(["adult"], names, seeds=2, **go)
    assert len(track) == 5
    run.race(["adult"], names, seeds=1, again=True, **go)
    assert track[5:] == [("smartnoise-mst", "1.0", 1)]
    run.race(["adult"], ["certsynth-delta"], seeds=1, redo=True, **go)
    assert track[6:] == [("certsynth-delta", "1.0", 1)]
    kept = json.loads((tmp_path / "results" / "adult.json").read_text(encoding="utf-8"))
    assert len(kept["runs"]) == 5
    assert kept["real"]["logistic"] > 0.85


def test_rows_that_were_made_are_measured_again_without_a_run(track: list, tmp_path: Path) -> None:
    go = {"limit": 9, "lattice": 8, "results": tmp_path / "results", "build": tmp_path / "build", "epsilons": ["1"]}
    run.race(["adult"], ["dpmm-mst"], seeds=1, **go)
    first = json.loads((tmp_path / "results" / "adult.json").read_text(encoding="utf-8"))
    (tmp_path / "results" / "adult.json").unlink()
    run.race(["adult"], ["dpmm-mst"], seeds=1, **go)
    assert len(track) == 1
    assert json.loads((tmp_path / "results" / "adult.json").read_text(encoding="utf-8")) == first


# ------------------------------------------------------------ the page


def results(tmp_path: Path, **losses: float) -> Path:
    """A run of each contender in which all losses are the same, and areas 1 less that."""
    runs = []
    for key, loss in losses.items():
        table = {name: page.shown_loss(name, loss) for name in measures.NAMES}
        runs.append({"contender": key.replace("_", "-"), "epsilon": "1", "seed": 1} | DONE | {"tables": {"": table}})
    real = {"boosting": 0.9, "logistic": 0.9}
    document = {"table": "adult", "rows": 300, "lattice": None, "columns": 4, "real": real}
    machine = {"cores": 2, "memory GB": 8, "system": "Linux", "threads of a run": 2}
    path = tmp_path / "adult.json"
    path.write_text(json.dumps(document | {"machine": machine, "runs": runs}), encoding="utf-8")
    return tmp_path


def test_the_page_says_in_bold_what_we_lose(tmp_path: Path) -> None:
    text = page.page(results(tmp_path, certsynth_delta=0.2, certsynth_target=0.05, dpmm_aim=0.1, dpmm_mst=0.3))
    assert "against dpmm AIM, dpmm MST: ahead of all in 0 of 9 measures. **Behind: " in text
    assert "range queries (0.200, dpmm AIM 0.100)" in text
    assert "**The comparison is not complete: no result at this ε of OpenDP AIM, SmartNoise MST.**" in text
    assert "**Not compared with OpenDP AIM, SmartNoise MST.**" in text
    assert "gradient boosting (0.800, dpmm AIM 0.900)" in text
    assert "| range queries | **0.200** | 0.0500 | 0.100 (dpmm AIM) | not run |" in text
    assert "| gradient boosting | **0.800** | 0.950 | 0.900 (dpmm AIM) | not run |" in text


def test_the_page_says_that_we_are_ahead_where_we_are(tmp_path: Path) -> None:
    text = page.page(results(tmp_path, certsynth_delta=0.05, dpmm_aim=0.1, certsynth_independent=0.01))
    assert "ahead of all in 9 of 9 measures." in text
    assert "**Behind" not in text
    assert "Adult, not run: certsynth (ε = 0.3, 3, 10); certsynth, target (ε = 1, 0.3, 3, 10)" in text


def test_the_page_tells_what_did_not_work(tmp_path: Path) -> None:
    folder = results(tmp_path, certsynth_delta=0.05, dpmm_mst=0.1)
    document = json.loads((folder / "adult.json").read_text(encoding="utf-8"))
    late = {"contender": "dpmm-aim", "epsilon": "1", "seed": 1, "outcome": "late", "error": "stopped after 9 s"}
    wide = document | {"table": "fire", "runs": [*document["runs"], late | {"cpu": 8.0, "peak MB": 2048.0}]}
    (folder / "fire.json").write_text(json.dumps(wide), encoding="utf-8")
    text = page.page(folder)
    assert "| dpmm AIM | late: stopped after 9 s | 8 | 2.0 |" in text
    assert "dpmm AIM, 1 runs: late: `stopped after 9 s`" in text
    assert "| OpenDP AIM | not run here |" in text


def test_the_committed_page_is_what_the_committed_results_make() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.page(), "run python -m wide.page with benchmarks on the path"


def test_committed_results_hold_no_paths_or_addresses() -> None:
    for path in page.RESULTS.glob("*.json"):
        text = path.read_text(encoding="utf-8")
        assert "://" not in text, path.name
        assert re.search(r"(?<![\w.])/(?:home|work|tmp|opt|usr|root)/", text) is None, path.name
