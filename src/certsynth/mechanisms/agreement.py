"""Make overlapping marginals agree, by fixed linear maps, so that the law of the error stays known.

Every subset R of columns that is contained in several counted subsets S has one estimate from each: the block of S
summed over the columns outside R. Their best combination weights each by the inverse variance of its error. Every block
is then corrected to it: the difference is spread evenly over the cells that were summed. Small R come first; a later
step changes no earlier sum. docs/explanation/proofs/post-processing.md proves that this is the least-squares solution
under independent noise of one scale on all cells, and that true counts pass unchanged whatever the weights.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from certsynth.base.arrays import Floats, sum_by_group
from certsynth.domain.cells import coarse_codes
from certsynth.mechanisms.tree import fit_tree
from certsynth.queries.marginals import Marginals, Subset

Variances = Mapping[tuple[int, Subset], float]
"""By position j of a block and subset R of its columns: variance of the sum over the columns outside R."""


def reconcile(blocks: Sequence[Floats], marginals: Marginals, variances: Variances) -> list[Floats]:
    """Correct blocks so that they have the same sums wherever they overlap.

    Leading axes are kept. All blocks must have the same total already.
    """
    lead = blocks[0].shape[:-1]
    shaped = [b.reshape(*lead, *marginals.shape(s)) for b, s in zip(blocks, marginals.subsets, strict=True)]
    own_memory: set[int] = set()  # blocks that are copies by now, and may be changed in place
    for shared, holders in overlaps(marginals.subsets):
        seen = [shaped[j].sum(axis=_outside(marginals.subsets[j], shared, len(lead)), keepdims=True) for j in holders]
        weights = np.array([1 / variances[j, shared] for j in holders])
        best = np.tensordot(weights / weights.sum(), [counts.reshape(*lead, -1) for counts in seen], axes=1)
        for j, own in zip(holders, seen, strict=True):
            change = (best.reshape(own.shape) - own) * (own.size / shaped[j].size)
            shaped[j] = np.add(shaped[j], change, out=shaped[j] if j in own_memory else None)
            own_memory.add(j)
    return [b.reshape(*lead, -1) for b in shaped]


def overlaps(subsets: Sequence[Subset]) -> list[tuple[Subset, list[int]]]:
    """Sets of columns contained in several subsets, smallest first, with the positions of those subsets.

    >>> overlaps([(0, 1), (0, 2), (1, 2)])
    [((0,), [0, 1]), ((1,), [0, 2]), ((2,), [1, 2])]
    """
    found: dict[Subset, list[int]] = {}
    for j, subset in enumerate(subsets):
        for size in range(1, len(subset) + 1):
            for shared in itertools.combinations(subset, size):
                found.setdefault(shared, []).append(j)
    return sorted(((r, holders) for r, holders in found.items() if len(holders) > 1), key=lambda o: (len(o[0]), o[0]))


def _outside(subset: Subset, shared: Subset, lead: int) -> tuple[int, ...]:
    return tuple(lead + axis for axis, column in enumerate(subset) if column not in shared)


@dataclass(frozen=True, slots=True, eq=False)
class AgreedLayer:
    """Blocks of one measurement that agree with each other, of shape (draws, cells), and variances of their noise."""

    marginals: Marginals
    blocks: list[Floats]
    variances: Variances

    def estimate_on(self, shared: Subset) -> tuple[Floats, float] | None:
        """Estimated counts on a set of columns and their variance, from all blocks that contain it; None if none do."""
        counts = self.marginals.marginal_on(self.blocks, shared)
        if counts is None:
            return None
        holders = [j for j, subset in enumerate(self.marginals.subsets) if set(shared) <= set(subset)]
        return counts, 1 / sum(1 / self.variances[j, shared] for j in holders)

    def add_change(self, shared: Subset, change: Floats) -> None:
        """Add a change of the counts on a set of columns to all blocks that contain it, spread evenly over cells."""
        for j, subset in enumerate(self.marginals.subsets):
            if set(shared) <= set(subset):
                shape = [self.marginals.cells[c].size if c in shared else 1 for c in subset]
                whole = self.marginals.shape(subset)
                even = np.broadcast_to(change.reshape(-1, *shape), (len(change), *whole)) * (
                    change.shape[-1] / self.blocks[j].shape[-1]
                )
                self.blocks[j] = self.blocks[j] + even.reshape(len(change), -1)


def combine_layers(layers: Sequence[AgreedLayer], total: Floats) -> None:
    """Make layers of one table agree, in place. Cells of later layers are unions of cells of earlier ones.

    Single columns are combined by least squares on the tree of their cells. For several columns, the layers' counts in
    the coarser cells are averaged with one weight per layer, which preserves the agreement reached before.
    """
    columns = range(len(layers[0].marginals.cells))
    for j in columns:
        _combine_column(layers, j, total)
    for fine, coarse in itertools.pairwise(layers):
        for shared in fine.marginals.subsets:
            if len(shared) > 1:
                _combine_subset(fine, coarse, shared)


def _combine_column(layers: Sequence[AgreedLayer], column: int, total: Floats) -> None:
    seen = [(layer, *found) for layer in reversed(layers) if (found := layer.estimate_on((column,)))]
    cells = [layer.marginals.cells[column] for layer, _, _ in seen]
    above = [coarse_codes(fine, coarse) for coarse, fine in itertools.pairwise(cells)]
    best = fit_tree([counts for _, counts, _ in seen], [v for _, _, v in seen], above, total)
    for (layer, counts, _), better in zip(seen, best, strict=True):
        layer.add_change((column,), better - counts)


def _combine_subset(fine: AgreedLayer, coarse: AgreedLayer, shared: Subset) -> None:
    above_it, below = coarse.estimate_on(shared), fine.estimate_on(shared)
    if above_it is None or below is None:
        return
    (known, variance), (counts, fine_variance) = above_it, below
    codes = [coarse_codes(fine.marginals.cells[c], coarse.marginals.cells[c]) for c in shared]
    shape = coarse.marginals.shape(shared)
    above = np.ravel_multi_index(np.meshgrid(*codes, indexing="ij"), shape).ravel()
    members = np.bincount(above, minlength=known.shape[-1])
    inside = sum_by_group(above, counts, known.shape[-1])
    fine_variance *= counts.shape[-1] / known.shape[-1]
    best = (known / variance + inside / fine_variance) / (1 / variance + 1 / fine_variance)
    fine.add_change(shared, ((best - inside) / members)[:, above])
    coarse.add_change(shared, best - known)
