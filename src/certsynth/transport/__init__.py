"""How far two measures are: transport along a path (𝓛_T), and over a network (𝒰_T)."""

from certsynth.transport.complete import complete_bounds
from certsynth.transport.flow import transport_bounds, transport_loss
from certsynth.transport.network import Network
from certsynth.transport.path import Path, path_loss

__all__ = ["Network", "Path", "complete_bounds", "path_loss", "transport_bounds", "transport_loss"]
