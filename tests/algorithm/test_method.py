"""A method is one file and one line in the registry: then Python, the command line and `verify` know it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from certsynth.algorithm.declaration import checked
from certsynth.algorithm.method import method_for, method_named
from certsynth.algorithm.options import ReleaseOptions
from certsynth.algorithm.registry import DEFAULT, METHODS, method_names
from small import cube

TESTS = Path(__file__).parents[1]

SCHEMA = """
[[column]]
name = "a"
kind = "integer"
low = 0
high = 7

[[column]]
name = "b"
kind = "integer"
low = 0
high = 7
"""

PROGRAM = """
import json
import sys
from certsynth.algorithm import registry

registry.METHODS["independent"] = registry.Entry("toy_method", "INDEPENDENT", "mechanism")

from certsynth.cli import main

for arguments in json.loads(sys.argv[1]):
    try:
        main(arguments)
    except SystemExit as end:
        if end.code:
            raise
    print("END", flush=True)
"""


def certsynth(*commands: Sequence[str], cwd: Path) -> list[str]:
    """What the command line prints for each command, in a process where the registry has one line more."""
    path = os.pathsep.join([str(TESTS), str(TESTS.parent / "src")])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(commands)],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": path, "CERTSYNTH_CACHE": "off", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split("END\n")[: len(commands)]


@pytest.mark.slow
def test_a_toy_method_is_one_file_and_one_line(tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(SCHEMA)
    values = np.arange(400) % 8
    (tmp_path / "data.csv").write_text("a,b\n" + "".join(f"{x},{x}\n" for x in values))
    asked = ("--schema", "schema.toml", "--epsilon", "20", "--seed", "1", "--json")
    toy = ("--mechanism", "independent")
    size = ("--schema", "schema.toml", "--rows", "400", "--epsilon", "20", "--json")
    *printed, told = certsynth(
        ("release", "data.csv", *toy, "--out", "r", *asked),
        ("release", "data.csv", "--out", "usual", *asked),
        ("verify", "r", "--json"),
        ("plan", *toy, *size),
        ("release", "--help"),
        cwd=tmp_path,
    )
    made, usual, checked, planned = map(json.loads, printed)
    assert made["certificate"]["bound"] > 0.2  # columns that are one became independent, and the certificate says so
    assert usual["certificate"]["bound"] < 0.1
    assert checked["ok"], checked
    assert "independent" in told
    assert planned["choice"]["predicted_bound"] > 0


def left_open(**options: Any) -> dict[str, Any]:
    """Options as they are after checking, with nothing asked for but `options`."""
    return checked(ReleaseOptions, {"epsilon": 1} | options)


@pytest.mark.parametrize("name", METHODS)
def test_methods_go_by_their_names(name: str) -> None:
    assert method_named(name).name == name
    option = METHODS[name].option
    schema = cube(3)
    assert method_for(schema, left_open()).name == DEFAULT
    if option is not None:
        assert name in method_names(option)
        assert method_for(schema, left_open(**{option: name})).name == name


def test_a_mechanism_that_is_asked_for_goes_before_the_preset() -> None:
    asked = left_open(mechanism="low-dimensional", preset="paper")
    assert method_for(cube(3), asked).name == "low-dimensional"
