"""Wherever a message suggests to try something else, it says that every try spends budget again, or what is free."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import certsynth
from certsynth.cli import words as shown
from certsynth.errors import SolverFailed
from certsynth.projection.linear_program import Program, solve
from certsynth.report import words

SOURCES = Path(certsynth.__file__).parent
SUGGESTS = re.compile(
    r"\b(may|might|could|would) help\b|(?<!-)\bhelp\.|\btry (another|other|a|an|the|again)\b", re.IGNORECASE
)
COSTS = re.compile(r"spen[dt]s?\b|\bplan\b", re.IGNORECASE)

FREE = {
    "answers/silence.py": "analysts read it, who cannot release",
    "cli/words.py": "HELPS, which `plan` shows by itself, and a verdict that nothing helps: tested below",
    "mechanisms/chain.py": "another process holds the ledger: nothing was charged",
    "report/words.py": "a verdict that nothing helps, and a sentence put together of two: tested below",
    "record/record.py": "describes a key of certificate.json",
}
"""Files with a suggestion that costs nothing, or whose cost is said next to it."""


def texts(tree: ast.AST) -> Iterator[str]:
    """String literals that are no docstrings, with the parts of formatted ones joined."""
    documented = {
        node.body[0].value
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and node.body
        if isinstance(node.body[0], ast.Expr)
    }
    inside: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inside.update(node.values)
            yield "".join(each.value for each in node.values if isinstance(each, ast.Constant))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in documented | inside:
            yield node.value


def suggestions(source: str) -> list[str]:
    return [text for text in texts(ast.parse(source)) if SUGGESTS.search(text) and not COSTS.search(text)]


def test_every_suggestion_to_try_again_says_what_it_costs() -> None:
    found = {path.relative_to(SOURCES).as_posix(): suggestions(path.read_text()) for path in SOURCES.rglob("*.py")}
    assert {name for name, texts in found.items() if texts} == set(FREE)


def test_a_suggestion_without_its_cost_is_noticed() -> None:
    """The control."""
    assert suggestions('def f(x):\n    """It may help."""\n    return f"A better fit may help: {x}"') == [
        "A better fit may help: "
    ]
    assert not suggestions('x = "try another projection; every further release spends again"')


def test_a_verdict_that_a_better_fit_helps_says_what_another_release_costs() -> None:
    diagnostic = SimpleNamespace(fit=0.1, noise_low=0.01, noise_high=0.02, worth_optimising=True)
    certificate: Any = SimpleNamespace(plug_in=SimpleNamespace(tightest=SimpleNamespace(diagnostic=diagnostic)))
    assert shown.diagnostic(certificate).endswith(
        "A better fit may help: another --projection, --public rows, or another --loss. Every further release spends "
        "its budget again."
    )
    assert words.VERDICTS[True].endswith("measures anew, and spends its budget again.")
    assert "would not help" in words.VERDICTS[False]


def test_a_vacuous_certificate_names_the_free_way() -> None:
    assert shown.promise(1.0, confidence=0.95, columns="at most 2 columns").endswith(
        "help. Every further run spends its budget again; `certsynth plan` tries settings without spending anything."
    )
    assert words.VACUOUS.endswith("help. Every further release of the same rows spends its budget again.")


def test_a_program_that_cannot_be_solved_says_that_another_run_spends_again() -> None:
    with pytest.raises(SolverFailed, match=r"is spent\. .* every further run spends its budget again"):
        solve(Program.__new__(Program), methods=())
