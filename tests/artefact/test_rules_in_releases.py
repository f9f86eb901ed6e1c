"""Whole releases with rules: emitted rows obey, anybody can check it, and whether private rows do is no matter."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from forging import copied

import certsynth.algorithm.release as releasing
from certsynth import Release, plan, release
from certsynth.domain import Rule, Schema
from certsynth.errors import SchemaError
from small import MIXED, FixedOutput, emitted, people

RULES = (
    Rule(impossible="age < 3 and income is not missing", why="children have no income"),
    Rule(require="income <= 50*age + 200"),
    Rule(when="age < 7", require="education = 'low'"),
    Rule(impossible="employed and since < '2020-02-01'"),
)
RULED = replace(MIXED, rules=RULES)
QUICK: dict[str, Any] = {"epsilon": 2, "resolution": 4, "mechanism": "identity", "seed": 3}
PROJECTIONS = ["particles", "drawn"]


def violators(made: Release) -> int:
    """Rows that break a rule, said once more in plain Python."""
    return sum(
        (row["age"] < 3 and row["income"] is not None)
        or (row["income"] is not None and row["income"] > 50 * row["age"] + 200)
        or (row["age"] < 7 and row["education"] != "low")
        or (row["employed"] and str(row["since"]) < "2020-02-01")
        for row in emitted(made).to_dicts()
    )


@pytest.mark.parametrize("projection", PROJECTIONS)
def test_emitted_rows_obey_and_the_folder_alone_shows_it(projection: str, tmp_path: Path) -> None:
    data = people(600)
    made = release(data, RULED, projection=projection, out=tmp_path / "out", **QUICK)
    assert violators(made) == 0
    free = release(data, MIXED, projection=projection, sparsity=1, **QUICK)
    assert violators(free) > 0, "control: without rules they do not"
    loaded = Release.load(tmp_path / "out")
    assert loaded.schema == RULED
    checks = loaded.verify()
    assert all(check["ok"] for check in checks), checks
    (rows,) = [check for check in checks if check["name"] == "rows"]
    assert "all values and all rows allowed by the schema" in rows["detail"]


def test_a_release_whose_rows_break_a_rule_is_seen(tmp_path: Path) -> None:
    made = release(people(300), MIXED, out=tmp_path / "out", columns=["age", "income"], **QUICK)
    broken = replace(made.schema, rules=(Rule(require="age >= 0"), RULES[1]))
    checks = {c["name"]: c for c in copied(made, tmp_path / "copy", schema_toml=broken.to_toml().encode())}
    assert not checks["rows"]["ok"]
    assert checks["rows"]["detail"] == "synthetic.parquet: a row violates rule 2 of the schema"


def test_several_candidates_obey() -> None:
    made = release(people(200), RULED, candidates=2, columns=["age", "education", "employed"], **QUICK)
    assert [rule.when for rule in made.schema.rules] == ["age < 7"], "rules on other columns are left out"
    assert not any(r["age"] < 7 and r["education"] != "low" for r in emitted(made).to_dicts())


def test_private_rows_that_break_rules_change_nothing() -> None:
    """With the same noisy integers and draws, a table that obeys and one that breaks every rule give one release."""
    good = people(400).filter(pl_obeys())
    bad = good.with_columns(age=0, income=999.0, employed=True, since=good["since"].min())
    first, second = (release(data, RULED, noise=FixedOutput(), certificate_share=0, **QUICK) for data in (good, bad))
    assert emitted(first).equals(emitted(second))
    assert first.document == second.document
    assert violators(first) == 0


def pl_obeys() -> Any:
    import polars as pl

    income, age = pl.col("income"), pl.col("age")
    return (income.is_null() | ((age >= 3) & (income <= 50 * age + 200))) & ~pl.col("employed")


CONTRADICTION = replace(MIXED, rules=(Rule(require="age > 5"), Rule(impossible="employed"), Rule(require="age < 5")))


def test_a_contradiction_is_refused_before_the_data_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []
    monkeypatch.setattr(releasing, "open_source", lambda *a, **k: opened.append(a))
    with pytest.raises(SchemaError, match="rules 1 and 3 contradict each other"):
        release("private.csv", CONTRADICTION, **QUICK)
    assert opened == []
    with pytest.raises((TypeError, AttributeError)):  # control: without the contradiction the spy is reached
        release("private.csv", replace(CONTRADICTION, rules=CONTRADICTION.rules[:2]), **QUICK)
    assert opened


def test_a_contradiction_is_refused_by_the_plan() -> None:
    with pytest.raises(SchemaError, match="rules 1 and 3 contradict each other"):
        plan(CONTRADICTION, rows=1000, epsilon=1)


def test_a_selection_of_columns_can_resolve_a_contradiction() -> None:
    made = release(people(50), CONTRADICTION, columns=["sex", "employed"], **QUICK)
    assert made.schema.rules == (Rule(impossible="employed"),)
    assert not any(emitted(made)["employed"])


def test_one_row_and_no_private_row_obey() -> None:
    for rows in (1, 20):
        made = release(people(0), RULED, rows=rows, neighbours="add-remove", columns=["age", "education"], **QUICK)
        assert not any(r["age"] < 7 and r["education"] != "low" for r in emitted(made).to_dicts())


def test_a_schema_with_rules_is_read_back_from_the_release(tmp_path: Path) -> None:
    made = release(people(50), RULED, out=tmp_path / "out", columns=["age", "income"], **QUICK)
    assert made.folder is not None
    assert Schema.load(made.folder / "schema.toml").rules == RULES[:2]


def test_rules_of_columns_that_are_left_out_are_named(tmp_path: Path) -> None:
    """They cannot be applied: the record, the report and what Python shows of the release say so."""
    said = "rules 1 and 2 of the schema mention a column that was left out (income), and were not applied"
    data = people(200)
    kept = [name for name in RULED.names if name != "income"]
    for chosen in ({"columns": kept}, {"subsets": [[name] for name in kept]}):
        made = release(data, RULED, **QUICK, **chosen)  # type: ignore[arg-type]
        told = [(rule.number, rule.columns) for rule in made.record.release.omitted_rules or ()]
        assert told == [(1, ("income",)), (2, ("income",))]
        assert repr(made).endswith(f"; {said})")
        assert said in made._repr_html_()
    saved = made.save(tmp_path / "out")
    assert f"<p>R{said[1:]}.</p>" in (tmp_path / "out" / "report.html").read_text()
    assert all(check["ok"] for check in saved.verify())
    assert Release.load(tmp_path / "out").record.release.omitted_rules == made.record.release.omitted_rules


def test_where_all_rules_are_applied_nothing_is_said_of_others() -> None:
    made = release(people(200), RULED, sparsity=1, **QUICK)
    assert made.record.release.omitted_rules is None
    assert "omitted_rules" not in made.document["release"]
    assert "left out" not in repr(made)
