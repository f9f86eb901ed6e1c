"""The certificate's share of the budget: chosen from public quantities if none is requested, recorded, verified."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from certsynth import plan, release
from certsynth.algorithm.task import Task
from certsynth.algorithm.verify import verify
from certsynth.artefact import Release
from certsynth.artefact.table import decoded_table
from certsynth.domain import Category, Ordered, Schema
from certsynth.planning import choice as choosing
from certsynth.planning import share as sharing
from certsynth.planning.cache import CACHE_VARIABLE
from certsynth.planning.share import CERTIFICATE_SHARES, settle_share
from certsynth.planning.tables import ORDINARY, make_up_table
from small import settled

PAIR = Schema((Ordered("a", low=0, high=40), Category("b", values=("x", "y"), missing=True)))
LEAST, MOST = CERTIFICATE_SHARES[0], CERTIFICATE_SHARES[-1]


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choosing, "RESOLUTIONS", (4, 8, 16))
    monkeypatch.setenv(CACHE_VARIABLE, "off")


def share_of(rows: int, schema: Schema = PAIR, **asked: Any) -> Fraction:
    return settle_share(Task(schema, settled(schema, **asked), rows)).settings.certificate_share


def rows_of(count: int) -> pl.DataFrame:
    made = decoded_table(PAIR, make_up_table(PAIR, count, kind=ORDINARY, rng=np.random.default_rng(5)))
    return pl.DataFrame({name: column.tolist() for name, column in made.items()})


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("budget", [{"epsilon": 1}, {"epsilon": 1, "delta": "1e-6"}], ids=str)
def test_few_rows_need_a_larger_share_than_many(budget: dict[str, Any], neighbours: str) -> None:
    shares = [share_of(rows, neighbours=neighbours, **budget) for rows in (1_000, 30_000, 10**7)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > shares[-1] == LEAST


@pytest.mark.parametrize(
    "asked",
    [
        {"certificate_share": "0.05"},
        {"certificate_share": "0.4"},
        {"certificate_share": 0},
        {"projection": "drawn"},
        {"preset": "paper"},
        {"sparsity": 1},
    ],
    ids=str,
)
def test_a_requested_share_is_kept_and_other_methods_have_their_own(asked: dict[str, Any]) -> None:
    task = Task(PAIR, settled(PAIR, epsilon=1, **asked), 100)
    assert settle_share(task) == task


def test_a_settled_share_is_settled_for_good() -> None:
    once = settle_share(Task(PAIR, settled(PAIR, epsilon=1), 100))
    assert once.settings.certificate_share > LEAST
    assert settle_share(Task(PAIR, once.settings, 10**7)).settings == once.settings


@pytest.mark.parametrize("found", ["99/100", "0", "1", "-1/20", None, 3, ["1/20"], "a tenth"])
def test_a_hostile_cache_cannot_name_another_share(tmp_path: Path, monkeypatch, found: Any) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    true = share_of(100, epsilon=1)
    (file,) = tmp_path.iterdir()
    stored = json.loads(file.read_text())
    file.write_text(json.dumps(stored | {"answer": {"share": found}}))
    assert share_of(100, epsilon=1) == true


def test_the_share_is_remembered(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    first = share_of(100, epsilon=1)
    monkeypatch.setattr(sharing, "_best_share", None)
    assert share_of(100, epsilon=1) == first
    for other in ({"epsilon": 2}, {"confidence": "0.9", "epsilon": 1}, {"neighbours": "add-remove", "epsilon": 1}):
        with pytest.raises(TypeError):
            share_of(100, **other)


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
def test_the_share_is_recorded_and_verified(tmp_path: Path, neighbours: str) -> None:
    """`plan` and `release` choose the same one; all steps together cost what was asked for."""
    rows, asked = 1_000, {"epsilon": 1, "neighbours": neighbours}
    made = release(rows_of(rows), PAIR, seed=1, rows=200, out=tmp_path / "release", **asked)
    share = Fraction(made.document["asked"]["certificate_share"])
    assert share in CERTIFICATE_SHARES
    if neighbours == "replace-one":
        assert float(share) == plan(PAIR, rows=rows, **asked).certificate_share
    spent = [(step["on"], Fraction(step["epsilon"])) for step in made.document["privacy"]["spent"]]
    assert sum(cost for _, cost in spent) == 1
    assert dict(spent)["errors of the rows"] == share
    assert all(check["ok"] for check in verify(Release.load(tmp_path / "release")))
