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

from certsynth.algorithm.checks import (
    OneOf,
    Share,
    WholeNumber,
    amount,
    column_names,
    column_subsets,
    failure_probability,
)
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
        Sequence[str] | None,
        Option("Use only these columns of the schema.", BASIC, check=column_names, typed="names", metavar="A,B,…"),
    ]
    sparsity: Annotated[
        int | None,
        Option(
            "The number of columns that a statistic may use: 2 by default, or 1 if there is only one column.",
            PROMISED,
            typed="whole",
            metavar="S",
        ),
    ]
    subsets: Annotated[
        Sequence[Sequence[str]] | None,
        Option(
            "The subsets of columns to certify, of any sizes, instead of {sparsity}; columns that no subset names are "
            "omitted.",
            PROMISED,
            check=column_subsets,
            typed="file",
            flag="workload",
            metavar="FILE",
            in_shell="A TOML file lists them.",
            in_python="Each is a list of names.",
        ),
    ]


class PersonOptions(TypedDict, total=False):
    person: Annotated[
        str | None,
        Option(
            "Protect persons instead of single rows: the column of the table that says whose row it is. It is read, "
            "but never released. By default the schema says it.",
            PROMISED,
            metavar="COLUMN",
        ),
    ]
    rows_per_person: Annotated[
        int | None,
        Option(
            "The most rows of one person that are kept. Noise grows with it, and the certificate is about the rows "
            "that are kept.",
            PROMISED,
            typed="whole",
            metavar="K",
        ),
    ]
    weigh: Annotated[
        str | None,
        Option(
            "What counts 1: each kept row (rows, the default), or each person, evenly divided among their kept rows "
            "(persons; {rows_per_person} is then at most 12).",
            PROMISED,
            check=OneOf(("rows", "persons")),
        ),
    ]
    missing_person: Annotated[
        str | None,
        Option(
            "Rows that do not say whose they are: drop leaves them out, the default; separate takes each for a person "
            "of its own.",
            PROMISED,
            check=OneOf(("drop", "separate")),
        ),
    ]


class BudgetOptions(TypedDict, total=False):
    epsilon: Annotated[
        Number | None,
        Option(
            "Privacy budget ε, above 0 and at most 100; smaller is more private. Alone it means pure ε-differential "
            "privacy.",
            BUDGET,
            check=amount,
            metavar="E",
        ),
    ]
    delta: Annotated[
        Number | None,
        Option(
            "Use (ε, δ)-differential privacy with Gaussian noise: above 0 and at most 0.01, for example 1e-6.",
            BUDGET,
            check=failure_probability,
            metavar="D",
        ),
    ]
    rho: Annotated[
        Number | None,
        Option(
            "Budget ρ of zero-concentrated differential privacy, alone or instead of {epsilon} or {delta}.",
            BUDGET,
            check=amount,
            metavar="R",
        ),
    ]


class LedgerOptions(TypedDict, total=False):
    ledger: Annotated[
        str | Path | None,
        Option(
            "A file that records the budget spent on a data set, and refuses requests that would exceed its cap.",
            BUDGET,
            typed="file",
            metavar="FILE",
        ),
    ]
    cap: Annotated[
        Number | None,
        Option(
            "The largest total budget of the data set, in the unit of the budget; fixed when the ledger is first used.",
            BUDGET,
            check=amount,
            metavar="E",
        ),
    ]
    dataset: Annotated[
        str | None,
        Option(
            "The identifier of the ledger's data set, fixed when it is first used; by default the schema's table name.",
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
            "whether the row exists (add-remove; that number is private). With {person}, all rows of a person are "
            "meant.",
            PROMISED,
            default="replace-one",
            check=OneOf(("replace-one", "add-remove")),
        ),
    ]

    exceptions: Annotated[
        int | None,
        Option(
            "The number of subsets of columns, up to 1,000, that get bounds of their own, so that they do not widen "
            "those of all others: chosen privately, for a hundredth of the budget each, or three hundredths in all. By "
            "default a release that covers at least 100 pairs has 3, and up to a fifth of them if it has many rows.",
            PROMISED,
            check=WholeNumber(0, 1_000),
            typed="natural",
            metavar="N",
        ),
    ]


class MethodOptions(TypedDict, total=False):
    certificate_share: Annotated[
        Number | None,
        Option(
            "Share of the budget for the direct certificate, which measures the result: chosen by the plan, 0.09 for "
            "many rows and up to 0.4 for few; 0 for none.",
            PROMISED,
            check=Share(Fraction(0), "0.05"),
            metavar="SHARE",
        ),
    ]
    resolution: Annotated[
        int | Literal["auto"] | None,
        Option(
            "The number of cells or groups into which a column is divided; auto, the default, chooses the best.",
            MADE,
            check=RESOLUTION,
            typed="auto",
            metavar="[auto|K]",
        ),
    ]
    mechanism: Annotated[
        str | None,
        Option(
            "How noise is added to counts: identity (cell by cell), haar (as wavelets along a winding path), "
            "haar-hilbert (along a Hilbert curve), haar-weighted (the same, with weighted levels), quad-tree (as "
            "nested squares), haar-tour (along a tour, for any metric), haar-noisy-total (as in the paper); auto, the "
            "default, chooses the best of the first five, or adaptive: single columns are measured first, then those "
            "pairs of columns that depend on each other, by private scores; it is the default for twelve columns and "
            "more. low-dimensional is for statistics of all columns at once if "
            "rows lie on a curve, a surface or a few points: it uses one grid of all columns, as fine as that allows; "
            "low-dimensional-l1 is the variant of the paper.",
            MADE,
            check=OneOf(("auto", *MECHANISMS)),
        ),
    ]
    target: Annotated[
        str | None,
        Option(
            "The column that models will predict: its pairs with all other columns are always measured, and with less "
            "noise, even if many pairs are not. Default: the column whose entry in the schema says target = true.",
            MADE,
            metavar="COLUMN",
        ),
    ]
    projection: Annotated[
        str,
        Option(
            "How rows are fitted: as particles that swap values, or by a linear program over public rows (public), all "
            "cells (full-grid), or points drawn from the noisy counts (drawn).",
            MADE,
            default="auto",
            check=OneOf(("auto", "particles", "public", "full-grid", "drawn")),
        ),
    ]
    loss: Annotated[
        str | None,
        Option(
            "Fit by a linear program that minimises this loss: transport (tight), or the paper's path loss.",
            MADE,
            check=OneOf(("path", "transport")),
        ),
    ]
    preset: Annotated[str | None, Option("Use all settings of the paper.", MADE, check=OneOf(method_names("preset")))]
    measure_dropped: Annotated[
        bool,
        Option(
            "Spend a fiftieth of the budget on the share of rows that are dropped because their person has more than "
            "are kept, and certify it.",
            PROMISED,
            default=False,
            typed="flag",
        ),
    ]


class EmissionOptions(TypedDict, total=False):
    public: Annotated[
        Any,
        Option("A public table with the same columns, as a starting point.", MADE, typed="file", metavar="FILE"),
    ]
    rows: Annotated[
        int | None,
        Option(
            "The number of rows to make: by default the number of private rows, at most a million, or 100,000 if that "
            "number is private.",
            MADE,
            check=ROWS,
            typed="whole",
            metavar="M",
        ),
    ]
    candidates: Annotated[
        int,
        Option(
            "Make this many tables from the same noisy counts and choose one of them privately.",
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
            "Seed of the steps that need no secrecy, such as the order of rows. The noise has no seed.",
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
            in_python="Without it the release is kept in memory, and `Release.save` writes it.",
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
            "The most bytes of memory to use: by default half of the available memory. With less, rows are read more "
            "often.",
            MADE,
            shell=False,
        ),
    ]


class ProgressOptions(TypedDict, total=False):
    progress: Annotated[
        Progress,
        Option("A callback that reports progress; silent by default.", OUTPUT, default=silent, shell=False),
    ]


class NoiseOptions(TypedDict, total=False):
    noise: Annotated[
        Any,
        Option("For tests: a release made with custom noise cannot be saved.", MADE, shell=False),
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
    PersonOptions,
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
            "Spend the budget again, in addition to earlier fits: the costs of several fits on the same rows add up.",
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
    PersonOptions,
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
                "The number of rows that the private table has or will have; no table is read.",
                BASIC,
                check=WholeNumber(1, MAX_ROWS, "the number of private rows,"),
                typed="whole",
                metavar="N",
            ),
        ]
    ]
    persons: Annotated[
        int | None,
        Option(
            "If the schema names persons, how many of them the table has or will have, by public knowledge; the plan "
            "then shows what it costs to keep more rows of each. By default, each person has the most rows that are "
            "kept.",
            BASIC,
            check=WholeNumber(1, MAX_ROWS, "the number of persons,"),
            typed="whole",
            metavar="N",
        ),
    ]


class CertifyOptions(
    BudgetOptions,
    LedgerOptions,
    ColumnOptions,
    CertificateOptions,
    PersonOptions,
    LatticeOptions,
    MemoryOptions,
    CallOptions,
    total=False,
):
    """Options of `certify`."""

    per_subset: Annotated[
        bool,
        Option(
            "Spend the budget on all subsets of columns at once, and give each its own bound, slightly wider.",
            PROMISED,
            default=False,
            typed="flag",
        ),
    ]


class EvaluateOptions(ColumnOptions, PersonOptions, LatticeOptions, MemoryOptions, ProgressOptions, total=False):
    """Options of `evaluate`."""

    largest: Annotated[
        bool,
        Option(
            "Compute the largest loss only, and skip subsets of columns that cannot have it: many times faster with "
            "many columns.",
            PROMISED,
            default=False,
            typed="flag",
        ),
    ]


class CheckOptions(PersonOptions, ProgressOptions, total=False):
    """Options of `check`."""

    examples: Annotated[
        bool,
        Option("Quote up to three texts of each column that does not fit.", OUTPUT, default=False, typed="flag"),
    ]
