"""Every option is declared once, and all that shows options follows from the declaration."""

from __future__ import annotations

import ast
import collections
import inspect
import re
import runpy
import string
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, Required, TypedDict

import pytest

import certsynth
from certsynth import CertifiedSynthesizer, certify, check, evaluate, plan, release
from certsynth.algorithm import options
from certsynth.algorithm.checks import OneOf, WholeNumber
from certsynth.algorithm.declaration import GROUPS, Option, checked, declared, extend_docstring, takes
from certsynth.algorithm.options import (
    MECHANISMS,
    CertifyOptions,
    CheckOptions,
    EstimatorOptions,
    EvaluateOptions,
    FitOptions,
    PlanOptions,
    ReleaseOptions,
)
from certsynth.base.progress import silent
from certsynth.cli import main
from certsynth.errors import InputError
from certsynth.mechanisms import Neighbours
from certsynth.report import choice_words

SOURCE = Path(options.__file__).read_text(encoding="utf-8")
REFERENCE = Path(__file__).parents[2] / "docs" / "reference"

TAKERS = {
    check: CheckOptions,
    release: ReleaseOptions,
    plan: PlanOptions,
    certify: CertifyOptions,
    evaluate: EvaluateOptions,
    CertifiedSynthesizer.__init__: EstimatorOptions,
    CertifiedSynthesizer.fit: FitOptions,
}
EVERY = {name for kind in TAKERS.values() for name in declared(kind)}


# ------------------------------------------------------------------------------------------------------------- once


def test_every_option_is_declared_once():
    """`rows` are two options: how many there are, for a plan, and how many to make, for a release."""
    classes = [node for node in ast.parse(SOURCE).body if isinstance(node, ast.ClassDef)]
    fields = [
        node.target.id  # type: ignore[union-attr]
        for each in classes
        if any("TypedDict" in ast.unparse(base) or "Options" in ast.unparse(base) for base in each.bases)
        for node in each.body
        if isinstance(node, ast.AnnAssign)
    ]
    assert set(fields) == EVERY
    assert {name: count for name, count in collections.Counter(fields).items() if count > 1} == {"rows": 2}


@pytest.mark.parametrize("function", TAKERS, ids=lambda function: function.__qualname__)
def test_no_public_function_states_an_option_itself(function):
    code = inspect.unwrap(function).__code__
    stated = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    assert not EVERY & set(stated)
    assert list(declared(TAKERS[function])) == [
        name for name in inspect.signature(function).parameters if name not in stated
    ]


def test_the_defaults_are_those_that_callers_rely_on():
    parameters = inspect.signature(release).parameters.values()
    given = {each.name: each.default for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY}
    left_open = {name for name, value in given.items() if value is None}
    assert {name: given[name] for name in set(given) - left_open} == {
        "neighbours": "replace-one",
        "projection": "auto",
        "candidates": 1,
        "measure_dropped": False,
        "progress": silent,
    }
    assert len(given) == 33


def test_names_that_other_modules_know_are_the_declared_ones():
    assert declared(ReleaseOptions)["neighbours"].option.choices == tuple(Neighbours)
    assert declared(ReleaseOptions)["mechanism"].option.choices == ("auto", *MECHANISMS)
    assert set(choice_words.MECHANISMS) == set(MECHANISMS)


@pytest.mark.parametrize("kind", TAKERS.values(), ids=lambda kind: kind.__name__)
def test_every_declaration_can_be_shown(kind):
    for each in declared(kind).values():
        option = each.option
        assert option.group in GROUPS
        assert re.fullmatch(r"[A-Z].*\.", option.help), each.name
        referred = {name for _, name, _, _ in string.Formatter().parse(option.help) if name}
        assert referred <= set(declared(kind))
        assert each.needed or each.checked(option.default) == option.default


def test_all_options_are_documented_in_the_docstring():
    for function, kind in TAKERS.items():
        for name in declared(kind):
            assert f"\n    {name}: " in function.__doc__, (function, name)


# --------------------------------------------------------------------------------------------- one edit is enough

NEW = """class EmissionOptions(TypedDict, total=False):
    paper_size: Annotated[
        int | None,
        Option("How large the paper is, unlike {rows}.", MADE, default=4, check=WholeNumber(0, 9), typed="whole"),
    ]
"""

SEEN = """
import importlib.util, inspect, runpy, sys
import certsynth.algorithm
spec = importlib.util.spec_from_file_location("certsynth.algorithm.options", "options.py")
module = sys.modules["certsynth.algorithm.options"] = importlib.util.module_from_spec(spec)
certsynth.algorithm.options = module
spec.loader.exec_module(module)

from certsynth import CertifiedSynthesizer, Schema, evaluate, release
from certsynth.algorithm import release as releasing
parameter = inspect.signature(release).parameters["paper_size"]
assert (parameter.default, parameter.kind) == (4, parameter.KEYWORD_ONLY)
assert "    paper_size: How large the paper is, unlike `rows`." in release.__doc__
assert "paper_size" not in inspect.signature(evaluate).parameters

schema = Schema.load("schema.toml")
estimator = CertifiedSynthesizer(schema, paper_size=7)
assert estimator.paper_size == estimator.get_params()["paper_size"] == 7
assert "paper_size=7" in repr(estimator) and "paper_size" not in repr(CertifiedSynthesizer(schema))

rows = runpy.run_path(sys.argv[1])["page"]().splitlines()
assert any(row.startswith("| `paper_size` | `--paper-size` | release, CertifiedSynthesizer | `4` |") for row in rows)

from click.testing import CliRunner
from certsynth.cli import main
help = CliRunner().invoke(main, ["release", "--help"]).output
made = help[help.index("How it is made:"):help.index("Output:")]
assert "--paper-size INTEGER" in made and "unlike --rows." in " ".join(made.split()), made
assert "--paper-size" not in CliRunner().invoke(main, ["evaluate", "--help"]).output
command = "release people.csv --schema schema.toml --epsilon 1 --out out --paper-size".split()
told = CliRunner().invoke(main, [*command, "11"]).output
assert told == "error: --paper-size must be a whole number from 0 to 9; got 11.\\n", told
"""


def test_a_new_option_is_one_edit(tmp_path):
    """One field is added to the source: everything that shows options has it then."""
    start = NEW.partition("\n")[0] + "\n"
    assert SOURCE.count(start) == 1
    (tmp_path / "options.py").write_text(SOURCE.replace(start, NEW), encoding="utf-8")
    (tmp_path / "schema.toml").write_text('[[column]]\nname = "a"\nkind = "boolean"\n', encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", SEEN, str(REFERENCE / "make_options.py")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


# ------------------------------------------------------------------------------------------------- what `takes` does


class ToyOptions(TypedDict, total=False):
    size: Required[Annotated[int, Option("How large.", "Basic", check=WholeNumber(1, 9))]]
    colour: Annotated[str, Option("Which colour.", "Output", default="red", check=OneOf(("red", "blue")))]
    note: Annotated[str | None, Option("A note.", "Output")]


@takes(ToyOptions)
def paint(what: str, *, twice: bool = False, **given: Any) -> tuple[str, bool, dict[str, Any]]:
    """Paint.

    Args:
        what: what is painted.

    Raises:
        InputError: never.
    """
    return what, twice, given


def test_a_function_gets_every_option_it_takes():
    assert paint("wall", size=3) == ("wall", False, {"size": 3, "colour": "red", "note": None})
    assert paint(what="wall", twice=True, size=3, note="!")[1:] == (True, {"size": 3, "colour": "red", "note": "!"})
    assert [*inspect.signature(paint).parameters] == ["what", "twice", "size", "colour", "note"]
    assert inspect.signature(paint).parameters["size"].default is inspect.Parameter.empty


def test_unknown_and_missing_names_are_told_as_python_does():
    with pytest.raises(TypeError, match=r"paint\(\) got an unexpected keyword argument 'color'. Did you mean 'colour'"):
        paint("wall", size=1, color="red")
    with pytest.raises(TypeError, match=r"paint\(\) missing required keyword argument 'size'"):
        paint("wall")
    with pytest.raises(TypeError, match=r"release\(\) got an unexpected keyword .* Did you mean 'epsilon'"):
        release("people.csv", None, epsilom=1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'lattice'"):
        CertifiedSynthesizer(None, lattice=3)


@pytest.mark.parametrize(
    "given", [{"size": 0}, {"size": None}, {"size": 1, "colour": "green"}, {"size": 1, "colour": None}]
)
def test_values_are_checked_one_by_one(given):
    with pytest.raises(InputError, match="must be"):
        paint("wall", **given)


def test_an_estimator_keeps_what_it_is_given_unchecked():
    assert CertifiedSynthesizer(None, confidence="sure").get_params()["confidence"] == "sure"
    with pytest.raises(InputError, match="`confidence` must be"):
        checked(ReleaseOptions, {"confidence": "sure"})


def test_the_docstring_has_the_options_in_its_args():
    lines = paint.__doc__.splitlines()
    start = lines.index("Args:")
    assert lines[start + 1 : start + 6] == [
        "    what: what is painted.",
        "    size: How large.",
        "    colour: Which colour.",
        "    note: A note.",
        "",
    ]
    assert extend_docstring("Go.", ["    a: b."]) == "Go.\n\nArgs:\n    a: b."


# ------------------------------------------------------------------------------------------------------ command line


def test_help_has_the_groups_in_their_order():
    for name, command in main.commands.items():
        with main.make_context("certsynth", [name]) as parent, command.context_class(command, parent=parent) as context:
            text = command.get_help(context)
        headings = re.findall(r"^(\S[^:]*):$", text, re.MULTILINE)
        assert headings == [group for group in GROUPS if group in headings]
    assert headings == ["Basic", "What is promised", "How it is made", "Output"]  # of evaluate, which comes last


def test_every_public_name_that_takes_options_is_in_the_reference():
    takers = runpy.run_path(str(REFERENCE / "make_options.py"))["TAKERS"]
    assert set(takers) <= set(certsynth.__all__)
    assert set(takers.values()) == set(TAKERS.values()) - {FitOptions}
