"""Write the list of modules into architecture.md: folder by folder, each with the first sentence of its docstring."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).with_name("architecture.md")
PACKAGE = Path(__file__).parents[1] / "src" / "certsynth"

START, END = "<!-- modules -->", "<!-- end of modules -->"

FOLDERS = (
    "",
    "algorithm",
    "algorithm/adaptive",
    "algorithm/low_dimensional",
    "domain",
    "sources",
    "queries",
    "mechanisms",
    "transport",
    "projection",
    "certificate",
    "planning",
    "record",
    "artefact",
    "answers",
    "report",
    "cli",
    "base",
)
"""In the order in which a newcomer should read them."""


def page() -> str:
    """The page as it must be."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(START)
    return f"{before}{START}\n\n{table()}\n{END}{rest.split(END)[1]}"


def table() -> str:
    return "".join(["| module | what it is for |\n|---|---|\n", *rows()])


def rows() -> Iterator[str]:
    for folder in FOLDERS:
        files = sorted((PACKAGE / folder).glob("*.py"), key=lambda file: (file.name != "__init__.py", file.name))
        for file in files:
            if file.name == "__init__.py" and folder:
                yield f"| **`{folder}/`** | **{summary(file)}** |\n"
            else:
                yield f"| `{file.relative_to(PACKAGE).as_posix()}` | {summary(file)} |\n"


def summary(file: Path) -> str:
    """The first sentence of a module's docstring, without the full stop."""
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(text.partition("\n\n")[0].split())
    return re.split(r"(?<!Eq)\.(?: |$)", paragraph)[0].replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
