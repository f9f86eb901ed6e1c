"""Private synthetic tables with a certificate of how far they are from the real rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from certsynth.artefact import Release
    from certsynth.certification import certify
    from certsynth.domain import Schema
    from certsynth.evaluation import evaluate
    from certsynth.mechanisms.ledger import Ledger
    from certsynth.pipeline import release
    from certsynth.planning.plan import plan
    from certsynth.synthesizer import CertifiedSynthesizer

__all__ = ["CertifiedSynthesizer", "Ledger", "Release", "Schema", "certify", "evaluate", "plan", "release"]

_HOMES = {
    "CertifiedSynthesizer": "certsynth.synthesizer",
    "Ledger": "certsynth.mechanisms.ledger",
    "Release": "certsynth.artefact",
    "Schema": "certsynth.domain",
    "certify": "certsynth.certification",
    "evaluate": "certsynth.evaluation",
    "plan": "certsynth.planning.plan",
    "release": "certsynth.pipeline",
}


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used, so that `certsynth --help` is quick."""
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'certsynth' has no attribute {name!r}")
