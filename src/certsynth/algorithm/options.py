"""Every option once: its name, type, default, help, check, and where it exists.

An option is a field of a TypedDict. A public function takes the fields of one, `**options: Unpack[ReleaseOptions]`, so
mypy knows them; `takes` gives it the signature and the documentation. The command line (`cli/options.py`), the
estimator and the reference pages are built from the same fields: a new option is one new field, in the TypedDict of
those functions and commands that shall have it.

Nothing heavy is imported here, so that `certsynth --help` is quick.
"""

import functools
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    Required,
    TypedDict,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from certsynth.algorithm.checks import Check, OneOf, Share, WholeNumber, amount, failure_probability
from certsynth.algorithm.registry import method_names
from certsynth.base.progress import Progress, silent
from certsynth.errors import did_you_mean

BASIC, BUDGET, PROMISED, MADE, OUTPUT = GROUPS = (
    "Basic",
    "Budget",
    "What is promised",
    "How it is made",
    "Output",
)
"""Headings that `--help` and the reference put options under, in this order."""

AUTO_MECHANISMS = ("identity", "haar", "haar-hilbert", "haar-weighted", "quad-tree")
"""Those that `release` chooses from unless one is asked for."""

MECHANISMS = (*AUTO_MECHANISMS, "haar-tour", "haar-noisy-total", *method_names("mechanism"))

MAX_ROWS = 50_000_000
RESOLUTION = WholeNumber(1, 1024, auto=True)
ROWS = WholeNumber(1, MAX_ROWS)

Number = str | int | float | Fraction | Decimal
"""A number that is read exactly: as its text says, also if it is a float."""

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

    def checked(self, name: str, value: Any) -> Any:
        """The value as the library works with it. None is what was left open, where that is the default."""
        if self.check is None or (value is None and self.default is None):
            return value
        return self.check(name, value)


@dataclass(frozen=True, slots=True)
class Declared:
    """An option with what its field adds: the name, the type, and whether Python insists on it."""

    name: str
    annotation: Any
    needed: bool
    option: Option

    @property
    def flag(self) -> str:
        return self.option.flag or f"--{self.name.replace('_', '-')}"

    @property
    def parameter(self) -> inspect.Parameter:
        default = inspect.Parameter.empty if self.needed else self.option.default
        return inspect.Parameter(self.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=self.annotation)


# ------------------------------------------------------------------------------------------- what can be asked for


class ColumnOptions(TypedDict, total=False):
    columns: Annotated[
        Sequence[str] | None, Option("Use only these columns of the schema.", BASIC, typed="names", metavar="A,B,…")
    ]
    sparsity: Annotated[
        int | None,
        Option(
            "How many columns a statistic may look at: 2 by default, or 1 if there is only one column.",
            PROMISED,
            typed="whole",
            metavar="S",
        ),
    ]
    subsets: Annotated[
        Sequence[Sequence[str]] | None,
        Option(
            "The subsets of columns that matter, of any sizes, in place of {sparsity}; columns that no subset names "
            "are left out.",
            PROMISED,
            typed="file",
            flag="--workload",
            metavar="FILE",
            in_shell="A TOML file lists them.",
            in_python="Each is a list of names.",
        ),
    ]


class BudgetOptions(TypedDict, total=False):
    epsilon: Annotated[
        Number | None,
        Option(
            "Privacy budget ε, above 0 and at most 100: the smaller, the more private. Alone it is pure ε-differential "
            "privacy.",
            BUDGET,
            check=amount,
            metavar="E",
        ),
    ]
    delta: Annotated[
        Number | None,
        Option(
            "With it, (ε, δ)-differential privacy and Gaussian noise: above 0 and at most 0.01, for example 1e-6.",
            BUDGET,
            check=failure_probability,
            metavar="D",
        ),
    ]
    rho: Annotated[
        Number | None,
        Option(
            "Budget ρ of zero-concentrated differential privacy, alone or in place of {epsilon} or {delta}.",
            BUDGET,
            check=amount,
            metavar="R",
        ),
    ]


class LedgerOptions(TypedDict, total=False):
    ledger: Annotated[
        str | Path | None,
        Option(
            "A file that adds up what is spent on a data set, and refuses what would exceed its cap.",
            BUDGET,
            typed="file",
            metavar="FILE",
        ),
    ]
    cap: Annotated[
        Number | None,
        Option(
            "The most that may ever be spent on the data set, in the unit of the budget; fixed at the ledger's first "
            "use.",
            BUDGET,
            check=amount,
            metavar="E",
        ),
    ]
    dataset: Annotated[
        str | None,
        Option(
            "The data set that the ledger is for, fixed at its first use; by default the name of the schema's table.",
            BUDGET,
            metavar="ID",
        ),
    ]


class CertificateOptions(TypedDict, total=False):
    confidence: Annotated[
        Number | None,
        Option(
            "Confidence of the certificate: at least 0.5 and below 1, by default 0.95.",
            PROMISED,
            check=Share(Fraction(1, 2), "0.95"),
            metavar="C",
        ),
    ]
    neighbours: Annotated[
        str,
        Option(
            "What one person can change: the values of their row (replace-one; the number of rows is public), or "
            "whether it is there at all (add-remove; that number is private).",
            PROMISED,
            default="replace-one",
            check=OneOf(("replace-one", "add-remove")),
        ),
    ]


class MethodOptions(TypedDict, total=False):
    certificate_share: Annotated[
        Number | None,
        Option(
            "Share of the budget for the direct certificate, which measures the result: by default 0.05, 0 for none.",
            PROMISED,
            check=Share(Fraction(0), "0.05"),
            metavar="SHARE",
        ),
    ]
    resolution: Annotated[
        int | Literal["auto"] | None,
        Option(
            "How many cells a column is cut into, or groups its values fall into; auto, the default, takes the best.",
            MADE,
            check=RESOLUTION,
            typed="auto",
            metavar="[auto|K]",
        ),
    ]
    mechanism: Annotated[
        str | None,
        Option(
            "How counts get their noise: identity (cell by cell), haar (as wavelets along a winding path), "
            "haar-hilbert (along a Hilbert curve), haar-weighted (the same, with weighted levels), quad-tree (as "
            "squares within squares), haar-tour (along a tour, for any metric), haar-noisy-total (as in the paper); "
            "auto, the default, takes the best of the first five. low-dimensional is for statistics of all columns at "
            "once, where rows lie on a curve, a surface or a few points: one grid of all columns, as fine as that "
            "allows; low-dimensional-l1 does it as in the paper.",
            MADE,
            check=OneOf(("auto", *MECHANISMS)),
        ),
    ]
    projection: Annotated[
        str,
        Option(
            "How rows are fitted: as particles that swap values, or by a linear program whose rows lie at public rows, "
            "anywhere (full-grid), or at points drawn from the noisy counts.",
            MADE,
            default="auto",
            check=OneOf(("auto", "particles", "public", "full-grid", "drawn")),
        ),
    ]
    loss: Annotated[
        str | None,
        Option(
            "Fit by a linear program, and make this small: transport (tight), or the paper's path loss.",
            MADE,
            check=OneOf(("path", "transport")),
        ),
    ]
    preset: Annotated[str | None, Option("Do everything as the paper does.", MADE, check=OneOf(method_names("preset")))]


class EmissionOptions(TypedDict, total=False):
    public: Annotated[
        Any,
        Option("A public table of the same columns, to start from.", MADE, typed="file", metavar="FILE"),
    ]
    rows: Annotated[
        int | None,
        Option(
            "How many rows to make: by default as many as there are, up to a million, or 100,000 if that number is "
            "private.",
            MADE,
            check=ROWS,
            typed="whole",
            metavar="M",
        ),
    ]
    candidates: Annotated[
        int,
        Option(
            "Make this many tables from the same noisy counts, and choose one privately.",
            MADE,
            default=1,
            check=WholeNumber(1, 100),
            typed="whole",
            metavar="N",
        ),
    ]
    seed: Annotated[
        int | None,
        Option(
            "Seed of the steps that need no privacy, such as the order of rows. The noise has none.",
            MADE,
            typed="natural",
            metavar="N",
        ),
    ]


class FolderOptions(TypedDict, total=False):
    out: Annotated[
        str | Path | None,
        Option(
            "The release folder; it must not exist yet.",
            OUTPUT,
            typed="file",
            metavar="DIR",
            required=True,
            in_python="Without it the release is in memory only, and `Release.save` writes it.",
        ),
    ]
    sign: Annotated[
        Any,
        Option("Sign the folder with the Ed25519 private key in this file.", OUTPUT, typed="file", metavar="KEY"),
    ]


class MemoryOptions(TypedDict, total=False):
    memory: Annotated[
        int | None,
        Option(
            "The most bytes that may be used: by default half of what there is. With less, rows are read more often.",
            MADE,
            shell=False,
        ),
    ]


class ProgressOptions(TypedDict, total=False):
    progress: Annotated[
        Progress,
        Option("Called with what is being done; silent by default.", OUTPUT, default=silent, shell=False),
    ]


class NoiseOptions(TypedDict, total=False):
    noise: Annotated[
        Any,
        Option("For tests: what is made with noise of one's own cannot be written.", MADE, shell=False),
    ]


class LatticeOptions(TypedDict, total=False):
    lattice: Annotated[
        int | None,
        Option(
            "Steps of the lattice on which up to three columns are compared: by default 256 for pairs. Finer is "
            "slower.",
            MADE,
            typed="whole",
            metavar="K",
        ),
    ]


# ------------------------------------------------------------------------------------------------- who takes what


class EstimatorOptions(
    BudgetOptions,
    LedgerOptions,
    ColumnOptions,
    CertificateOptions,
    MethodOptions,
    EmissionOptions,
    FolderOptions,
    MemoryOptions,
    total=False,
):
    """What `CertifiedSynthesizer` keeps."""


class CallOptions(NoiseOptions, ProgressOptions, total=False):
    """What belongs to one call, and is not kept."""


class ReleaseOptions(EstimatorOptions, CallOptions, total=False):
    """What `release` takes."""


class PlanOptions(
    BudgetOptions,
    ColumnOptions,
    CertificateOptions,
    MethodOptions,
    MemoryOptions,
    ProgressOptions,
    total=False,
):
    """What `plan` takes."""

    rows: Required[
        Annotated[
            int,
            Option(
                "How many rows the private table has, or will have: a number, since no table is read.",
                BASIC,
                check=WholeNumber(1, MAX_ROWS, "the number of private rows,"),
                typed="whole",
                metavar="N",
            ),
        ]
    ]


class CertifyOptions(
    BudgetOptions,
    LedgerOptions,
    ColumnOptions,
    CertificateOptions,
    LatticeOptions,
    MemoryOptions,
    CallOptions,
    total=False,
):
    """What `certify` takes."""

    per_subset: Annotated[
        bool,
        Option(
            "Spend the budget on all subsets of columns at once, and give each a bound of its own, a little wider.",
            PROMISED,
            default=False,
            typed="flag",
        ),
    ]


class EvaluateOptions(ColumnOptions, LatticeOptions, MemoryOptions, ProgressOptions, total=False):
    """What `evaluate` takes."""


# ------------------------------------------------------------------------------------------------ what follows


@functools.cache
def declared(options: type) -> Mapping[str, Declared]:
    """The options of a TypedDict by name, in the order of their declaration."""
    return {each.name: each for each in _declared(options)}


def _declared(options: type) -> Iterator[Declared]:
    for name, annotation in get_type_hints(options, include_extras=True).items():
        origin: Any = get_origin(annotation)
        if origin is Required:
            (annotation,) = get_args(annotation)
        needed = name in options.__required_keys__  # type: ignore[attr-defined]
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
    return {
        name: known[name].option.checked(name, value) for name, value in completed(options, given, call=call).items()
    }


def rendered(text: str, spelling: Callable[[str], str]) -> str:
    """A help text with the options that it refers to spelt in one way."""

    class Spelt(dict[str, str]):
        def __missing__(self, name: str) -> str:
            return spelling(name)

    return text.format_map(Spelt())


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
