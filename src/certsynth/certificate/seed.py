"""The seed of the draws that the plug-in certificate is computed with: it follows from the noisy integers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from certsynth.mechanisms import Measurement

_TAG = b"certsynth: draws of the noise's law, 1\n"


def seed_of(measurements: Sequence[Measurement]) -> int:
    """128 bits of a SHA-256 of the noisy integers and of the law of their noise.

    Measurements have one seed, which anybody can compute and nobody can choose. What can be chosen once the noise is
    drawn is not hashed: neither the synthetic rows, which differ from one `--seed` to the next, nor names and other
    texts. docs/explanation/proofs/plug-in.md says what the rank argument needs of the hash.
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
        hashed.update(json.dumps(law).encode() + b"\n")
        for block in m.coefficients:
            hashed.update(block.astype("<i8").tobytes())
    return int.from_bytes(hashed.digest()[:16], "big")
