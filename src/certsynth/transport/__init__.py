"""How far two measures are: transport along a path (𝓛_T), and over a network (𝒰_T)."""

from certsynth.transport.cheap import Estimate, coarse_points, estimate, finest_level
from certsynth.transport.complete import complete_bounds
from certsynth.transport.flow import cheapest_flow, difference, transport_bounds, transport_loss
from certsynth.transport.network import Network, stretch_of
from certsynth.transport.path import Path, path_loss

__all__ = [
    "Estimate",
    "Network",
    "Path",
    "cheapest_flow",
    "coarse_points",
    "complete_bounds",
    "difference",
    "estimate",
    "finest_level",
    "path_loss",
    "stretch_of",
    "transport_bounds",
    "transport_loss",
]
