"""datapackage.json and croissant.json, read by the tools that they are written for.

Each tool runs in a process of its own that must not open a connection, and looks at many folders there. What it says of
a folder that is wrong on purpose is the control.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from certsynth import Schema, release
from small import EVERY_KIND, MIXED, people, workers

LABELS = ["plain", "with, comma", 'with "quotes"', "ünï", "'single'", "007", "NA", "null", "true", "nan", "a;b", "<i>"]

ODD = Schema.parse(
    f"""
[table]
name = 'Q&A, "odd" <table>'

[[column]]
name = 'a, "b" / ü'
kind = "category"
values = {json.dumps(LABELS, ensure_ascii=False)}
other = true
missing = true

[[column]]
name = "n"
kind = "integer"
low = -5
high = 5
missing = true

[[column]]
name = "x"
kind = "number"
low = -1e-7
high = 1e20

[[column]]
name = "1st?"
kind = "ordinal"
values = ["1", "2", "3"]

[[column]]
name = "d"
kind = "date"
low = 1500-01-01
high = 2500-12-31
missing = true

[[column]]
name = "true"
kind = "boolean"
"""
)
"""Names and labels that need quotes, or look like something else."""


def odd(rows: int) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    days = np.datetime64("1500-01-01") + rng.integers(0, 365_000, rows).astype("timedelta64[D]")
    frame = pl.DataFrame(
        {
            ODD.names[0]: rng.choice([*LABELS, "unheard of"], rows),
            "n": rng.integers(-5, 6, rows),
            "x": 10 ** rng.uniform(-9, 20, rows),
            "1st?": rng.choice(["1", "2", "3"], rows),
            "d": days.astype("datetime64[ms]"),
            "true": rng.random(rows) < 0.5,
        }
    )
    gone = pl.Series(rng.random(rows) < 0.2)
    return frame.with_columns(
        pl.when(gone).then(None).otherwise(pl.col(name)).alias(name) for name in (ODD.names[0], "n", "d")
    )


TABLES: dict[str, tuple[Schema, Callable[[int], pl.DataFrame]]] = {
    "mixed": (MIXED, people),
    "every-kind": (EVERY_KIND, workers),
    "odd": (ODD, odd),
}
ROWS = 300


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    here = tmp_path_factory.mktemp("described")

    def folder(name: str) -> Path:
        if not (here / name).exists():
            schema, rows = TABLES[name]
            release(rows(ROWS), schema, epsilon=30, sparsity=1, mechanism="identity", seed=2, out=here / name)
        return here / name

    return folder


_ALONE = """
import json, os, sys, traceback, warnings
def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname"):
        raise RuntimeError("a connection was asked for")
sys.addaudithook(refuse)
warnings.simplefilter("ignore")
"""

_FRICTIONLESS = """
from frictionless import validate
def look(path):
    report = validate(path)
    errors = [error.message for error in report.errors] + [e.message for task in report.tasks for e in task.errors]
    return {
        "valid": report.valid,
        "errors": errors,
        "warnings": report.warnings + [warning for task in report.tasks for warning in task.warnings],
        "rows": {task.name: task.stats.get("rows") for task in report.tasks},
    }
"""

_CROISSANT = """
import mlcroissant
def look(path):
    data = mlcroissant.Dataset(path)
    rows = [{key: None if value != value else value for key, value in row.items()} for row in data.records("rows")]
    return {
        "warnings": sorted(data.metadata.ctx.issues.warnings),
        "sums": {file.id: file.sha256 for file in data.metadata.distribution},
        "rows": [{k: v.decode() if isinstance(v, bytes) else v for k, v in row.items()} for row in rows],
        "type": data.metadata.data_collection_type,
        "live": data.metadata.ctx.is_live_dataset,
    }
"""

_CONNECTING = """
import socket
def look(path):
    socket.create_connection(("localhost", 9))
"""

_EACH = """
for path in sys.argv[1:]:
    os.chdir(os.path.dirname(path))
    try:
        said = look(path)
    except Exception:
        said = {"failed": traceback.format_exc()}
    print("SAID", json.dumps(said, default=str))
"""


def asked(script: str, descriptions: Sequence[Path]) -> list[dict[str, Any]]:
    """What a tool says of each description, in one process."""
    command = [sys.executable, "-c", _ALONE + script + _EACH, *map(str, descriptions)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    said = [json.loads(line.removeprefix("SAID ")) for line in done.stdout.splitlines() if line.startswith("SAID ")]
    assert len(said) == len(descriptions)
    return said


def changed(folder: Path, target: Path, name: str, change: Callable[[dict[str, Any]], object]) -> Path:
    shutil.copytree(folder, target)
    description = json.loads((target / name).read_text("utf-8"))
    change(description)
    (target / name).write_text(json.dumps(description), "utf-8")
    return target / name


def test_frictionless_finds_both_tables_as_described(released):
    folders = [released(name) for name in TABLES]
    for name, folder, said in zip(
        TABLES, folders, asked(_FRICTIONLESS, [folder / "datapackage.json" for folder in folders]), strict=True
    ):
        assert "failed" not in said, (name, said)
        assert said["valid"], (name, said["errors"][:5])
        assert said["warnings"] == [], name
        assert said["rows"] == {"synthetic-csv": ROWS, "synthetic-parquet": ROWS}, name
        nulls = pl.read_parquet(folder / "synthetic.parquet").null_count().sum_horizontal()[0]
        assert name == "mixed" or nulls > 0, name


def _fields(package: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {field["name"]: field for field in package["resources"][0]["schema"]["fields"]}


UNFIT: dict[str, list[Callable[[dict[str, Any]], object]]] = {
    "datapackage.json": [
        lambda p: _fields(p)["age"]["constraints"].update(maximum=40),
        lambda p: _fields(p)["income"]["constraints"].update(minimum=0.4),
        lambda p: _fields(p)["income"]["constraints"].update(required=True),
        lambda p: _fields(p)["hired"]["constraints"].update(maximum="2005-01-01"),
        lambda p: _fields(p)["shift"]["constraints"].update(maximum="2020-01-01 00:00:00"),
        lambda p: _fields(p)["shift"].update(format="%d.%m.%Y %H:%M"),
        lambda p: _fields(p)["grade"]["constraints"].update(enum=["low", "high"]),
        lambda p: _fields(p)["region"]["constraints"]["enum"].remove("region 12"),
        lambda p: _fields(p)["member"].update(trueValues=["yes"], falseValues=["no"]),
        lambda p: _fields(p)["job"].update(type="integer"),
        lambda p: p["resources"][1].update(path="synthetic.orc"),
        lambda p: p["resources"].append({"name": "no-path"}),
    ],
    "croissant.json": [
        lambda c: c["distribution"][0].pop("sha256"),
        lambda c: c["distribution"][1].pop("encodingFormat"),
        lambda c: c["recordSet"][0]["field"][0].pop("dataType"),
        lambda c: c["recordSet"][0]["field"][0]["source"]["fileObject"].update({"@id": "other.parquet"}),
        lambda c: c["recordSet"][0]["field"][0]["source"]["extract"].update(column="unheard of"),
        lambda c: c.update({"@type": "sc:Book"}),
    ],
}
"""What makes a description one of another table."""


def test_frictionless_sees_a_description_that_does_not_fit(released, tmp_path):
    folder, file = released("every-kind"), "datapackage.json"
    wrong = [changed(folder, tmp_path / str(i), file, change) for i, change in enumerate(UNFIT[file])]
    for i, said in enumerate(asked(_FRICTIONLESS, wrong)):
        assert said.get("valid") is False, (i, said)


def test_mlcroissant_reads_the_rows_as_described(released):
    folders = [released(name) for name in TABLES]
    for (name, (schema, _)), folder, said in zip(
        TABLES.items(), folders, asked(_CROISSANT, [folder / "croissant.json" for folder in folders]), strict=True
    ):
        assert "failed" not in said, (name, said)
        warnings = [text for text in said["warnings"] if "datePublished" not in text and "license" not in text]
        assert warnings == [], name
        assert said["type"] == ["Synthetic data"], name
        assert said["live"] in (False, None), name
        assert said["sums"] == {file: _sum(folder / file) for file in ("synthetic.csv", "synthetic.parquet")}, name
        written = pl.read_parquet(folder / "synthetic.parquet")
        described = json.loads((folder / "croissant.json").read_text("utf-8"))["recordSet"][0]["field"]
        assert tuple(field["name"] for field in described) == schema.names
        for field in described:
            read = [row[field["@id"]] for row in said["rows"]]
            meant = written[field["name"]]
            texts = (
                meant.cast(pl.Datetime("us")).dt.to_string("%Y-%m-%d %H:%M:%S") if meant.dtype.is_temporal() else meant
            )
            assert [None if x == "NaT" else x for x in read] == texts.to_list(), (name, field["name"])


def _sum(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


def test_mlcroissant_sees_a_description_that_does_not_fit(released, tmp_path):
    folder, file = released("mixed"), "croissant.json"
    wrong = [changed(folder, tmp_path / str(i), file, change) for i, change in enumerate(UNFIT[file])]
    for i, said in enumerate(asked(_CROISSANT, wrong)):
        assert "failed" in said, (i, said)
        assert "a connection was asked for" not in said["failed"], (i, said)


def test_tools_that_ask_for_a_connection_would_be_seen(tmp_path):
    (said,) = asked(_CONNECTING, [tmp_path / "x"])
    assert "a connection was asked for" in said["failed"]


def test_croissant_says_that_it_is_synthetic_and_names_no_place_and_no_time(released):
    folder = released("mixed")
    said = json.loads((folder / "croissant.json").read_text("utf-8"))
    assert said["rai:hasSyntheticData"] is True
    assert said["isLiveDataset"] is False
    assert said["conformsTo"] == ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"]
    assert "epsilon 30" in said["description"]
    assert not {"license", "creator", "url", "datePublished", "dateCreated"} & set(said)
    assert str(folder.parent) not in json.dumps(said)
    for file in said["distribution"]:
        assert file["contentUrl"] == file["name"]
