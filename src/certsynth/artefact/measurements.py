"""The noisy integers as a file, so that anybody can recompute the plug-in certificate."""

from __future__ import annotations

import io
import itertools
import json
import zipfile
from fractions import Fraction
from typing import Any

import numpy as np

from certsynth.domain import Schema
from certsynth.errors import InputError
from certsynth.mechanisms import Guarantee, Measurement, Neighbours
from certsynth.mechanisms.strategy import strategy_named
from certsynth.queries import Marginals
from certsynth.request import checked_resolution

MAX_BYTES = 4 * 2**30


def to_bytes(measurement: Measurement, schema: Schema) -> bytes:
    """The measurement as an .npz archive: the coefficients end to end, and how to read them."""
    marginals, strategy = measurement.marginals, measurement.strategy
    about = {
        "mechanism": strategy.name,
        "neighbours": str(strategy.neighbours),
        "epsilon": str(measurement.cost.epsilon),
        "scale": measurement.scale.hex(),
        "total": measurement.total,
        "resolution": marginals.cells[0].steps,
        "subsets": [[schema.names[j] for j in subset] for subset in marginals.subsets],
    }
    buffer = io.BytesIO()
    flat = np.concatenate([*measurement.coefficients, np.empty(0, np.int64)])
    np.savez_compressed(buffer, coefficients=flat, about=np.frombuffer(json.dumps(about).encode(), np.uint8))
    return buffer.getvalue()


def from_bytes(content: bytes, schema: Schema) -> Measurement:
    """Read a measurement back; what does not fit the schema is refused."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if sum(part.file_size for part in archive.infolist()) > MAX_BYTES:
                raise InputError("measurements.npz is too large to be unpacked.")
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            about: dict[str, Any] = json.loads(arrays["about"].tobytes())
            flat = arrays["coefficients"]
        names = {name: j for j, name in enumerate(schema.names)}
        neighbours = Neighbours(about["neighbours"])
        resolution = checked_resolution(about["resolution"])
        if resolution is None:
            raise ValueError("the resolution")
        marginals = Marginals(
            cells=tuple(column.cells(resolution) for column in schema),
            subsets=tuple(tuple(names[name] for name in subset) for subset in about["subsets"]),
        )
        strategy = strategy_named(about["mechanism"], neighbours=neighbours)
        lengths = [strategy.length(size) for size in marginals.sizes()]
        if flat.dtype != np.int64 or flat.shape != (sum(lengths),):
            raise ValueError("the number of coefficients")
        ends = list(itertools.accumulate(lengths))[:-1]
        return Measurement(
            marginals=marginals,
            strategy=strategy,
            coefficients=tuple(np.split(flat, ends)),
            total=about["total"],
            scale=float.fromhex(about["scale"]),
            cost=Guarantee(epsilon=Fraction(about["epsilon"]), neighbours=neighbours),
        )
    except InputError:
        raise
    except Exception:
        raise InputError("measurements.npz does not fit the schema of the release.") from None
