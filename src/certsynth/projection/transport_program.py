"""Step 3 with the tight loss: the supremum over test functions becomes a flow, so one linear program solves it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy.sparse import block_diag, coo_array, csr_array, hstack, vstack

from certsynth.base.arrays import Ints
from certsynth.projection.linear_program import LinearProjection, Program, worst_plus_mean_cost
from certsynth.projection.target import Target
from certsynth.transport.network import Network


@dataclass(frozen=True, slots=True)
class TransportProgram(LinearProjection):
    r"""Weights on given points that minimise the transport loss to the target.

    .. math:: \min_{\alpha \in \Delta,\, x \ge 0} \max_S \langle length, x^S \rangle
              \quad\text{s.t. } \mathrm{div}\, x^S = \nu^S - A^S\alpha \text{ for all } S

    where x^S is a flow on the network of marginal S: the dual of the supremum over Lipschitz functions. The paper calls
    this minimisation intractable; on given points it is one linear program (docs/explanation/deviations.md).

    `mean_weight` times the mean loss over S is added to the objective (`linear_program.worst_plus_mean_cost`).

    Paper: Eq. (17) [transport-loss]
    """

    hub: Fraction | None = None
    mean_weight: float = 0.0

    def program(self, target: Target, points: Ints) -> Program:
        networks = [Network.of(target.marginals.of(s), hub=self.hub) for s in target.marginals.subsets]
        incidence = vstack([_cells_to_nodes(n) @ a for n, a in zip(networks, target.incidence(points), strict=True)])
        divergence = block_diag([_divergence(n) for n in networks])
        per_subset = block_diag([n.lengths[None, :] / n.unit for n in networks])
        count, (nodes, arcs), subsets = len(points), divergence.shape, len(networks)
        simplex = csr_array(np.r_[np.ones(count), np.zeros(arcs + 1)][None, :])
        supplies = np.concatenate([_cells_to_nodes(n) @ b for n, b in zip(networks, target.blocks, strict=True)])
        a_ub = csr_array(hstack([csr_array((subsets, count)), per_subset, -np.ones((subsets, 1))]))
        return Program(
            cost=worst_plus_mean_cost(a_ub, self.mean_weight),
            a_eq=csr_array(vstack([hstack([incidence, divergence, csr_array((nodes, 1))]), simplex])),
            b_eq=np.r_[supplies, 1.0],
            a_ub=a_ub,
            b_ub=np.zeros(subsets),
        )


def _cells_to_nodes(network: Network) -> csr_array:
    """Matrix that maps cells to nodes other than the hub, whose balance follows from the others."""
    cells = network.cells
    return csr_array((np.ones(cells), (network.node_of_cell, np.arange(cells))), shape=(network.nodes - 1, cells))


def _divergence(network: Network) -> csr_array:
    """Matrix of outflow minus inflow at each node other than the hub."""
    arcs = len(network.tails)
    rows = np.r_[network.tails, network.heads]
    signs = np.repeat([1.0, -1.0], arcs)
    whole = coo_array((signs, (rows, np.tile(np.arange(arcs), 2))), shape=(network.nodes, arcs))
    return csr_array(csr_array(whole)[: network.nodes - 1])
