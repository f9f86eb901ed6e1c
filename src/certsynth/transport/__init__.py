"""Transport distances between two measures: along a path (𝓛_T) and over a network (𝒰_T)."""

from certsynth.transport.complete import complete_bounds
from certsynth.transport.flow import cheapest_flow, difference, transport_bounds, transport_loss
from certsynth.transport.network import Network, shared_network, stretch_of
from certsynth.transport.path import Path, path_loss
from certsynth.transport.upper_bound import Estimate, coarse_points, finest_level, transport_upper_bound

__all__ = [
    "Estimate",
    "Network",
    "Path",
    "cheapest_flow",
    "coarse_points",
    "complete_bounds",
    "difference",
    "finest_level",
    "path_loss",
    "shared_network",
    "stretch_of",
    "transport_bounds",
    "transport_loss",
    "transport_upper_bound",
]
