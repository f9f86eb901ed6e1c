"""The artefact: what leaves the house, how it is written, and how anybody can check it. No private row is read here."""

from certsynth.artefact.release import Release

__all__ = ["Release"]
