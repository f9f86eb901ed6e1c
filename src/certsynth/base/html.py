"""Small HTML tables for notebooks. All text is escaped; nothing is loaded and nothing runs."""

from __future__ import annotations

import html
from collections.abc import Sequence


def paragraph(text: str, *, strong: bool = False) -> str:
    escaped = html.escape(text)
    return f"<p><strong>{escaped}</strong></p>" if strong else f"<p>{escaped}</p>"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of texts.

    >>> table(["a"], [["<b>"]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    names = "".join(f"<th>{html.escape(name)}</th>" for name in head)
    cells = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{names}</tr></thead><tbody>{cells}</tbody></table>"


def block(*parts: str) -> str:
    """Join parts that are already HTML."""
    return f"<div>{''.join(parts)}</div>"
