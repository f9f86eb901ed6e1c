"""A sentence on subsets of columns with a bound of their own, for the report and the command line."""

from __future__ import annotations

from collections.abc import Sequence

from certsynth.record.record import ExceptionsRecord

_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_SUBSETS = {1: "columns", 2: "pairs of columns"}

MAX_NAMED = 12
"""Exceptions that a sentence names, at most."""


def promise(
    found: ExceptionsRecord,
    sizes: set[int],
    names: Sequence[str],
    bounds: tuple[str, str],
    *,
    listed: str = "in certificate.json",
) -> str:
    """The bound of all others and that of the exceptions in a sentence, given the sizes of all subsets and, as texts,
    the names of the exceptions, the bound of all others and theirs.

    Above MAX_NAMED exceptions only their number is stated, and where they are `listed`.

    >>> pairs = ExceptionsRecord((("a", "b"), ("c", "d")), bound=0.55, bound_of_others=0.07)
    >>> promise(pairs, {2}, ["a × b", "c × d"], ("0.07", "0.55"))
    'All pairs of columns but these two are within 0.07: a × b, c × d, which are within 0.55.'
    """
    if found.bound_of_others >= 1:
        return ""
    number, (others, own) = len(names), bounds
    what = _SUBSETS[sizes.copy().pop()] if len(sizes) == 1 else "subsets"
    if number > MAX_NAMED:
        rest = f"are within {own}" if found.bound < 1 else "have no bound that says anything"
        return f"All {what} but {number:,} are within {others}; the exceptions, listed {listed}, {rest}."
    which = "one" if number == 1 else f"these {_NUMBERS[number - 1]}"
    are = "is" if number == 1 else "are"
    rest = f"which {are} within {own}" if found.bound < 1 else "of which nothing is certified"
    return f"All {what} but {which} are within {others}: {', '.join(names)}, {rest}."
