"""Code and paper are held to each other: every claim in a docstring is listed, every listed claim is made."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src"
LIST = ROOT / "docs" / "paper.toml"

_CLAIM = r"(?P<number>[^\s\[\],][^\[\],]*) \[(?P<key>[a-z0-9-]+)\]"
_LINE = re.compile(rf"Paper: {_CLAIM}(, {_CLAIM.replace('?P<number>', '').replace('?P<key>', '')})*")
_NUMBER = re.compile(r"Eq\. \(\d+\)|(?:Definition|Lemma|Theorem|Algorithm) \d+")
_FORM = re.compile(r"Eq\. \(\d+\)|(?:Definition|Lemma|Theorem|Algorithm) \d+|section \d+(\.\d+)?|appendix [A-D]")

Statements = dict[str, dict[str, object]]


def docstrings(text: str) -> list[str]:
    """All docstrings of a module: its own, and those of its classes and functions at any depth."""
    homes = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [ast.get_docstring(node) for node in ast.walk(ast.parse(text)) if isinstance(node, homes)]
    return [docstring for docstring in found if docstring]


def claims(text: str) -> list[tuple[str, str]]:
    """(number, key) for each statement that the docstrings of a module claim."""
    found = []
    for docstring in docstrings(text):
        for line in docstring.splitlines():
            if "Paper:" in line:
                assert _LINE.fullmatch(line.strip()), f"cannot be read: {line.strip()}"
                found += [(m["number"], m["key"]) for m in re.finditer(_CLAIM, line.strip().removeprefix("Paper: "))]
    return found


def problems(modules: dict[str, str], statements: Statements) -> list[str]:
    """Where the docstrings of `modules` (name to text) and the list of statements do not agree."""
    found = []
    made: dict[str, set[str]] = {key: set() for key in statements}
    for module, text in modules.items():
        for number, key in claims(text):
            if key not in statements:
                found.append(f"{module} claims [{key}], which is not listed")
            elif number != statements[key]["number"]:
                found.append(f"{module} calls [{key}] {number}; it is {statements[key]['number']}")
            else:
                made[key].add(module)
        for docstring in docstrings(text):
            known = {statement["number"] for statement in statements.values()}
            found += [f"{module} speaks of {n}, which is not listed" for n in set(_NUMBER.findall(docstring)) - known]
    for key, statement in statements.items():
        listed = set(statement["where"])  # type: ignore[call-overload]
        found += [f"[{key}] is listed for {module}, which does not claim it" for module in sorted(listed - made[key])]
        found += [f"[{key}] is claimed by {module}, which is not listed" for module in sorted(made[key] - listed)]
    return found


def our_modules() -> dict[str, str]:
    return {
        ".".join(path.relative_to(SOURCES).with_suffix("").parts): path.read_text(encoding="utf-8")
        for path in sorted(SOURCES.rglob("*.py"))
    }


def our_list() -> list[dict[str, object]]:
    return tomllib.loads(LIST.read_text(encoding="utf-8"))["statement"]


def our_statements() -> Statements:
    return {str(statement["key"]): statement for statement in our_list()}


def test_docstrings_and_list_agree() -> None:
    assert problems(our_modules(), our_statements()) == []


def test_statements_are_complete_and_listed_once() -> None:
    keys = [statement["key"] for statement in our_list()]
    assert len(set(keys)) == len(keys)
    numbers = [statement["number"] for statement in our_list()]
    assert len(set(numbers)) == len(numbers)
    for statement in our_list():
        assert set(statement) == {"key", "number", "label", "sentence", "where"}
        assert statement["where"]
        assert _FORM.fullmatch(str(statement["number"]))
        assert str(statement["sentence"]).endswith(".")


def test_the_explanations_cite_numbers_that_are_listed() -> None:
    known = {str(statement["number"]) for statement in our_list()}
    for page in sorted((ROOT / "docs").rglob("*.md")):
        assert set(_NUMBER.findall(page.read_text(encoding="utf-8"))) <= known, page.name


MADE_UP: Statements = {
    "path-loss": {"number": "Eq. (10)", "where": ["here"]},
    "certificate-holds": {"number": "Lemma 1", "where": ["here"]},
}


def _documented(line: str) -> dict[str, str]:
    return {"here": f'"""A module."""\n\ndef f():\n    """Do it.\n\n    {line}\n    """\n'}


def test_accepts_a_docstring_that_agrees() -> None:
    line = "Paper: Eq. (10) [path-loss], Lemma 1 [certificate-holds]"
    assert problems(_documented(line), MADE_UP) == []


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("Paper: Eq. (7) [path-loss], Lemma 1 [certificate-holds]", "calls [path-loss] Eq. (7); it is Eq. (10)"),
        ("Paper: Eq. (10) [path-loss]", "[certificate-holds] is listed for here, which does not claim it"),
        ("Paper: Eq. (10) [pathloss], Lemma 1 [certificate-holds]", "claims [pathloss], which is not listed"),
        ("As in Eq. (99).", "speaks of Eq. (99), which is not listed"),
    ],
)
def test_finds_a_docstring_that_does_not_agree(line: str, complaint: str) -> None:
    assert any(complaint in found for found in problems(_documented(line), MADE_UP))


def test_finds_a_claim_from_another_module() -> None:
    modules = _documented("Paper: Eq. (10) [path-loss], Lemma 1 [certificate-holds]")
    modules["there"] = modules["here"]
    assert "[path-loss] is claimed by there, which is not listed" in problems(modules, MADE_UP)


@pytest.mark.parametrize("line", ["Paper: Eq. (10)", "Paper: [path-loss]", "Paper: Eq. (10) [path-loss] and more"])
def test_refuses_a_line_that_cannot_be_read(line: str) -> None:
    with pytest.raises(AssertionError, match="cannot be read"):
        problems(_documented(line), MADE_UP)
