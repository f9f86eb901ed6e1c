"""Writes options.md, beside this file, from the declarations of all options."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from certsynth.algorithm.declaration import GROUPS, Declared, declared, python_help
from certsynth.algorithm.options import (
    CertifyOptions,
    CheckOptions,
    EstimatorOptions,
    EvaluateOptions,
    PlanOptions,
    ReleaseOptions,
)

PAGE = Path(__file__).with_name("options.md")

TAKERS: Mapping[str, type] = {
    "check": CheckOptions,
    "plan": PlanOptions,
    "release": ReleaseOptions,
    "certify": CertifyOptions,
    "evaluate": EvaluateOptions,
    "CertifiedSynthesizer": EstimatorOptions,
}

HEAD = """# Options

What the functions take as keywords, and the commands of the same name as flags. Where no flag is given, only Python has
the option. Options that only the command line has are on the page of [commands](commands.md).
"""

TAIL = """
This page is written by `python docs/reference/make_options.py`.
"""


def page() -> str:
    """The page as it must be."""
    return HEAD + "".join(sections(TAKERS)) + TAIL


def sections(takers: Mapping[str, type]) -> Iterator[str]:
    """A table for each group."""
    for group in GROUPS:
        rows = [row(each, names) for each, names in who_takes(takers).items() if each.option.group == group]
        if rows:
            head = "| option | flag | taken by | default | meaning |\n|---|---|---|---|---|\n"
            yield f"\n## {group}\n\n{head}" + "".join(rows)


def who_takes(takers: Mapping[str, type]) -> dict[Declared, list[str]]:
    """Every option with those that take it; one name may stand for two options."""
    found: dict[Declared, list[str]] = {}
    for name, options in takers.items():
        for each in declared(options).values():
            found.setdefault(each, []).append(name)
    return found


def row(each: Declared, names: list[str]) -> str:
    option = each.option
    flag = f"`{each.flag}{f' {option.metavar}' if option.metavar else ''}`" if option.shell else ""
    plain = option.default is None or callable(option.default)
    default = "required" if each.needed else "" if plain else f"`{option.default!r}`"
    cells = [f"`{each.name}`", flag, ", ".join(names), default, python_help(option)]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
