"""The largest error of a share is that over all sets and boxes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from all_sets import boxes_of, largest_box_sum, largest_sum, sets_of
from certsynth.base.arrays import Ints
from certsynth.certificate import shares
from certsynth.certificate.shares import largest_box_error, largest_share_error
from certsynth.domain import Cells


def line(points: int, missing: int = 0) -> Cells:
    return Cells(places=np.arange(points), steps=max(points - 1, 1), off_line=missing)


def labels(points: int) -> Cells:
    return Cells(places=np.empty(0, np.int64), steps=1, off_line=points)


COLUMNS = [line(1), line(1, 1), line(2, 1), line(3), line(5, 1), labels(1), labels(2), labels(5)]
LONG = [line(20), line(37, 1), labels(3)]
LARGEST = 2**49
"""Of 51 × 51 values: their absolute values may sum to almost 2^61."""


def random_values(rng: np.random.Generator, size: int) -> Ints:
    """Small numbers with ties and zeros, blocks of one sign, or the largest that fit."""
    scale = [2, 50, LARGEST][rng.integers(3)]
    values = rng.integers(-scale, scale + 1, size)
    values[rng.random(size) < rng.choice([0, 0.5, 0.9])] = 0
    if rng.random() < 0.3:
        values[: rng.integers(size + 1)] = np.abs(values[: rng.integers(size + 1)]).max(initial=0)
    return values


def wrong_shares(error: Callable[..., int], cases: int) -> int:
    rng = np.random.default_rng(0)
    wrong = 0
    for _ in range(cases):
        for cells in [*COLUMNS, *LONG]:
            values = random_values(rng, cells.size)
            wrong += error(cells, values) != largest_sum(sets_of(cells), values.tolist())
    return wrong


def test_the_error_of_a_share_is_the_largest_of_all_sets():
    assert wrong_shares(largest_share_error, 8) == 0
    assert wrong_shares(lambda cells, values: largest_share_error(cells, values.tolist()), 2) == 0


def test_integers_of_any_size_are_exact():
    assert largest_share_error(line(2, 1), [2**200, -1, 2**100]) == 2**200 + 2**100
    assert largest_share_error(labels(3), [2**200, -1, 2**100]) == 2**200 + 2**100


def test_shares_that_leave_out_a_set_are_seen():
    def largest_prefix(cells: Cells, values: Ints) -> int:
        return int(np.abs(np.cumsum(values)).max())

    def without_last(cells: Cells, values: Ints) -> int:
        return largest_share_error(cells, [*values[:-1].tolist(), 0])

    def both_signs_at_once(cells: Cells, values: Ints) -> int:
        sums = np.cumsum([0, *values[: len(cells.places)]])
        return int(sums.max() - sums.min() + np.abs(values[len(cells.places) :]).sum())

    for wrong in (largest_prefix, without_last, both_signs_at_once):
        assert wrong_shares(wrong, 4) > 5


def wrong_boxes(columns: list[Cells], cases: int, least: Callable[[int], int] = lambda true: 0, seed: int = 0) -> int:
    """Of all pairs of columns, with random differences; `least` is made of the true maximum."""
    rng = np.random.default_rng(seed)
    wrong = 0
    for _ in range(cases):
        for first in columns:
            for second in columns:
                values = random_values(rng, first.size * second.size)
                true = largest_box_sum(first, second, values.reshape(first.size, second.size))
                known = least(true)
                wrong += largest_box_error(first, second, values, least=known) != max(known, true)
    return wrong


def test_the_error_of_a_box_is_the_largest_of_all_boxes():
    assert wrong_boxes(COLUMNS, 12) == 0


def test_boxes_of_long_lines_are_all_tried_or_cannot_be_the_largest():
    assert wrong_boxes(LONG, 4) == 0


@pytest.mark.slow
def test_many_boxes_are_the_largest_of_all():
    assert wrong_boxes(COLUMNS, 1_000, seed=1) == 0
    assert wrong_boxes([*LONG, line(50, 1)], 40, seed=2) == 0


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    "least", [lambda true: max(true - 1, 0), lambda true: true, lambda true: true + 1, lambda _: 1]
)
def test_an_error_known_before_changes_no_larger_one(least):
    assert wrong_boxes([*COLUMNS, LONG[1]], 3, least) == 0


def test_matrix_products_try_the_boxes_of_the_definition():
    rng = np.random.default_rng(3)
    for first in COLUMNS:
        for second in COLUMNS:
            table = rng.integers(-9, 10, (first.size, second.size))
            sums = [int(table[np.ix_(sorted(a), sorted(b))].sum()) for a, b in boxes_of(first, second)]
            assert largest_box_sum(first, second, table) == max(map(abs, sums))


exact_set = shares._best_set.py_func


def bound_only(end, start, other, second_line, enough):
    """Adds the missing value whatever its sign."""
    values = end - start + other
    if second_line == 0:
        return np.abs(values).sum()
    return np.ptp(values[: second_line + 1]) + np.abs(values[second_line + 1 :]).sum()


def without_other(end, start, other, second_line, enough):
    """Forgets the missing row."""
    return exact_set(end, start, 0 * other, second_line, enough)


def one_sign(end, start, other, second_line, enough):
    """Forgets that a share may be too small."""
    if second_line == 0:
        return np.maximum(end - start + other, 0).sum()
    return exact_set(end, start, other, second_line, enough)


@pytest.mark.parametrize("wrong", [bound_only, without_other, one_sign])
def test_boxes_that_are_left_out_are_seen(wrong, monkeypatch):
    monkeypatch.setattr(shares, "_largest_box", shares._largest_box.py_func)
    assert wrong_boxes(COLUMNS, 1) == 0  # the same without compilation
    monkeypatch.setattr(shares, "_best_set", wrong)
    assert wrong_boxes(COLUMNS, 2) > 5


def test_skipping_too_far_is_seen(monkeypatch):
    """Intervals are skipped by the errors of single rows: errors that are too small skip the largest."""

    def too_small_alone(end, start, other, second_line, enough):
        alone = enough == 0 and not start.any() and not other.any()
        return 0 if alone else exact_set(end, start, other, second_line, enough)

    monkeypatch.setattr(shares, "_largest_box", shares._largest_box.py_func)
    monkeypatch.setattr(shares, "_best_set", too_small_alone)
    assert wrong_boxes([line(20), line(7, 1)], 2) > 2


def test_a_line_has_one_missing_value_at_most():
    odd = Cells(places=np.arange(3), steps=2, off_line=2)
    for first, second in ((odd, labels(2)), (labels(2), odd), (odd, line(9)), (line(2), odd)):
        with pytest.raises(ValueError, match="at most one point"):
            largest_box_error(first, second, np.arange(first.size * second.size))
