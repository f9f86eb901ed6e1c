"""The seed of the plug-in certificate's draws, derived from the noisy integers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from certsynth.mechanisms import Measurement

_TAG = b"certsynth: draws of the noise's law, 1\n"


def seed_of(measurements: Sequence[Measurement]) -> int:
    """The first 128 bits of a SHA-256 over the noisy integers and the parameters of their noise.

    Anybody can compute the seed of given measurements, and nobody can choose it. Whatever can still be chosen after the
    noise is drawn is not hashed: neither the synthetic rows, which depend on `seed`, nor names and other texts.
    docs/explanation/proofs/plug-in.md states what the rank argument assumes about the hash.
    """
    hashed = hashlib.sha256(_TAG)
    for m in measurements:
        law = {
            "mechanism": m.strategy.name,
            "growth": str(m.strategy.growth),
            "neighbours": str(m.strategy.neighbours),
            "unit": str(m.cost.spent.unit),
            "scale": m.scale.hex(),
            "total": m.total,
            "weights": list(m.marginals.weights),
            "lengths": [len(block) for block in m.coefficients],
        }
        blocks = m.coefficients
        if m.values is not None:
            blocks += m.values.coefficients
            law |= {"values": list(m.values.marginals.weights)}
        hashed.update(json.dumps(law).encode() + b"\n")
        for block in blocks:
            hashed.update(block.astype("<i8").tobytes())
    return int.from_bytes(hashed.digest()[:16], "big")
