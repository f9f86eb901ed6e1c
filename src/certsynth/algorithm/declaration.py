"""Declarations of options, and the signatures, checks and help texts derived from them.

An option is a field of a TypedDict: `Annotated[type, Option(…)]`. A public function takes the fields of one as
`**options: Unpack[ReleaseOptions]`, so mypy checks them; `takes` adds the signature and the documentation.
"""

from __future__ import annotations

import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Required, TypeVar, get_args, get_origin, get_type_hints

from certsynth.algorithm.checks import Check, OneOf
from certsynth.errors import did_you_mean

BASIC, BUDGET, PROMISED, MADE, OUTPUT = GROUPS = (
    "Basic",
    "Budget",
    "What is promised",
    "How it is made",
    "Output",
)
"""Headings that `--help` and the reference put options under, in this order."""

Typed = Literal["text", "whole", "natural", "auto", "file", "names", "flag"]
"""How a value is parsed on the command line."""


@dataclass(frozen=True, slots=True)
class Option:
    """The declaration of an option.

    `help` is a sentence or two; {name} in it refers to another option and is spelt as in Python or on the command line.
    `in_shell` and `in_python` add a sentence on how the value is given there. `required` makes the option mandatory on
    the command line; in Python it is mandatory if the field is `Required`. `shell` is False if only Python has it, and
    `flag` is its spelling on the command line if that does not follow from the name.
    """

    help: str
    group: str
    default: Any = None
    check: Check | None = None
    typed: Typed = "text"
    metavar: str | None = None
    flag: str = ""
    shell: bool = True
    required: bool = False
    repeatable: bool = False
    in_shell: str = ""
    in_python: str = ""

    @property
    def choices(self) -> tuple[str, ...]:
        return self.check.choices if isinstance(self.check, OneOf) else ()


@dataclass(frozen=True, slots=True)
class Declared:
    """An option with the name and type of its field, and whether it is mandatory in Python."""

    name: str
    annotation: Any
    needed: bool
    option: Option

    @property
    def flag(self) -> str:
        return f"--{self.option.flag or self.name.replace('_', '-')}"

    def checked(self, value: Any) -> Any:
        """Check a value and return it in the library's internal form. None leaves an option open if that is its
        default."""
        check = self.option.check
        left_open = value is None and self.option.default is None and not self.needed
        return value if check is None or left_open else check(self.name, value)

    @property
    def parameter(self) -> inspect.Parameter:
        default = inspect.Parameter.empty if self.needed else self.option.default
        return inspect.Parameter(self.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=self.annotation)


@functools.cache
def declared(options: type) -> Mapping[str, Declared]:
    """The options of a TypedDict by name, in declaration order."""
    return {each.name: each for each in _declared(options)}


def _declared(options: type) -> Iterator[Declared]:
    for name, annotation in get_type_hints(options, include_extras=True).items():
        origin: Any = get_origin(annotation)
        needed = origin is Required  # `__required_keys__` misses it if annotations are strings
        if needed:
            (annotation,) = get_args(annotation)
        yield Declared(name, annotation.__origin__, needed, annotation.__metadata__[0])


def fill_defaults(options: type, given: Mapping[str, Any], *, call: str) -> dict[str, Any]:
    """Add the defaults of options that were not given; the result is in declaration order."""
    known = declared(options)
    for name in given:
        if name not in known:
            raise TypeError(f"{call}() got an unexpected keyword argument {name!r}.{did_you_mean(name, known)}")
    for name, each in known.items():
        if each.needed and name not in given:
            raise TypeError(f"{call}() missing required keyword argument {name!r}")
    return {name: given.get(name, each.option.default) for name, each in known.items()}


def checked(options: type, given: Mapping[str, Any], *, call: str = "options") -> dict[str, Any]:
    """Add defaults and check each option; values are in the library's internal form."""
    known = declared(options)
    return {name: known[name].checked(value) for name, value in fill_defaults(options, given, call=call).items()}


def render_references(text: str, spelling: Callable[[str], str]) -> str:
    """Replace references to options in a help text by their spelling."""
    return re.sub(r"\{(\w+)\}", lambda found: spelling(found[1]), text)


def python_help(option: Option) -> str:
    """The help text of an option for Python."""
    return render_references(f"{option.help} {option.in_python}".strip(), "`{}`".format)


def shell_help(option: Option, known: Mapping[str, Declared]) -> str:
    """The help text of an option for a command that has the `known` options."""
    return render_references(f"{option.help} {option.in_shell}".strip(), lambda name: known[name].flag)


def argument_lines(options: type) -> list[str]:
    """The lines of a docstring's Args section for these options."""
    lines = []
    for name, each in declared(options).items():
        text = f"{name}: {python_help(each.option)}"
        lines += textwrap.wrap(text, 112, initial_indent=" " * 4, subsequent_indent=" " * 8, break_on_hyphens=False)
    return lines


F = TypeVar("F", bound=Callable[..., Any])


def takes(options: type, *, check: bool = True) -> Callable[[F], F]:
    """Decorate a function whose last parameter is `**options` to take the options of a TypedDict.

    The function receives all of them, with defaults filled in and, unless `check` is False, each one checked. The
    options are added to its signature and docstring.
    """

    def decorate(function: F) -> F:
        plain = inspect.signature(function)
        positional = [each for each in plain.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
        own = {each.name for each in positional}
        keywords = [each.parameter for each in declared(options).values()]

        @functools.wraps(function)
        def call(*args: Any, **given: Any) -> Any:
            apart = {name: given.pop(name) for name in own & set(given)}
            prepare = checked if check else fill_defaults
            return function(*args, **apart, **prepare(options, given, call=function.__qualname__))

        call.__signature__ = plain.replace(parameters=[*positional, *keywords])  # type: ignore[attr-defined]
        call.__doc__ = extend_docstring(function.__doc__ or "", argument_lines(options))
        return call  # type: ignore[return-value]

    return decorate


def extend_docstring(docstring: str, lines: Sequence[str]) -> str:
    """Append lines to the Args section of a docstring, creating it if needed."""
    text = inspect.cleandoc(docstring).splitlines()
    if "Args:" not in text:
        return "\n".join([*text, *[""] * bool(text), "Args:", *lines])
    end = start = text.index("Args:") + 1
    while end < len(text) and text[end].startswith(" "):
        end += 1
    return "\n".join([*text[:start], *text[start:end], *lines, *text[end:]])
