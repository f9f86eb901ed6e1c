"""Rows from the joint law of a model of mbi, for peers that use it. Runs in their environments.

mbi 1.1 conditions a column on those that share a measured table with it, and forgets the edges that its junction tree
adds.
"""

from __future__ import annotations

import numpy as np
from mbi import junction_tree, marginal_oracles


def drawn(model, rows: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Rows from the joint law of the model, spread evenly over each conditional law, as mbi does it.

    Columns are drawn in the reverse of an elimination order, each given those drawn before that stand in one clique of
    the junction tree with it. Those are its neighbours in the triangulated graph, so nothing is forgotten.
    """
    tree, order = junction_tree.make_junction_tree(model.domain, [set(clique) for clique in model.cliques])
    cliques = [set(clique) for clique in tree.nodes]
    marginals = marginal_oracles.message_passing_stable(model.potentials.expand(list(tree.nodes)))
    found: dict[str, np.ndarray] = {}
    for column in order[::-1]:
        near = set().union(*(clique for clique in cliques if column in clique))
        given = tuple(name for name in found if name in near)
        table = np.asarray(marginals.project((*given, column)).datavector(flatten=False), dtype=float)
        table = table.clip(min=0).reshape(-1, table.shape[-1])
        sizes = [model.domain[name] for name in given]
        parent = np.ravel_multi_index([found[name] for name in given], sizes) if given else np.zeros(rows, dtype=int)
        total = np.cumsum(table, axis=1)
        found[column] = np.empty(rows, dtype=np.int64)
        for group in np.unique(parent):
            chosen = np.flatnonzero(parent == group)
            law = total[group] if total[group, -1] > 0 else np.arange(1.0, table.shape[1] + 1)
            evenly = (rng.permutation(len(chosen)) + rng.random(len(chosen))) / len(chosen)
            where = np.searchsorted(law, evenly * law[-1], side="right")
            found[column][chosen] = np.minimum(where, table.shape[1] - 1)
    return found
