"""Nothing that a user can set makes the released noise repeat (P10), and noise of tests is never written (P11)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import numpy as np

from certsynth.cli import main
from certsynth.mechanisms import samplers

ROOT = Path(__file__).parents[2]
RELEASE = ("release", "people.csv", "--schema", "schema.toml", "--resolution", "4", "--mechanism", "identity")

STEERED = """
import random, sys
random.seed(1)
import numpy as np
np.random.seed(1)
np.random.default_rng = lambda seed=None, fixed=np.random.default_rng: fixed(1)
from certsynth.cli import main
for line in sys.argv[1:]:
    try:
        main(line.split())
    except SystemExit as end:
        if end.code:
            raise
"""

BUDGETS = ("--epsilon 0.5", "--rho 0.01")


def noisy(town: Path, out: str) -> list[np.ndarray]:
    """The noisy integers of a release for each budget, one after the other in a process whose every other generator
    starts from the same place.
    """
    environment = os.environ | {"PYTHONHASHSEED": "0", "SEED": "1", "OPENDP_SEED": "1", "CERTSYNTH_SEED": "1"}
    environment |= {"NUMBA_SEED": "1", "OPENDP_TEST_FEATURES": "contrib", "PYTHONPATH": os.pathsep.join(sys.path)}
    lines = [" ".join((*RELEASE, budget, "--seed 1 --quiet --out", f"{out}{j}")) for j, budget in enumerate(BUDGETS)]
    command = [sys.executable, "-c", STEERED, *lines]
    done = subprocess.run(command, cwd=town, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = []
    for j in range(len(BUDGETS)):
        with np.load(town / f"{out}{j}" / "measurements.npz") as arrays:
            found.append(np.asarray(arrays["coefficients"]))
    return found


def test_no_seed_of_any_kind_makes_noise_repeat(town):
    for first, second in zip(noisy(town, "first"), noisy(town, "second"), strict=True):
        assert first.shape == second.shape
        assert not np.array_equal(first, second)


def test_the_one_option_with_a_seed_says_that_noise_has_none():
    options = [
        (name, option)
        for name, command in main.commands.items()
        for option in command.params
        if isinstance(option, click.Option) and re.search("seed|random|noise|reproduc", f"{option.name} {option.opts}")
    ]
    assert [(name, option.name) for name, option in options] == [("release", "seed")]
    assert "The noise has no seed" in str(options[0][1].help)


def test_no_environment_variable_is_read_but_those_that_are_known():
    """None of them steers noise: a cache of plans, where it lies by default, whether errors are shown, and what the
    terminal can show."""
    sources = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    reads = re.findall(r"(?:environ(?:\.get\(|\[)|getenv\()\s*([A-Za-z_.\"']+)", sources)
    assert {name.strip("\"'") for name in reads} <= {
        *("DEBUG", "CACHE_VARIABLE", "XDG_CACHE_HOME"),
        *("COLUMNS", "NO_COLOR", "TERM"),
    }
    assert len(reads) >= 3  # the scan sees them


def test_opendp_is_asked_for_no_feature_that_weakens_its_noise():
    source = Path(samplers.__file__).read_text()
    features = set(re.findall(r"enable_features\(([^)]*)\)", source))
    assert features <= {'"contrib"'}


def test_no_file_of_a_release_holds_what_would_make_its_noise_repeat(released):
    """The one seed in it is of simulated noise, from which the certificate is recomputed."""
    document = json.loads((released / "release" / "certificate.json").read_text())

    def seeds(value: object, path: str = "") -> list[str]:
        if isinstance(value, dict):
            return [found for key, each in value.items() for found in seeds(each, f"{path}/{key}")]
        if isinstance(value, list):
            return [found for each in value for found in seeds(each, path)]
        return [path] if "seed" in path else []

    assert seeds(document) == ["/recompute/seed"]
    with np.load(released / "release" / "measurements.npz") as arrays:
        assert sorted(arrays) == ["about", "coefficients"]
        for part in json.loads(arrays["about"].tobytes()):
            assert not [key for key in part if re.search("seed|state|random", key)]
