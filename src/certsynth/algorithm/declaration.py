"""How an option is declared, and what follows from a declaration.

An option is a field of a TypedDict: `Annotated[type, Option(…)]`. A public function takes the fields of one,
`**options: Unpack[ReleaseOptions]`, so mypy knows them; `takes` gives it the signature and the documentation.
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
"""How a value is typed on the command line."""


@dataclass(frozen=True, slots=True)
class Option:
    """What is declared about an option.

    `help` is a sentence or two; {name} in it refers to another option, and is shown as Python or the command line
    spells that. `in_shell` and `in_python` add a sentence on how the value is given there. `required` says that the
    command line insists on it; Python does if the field is `Required`. `shell` is False if only Python has it, and
    `flag` is its spelling on the command line where that does not follow from the name.
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
    """An option with what its field adds: the name, the type, and whether Python insists on it."""

    name: str
    annotation: Any
    needed: bool
    option: Option

    @property
    def flag(self) -> str:
        return f"--{self.option.flag or self.name.replace('_', '-')}"

    def checked(self, value: Any) -> Any:
        """The value as the library works with it. None leaves the option open, where that is the default."""
        check = self.option.check
        left_open = value is None and self.option.default is None and not self.needed
        return value if check is None or left_open else check(self.name, value)

    @property
    def parameter(self) -> inspect.Parameter:
        default = inspect.Parameter.empty if self.needed else self.option.default
        return inspect.Parameter(self.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=self.annotation)


@functools.cache
def declared(options: type) -> Mapping[str, Declared]:
    """The options of a TypedDict by name, in the order of their declaration."""
    return {each.name: each for each in _declared(options)}


def _declared(options: type) -> Iterator[Declared]:
    for name, annotation in get_type_hints(options, include_extras=True).items():
        origin: Any = get_origin(annotation)
        needed = origin is Required  # `__required_keys__` misses it where annotations are kept as texts
        if needed:
            (annotation,) = get_args(annotation)
        yield Declared(name, annotation.__origin__, needed, annotation.__metadata__[0])


def completed(options: type, given: Mapping[str, Any], *, call: str) -> dict[str, Any]:
    """The given options and the defaults of the others, in the order of declaration."""
    known = declared(options)
    for name in given:
        if name not in known:
            raise TypeError(f"{call}() got an unexpected keyword argument {name!r}.{did_you_mean(name, known)}")
    for name, each in known.items():
        if each.needed and name not in given:
            raise TypeError(f"{call}() missing required keyword argument {name!r}")
    return {name: given.get(name, each.option.default) for name, each in known.items()}


def checked(options: type, given: Mapping[str, Any], *, call: str = "options") -> dict[str, Any]:
    """All options as the library works with them: completed, and each one checked by itself."""
    known = declared(options)
    return {name: known[name].checked(value) for name, value in completed(options, given, call=call).items()}


def rendered(text: str, spelling: Callable[[str], str]) -> str:
    """A help text with the options that it refers to spelt in one way."""
    return re.sub(r"\{(\w+)\}", lambda found: spelling(found[1]), text)


def python_help(option: Option) -> str:
    """The help of an option for callers from Python."""
    return rendered(f"{option.help} {option.in_python}".strip(), "`{}`".format)


def shell_help(option: Option, known: Mapping[str, Declared]) -> str:
    """The help of an option for the command line, which has the `known` ones."""
    return rendered(f"{option.help} {option.in_shell}".strip(), lambda name: known[name].flag)


def arguments(options: type) -> list[str]:
    """The lines of a docstring's Args section, one option after the other."""
    lines = []
    for name, each in declared(options).items():
        text = f"{name}: {python_help(each.option)}"
        lines += textwrap.wrap(text, 112, initial_indent=" " * 4, subsequent_indent=" " * 8, break_on_hyphens=False)
    return lines


F = TypeVar("F", bound=Callable[..., Any])


def takes(options: type, *, check: bool = True) -> Callable[[F], F]:
    """Let a function whose last parameter is `**options` take those of a TypedDict.

    It is called with all of them: what was not given has its default, and each is checked, unless `check` is False.
    Its signature lists them, and its docstring says what they mean.
    """

    def decorate(function: F) -> F:
        plain = inspect.signature(function)
        positional = [each for each in plain.parameters.values() if each.kind is not inspect.Parameter.VAR_KEYWORD]
        own = {each.name for each in positional}
        keywords = [each.parameter for each in declared(options).values()]

        @functools.wraps(function)
        def call(*args: Any, **given: Any) -> Any:
            apart = {name: given.pop(name) for name in own & set(given)}
            prepare = checked if check else completed
            return function(*args, **apart, **prepare(options, given, call=function.__qualname__))

        call.__signature__ = plain.replace(parameters=[*positional, *keywords])  # type: ignore[attr-defined]
        call.__doc__ = documented(function.__doc__ or "", arguments(options))
        return call  # type: ignore[return-value]

    return decorate


def documented(docstring: str, lines: Sequence[str]) -> str:
    """A docstring with more lines at the end of its Args section, or with such a section."""
    text = inspect.cleandoc(docstring).splitlines()
    if "Args:" not in text:
        return "\n".join([*text, *[""] * bool(text), "Args:", *lines])
    end = start = text.index("Args:") + 1
    while end < len(text) and text[end].startswith(" "):
        end += 1
    return "\n".join([*text[:start], *text[start:end], *lines, *text[end:]])
