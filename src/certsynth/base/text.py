"""Tables as plain text."""

from __future__ import annotations

from collections.abc import Iterable


def table(rows: Iterable[tuple[str, ...]], *, text: int | None = None) -> list[str]:
    """Rows as aligned lines; columns after the first `text` hold numbers and are right-aligned.

    >>> table([("name", "size"), ("a", "10")], text=1)
    ['  name  size', '  a       10']
    """
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    text = len(widths) if text is None else text
    return [
        "  "
        + "  ".join(
            cell.ljust(width) if j < text else cell.rjust(width)
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
