"""`make` installs with uv where that works, and else with pip. Both are stand-ins that note their calls."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

PYTHON = """#!/bin/sh
echo "python $*" >> calls
case "$*" in
  "-m pip config list") echo "$PIP_SETTINGS" ;;
  "-m pip install"*" uv") [ -n "$UV_STATUS" ] || exit 1; cp uv .venv/bin/uv ;;
esac
"""
UV = """#!/bin/sh
echo "uv $*" >> calls
exit "$UV_STATUS"
"""


def installed(folder: Path, target: str, *, uv: str, settings: str = "") -> list[str]:
    """What was called, in order. `uv` is the status with which it ends; "" if the index does not have it."""
    shutil.copy(ROOT / "Makefile", folder)
    (folder / "pyproject.toml").touch()
    (folder / ".venv/bin").mkdir(parents=True)
    for file, text in ((".venv/bin/python", PYTHON), ("uv", UV)):
        (folder / file).write_text(text, encoding="utf-8")
        (folder / file).chmod(0o755)
    given = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "PIP_", "UV_"))}
    subprocess.run(
        ["make", target], cwd=folder, env=given | {"UV_STATUS": uv, "PIP_SETTINGS": settings}, check=True, timeout=60
    )
    assert (folder / target).exists()
    return (folder / "calls").read_text(encoding="utf-8").splitlines()


def by_pip(calls: list[str], what: str) -> bool:
    return any(call.startswith("python -m pip install") and call.endswith(what) for call in calls)


def by_uv(calls: list[str], what: str) -> bool:
    return any(call.startswith("uv pip install") and call.endswith(what) for call in calls)


pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


def test_uv_installs_the_package_and_the_tools(tmp_path):
    calls = installed(tmp_path, ".venv/.tools", uv="0")
    for what in ("--editable .", "--group experiments"):
        assert by_uv(calls, what)
        assert not by_pip(calls, what)


@pytest.mark.parametrize("uv", ["", "1"], ids=["no uv", "uv fails"])
def test_pip_installs_the_package_and_the_tools_if_uv_does_not(tmp_path, uv):
    calls = installed(tmp_path, ".venv/.tools", uv=uv)
    for what in ("--editable .", "pip>=25.1", "--group experiments"):
        assert by_pip(calls, what)
    assert by_uv(calls, "--editable .") == bool(uv)


@pytest.mark.parametrize("setting", ["global.index-url='https://mirror.example'", ":env:.no-index='1'"])
def test_an_index_that_only_pip_knows_is_respected(tmp_path, setting):
    calls = installed(tmp_path, ".venv/.package", uv="0", settings=setting)
    assert by_pip(calls, "--editable .")
    assert not by_pip(calls, " uv")
    assert not by_uv(calls, "--editable .")


def test_a_further_index_leaves_the_default_one_to_uv(tmp_path):
    calls = installed(tmp_path, ".venv/.package", uv="0", settings="global.extra-index-url='https://more.example'")
    assert by_uv(calls, "--editable .")
