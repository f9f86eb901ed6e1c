"""The record of a release: to JSON and back, strictly, and as its JSON Schema has it."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import certsynth.artefact
from certsynth import release
from certsynth.artefact.document import certificate_schema, to_json
from certsynth.errors import InputError
from certsynth.record import form
from certsynth.record.record import Record, StepRecord
from small import NATIVE, native

WAYS: dict[str, dict[str, Any]] = {
    "epsilon": {"epsilon": 3},
    "rho, hidden": {"rho": "0.1", "neighbours": "add-remove", "rows": 150},
    "paper, workload": {"epsilon": 3, "preset": "paper", "subsets": [["a"], ["b", "c"]]},
}
VALIDATOR = jsonschema.Draft202012Validator(certificate_schema())


@pytest.fixture(scope="module")
def records() -> dict[str, Record]:
    return {way: release(native(60), NATIVE, resolution=2, seed=1, **asked).record for way, asked in WAYS.items()}


@pytest.mark.parametrize("way", WAYS)
def test_a_record_is_the_same_after_a_round_trip(records, way):
    made = records[way]
    document = json.loads(to_json(form.to_json(made)))
    assert form.from_json(Record, document) == made
    assert to_json(form.to_json(form.from_json(Record, document))) == to_json(document)
    assert VALIDATOR.is_valid(document)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(part, (*path, key))


def mutated(document: Any, path: tuple[Any, ...], change: Any) -> Any:
    other = copy.deepcopy(document)
    holder = other
    for key in path[:-1]:
        holder = holder[key]
    change(holder, path[-1])
    return other


TEXTS = ("", "0", "1/3", "0.5", "x", "1\n", (12.0).hex())
REPLACED = (None, True, -1, 0, 1, 0.25, 2, 10**400, 1e301, *TEXTS, [], {}, ["a"], [3])


def accepted(document: Any) -> bool:
    try:
        form.from_json(Record, document)
    except ValueError:
        return False
    return True


CONDITIONS = ("if", "oneOf", "allOf", "contains", "maxContains")


def unconditional(schema: Any) -> Any:
    """The schema without conditions across fields, which the reader leaves to `verify`."""
    if isinstance(schema, dict):
        return {key: unconditional(part) for key, part in schema.items() if key not in CONDITIONS}
    return [unconditional(part) for part in schema] if isinstance(schema, list) else schema


@pytest.mark.slow
@pytest.mark.parametrize(
    "way", [way if way == "epsilon" else pytest.param(way, marks=pytest.mark.slow) for way in WAYS]
)
def test_the_reader_accepts_what_the_schema_does(records, way):
    """Of one change each: another value, a key too few or too many. Fractions must be in lowest terms as well."""
    document = form.to_json(records[way])
    validator = jsonschema.Draft202012Validator(unconditional(certificate_schema()))
    rng, tried, refused = np.random.default_rng(5), 0, 0
    for path in list(places(document))[::3]:
        changes = [lambda h, k: h.__delitem__(k)] if isinstance(path[-1], str) else []
        picks = rng.choice(len(REPLACED), 5, replace=False)
        changes += [lambda h, k, v=REPLACED[i]: h.__setitem__(k, v) for i in picks]
        changes.append(lambda h, k: h.update(surprise=1) if isinstance(h, dict) else h.append({}))
        for change in changes:
            other = mutated(document, path, change)
            tried += 1
            refused += not accepted(other)
            assert accepted(other) == validator.is_valid(other), path
    assert tried > 500
    assert refused > tried / 2


@pytest.mark.parametrize(("key", "text"), [("end", "2/4"), ("end", "1/0"), ("hub", "10/5")])
def test_a_rational_has_one_form(records, key, text):
    document = form.to_json(records["epsilon"])
    document["recompute"][key] = text
    with pytest.raises(ValueError, match=rf"^recompute\.{key} is not"):
        form.from_json(Record, document)


def test_a_complaint_names_the_place_and_no_value(records):
    document = form.to_json(records["epsilon"])
    document["privacy"]["spent"][0]["scale"] = "\x1b[31m"
    with pytest.raises(ValueError, match=r"^privacy\.spent\[0\]\.scale is not what it can be$"):
        form.from_json(Record, document)
    document = form.to_json(records["epsilon"]) | {"\x1b[31m": 1}
    with pytest.raises(ValueError, match=r"^the whole has a key that does not belong there$"):
        form.from_json(Record, document)


def test_a_folder_with_another_form_is_not_read(tmp_path):
    made = release(native(60), NATIVE, epsilon=3, resolution=2, out=tmp_path / "out")
    file = tmp_path / "out" / "certificate.json"
    file.write_text(json.dumps(made.document | {"ledger": 5}))
    with pytest.raises(InputError, match=r"form of a certificate: ledger is not what it can be\.$"):
        certsynth.Release.load(tmp_path / "out")


def test_what_is_left_out_is_none(records):
    (step, *_) = records["rho, hidden"].privacy.spent
    assert isinstance(step, StepRecord)
    assert step.epsilon is None
    assert isinstance(step.rho, Fraction)
    assert "epsilon" not in form.to_json(step)


def test_records_are_frozen_and_numbers_are_plain(records):
    for made in records.values():
        with pytest.raises(dataclasses.FrozenInstanceError):
            made.ledger = "0"
        for value in leaves(made):
            assert type(value) in (str, int, float, bool, Fraction, type(None)), value


def leaves(value: Any) -> Iterator[Any]:
    if dataclasses.is_dataclass(value):
        for _, part in form.said_of(value):
            yield from leaves(part)
    elif isinstance(value, tuple):
        for part in value:
            yield from leaves(part)
    else:
        yield value


def test_the_schema_beside_the_package_is_that_of_the_record():
    """Written by `python docs/reference/make_certificate.py`."""
    stored = Path(certsynth.artefact.__file__).with_name("certificate.schema.json").read_bytes()
    assert stored == to_json(certificate_schema())
