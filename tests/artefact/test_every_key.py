"""Every key of certificate.json: its form, and what `verify` finds when it alone is changed."""

from __future__ import annotations

import copy
import importlib.util
import itertools
import json
import pathlib
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import forging
import pytest
from forging import VARIANTS

from certsynth import Release, release
from certsynth.algorithm import recompute, verify
from certsynth.artefact.document import certificate_schema, form_problem, read_document, read_json
from certsynth.base.progress import silent
from certsynth.errors import CertsynthError, InputError
from small import EVERY_KIND, workers

SCHEMA = certificate_schema()

Path = tuple[str | int, ...]


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """A part of the schema with what it refers to."""
    while "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        schema = {key: value for key, value in schema.items() if key != "$ref"} | SCHEMA["$defs"][name]
    return schema


def keys(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every key of a certificate with its part of the schema; entries of a list are `[]`."""
    for option in [schema, *schema.get("anyOf", [])]:
        option = resolved(option)
        for name, part in option.get("properties", {}).items():
            yield f"{path}.{name}".removeprefix("."), part
            yield from keys(resolved(part), f"{path}.{name}")
        if "items" in option:
            yield from keys(option["items"], f"{path}[]")


KEYS = {path: resolved(part) | part for path, part in keys(SCHEMA)}


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from leaves(part, (*path, key))
    elif isinstance(value, list):
        for i, part in enumerate(value):
            yield from leaves(part, (*path, i))
    else:
        yield path, value


def is_alike(path: Path) -> bool:
    """Whether a leaf is in a later entry of a list whose entries are all computed in the same way."""
    return path[:2] != ("privacy", "spent") and any(isinstance(part, int) and part > 0 for part in path)


def named(path: Path) -> str:
    text = "".join("[]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
    return text.removesuffix("[]")  # entries of a list of texts or numbers go by the list's name


def changed(document: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    """A document that shares with the first what is not on the path."""
    other: Any = copy.copy(document)
    other[path[0]] = value if len(path) == 1 else changed(other[path[0]], path[1:], value)
    return other


def others(path: Path, value: Any) -> list[Any]:
    """Values of the same form that say something else."""
    part = KEYS[named(path)] if named(path) in KEYS else KEYS[named(path[:-1])]
    if "const" in part:
        return []
    if "enum" in part:
        return [each for each in part["enum"] if each != value]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + max(1, value // 10)] + ([value - 1] if 1 < value < 1000 else [])
    if isinstance(value, float):
        return [value + 1e-3 if value < 0.99 else value - 1e-3, value / 2 + 0.3]
    if isinstance(value, str) and "/" in value:
        return [str(Fraction(value) * Fraction(9, 10)), str(Fraction(value) * Fraction(11, 10))]
    if isinstance(value, str) and value.startswith("0x"):
        return [(float.fromhex(value) * 0.9).hex()]
    if named(path) == "recompute.seed":
        return ["0" * 32]
    if isinstance(value, str) and value.replace(".", "").isdigit():
        return [f"0{value[value.index('.') :]}1" if "." in value else "0.5", f"1{value}"]
    return [f"{value}x"] if isinstance(value, str) else []


def test_every_key_has_a_sentence_and_says_how_it_is_verified():
    assert len(KEYS) > 90
    for path, part in KEYS.items():
        assert part["description"].endswith("."), path
        assert part["x-verify"] in ("recomputed", "cross-checked", "on trust"), path


def test_every_object_is_closed_and_the_schema_is_one():
    import jsonschema

    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$id"] == "urn:certsynth:certificate:3"

    def walk(part: Any) -> Iterator[dict[str, Any]]:
        if isinstance(part, dict):
            yield part
            for each in part.values():
                yield from walk(each)
        elif isinstance(part, list):
            for each in part:
                yield from walk(each)

    objects = [part for part in walk(SCHEMA) if part.get("type") == "object"]
    assert len(objects) > 10
    assert all(part["additionalProperties"] is False for part in objects)


@pytest.mark.quick_cases(9)
@pytest.mark.parametrize("name", VARIANTS)
def test_every_release_has_the_form_of_a_certificate(variants, name):
    document = json.loads((variants(name).folder / "certificate.json").read_text())
    assert form_problem(document) is None
    assert form_problem(document | {"ledger": None}) is None
    assert form_problem(document | {"ledger": "0123456789abcdef" * 4}) is None


@pytest.mark.quick_cases(4)
@pytest.mark.parametrize("asked", [{}, {"certificate_share": 0}, {"rho": "0.5", "epsilon": None}], ids=str)
@pytest.mark.parametrize("columns", [["grade", "job", "colour"], ["job", "colour"], ["income", "hired", "member"]])
def test_releases_of_columns_of_every_kind_have_it_and_verify(tmp_path, columns, asked):
    options = {"epsilon": 2, "resolution": 3, "mechanism": "identity", "seed": 3} | asked
    release(workers(100), EVERY_KIND, columns=columns, out=tmp_path / "out", **options)
    checks = Release.load(tmp_path / "out").verify()
    assert all(check["ok"] for check in checks), checks


STRICT = ["pairs", "rho, hidden rows", "displacement", "workload", "the paper"]
"""Releases that have every key between them."""

OPTIONAL = [("certificate", "plug_in", "transport"), ("fit",), ("certificate", "statistics"), ("certificate", "cells")]
"""Keys that may be absent: there is no transport loss for many columns, earlier versions stated no fit, and there are
no statistics without a direct certificate, and no cells where noise is not added to each."""


@pytest.mark.parametrize("name", [*STRICT[:1], *(pytest.param(name, marks=pytest.mark.slow) for name in STRICT[1:])])
def test_the_form_is_strict(variants, name):
    """No key may be absent, and none be added anywhere; no value be of another type."""
    document = shortened(json.loads((variants(name).folder / "certificate.json").read_text()))
    assert form_problem(document) is None
    tried = 0

    def places(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
        yield path, value
        for key, part in value.items() if isinstance(value, dict) else enumerate(value[:1]):
            if isinstance(part, (dict, list)):
                yield from places(part, (*path, key))

    for path, value in places(document):
        if isinstance(value, dict):
            assert form_problem(put(document, path, value | {"surprise": 1})) is not None, path
            for key in value:
                without = {k: v for k, v in value.items() if k != key}
                if (*path, key) not in OPTIONAL:
                    assert form_problem(put(document, path, without)) is not None, (path, key)
                    tried += 1
        for wrong in ("text", 3.5, True, None, [], {}):
            if (path, wrong) not in (((*path[:-1], "direct"), None), ((*path[:-1], "single_column"), None)):
                allowed = isinstance(wrong, type(None)) and path[-1:] in (("workload",), ("sensitivity",), ("values",))
                allowed = allowed or (path == ("fit", "functions") and wrong == [])
                assert allowed or form_problem(put(document, path, wrong)) is not None, (path, wrong)
                tried += 1
    for path, value in leaves(document):
        for wrong in ({"value": value}, "1\n", -1, 10**400, *((), ([], {}, "\u202e", 1e301))[name != STRICT[0]]):
            if not free(path, wrong):
                assert form_problem(put(document, path, wrong)) is not None, (path, wrong)
                tried += 1
    assert tried > 300


def shortened(value: Any, path: Path = ()) -> Any:
    """A document with one entry of every list whose entries are alike: the chosen one, if one was."""
    if isinstance(value, dict):
        return {key: shortened(part, (*path, key)) for key, part in value.items()}
    if isinstance(value, list):
        first = [each for each in value if isinstance(each, dict) and each.get("chosen")] or value
        return [shortened(part, (*path, i)) for i, part in enumerate(first) if not is_alike((*path, i))]
    return value


def put(document: dict[str, Any], path: Path, value: Any) -> Any:
    return changed(document, path, value) if path else value


def free(path: Path, wrong: Any) -> bool:
    """Names are any texts, noisy values any numbers."""
    last = named(path).rsplit(".", 1)[-1]
    texts = ("name", "unit", "columns", "workload[]", "source", "derived")
    numbers = ("measured_loss", "slack", "values", "fewest_rows", "most_rows")
    if isinstance(wrong, str):
        return last in texts
    return isinstance(wrong, (int, float)) and last in numbers


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        (("privacy", "delta"), "0.000001"),
        (("privacy", "rho"), "1"),
        (("privacy", "rows"), None),
        (("privacy", "epsilon"), "03"),
        (("privacy", "epsilon"), "3.0"),
        (("privacy", "epsilon"), "3e0"),
        (("privacy", "epsilon"), "٣"),
        (("privacy", "neighbours"), "add-remove"),
        (("privacy", "definition"), "zero-concentrated differential privacy"),
        (("privacy", "spent", 0), {"on": "noisy marginals", "rho": "1/2"}),
        (("privacy", "spent", 0), {"on": "noisy marginals", "epsilon": "1/0"}),
        (("privacy", "spent", 0), {"on": "noisy marginals", "epsilon": "1/2", "rho": "1/2"}),
        (("privacy", "spent", 0), {"on": "lunch", "epsilon": "1/2"}),
        (("release", "loss"), "path"),
        (("release", "rows"), 0),
        (("release", "mechanism"), "magic"),
        (("certificate", "bound"), 1.0000001),
        (("certificate", "bound"), -1e-9),
        (("certificate", "confidence"), 0.4999),
        (("certificate", "confidence"), 1),
        (("certificate", "subsets"), []),
        (("certificate", "plug_in"), {}),
        (("recompute", "draws"), 0),
        (("recompute", "seed"), "F" * 32),
        (("ledger",), "0123456789ABCDEF" * 4),
        (("ledger",), "0" * 63),
        (("ledger",), "0" * 64 + "\n"),
        (("format",), "certsynth-certificate/2"),
        (("releasable",), False),
    ],
)
def test_what_no_certificate_says_is_seen_by_its_form(variants, path, wrong):
    document = json.loads((variants("pairs").folder / "certificate.json").read_text())
    assert form_problem(changed(document, path, wrong)) is not None


def test_two_choices_or_none_are_seen_by_its_form(variants):
    document = json.loads((variants("chosen by the plan").folder / "certificate.json").read_text())
    for chosen in (True, False):
        other = copy.deepcopy(document)
        for each in other["compared"]:
            each["chosen"] = chosen
        assert form_problem(other) is not None


FORGED = (
    "certificate form",
    "schema",
    "rows",
    "measurements",
    "privacy",
    "method",
    "fit",
    "plug-in certificate",
    "direct certificate",
    "bound",
)
"""Checks that do not only compare the certificate with the pages that follow from it, which a forger writes anew."""

CHECK_FORM = verify._form

TOLD = [*STRICT, "candidates", "low-dimensional"]


@pytest.fixture
def quickly(monkeypatch):
    """What does not depend on certificate.json is computed once; what a forger writes anew is taken to fit."""
    known: dict[Any, Any] = {}
    compute = recompute.plug_in

    def remembered(*arguments: Any, **asked: Any) -> Any:
        key = repr(sorted((name, value) for name, value in asked.items() if name != "progress"))
        if key not in known:
            known[key] = compute(*arguments, **asked)
        return known[key]

    for module in (recompute, forging):
        monkeypatch.setattr(module, "plug_in", remembered)
    for check in ("_files", "_form", "_report", "_description"):
        monkeypatch.setattr(verify, check, lambda release: (True, ""))
    read, tables = verify.read_table, {}

    def read_once(path: Any, schema: Any) -> Any:
        if path not in tables:
            tables[path] = read(path, schema)
        return tables[path]

    monkeypatch.setattr(verify, "read_table", read_once)


def ways_to_tell(made: Release, document: dict[str, Any], path: Path) -> Iterator[Release]:
    """A changed document alone, and with everything else made to fit: what is put together from figures of the
    certificates, or what is computed from other figures.
    """
    try:
        yield forging.restated(made, document)
        if path[0] in ("certificate", "recompute"):
            yield forging.restated(made, forging.adapted(copy.deepcopy(document)))
        else:
            yield forging.retold(forging.restated(made, document))
    except (CertsynthError, KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError):
        return  # such figures are refused, or nothing can be computed from them


@pytest.mark.parametrize("name", [*TOLD[:1], *(pytest.param(name, marks=pytest.mark.slow) for name in TOLD[1:])])
def test_figures_are_seen_when_they_are_changed_unless_the_schema_says_that_they_are_on_trust(variants, quickly, name):
    """Each by itself, and with everything else made to fit."""
    made = Release.load(variants(name).folder)
    document = made.document
    assert found(made) == []
    tried, missed = 0, set()
    trusted: dict[str, bool] = {}
    for path, value in leaves(document):
        if name == TOLD[0] and is_alike(path):
            continue
        key = named(path) if named(path) in KEYS else named(path[:-1])
        on_trust = KEYS[key]["x-verify"] == "on trust"
        for other in others(path, value):
            for told in ways_to_tell(made, changed(document, path, other), path):
                if undone(told.document, document):
                    continue  # it was made to fit that way
                tried += 1
                unseen = not found(told)
                if on_trust:
                    trusted[key] = trusted.get(key, False) or unseen
                elif unseen:
                    missed.add((key, str(value), str(other)))
    assert not missed
    assert all(seen for key, seen in trusted.items() if key not in UNUSUAL), trusted
    assert tried > 150


def undone(told: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    """Whether two documents say the same, up to the rounding of sums."""
    first, second = dict(leaves(dict(told))), dict(leaves(dict(document)))
    if set(first) != set(second):
        return False
    pairs = [(first[path], second[path]) for path in first]
    floats = [abs(a - b) < 1e-12 for a, b in pairs if isinstance(a, float) and isinstance(b, float)]
    return all(floats) and all(a == b for a, b in pairs if not (isinstance(a, float) and isinstance(b, float)))


UNUSUAL = {
    "asked.preset": "where it changes a share of the budget, it is seen",
    "ledger": "it is null here, and has no other value of that form",
    "asked.projection": "where rows are particles, measured cells say so",
    "asked.loss": "there is none for particles",
    "asked.public": "it is seen where it says what the projection is, and where a method has no use for it",
    "release.dimension": "there is none unless a grid is measured",
    "compared[].mechanism": "that of the one that was chosen is cross-checked",
    "compared[].resolution": "that of the one that was chosen is cross-checked",
}
"""Keys on trust that some releases have no choice about."""


def found(made: Release) -> list[str]:
    """The first check that fails, if one does. That of the form is the slowest, and so it comes last."""
    seen = list(
        itertools.islice((name for name, ok, _ in verify._checks(made, silent) if not ok and name in FORGED), 1)
    )
    return seen or ([] if CHECK_FORM(made)[0] else ["certificate form"])


# ------------------------------------------------------------ texts that are no certificate


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ('{"format": "a", "format": "certsynth-certificate/3"}', "a key twice"),
        ('{"format": "certsynth-certificate/3", "x": {"a": 1, "a": 1}}', "a key twice"),
        ('{"format": NaN}', "not valid JSON"),
        ('{"format": "certsynth-certificate/3", "x": Infinity}', "not valid JSON"),
        ('{"format": "certsynth-certificate/3", "x": -Infinity}', "not valid JSON"),
        ('{"format": "certsynth-certificate/3", "x": 1e999}', "not valid JSON"),
        ('{"format": "certsynth-certificate/3", "x": ' + "9" * 5000 + "}", "not valid JSON"),
        ('{"format": "certsynth-certificate/3", "x": ' + "[" * 17 + "]" * 17 + "}", "nested"),
        ("[" * 100_000 + "]" * 100_000, "not valid JSON"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "not valid JSON"),
        ("[]", "not a certificate"),
        ("null", "not a certificate"),
        ("{}", "not a certificate"),
        ('{"format": 1}', "not a certificate"),
        ('{"format": "frictionless"}', "not a certificate"),
        ('{"format": "certsynth-certificate/1"}', "another version"),
        ('{"format": "certsynth-certificate/2"}', "another version"),
        ('{"format": "certsynth-certificate/4"}', "another version"),
    ],
)
def test_a_text_that_is_no_certificate_is_refused_in_one_line(text, why):
    with pytest.raises(InputError, match=rf"^certificate\.json [^\n]*{why}[^\n]*\.?$"):
        read_document(text.encode())


def test_bytes_that_are_no_text_are_refused():
    for content in (b"\xff\xfe{}", b'{"format": "\xc3"}', "{}".encode("utf-16")):
        with pytest.raises(InputError, match="not valid JSON"):
            read_document(content)


def test_depth_is_counted_by_objects_and_lists_together():
    assert read_json(b'[{"a":' * 8 + b"1" + b"}]" * 8, "x") is not None
    with pytest.raises(InputError, match="nested"):
        read_json(b'[{"a":' * 8 + b"[1]" + b"}]" * 8, "x")


def test_complaints_are_short_and_cannot_steer_a_terminal(variants):
    document = json.loads((variants("pairs").folder / "certificate.json").read_text())
    for hostile in ("\x1b[31m" * 1000, "\r\n" * 1000):
        for path in (("privacy", "epsilon"), ("release", "mechanism"), (hostile,), ("release", hostile)):
            problem = form_problem(changed(document, path, hostile))
            assert problem is not None
            assert len(problem) < 300
            assert problem.isprintable()


# ------------------------------------------------------------ the page


def test_the_page_lists_every_key_with_its_sentence():
    """Written by `python docs/reference/make_certificate.py`."""
    here = pathlib.Path(__file__).parents[2] / "docs" / "reference"
    found = importlib.util.spec_from_file_location("make_certificate", here / "make_certificate.py")
    assert found is not None
    assert found.loader is not None
    maker = importlib.util.module_from_spec(found)
    found.loader.exec_module(maker)
    assert (here / "certificate.md").read_text(encoding="utf-8") == maker.page()
    for path, part in KEYS.items():
        assert f"| `{path}` | {part['description']} |" in maker.page().replace("[]` |", "` |"), path
