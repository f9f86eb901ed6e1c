"""Marginals made to agree, where they overlap and where cells hold cells: against dense least squares."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
from scipy.linalg import null_space

import generators as gen
import oracles
from certsynth.domain import Groups
from certsynth.mechanisms.agreement import AgreedLayer, Variances, combine_layers, overlaps, reconcile
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


def cells_summed(marginals: Marginals) -> Variances:
    """Under noise of variance 1 on every cell: how many cells of each block are summed for each set of its columns."""
    return {
        (j, shared): float(np.prod([marginals.cells[c].size for c in subset if c not in shared]))
        for j, subset in enumerate(marginals.subsets)
        for size in range(1, len(subset) + 1)
        for shared in itertools.combinations(subset, size)
    }


def agree(flat: np.ndarray, marginals: Marginals) -> np.ndarray:
    return joined(reconcile(split(flat, marginals), marginals, cells_summed(marginals)))


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
        found = reconcile([block.astype(float) for block in counts], marginals, cells_summed(marginals))
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
    found = reconcile(split(flat, marginals), marginals, cells_summed(marginals))
    assert [block.shape for block in found] == [(*lead, size) for size in marginals.sizes()]
    for index in np.ndindex(lead):
        np.testing.assert_allclose(joined(found)[index], agree(flat[index], marginals), atol=ROUNDING)


def test_what_is_handed_over_is_not_changed() -> None:
    marginals = CASES["all pairs of three"]
    blocks = split(noisy(np.random.default_rng(8), marginals, 30.0), marginals)
    before = [block.copy() for block in blocks]
    reconcile(blocks, marginals, cells_summed(marginals))
    assert all(np.array_equal(a, b) for a, b in zip(before, blocks, strict=True))


# ------------------------------------------------------------ any weights


def random_variances(marginals: Marginals, seed: int) -> Variances:
    rng = np.random.default_rng(seed)
    return {key: float(10 ** rng.uniform(-3, 3)) for key in cells_summed(marginals)}


@anywhere
def test_whatever_the_weights_each_part_is_averaged_with_its_own(name: str) -> None:
    """Blocks as sums of parts that depend on some columns and sum to nothing over any of them: said once more."""
    marginals = ALL[name]
    flat = noisy(np.random.default_rng(21), marginals, 60.0)
    sizes = [cells.size for cells in marginals.cells]
    for variances in (cells_summed(marginals), random_variances(marginals, 1), random_variances(marginals, 2)):
        found = reconcile(split(flat, marginals), marginals, variances)
        expected = oracles.agreement(split(flat, marginals), sizes, marginals.subsets, variances)
        np.testing.assert_allclose(joined(found), joined(expected), atol=1e-8)


@anywhere
def test_whatever_the_weights_overlaps_agree_and_true_counts_pass_unchanged(name: str) -> None:
    marginals = ALL[name]
    rng = np.random.default_rng(22)
    counts = marginals.count([[rng.integers(c.size, size=500) for c in marginals.cells]])
    true = joined([block.astype(float) for block in counts])
    for seed in range(3):
        variances = random_variances(marginals, seed)
        found = joined(reconcile(split(noisy(rng, marginals, 99.0), marginals), marginals, variances))
        assert disagreement(found, marginals) < ROUNDING
        assert joined(reconcile(split(true, marginals), marginals, variances)) == pytest.approx(true, abs=ROUNDING)


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


# ------------------------------------------------------------ layers of different cells

LATTICES = {
    "lines": (gen.lattice(5), gen.lattice(3, missing=True), gen.holes([0, 2, 3, 7], 8)),
    "lines and labels": (gen.lattice(6, missing=True), gen.labels(3), gen.lattice(3)),
    "hardly anything": (gen.line(1), gen.labels(2), gen.lattice(4)),
    "two columns": (gen.lattice(7, missing=True), gen.lattice(4)),
    "four columns": (gen.lattice(3), gen.labels(2), gen.lattice(2, missing=True), gen.lattice(2)),
}
MIDDLE, COARSE = (0, 1, 4), (0, 4)
"""Where groups start, in so far as there are such points: the last of them are much wider than the first."""


def grouped(lattices: gen.Shape, starts: tuple[int, ...] | None) -> tuple[Groups, ...]:
    """All points alone, or groups with these starts."""
    lines = (range(len(lattice.places)) for lattice in lattices)
    chosen = ([i for i in line if starts is None or i in starts] for line in lines)
    return tuple(Groups.of(lattice, np.array(s, np.int64)) for lattice, s in zip(lattices, chosen, strict=True))


def layered(name: str, *ways: int) -> list[Marginals]:
    """Single columns at all points, pairs in groups, triples in coarser groups: those that are asked for."""
    lattices, starts = LATTICES[name], {1: None, 2: MIDDLE, 3: COARSE}
    return [Marginals(cells=grouped(lattices, starts[w]), subsets=every(len(lattices), w)) for w in ways]


def rows_of(name: str) -> np.ndarray:
    return np.array(oracles.all_cells(LATTICES[name]))


@cache
def members(marginals: Marginals, name: str) -> np.ndarray:
    return joint(marginals, LATTICES[name])


def joint(marginals: Marginals, lattices: gen.Shape) -> np.ndarray:
    """All marginals of one layer as a matrix that acts on the table of all lattice points together."""
    rows = np.array(oracles.all_cells(lattices))
    codes = [cells.code(rows[:, j]) for j, cells in enumerate(marginals.cells)]
    points = [tuple(int(c[i]) for c in codes) for i in range(len(rows))]
    return np.vstack([oracles.marginal_matrix(marginals.cells, points, s) for s in marginals.subsets])


def together(
    layers: list[Marginals], flats: list[np.ndarray], scales: Sequence[float], total: np.ndarray
) -> list[np.ndarray]:
    """Layers with noise of these variances on all cells: agreed among themselves, and then with each other."""
    made = []
    for marginals, flat, scale in zip(layers, flats, scales, strict=True):
        shifted = [b + (total[:, None] - b.sum(axis=-1, keepdims=True)) / b.shape[-1] for b in split(flat, marginals)]
        variances = cells_summed(marginals)
        blocks = reconcile(shifted, marginals, variances)
        made.append(AgreedLayer(marginals, blocks, {key: scale * v for key, v in variances.items()}))
    combine_layers(made, total)
    return [joined(layer.blocks) for layer in made]


def random_flats(rng: np.random.Generator, layers: list[Marginals], draws: int = 1) -> list[np.ndarray]:
    return [rng.normal(size=(draws, sum(m.sizes()))) * 20 for m in layers]


LAYERS = [(n, w) for n in LATTICES for w in ((1, 2), (1, 3), (2, 3), (1, 2, 3)) if w[-1] <= len(LATTICES[n])]
BEST = [(name, ways) for name, ways in LAYERS if ways in ((1, 2), (1, 3))]
VARIANCES = [(1.0, 1.0, 1.0), (1.0, 7.0, 30.0), (5.0, 0.3, 2.0)]


@pytest.mark.parametrize("variances", VARIANCES, ids=str)
@pytest.mark.parametrize(("name", "ways"), BEST, ids=str)
def test_points_and_groups_together_are_the_least_squares_fit(
    name: str, ways: tuple[int, ...], variances: tuple[float, ...]
) -> None:
    """Of all tables with the given total: the nearest to both layers, by their variances. One dense problem."""
    layers, rng = layered(name, *ways), np.random.default_rng(31)
    flats, total = random_flats(rng, layers, 2), np.array([0.0, 250.0])
    found = together(layers, flats, variances[: len(layers)], total)
    design = np.vstack([members(m, name) for m in layers])
    each = np.repeat(variances[: len(layers)], [sum(m.sizes()) for m in layers])
    for draw in range(2):
        seen = np.concatenate([flat[draw] for flat in flats])
        expected = design @ oracles.least_squares(design, seen, each, total[draw])
        np.testing.assert_allclose(np.concatenate([f[draw] for f in found]), expected, atol=1e-8)


EVEN = {
    "a cube": (gen.lattice(3),) * 3,
    "lines and labels": (gen.lattice(3), gen.lattice(5), gen.labels(2)),
    "four lines": (gen.lattice(3),) * 4,
}


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("variances", VARIANCES, ids=str)
@pytest.mark.parametrize("ways", [(2, 3), (1, 2, 3)], ids=str)
@pytest.mark.parametrize("name", EVEN)
def test_where_all_groups_are_of_one_size_triples_and_pairs_are_the_least_squares_fit_too(
    name: str, ways: tuple[int, ...], variances: tuple[float, ...]
) -> None:
    """One weight for each layer is the best there is: pairs at all points, triples in groups of two."""
    for starts, fits in (((0, 2, 4), True), ((0, 3), False)):  # the second is the control
        cells = {1: grouped(EVEN[name], None), 2: grouped(EVEN[name], None), 3: grouped(EVEN[name], starts)}
        layers = [Marginals(cells=cells[w], subsets=every(len(EVEN[name]), w)) for w in ways]
        scales = [variances[w - 1] for w in ways]
        flats, total = random_flats(np.random.default_rng(36), layers), np.array([250.0])
        found = np.concatenate([flat[0] for flat in together(layers, flats, scales, total)])
        design = np.vstack([joint(m, EVEN[name]) for m in layers])
        each = np.repeat(scales, [sum(m.sizes()) for m in layers])
        seen = np.concatenate([flat[0] for flat in flats])
        expected = design @ oracles.least_squares(design, seen, each, 250.0)
        assert np.allclose(found, expected, rtol=0, atol=1e-8) == fits


def test_other_variances_of_layers_give_another_fit() -> None:
    """Control of the test above: the weights of the layers count, and so does each layer."""
    layers = layered("lines", 1, 2)
    flats, total = random_flats(np.random.default_rng(32), layers), np.zeros(1)
    first, second = (np.concatenate(together(layers, flats, v, total), axis=-1) for v in ([1.0, 7.0], [7.0, 1.0]))
    assert np.abs(first - second).max() > 0.1
    alone = agree(noisy(np.random.default_rng(32), layers[1], 0.0), layers[1])
    assert np.abs(first[0, -alone.shape[-1] :] - alone).max() > 0.1


def outside_sum(block: np.ndarray, subset: Subset, shared: Subset) -> np.ndarray:
    return block.sum(axis=tuple(axis for axis, column in enumerate(subset) if column not in shared))


def disagreements(layers: list[Marginals], flats: list[np.ndarray]) -> float:
    """Largest gap between sums of two blocks of any layers over what they do not share, in the coarser cells."""
    blocks = [
        (layer, subset, block.reshape(marginals.shape(subset)))
        for layer, (marginals, flat) in enumerate(zip(layers, flats, strict=True))
        for subset, block in zip(marginals.subsets, split(flat[0], marginals), strict=True)
    ]
    worst = 0.0
    for (first, one, a), (second, other, b) in itertools.combinations(blocks, 2):
        shared = tuple(sorted(set(one) & set(other)))
        fine, coarse = outside_sum(a, one, shared), outside_sum(b, other, shared)
        if first != second:
            for axis, column in enumerate(shared):
                own, wider = layers[first].cells[column], layers[second].cells[column]
                edges = np.r_[np.searchsorted(own.starts, wider.starts), np.arange(len(own.starts), own.size)]
                fine = np.add.reduceat(fine, edges.astype(int), axis=axis)
        worst = max(worst, float(np.abs(fine - coarse).max()))
    return worst


@pytest.mark.parametrize("variances", VARIANCES, ids=str)
@pytest.mark.parametrize(("name", "ways"), LAYERS, ids=str)
def test_afterwards_all_layers_agree_on_every_sum(
    name: str, ways: tuple[int, ...], variances: tuple[float, ...]
) -> None:
    layers = layered(name, *ways)
    flats = random_flats(np.random.default_rng(33), layers)
    found = together(layers, flats, variances[: len(layers)], np.array([77.0]))
    assert disagreements(layers, found) < ROUNDING
    for marginals, flat in zip(layers, found, strict=True):
        assert [block.sum() for block in split(flat[0], marginals)] == pytest.approx([77.0] * len(marginals.subsets))
    shifted = [noisy(np.random.default_rng(33), m, 77.0)[None] for m in layers]
    assert disagreements(layers, shifted) > 1  # control


@pytest.mark.parametrize(("name", "ways"), LAYERS, ids=str)
def test_true_counts_of_all_layers_pass_unchanged(name: str, ways: tuple[int, ...]) -> None:
    """Whatever the weights are."""
    layers, rng = layered(name, *ways), np.random.default_rng(34)
    table = rng.integers(0, 60, size=(2, len(rows_of(name)))).astype(float)
    true, total = [table @ members(m, name).T for m in layers], table.sum(axis=1)
    for seed in range(3):
        made = [
            AgreedLayer(m, split(flat, m), random_variances(m, seed + 10 * i))
            for i, (m, flat) in enumerate(zip(layers, true, strict=True))
        ]
        combine_layers(made, total)
        for layer, flat in zip(made, true, strict=True):
            np.testing.assert_allclose(joined(layer.blocks), flat, atol=1e-8)


@pytest.mark.parametrize(("name", "ways"), LAYERS, ids=str)
def test_combining_layers_is_linear(name: str, ways: tuple[int, ...]) -> None:
    layers, rng = layered(name, *ways), np.random.default_rng(35)
    x, y = random_flats(rng, layers), random_flats(rng, layers)
    s, t = rng.normal(size=(2, 1))
    scales = [1.0, 7.0, 30.0][: len(layers)]
    mixed = together(layers, [3 * a - 0.5 * b for a, b in zip(x, y, strict=True)], scales, 3 * s - 0.5 * t)
    first, second = together(layers, x, scales, s), together(layers, y, scales, t)
    for both, a, b in zip(mixed, first, second, strict=True):
        np.testing.assert_allclose(both, 3 * a - 0.5 * b, atol=1e-8)


def noise_of(layers: list[Marginals], variances: tuple[float, ...], *, alone: bool) -> list[float]:
    """Sum of the variances of all cells of each layer: agreed by itself, or combined with the others."""
    sizes = [sum(m.sizes()) for m in layers]
    scales = list(variances[: len(layers)])
    noise = np.split(np.diag(np.sqrt(np.repeat(scales, sizes))), np.cumsum(sizes)[:-1], axis=1)
    zero = np.zeros(sum(sizes))
    if alone:
        found = [together([m], [n], [v], zero)[0] for m, n, v in zip(layers, noise, scales, strict=True)]
    else:
        found = together(layers, noise, scales, zero)
    return [float((flat**2).sum()) for flat in found]


@pytest.mark.parametrize("variances", VARIANCES, ids=str)
@pytest.mark.parametrize(("name", "ways"), LAYERS, ids=str)
def test_every_layer_has_less_noise_when_they_are_combined(
    name: str, ways: tuple[int, ...], variances: tuple[float, ...]
) -> None:
    layers = layered(name, *ways)
    before, after = (noise_of(layers, variances, alone=alone) for alone in (True, False))
    assert all(new < old for old, new in zip(before, after, strict=True))
