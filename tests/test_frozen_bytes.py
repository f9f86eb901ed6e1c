"""Releases and the output of commands are the same, byte for byte, as when their digests were stored.

If a change is meant, `python tests/frozen_bytes.py --write` stores the new digests. If it is not, run
`python tests/frozen_bytes.py --keep DIR` on both sides of the change and compare the two folders with `diff -r`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import frozen_bytes
from certsynth.cli import main
from frozen_cases import Case, Released, cases

CASES = cases()
LEFT_OUT = {"quiet", "memory"}
"""Options that change no byte."""


QUICK_STEP = 3
"""One of this many cases is run by `make test`, all of them by `make test-all`: a change of shape runs the script."""


@pytest.mark.quick_cases(7)
@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=pytest.mark.slow if case.slow or place % QUICK_STEP else ())
        for place, case in enumerate(CASES)
    ],
)
def test_every_byte_is_as_it_was(case: Case) -> None:
    environment, stored = frozen_bytes.load()
    now = frozen_bytes.environment()
    if other := [name for name in environment.keys() | now.keys() if environment.get(name) != now.get(name)]:
        pytest.skip(f"the digests were stored with another {', '.join(sorted(other))}")
    found = frozen_bytes.digests(frozen_bytes.run(case).outputs)
    changed = frozen_bytes.differences(stored.get(case.name, {}), found)
    assert not changed, "\n".join(
        [f"case {case.name!r}:", *changed, f"see them: python tests/frozen_bytes.py --only '{case.name}' --keep DIR"]
    )


def test_the_stored_digests_are_those_of_the_cases() -> None:
    _, stored = frozen_bytes.load()
    assert list(stored) == [case.name for case in CASES]
    assert len({case.name for case in CASES}) == len(CASES)


def test_a_changed_byte_a_missing_file_and_a_new_one_are_named() -> None:
    stored = frozen_bytes.digests({"a": b"1", "b": b"2", "c": b"3"})
    found = frozen_bytes.digests({"a": b"1", "b": b"4", "d": b"3"})
    assert frozen_bytes.differences(stored, found) == ["b differs", "c is missing", "d is new"]
    assert frozen_bytes.differences(stored, stored) == []


def test_noise_is_the_same_in_every_run_and_changes_with_its_turn() -> None:
    case = next(case for case in CASES if case.name == "one column")
    first, second = (frozen_bytes.run(case).outputs for _ in range(2))
    assert first == second
    assert b'"bound": 1.0' not in first["out/certificate.json"]


def test_every_command_and_every_option_of_release_and_every_mechanism_is_frozen() -> None:
    """What the sources say is read, so that nothing has to be run."""
    text = "".join(Path(frozen_bytes.__file__).with_name(name).read_text() for name in ("frozen_cases.py",))
    for name in main.commands:
        assert f'"{name}"' in text or f'"{name} ' in text, name
    asked = " ".join(case.options for case in CASES if isinstance(case, Released))
    for option in main.commands["release"].params:
        flag = option.opts[0]
        if option.name in {"data", "schema_file", "out", "seed", "as_json", "quiet", "engine", "sql", "attach"}:
            continue  # given by every case, or by the case of a query, or without an effect on bytes
        assert flag in asked, flag
        for choice in getattr(option.type, "choices", ()):
            if choice not in ("replace-one",):
                assert choice in asked.split(), choice
