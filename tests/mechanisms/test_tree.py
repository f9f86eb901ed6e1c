"""Least squares on a tree: against one dense problem that knows nothing of levels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import oracles
from certsynth.mechanisms.tree import fit_tree

ROUNDING = 1e-9


class Tree:
    """Cells of several levels, of which each has one or more parts, and how large the noise of each level is."""

    def __init__(self, sizes: list[int], above: list[np.ndarray], variances: list[float]) -> None:
        self.sizes, self.above, self.variances = sizes, above, variances

    @classmethod
    def random(cls, rng: np.random.Generator) -> Tree:
        """From 1 to 4 levels and 1 to 5 parts each, in no order; variances between 0.01 and 100."""
        sizes, above = [int(rng.integers(1, 6))], []
        for _ in range(int(rng.integers(0, 4))):
            parts = np.repeat(np.arange(sizes[-1]), rng.integers(1, 6 if sizes[-1] < 20 else 3, sizes[-1]))
            above.append(rng.permutation(parts))
            sizes.append(len(parts))
        return cls(sizes, above, (10 ** rng.uniform(-2, 2, len(sizes))).tolist())

    def design(self) -> np.ndarray:
        """All levels as one matrix that acts on the finest cells."""
        members = [np.eye(self.sizes[-1])]
        for size, codes in zip(self.sizes[-2::-1], self.above[::-1], strict=True):
            members.insert(0, np.equal.outer(np.arange(size), codes) @ members[0])
        return np.vstack(members)

    def split(self, flat: np.ndarray) -> list[np.ndarray]:
        return np.split(flat, np.cumsum(self.sizes)[:-1], axis=-1)

    def fitted(self, flat: np.ndarray, total: float) -> np.ndarray:
        design = self.design()
        variances = np.repeat(self.variances, self.sizes)
        return design @ oracles.least_squares(design, flat, variances, total)

    def consistent(self, flat: np.ndarray, total: np.ndarray) -> np.ndarray:
        return np.concatenate(fit_tree(self.split(flat), self.variances, self.above, total), axis=-1)


TREES = {f"random {seed}": Tree.random(np.random.default_rng(seed)) for seed in range(40)} | {
    "one level": Tree([4], [], [2.0]),
    "one cell": Tree([1], [], [2.0]),
    "a chain": Tree([1, 1, 1], [np.array([0]), np.array([0])], [1.0, 5.0, 0.1]),
    "two halves": Tree([2, 4], [np.array([0, 0, 1, 1])], [1.0, 1.0]),
    "very uneven": Tree([2, 12], [np.array([0] + [1] * 11)], [1.0, 3.0]),
    "a sure top": Tree([3, 7], [np.array([0, 0, 1, 2, 2, 2, 2])], [1e-9, 1.0]),
    "a sure bottom": Tree([3, 7], [np.array([0, 0, 1, 2, 2, 2, 2])], [1.0, 1e-9]),
}
anywhere = pytest.mark.parametrize("name", TREES)


@anywhere
def test_counts_are_the_least_squares_fit(name: str) -> None:
    tree, rng = TREES[name], np.random.default_rng(1)
    noisy, total = rng.normal(size=(3, sum(tree.sizes))) * 20, np.array([0.0, 30.0, -7.5])
    found = tree.consistent(noisy, total)
    for draw in range(3):
        np.testing.assert_allclose(found[draw], tree.fitted(noisy[draw], total[draw]), atol=1e-7)


def test_other_variances_give_another_fit() -> None:
    """Control: the test above looks at the weights of the levels."""
    tree = TREES["very uneven"]
    noisy = np.random.default_rng(1).normal(size=(1, sum(tree.sizes))) * 20
    other = Tree(tree.sizes, tree.above, [3.0, 1.0])
    assert np.abs(other.consistent(noisy, np.zeros(1)) - tree.fitted(noisy[0], 0.0)).max() > 0.1


@anywhere
def test_cells_are_the_sums_of_their_parts_and_all_sum_to_the_total(name: str) -> None:
    tree, rng = TREES[name], np.random.default_rng(2)
    total = rng.normal(size=4) * 100
    levels = tree.split(tree.consistent(rng.normal(size=(4, sum(tree.sizes))) * 20, total))
    for level in levels:
        assert level.sum(axis=-1) == pytest.approx(total, abs=ROUNDING)
    for (coarse, fine), codes in zip(itertools.pairwise(levels), tree.above, strict=True):
        sums = np.zeros_like(coarse)
        for part, cell in enumerate(codes):
            sums[:, cell] += fine[:, part]
        assert coarse == pytest.approx(sums, abs=ROUNDING)


@anywhere
def test_true_counts_pass_unchanged(name: str) -> None:
    tree, rng = TREES[name], np.random.default_rng(3)
    counts = rng.integers(0, 10_000, size=(2, tree.sizes[-1])).astype(float)
    true = counts @ tree.design().T
    assert tree.consistent(true, counts.sum(axis=-1)) == pytest.approx(true, abs=ROUNDING)


@anywhere
def test_the_fit_is_linear_and_done_once(name: str) -> None:
    tree, rng = TREES[name], np.random.default_rng(4)
    x, y = rng.normal(size=(2, 1, sum(tree.sizes)))
    s, t = rng.normal(size=(2, 1))
    mixed = tree.consistent(3 * x - 0.5 * y, 3 * s - 0.5 * t)
    assert mixed == pytest.approx(3 * tree.consistent(x, s) - 0.5 * tree.consistent(y, t), abs=ROUNDING)
    assert tree.consistent(mixed, 3 * s - 0.5 * t) == pytest.approx(mixed, abs=1e-8)


@anywhere
def test_no_count_gets_more_noise(name: str) -> None:
    """Covariances before (every level shifted to the total, by itself) less those after have no negative eigenvalue."""
    tree = TREES[name]
    width = sum(tree.sizes)
    noise = np.diag(np.sqrt(np.repeat(tree.variances, tree.sizes)))
    after = tree.split(tree.consistent(noise, np.zeros(width)))
    for size, variance, maps in zip(tree.sizes, tree.variances, after, strict=True):
        before = variance * (np.eye(size) - 1 / size)
        assert np.linalg.eigvalsh(before - maps.T @ maps).min() > -1e-7


def test_what_is_handed_over_is_not_changed() -> None:
    tree = TREES["very uneven"]
    levels = tree.split(np.random.default_rng(5).normal(size=(2, sum(tree.sizes))))
    before = [level.copy() for level in levels]
    fit_tree(levels, tree.variances, tree.above, np.zeros(2))
    assert all(np.array_equal(a, b) for a, b in zip(before, levels, strict=True))
