"""Text that fits the terminal: its width, wrapped paragraphs, tables, commands to type, and colour."""

from __future__ import annotations

import os
import re
import shlex
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TextIO

import click

from certsynth.base.text import table as align

PIPE_WIDTH = 100
"""Columns of a line where output is not a terminal, and COLUMNS is not set."""

MIN_WIDTH = 40
"""Columns below which nothing is wrapped more narrowly."""

NARROW = 100
"""Columns below which tables leave out what can be missed."""

MIN_CELL_WIDTH = 12
"""Columns that a wrapped cell of a table keeps, at least."""

_MAX_WIDTH_DIGITS = 5

_moved: ContextVar[int] = ContextVar("moved", default=0)

_KEPT = "\ue000"  # stands for a space at which no line ends
_HYPHEN = "\ue001"  # stands for a hyphen at which no line ends
_WITHIN_WORD = re.compile(r"(?<=\w)-(?=\w)")
_SEPARATORS = frozenset("_-./:,;=()[]|")
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_TOGETHER = re.compile(r"(?<=±) | (?=%)| (?=× [0-9])|(?<=×) (?=[0-9])|(?<=[εδρ]) (?==)|(?<=[εδρ] =) ")


class Styled(str):
    """A line in a style, for terminals with colour: `style` is that of `click.style`, for the first `length` letters of
    the line, or for all."""

    __slots__ = ("length", "style")

    style: dict[str, Any]
    length: int | None

    def __new__(cls, line: str, *, length: int | None = None, **style: Any) -> Styled:
        self = super().__new__(cls, line)
        self.style, self.length = style, length
        return self

    def painted(self) -> str:
        """The line with its escape codes."""
        length = len(self) if self.length is None else self.length
        return click.style(self[:length], **self.style) + self[length:] if self else ""


def strong(line: str) -> Styled:
    """What matters most."""
    return Styled(line, bold=True)


def heading(line: str) -> Styled:
    return Styled(line, fg="cyan", bold=True)


def width(stream: TextIO | None = None) -> int:
    """The columns of the terminal; elsewhere those of COLUMNS, or PIPE_WIDTH. Less by what lines are `indented`."""
    return max(_width(sys.stdout if stream is None else stream) - _moved.get(), MIN_WIDTH)


def _width(stream: TextIO | None) -> int:
    stated = os.environ.get("COLUMNS", "")
    if stated.isascii() and stated.isdigit() and len(stated) <= _MAX_WIDTH_DIGITS and int(stated):
        return int(stated)
    if stream is None or not is_terminal(stream):
        return PIPE_WIDTH
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):  # a terminal that does not say
        return 80


@contextmanager
def indented(columns: int) -> Iterator[None]:
    """Make text for lines that will be moved to the right by so many columns."""
    token = _moved.set(_moved.get() + columns)
    try:
        yield
    finally:
        _moved.reset(token)


def indent(line: str, columns: int) -> str:
    """The same line further to the right."""
    moved = f"{' ' * columns}{line}" if line else ""
    if not isinstance(line, Styled):
        return moved
    return Styled(moved, length=None if line.length is None else line.length + columns, **line.style)


def is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def show(lines: Iterable[str]) -> None:
    """Print lines on standard output, wrapped; tables fit already. Colour is for terminals, unless NO_COLOR is set."""
    shown = [part for line in lines for part in wrap(line)]
    click.echo("\n".join(map(_paint, shown)), color=_colour())


def wrap(line: str, *, hanging: int | None = None, columns: int | None = None) -> list[str]:
    """Wrap a line at spaces, and never within a number with its sign or unit.

    What follows the first line is indented like it, and by two more for an item of a list; or by `hanging`. A word that
    is longer than a line, such as a path, stands alone at the margin, so that it can be copied in one piece: it is the
    only text that a terminal has to break.

    >>> wrap("- the noisy errors", columns=12)
    ['- the noisy', '  errors']
    >>> wrap("  a/rather/long/path: written", columns=12)
    ['a/rather/long/path', '  written']
    """
    columns = width() if columns is None else columns
    if len(line) <= columns:
        return [line]
    margin = len(line) - len(line.lstrip(" "))
    if hanging is None:
        hanging = margin + 2 * line[margin:].startswith(("- ", "note: ", "next: ", "error: "))
    parts = textwrap.wrap(
        _TOGETHER.sub(_KEPT, line[margin:]),
        columns,
        initial_indent=" " * margin,
        subsequent_indent=" " * hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
    texts = [_alone(part, columns) for part in (part.replace(_KEPT, " ") for part in parts)]
    if isinstance(line, Styled):
        if line.length is None:
            return [Styled(part, **line.style) for part in texts]
        return [Styled(texts[0], length=line.length, **line.style), *texts[1:]]
    return texts


def _alone(line: str, columns: int) -> str:
    """The line; if it is one word that is too long, at the margin and without the sign that follows in a sentence."""
    word = line.strip(" ")
    return line if len(line) <= columns or " " in word else word.rstrip(":,;").removesuffix(".")


def wrap_entry(line: str) -> list[str]:
    """Wrap an entry of a schema between the values of its list, where TOML allows it."""
    margin = len(line) - len(line.lstrip(" "))
    kept = _QUOTED.sub(lambda found: found[0].replace(" ", _KEPT), line)
    return [part.replace(_KEPT, " ") for part in wrap(kept, hanging=margin + 2)]


def shorten(line: str) -> str:
    """A line that is cut after a word if it is longer than the terminal is wide."""
    return line if len(line) <= width() else f"{line[: width() - 1].rpartition(' ')[0]} …"


def command(words: Sequence[str], *, before: str = "next: ", columns: int | None = None) -> list[str]:
    """A command to type, as lines that a shell reads as one; a flag stays on the line of its value.

    >>> command(["certsynth", "release", "DATA", "--epsilon", "1"], columns=30)
    ['next: certsynth release DATA \\\\', '    --epsilon 1']
    """
    columns = width() if columns is None else columns
    margin = len(before) - len(before.lstrip(" ")) + 4
    whole = before + " ".join(map(_quote, words))
    if len(whole) <= columns:
        return [whole]
    parts: list[str] = []
    for word in words:
        follows_flag = parts and parts[-1].startswith("-") and " " not in parts[-1] and not word.startswith("-")
        if follows_flag:
            parts[-1] += f" {_quote(word)}"
        else:
            parts.append(_quote(word))
    lines, line = [], before + parts[0]
    for part in parts[1:]:
        if len(line) + 1 + len(part) + 2 <= columns:
            line += f" {part}"
        else:
            lines.append(f"{line} \\")
            line = " " * margin + part
    return [*lines, line]


def _quote(word: str) -> str:
    """A word as a shell reads it; in double quotes if that is easier to read."""
    plain = "'" in word and not any(letter in word for letter in '"$`\\!')
    return f'"{word}"' if plain else shlex.quote(word)


def table(
    rows: Iterable[tuple[str, ...]], *, text: int | None = None, flexible: int = 0, columns: int | None = None
) -> list[str]:
    """Rows as aligned lines; columns after the first `text` hold numbers and are right-aligned.

    If a line is longer than the terminal is wide, the cells of the `flexible` column are wrapped.

    >>> table([("columns", "bound"), ("a long name × another", "0.1")], text=1, columns=24)
    ['  columns        bound', '  a long name ×    0.1', '  another']
    """
    rows = list(rows)
    columns = width() if columns is None else columns
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    excess = 2 + sum(widths) + 2 * (len(widths) - 1) - columns
    if excess > 0:
        least = max(MIN_CELL_WIDTH, widths[flexible] - excess)
        rows = [part for row in rows for part in _wrapped_row(row, flexible, least)]
    return align(rows, text=text)


def _wrapped_row(row: tuple[str, ...], flexible: int, columns: int) -> list[tuple[str, ...]]:
    """A row as several, whose flexible cells hold a part each; a word that is too long is split."""
    margin = len(row[flexible]) - len(row[flexible].lstrip(" "))
    words = row[flexible].split(" ")
    broken = " ".join(part for word in words for part in _split(word, columns - margin))
    cells = wrap(broken, hanging=margin, columns=columns)
    first = tuple(cells[0] if j == flexible else cell for j, cell in enumerate(row))
    return [first, *(tuple(cell if j == flexible else "" for j in range(len(row))) for cell in cells[1:])]


def _split(word: str, columns: int) -> list[str]:
    """Parts of a word of at most so many columns: it is split after a sign, or else within letters, and within a number
    only if that is longer than a part.

    >>> _split("household_income_1234", 15), _split("abc123456", 5), _split("short", 9)
    (['household_', 'income_1234'], ['abc', '12345', '6'], ['short'])
    """
    if len(word) <= columns:
        return [word]
    end = max((at for at in range(1, columns + 1) if word[at - 1] in _SEPARATORS), default=columns)
    while end > 1 and word[end - 1].isdigit() and word[end].isdigit():
        end -= 1
    end = columns if end == 1 and word[0].isdigit() else end
    return [word[:end], *_split(word[end:], columns)]


def fits(lines: Iterable[str]) -> bool:
    """Whether no line is longer than the terminal is wide."""
    return max(map(len, lines), default=0) <= width()


def beside(heads: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Texts to the right of aligned heads, wrapped there; below them if too little room is left."""
    indent = max(map(len, heads), default=0) + 2
    if indent > width() // 2:
        return [line for head, said in zip(heads, texts, strict=True) for line in (head, *wrap(f"    {said}"))]
    whole = [f"{head.ljust(indent)}{said}" for head, said in zip(heads, texts, strict=True)]
    return [part for line in whole for part in wrap(line, hanging=indent)]


class HelpFormatter(click.HelpFormatter):
    """Pages of help on which no line ends at a hyphen within a word."""

    def write_text(self, text: str) -> None:
        super().write_text(_WITHIN_WORD.sub(_HYPHEN, text))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        super().write_dl([(term, _WITHIN_WORD.sub(_HYPHEN, said)) for term, said in rows], col_max, col_spacing)

    def getvalue(self) -> str:
        return super().getvalue().replace(_HYPHEN, "-")


class HelpContext(click.Context):
    """The context of commands with such pages."""

    formatter_class = HelpFormatter


def _colour() -> bool | None:
    """False where colour is not wanted; None: click decides, and removes it unless output is a terminal."""
    return False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None


def _paint(line: str) -> str:
    return line.painted() if isinstance(line, Styled) else line


def say_wrapped(line: str) -> None:
    """Print a line on standard error: wrapped and with colour in a terminal, and one line elsewhere."""
    if not is_terminal(sys.stderr):
        click.echo(line, err=True)
        return
    head, colon, _ = line.partition(": ")
    colours = {"error": "red", "interrupted": "red", "note": "yellow"}
    styled = Styled(line, length=len(head) + 1, fg=colours[head], bold=True) if colon and head in colours else line
    click.echo("\n".join(map(_paint, wrap(styled, columns=width(sys.stderr)))), err=True, color=_colour())
