"""Overlapping marginals made to agree: against dense least squares, which knows nothing of overlaps."""

from __future__ import annotations

import itertools
from functools import cache

import numpy as np
import pytest
from scipy.linalg import null_space

import generators as gen
import oracles
from certsynth.domain import Groups
from certsynth.mechanisms.agreement import agreed, overlaps
from certsynth.queries.marginals import Marginals, Subset

ROUNDING = 1e-9


def marginals_of(sizes: tuple[int, ...], subsets: tuple[Subset, ...]) -> Marginals:
    return Marginals(cells=tuple(gen.labels(n) for n in sizes), subsets=subsets)


def every(columns: int, sparsity: int) -> tuple[Subset, ...]:
    return tuple(itertools.combinations(range(columns), sparsity))


GROUPED = Groups.of(gen.lattice(5, missing=True), np.array([0, 1, 4]))

CASES = {
    "all pairs of three": marginals_of((2, 3, 4), every(3, 2)),
    "all pairs of four": marginals_of((3, 2, 4, 2), every(4, 2)),
    "all triples of four": marginals_of((2, 3, 2, 3), every(4, 3)),
    "all triples of five": marginals_of((2, 1, 2, 3, 2), every(5, 3)),
    "one block": marginals_of((3, 2), ((0, 1),)),
    "single columns": marginals_of((3, 2, 1), every(3, 1)),
    "nothing in common": marginals_of((2, 3, 2, 3), ((0, 1), (2, 3))),
    "a chain": marginals_of((3, 2, 5, 2), ((0, 1), (1, 2), (2, 3))),
    "a star": marginals_of((2, 3, 2, 3), ((0, 1), (0, 2), (0, 3))),
    "a ring": marginals_of((2, 3, 2, 3), ((0, 1), (1, 2), (2, 3), (0, 3))),
    "triples that share a pair": marginals_of((2, 3, 2, 4), ((0, 1, 2), (0, 1, 3))),
    "triples that share one column": marginals_of((2, 2, 3, 2, 2), ((0, 1, 2), (2, 3, 4))),
    "one inside another": marginals_of((3, 4, 2), ((0, 1), (1,), (0, 1, 2))),
    "the same twice": marginals_of((3, 2), ((0, 1), (0, 1))),
    "columns of one cell": marginals_of((1, 3, 1, 2), every(4, 2)),
    "one cell everywhere": marginals_of((1, 1, 1), every(3, 2)),
    "very uneven": marginals_of((2, 2, 20), every(3, 2)),
    "lines and groups": Marginals(
        cells=(gen.line(3, missing=True), GROUPED, gen.holes([1, 4], 6), gen.labels(2)), subsets=every(4, 2)
    ),
}


def random_marginals(rng: np.random.Generator) -> Marginals:
    """Columns of 1 to 4 cells, and any subsets of up to three of them, of equal or unequal lengths."""
    columns = int(rng.integers(2, 6))
    sizes = tuple(int(n) for n in rng.choice([1, 2, 2, 3, 4] if columns < 4 else [1, 2, 2, 3], columns))
    possible = [s for k in range(1, min(columns, 3) + 1) for s in every(columns, k)]
    chosen = rng.choice(len(possible), size=min(len(possible), int(rng.integers(1, 7))), replace=False)
    return marginals_of(sizes, tuple(possible[i] for i in chosen))


RANDOM = {f"random {seed}": random_marginals(np.random.default_rng(seed)) for seed in range(30)}
ALL = CASES | RANDOM
anywhere = pytest.mark.parametrize("name", ALL)


def split(flat: np.ndarray, marginals: Marginals) -> list[np.ndarray]:
    return np.split(flat, np.cumsum(marginals.sizes())[:-1], axis=-1)


def joined(blocks: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(blocks, axis=-1)


@cache
def design(marginals: Marginals) -> np.ndarray:
    """All marginals as one matrix that acts on the table of all columns together."""
    points = oracles.all_cells(marginals.cells)
    return np.vstack([oracles.marginal_matrix(marginals.cells, points, s) for s in marginals.subsets])


def fitted(flat: np.ndarray, marginals: Marginals, total: float) -> np.ndarray:
    """Marginals of the table (of any sign) with the given total whose marginals are nearest: one dense problem."""
    matrix = design(marginals)
    anyhow = matrix @ np.full(matrix.shape[1], total / matrix.shape[1])
    if matrix.shape[1] == 1:
        return anyhow
    free = matrix @ null_space(np.ones((1, matrix.shape[1])))
    return anyhow + free @ np.linalg.lstsq(free, flat - anyhow, rcond=None)[0]


def centred(marginals: Marginals) -> np.ndarray:
    """From noise (first axis) to blocks of total 0, each shifted evenly: what comes before the agreement."""
    maps = np.zeros((sum(marginals.sizes()),) * 2)
    start = 0
    for size in marginals.sizes():
        maps[start : start + size, start : start + size] = np.eye(size) - 1 / size
        start += size
    return maps


def noisy(rng: np.random.Generator, marginals: Marginals, total: float, lead: tuple[int, ...] = ()) -> np.ndarray:
    """Blocks that have nothing in common but their total."""
    flat = rng.normal(size=(*lead, sum(marginals.sizes()))) * 10
    blocks = [b + (total - b.sum(axis=-1, keepdims=True)) / b.shape[-1] for b in split(flat, marginals)]
    return joined(blocks)


def agree(flat: np.ndarray, marginals: Marginals) -> np.ndarray:
    return joined(agreed(split(flat, marginals), marginals))


def disagreement(flat: np.ndarray, marginals: Marginals) -> float:
    """Largest gap between sums of two blocks over what they do not share."""
    worst = 0.0
    named = list(zip(marginals.subsets, split(flat, marginals), strict=True))
    for (first, a), (second, b) in itertools.combinations(named, 2):
        shared = set(first) & set(second)
        sums = [
            block.reshape(marginals.shape(s)).sum(axis=tuple(i for i, j in enumerate(s) if j not in shared))
            for s, block in ((first, a), (second, b))
        ]
        worst = max(worst, float(np.abs(sums[0] - sums[1]).max()))
    return worst


# ------------------------------------------------------------ least squares


@anywhere
def test_agreed_blocks_are_the_least_squares_fit(name: str) -> None:
    marginals = ALL[name]
    rng = np.random.default_rng(1)
    for total in (0.0, 1_000.0, -7.5):
        flat = noisy(rng, marginals, total)
        np.testing.assert_allclose(agree(flat, marginals), fitted(flat, marginals, total), atol=1e-8)


def plain_average(flat: np.ndarray, marginals: Marginals) -> np.ndarray:
    """A lazy agreement: overlaps get the plain mean of what the blocks say, whatever each had to sum over."""
    lead = flat.shape[:-1]
    shaped = [
        b.reshape(*lead, *marginals.shape(s)) for b, s in zip(split(flat, marginals), marginals.subsets, strict=True)
    ]
    for shared, holders in overlaps(marginals.subsets):
        outside = [tuple(len(lead) + i for i, j in enumerate(marginals.subsets[h]) if j not in shared) for h in holders]
        sums = [shaped[h].sum(axis=out, keepdims=True) for h, out in zip(holders, outside, strict=True)]
        mean = np.mean([s.reshape(*lead, -1) for s in sums], axis=0)
        for h, own in zip(holders, sums, strict=True):
            shaped[h] = shaped[h] + (mean.reshape(own.shape) - own) * own.size / shaped[h].size
    return joined([b.reshape(*lead, -1) for b in shaped])


def test_a_plain_average_agrees_as_well_but_is_not_the_fit() -> None:
    """Control: agreement alone would not pass the test above, nor is its oracle blind."""
    marginals = CASES["very uneven"]
    flat = noisy(np.random.default_rng(2), marginals, 50.0)
    lazy = plain_average(flat, marginals)
    assert disagreement(lazy, marginals) < ROUNDING
    assert np.abs(lazy - fitted(flat, marginals, 50.0)).max() > 0.1
    even = CASES["the same twice"]
    flat = noisy(np.random.default_rng(2), even, 50.0)
    np.testing.assert_allclose(plain_average(flat, even), agree(flat, even))  # the same where all blocks are alike


@anywhere
def test_afterwards_every_overlap_agrees_and_totals_stay(name: str) -> None:
    marginals = ALL[name]
    flat = noisy(np.random.default_rng(3), marginals, 321.0)
    found = agree(flat, marginals)
    assert disagreement(found, marginals) < ROUNDING
    for block in split(found, marginals):
        assert block.sum() == pytest.approx(321.0, abs=ROUNDING)


def test_before_the_agreement_overlaps_disagree() -> None:
    """Control of the test above."""
    marginals = CASES["all pairs of three"]
    assert disagreement(noisy(np.random.default_rng(3), marginals, 321.0), marginals) > 1


@pytest.mark.parametrize("name", ["one block", "single columns", "nothing in common"])
def test_blocks_without_overlap_are_left_alone(name: str) -> None:
    flat = noisy(np.random.default_rng(4), CASES[name], 9.0)
    np.testing.assert_array_equal(agree(flat, CASES[name]), flat)


@anywhere
def test_true_counts_pass_unchanged(name: str) -> None:
    marginals = ALL[name]
    rng = np.random.default_rng(5)
    for rows in (0, 1, 10_000):
        counts = marginals.count([[rng.integers(c.size, size=rows) for c in marginals.cells]])
        found = agreed([block.astype(float) for block in counts], marginals)
        for block, true in zip(found, counts, strict=True):
            np.testing.assert_allclose(block, true, rtol=0, atol=ROUNDING)


@anywhere
def test_agreement_is_linear_and_done_once(name: str) -> None:
    marginals = ALL[name]
    rng = np.random.default_rng(6)
    first, second = noisy(rng, marginals, 12.0), noisy(rng, marginals, -5.0)
    mixed = agree(3 * first - 0.5 * second, marginals)
    np.testing.assert_allclose(mixed, 3 * agree(first, marginals) - 0.5 * agree(second, marginals), atol=ROUNDING)
    np.testing.assert_allclose(agree(mixed, marginals), mixed, atol=ROUNDING)


@pytest.mark.parametrize("lead", [(1,), (7,), (2, 3), (1, 1, 2)])
@pytest.mark.parametrize("name", ["all pairs of three", "all triples of four", "columns of one cell", "one block"])
def test_leading_axes_are_kept(name: str, lead: tuple[int, ...]) -> None:
    marginals = CASES[name]
    flat = noisy(np.random.default_rng(7), marginals, 30.0, lead)
    found = agreed(split(flat, marginals), marginals)
    assert [block.shape for block in found] == [(*lead, size) for size in marginals.sizes()]
    for index in np.ndindex(lead):
        np.testing.assert_allclose(joined(found)[index], agree(flat[index], marginals), atol=ROUNDING)


def test_what_is_handed_over_is_not_changed() -> None:
    marginals = CASES["all pairs of three"]
    blocks = split(noisy(np.random.default_rng(8), marginals, 30.0), marginals)
    before = [block.copy() for block in blocks]
    agreed(blocks, marginals)
    assert all(np.array_equal(a, b) for a, b in zip(before, blocks, strict=True))


# ------------------------------------------------------------ what it does to the noise


def covariances(maps: np.ndarray, marginals: Marginals) -> list[np.ndarray]:
    """Covariance of each block under independent noise of variance 1; the noise is the first axis of `maps`."""
    return [block.T @ block for block in split(maps, marginals)]


@anywhere
def test_no_combination_of_cells_of_a_block_gets_more_noise(name: str) -> None:
    """Not only the summed variance: what is taken off the covariance has no negative eigenvalue."""
    marginals = ALL[name]
    before = covariances(centred(marginals), marginals)
    after = covariances(agree(centred(marginals), marginals), marginals)
    for subset, old, new in zip(marginals.subsets, before, after, strict=True):
        assert np.trace(new) <= np.trace(old) + ROUNDING
        assert np.linalg.eigvalsh(old - new).min() > -ROUNDING
        others = [set(s) & set(subset) for s in marginals.subsets if s is not subset]
        if any(marginals.cells[j].size > 1 for shared in others for j in shared):
            assert np.trace(new) < np.trace(old) - 1e-3  # what is seen twice is known better


def test_a_plain_average_makes_a_small_block_worse() -> None:
    """Control: the summed variance of the block of 2 × 2 cells grows when it listens to one of 2 × 20 as to its own."""
    marginals = CASES["very uneven"]
    before, best, lazy = (
        [float(np.trace(c)) for c in covariances(maps, marginals)]
        for maps in (
            centred(marginals),
            agree(centred(marginals), marginals),
            plain_average(centred(marginals), marginals),
        )
    )
    assert lazy[0] > 2 * before[0]
    assert best[0] < before[0]


@anywhere
def test_the_map_of_the_noise_is_the_orthogonal_projection(name: str) -> None:
    """Symmetric, idempotent, onto the marginals of tables of total 0: so there is no better unbiased linear map."""
    marginals = ALL[name]
    maps = agree(centred(marginals), marginals)
    np.testing.assert_allclose(maps, maps.T, atol=ROUNDING)
    np.testing.assert_allclose(maps @ maps, maps, atol=ROUNDING)
    matrix = design(marginals)
    changes = matrix - matrix.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(maps @ changes, changes, atol=ROUNDING)
    assert round(float(np.trace(maps))) == np.linalg.matrix_rank(changes)


# ------------------------------------------------------------ which overlaps there are


@anywhere
def test_overlaps_are_the_sets_in_several_subsets_small_ones_first(name: str) -> None:
    subsets = ALL[name].subsets
    found = dict(overlaps(subsets))
    for size in range(1, len(ALL[name].cells) + 1):
        for shared in itertools.combinations(range(len(ALL[name].cells)), size):
            holders = [j for j, subset in enumerate(subsets) if set(shared) <= set(subset)]
            assert found.pop(shared, []) == (holders if len(holders) > 1 else [])
    assert not found
    lengths = [len(shared) for shared, _ in overlaps(subsets)]
    assert lengths == sorted(lengths)
