"""No id of a person in anything that leaves: every command and reader, every way to fail, all that was printed or left.

Ids are read only to bound what each person contributes. Here all of them are canaries.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

from certsynth import Schema, certify, check, evaluate, release
from certsynth.algorithm.verify import verify
from certsynth.domain.persons import Persons
from certsynth.errors import CertsynthError
from certsynth.sources import chosen_rows, open_source, person_ids, persons
from small import NATIVE, native, raising
from test_canaries import CANARY, COMMANDS, ERRORS, here, run, scan, shown

__all__ = ["here"]  # the fixture

OF_PERSONS = replace(NATIVE, persons=Persons("who", 2))
WEIGHED = replace(NATIVE, persons=Persons("who", 3, "persons", "separate"))
PINNED: dict[str, Any] = {"resolution": 2, "mechanism": "identity", "rows": 20}


def table(rows: int = 60) -> pl.DataFrame:
    """Some rows have no person."""
    who = [None if i % 17 == 3 else f"{CANARY} {i % 23}" for i in range(rows)]
    return native(rows).with_columns(pl.Series("who", who, dtype=pl.String))


@pytest.fixture
def of_persons(here: Path) -> Path:
    (here / "schema.toml").write_text(OF_PERSONS.to_toml())
    (here / "good.csv").write_text("a,b,c,who\n" + "1,2,x,me\n3,,y,you\n" * 20)
    table().write_csv(here / "tables" / "people.csv")
    table().write_parquet(here / "tables" / "people.parquet")
    return here


@pytest.mark.parametrize("data", ["people.csv", "people.parquet"])
@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "schema"])
def test_no_id_where_nothing_fails(of_persons, caplog, command, data):
    code, _ = run(of_persons, caplog, command, data)
    assert code == 0


@pytest.mark.parametrize("fault", ["ragged", "no column of persons", "not UTF-8", "nobody"])
@pytest.mark.parametrize("command", ["release", "certify", "evaluate"])
def test_no_id_of_a_broken_file(of_persons, caplog, command, fault):
    content = {
        "ragged": f"a,b,c,who\n1,2,x,{CANARY}\n3,{CANARY}\n".encode(),
        "no column of persons": f"a,b,c,whom\n1,2,x,{CANARY}\n".encode(),
        "not UTF-8": f"a,b,c,who\n1,2,x,{CANARY}".encode() + b"\xff\n",
        "nobody": b"a,b,c,who\n1,2,x,\n",
    }[fault]
    (of_persons / "tables" / "people.csv").write_bytes(content)
    code, said = run(of_persons, caplog, command, "people.csv")
    assert code == 2 or command == "evaluate" or fault == "nobody"
    assert not code or len(said.splitlines()) == 1


FAILURES: dict[str, tuple[Any, str]] = {
    "numbering ids": (person_ids.PersonTable, "number"),
    "hashing rows": (chosen_rows, "hash_rows"),
    "choosing rows": (chosen_rows, "keep_copies"),
    "sorting rows": (chosen_rows, "_sort_rows"),
}


@pytest.mark.quick_cases(12)
@pytest.mark.parametrize("error", ERRORS)
@pytest.mark.parametrize("where", FAILURES)
def test_no_id_of_what_another_library_says(of_persons, caplog, monkeypatch, where, error):
    module, name = FAILURES[where]
    monkeypatch.setattr(module, name, raising(ERRORS[error]()))
    failed = 0
    for command in ("release", "certify"):
        code, said = run(of_persons, caplog, command, "people.csv")
        failed += code != 0
        if code:
            assert code == (130 if error == "KeyboardInterrupt" else 2), said
            assert len(said.splitlines()) == 1
            assert not (of_persons / "out").exists()
    assert failed, "the failure was never met"


def ways(folder: Path) -> dict[str, Any]:
    """The same table as frames and relations, and with ids that are categories or indices of something else."""
    frame = table()
    database = duckdb.connect()
    database.register("people", frame.to_arrow())
    database.execute("CREATE TABLE own AS SELECT * FROM people")
    return {
        "polars": frame,
        "lazy": frame.lazy(),
        "pandas": frame.to_pandas(),
        "pandas, categories": frame.to_pandas().astype({"who": "category"}),
        "arrow": frame.to_arrow(),
        "DuckDB": database.table("own"),
    }


WAYS = ("polars", "lazy", "pandas", "pandas, categories", "arrow", "DuckDB")


@pytest.mark.parametrize("schema", [OF_PERSONS, WEIGHED], ids=["rows", "persons"])
@pytest.mark.parametrize("way", WAYS)
def test_no_id_of_a_frame_or_relation(here, caplog, way, schema: Schema):
    data = ways(here)[way]
    made = release(data, schema, epsilon=1, out=here / "out", **PINNED)
    answers = [str(made.answer(question)) for question in ("mean(a)", 'fraction(c = "x")')]
    certified = certify(data, native(20), schema, epsilon=1)
    said = [repr(made), made._repr_html_(), *answers, str(verify(made)), str(certified.to_json()), repr(certified)]
    said += [repr(evaluate(data, native(20), schema)), caplog.text]
    scan(here, *said)


@pytest.mark.parametrize("odd", [[CANARY], {CANARY: 1}, object(), b"\xff" + CANARY.encode(), (CANARY,)], ids=type)
def test_no_id_of_an_odd_type_in_a_refusal(here, odd):
    who = np.empty(8, object)
    for i in range(8):
        who[i] = odd if i % 2 else f"{CANARY} {i}"
    frame = native(8).to_pandas().assign(who=pd.Series(who))
    calls = {
        "release": lambda: release(frame, OF_PERSONS, epsilon=1, **PINNED),
        "certify": lambda: certify(frame, native(8), OF_PERSONS, epsilon=1),
        "check": lambda: check(frame, OF_PERSONS),
    }
    for call in calls.values():
        said = refusal(call)
        assert CANARY not in said


def refusal(call: Callable[[], Any]) -> str:
    """All that an error shows; empty if there is none."""
    try:
        call()
    except CertsynthError as error:
        return shown(error)
    return ""


def test_nothing_that_holds_ids_or_rows_shows_them():
    ids = person_ids.PersonTable()
    ids.number(np.array([CANARY, CANARY + "!"], object))
    kept = persons.keep_rows(open_source(table()), NATIVE, Persons("who", 2))
    totals = kept.contributions()
    for held in (ids, kept, totals):
        assert CANARY not in repr(held) + str(held)
        assert not any(character.isdigit() for character in repr(held))
    with pytest.raises(TypeError):
        pickle.dumps(totals)
