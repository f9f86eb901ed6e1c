"""Private synthetic tables with a certificate of how far they are from the real rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from certsynth.algorithm.certify import certify
    from certsynth.algorithm.estimator import CertifiedSynthesizer
    from certsynth.algorithm.evaluate import evaluate
    from certsynth.algorithm.plan import plan
    from certsynth.algorithm.release import release
    from certsynth.artefact import Release
    from certsynth.domain import Schema
    from certsynth.mechanisms.ledger import Ledger
    from certsynth.sources.check import check

__all__ = ["CertifiedSynthesizer", "Ledger", "Release", "Schema", "certify", "check", "evaluate", "plan", "release"]

_HOMES = {
    "CertifiedSynthesizer": "certsynth.algorithm.estimator",
    "Ledger": "certsynth.mechanisms.ledger",
    "Release": "certsynth.artefact",
    "Schema": "certsynth.domain",
    "certify": "certsynth.algorithm.certify",
    "check": "certsynth.sources.check",
    "evaluate": "certsynth.algorithm.evaluate",
    "plan": "certsynth.algorithm.plan",
    "release": "certsynth.algorithm.release",
}


def __getattr__(name: str) -> Any:
    """Public names are imported when they are first used, so that `certsynth --help` is quick."""
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'certsynth' has no attribute {name!r}")
