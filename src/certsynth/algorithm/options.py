"""Declarations of all options: name, type, default, help, check, and the functions and commands that have them.

To add an option, add one field to the TypedDict of the functions and commands that should have it. The signatures, the
estimator, the command line (`cli/options.py`) and the reference pages are built from the fields.

Nothing heavy is imported here, so that `certsynth --help` stays fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal, Required, TypedDict

from certsynth.algorithm.checks import OneOf, Share, WholeNumber, amount, failure_probability
from certsynth.algorithm.declaration import BASIC, BUDGET, MADE, OUTPUT, PROMISED, Option
from certsynth.algorithm.registry import method_names
from certsynth.base.progress import Progress, silent

AUTO_MECHANISMS = ("identity", "haar", "haar-hilbert", "haar-weighted", "quad-tree")
"""The mechanisms among which `release` chooses by default."""

MECHANISMS = (*AUTO_MECHANISMS, "haar-tour", "haar-noisy-total", *method_names("mechanism"))

MAX_ROWS = 50_000_000
RESOLUTION = WholeNumber(1, 1024, auto=True)
ROWS = WholeNumber(1, MAX_ROWS)

Number = str | int | float | Fraction | Decimal
"""A number that is read exactly: by its decimal text, even if it is a float."""


# ---------------------------------------------------------------------------------------------- groups of options


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
            flag="workload",
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


# ------------------------------------------------------------------------- options of each function and command


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
    """Options that `CertifiedSynthesizer` stores."""


class CallOptions(NoiseOptions, ProgressOptions, total=False):
    """Options of a single call, which are not stored."""


class FitOptions(CallOptions, total=False):
    """Options of `CertifiedSynthesizer.fit`."""

    refit: Annotated[
        bool,
        Option(
            "Spend the budget once more, on top of what was spent before: what several fits on the same rows cost adds "
            "up.",
            BUDGET,
            default=False,
            shell=False,
        ),
    ]


class ReleaseOptions(EstimatorOptions, CallOptions, total=False):
    """Options of `release`."""


class PlanOptions(
    BudgetOptions,
    ColumnOptions,
    CertificateOptions,
    MethodOptions,
    MemoryOptions,
    ProgressOptions,
    total=False,
):
    """Options of `plan`."""

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
    """Options of `certify`."""

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
    """Options of `evaluate`."""
