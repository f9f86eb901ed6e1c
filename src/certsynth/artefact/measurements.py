"""measurements.npz: the noisy integers, from which anybody can recompute the plug-in certificate."""

from __future__ import annotations

import io
import itertools
import json
import math
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from certsynth.algorithm.options import RESOLUTION
from certsynth.base.arrays import Ints
from certsynth.domain import Cells, Column, Groups, Schema
from certsynth.domain.cells import has_runs_of
from certsynth.errors import InputError
from certsynth.mechanisms import (
    Budget,
    FullMeasurement,
    Guarantee,
    Measurement,
    Neighbours,
    Strategy,
    Unit,
    ValueCounts,
    strategy_named,
)
from certsynth.mechanisms.guarantee import stored_rational
from certsynth.mechanisms.sparse import LowDimensional, SparseMeasurement, is_kept_in_full
from certsynth.queries import Marginals

MAX_BYTES = 4 * 2**30
MAX_ABOUT_BYTES = 256 * 2**20
MAX_HEADER_BYTES = 1024
"""Bytes of an unpacked archive, of its description of the measurements, and of the header of an array."""

MAX_LATTICE_STEPS = 2**21  # enough for a thousand values and a weight in thousandths
MAX_GROWTH = 4
MAX_TABLE_WEIGHT = 2**20


def to_bytes(measurements: Sequence[Measurement], schema: Schema) -> bytes:
    """Write measurements as an .npz archive: the concatenated coefficients, and a description of their layout."""
    buffer = io.BytesIO()
    flat = np.concatenate([*(table.coefficients for m in measurements for table in m.tables), np.empty(0, np.int64)])
    arrays = {"coefficients": flat, "about": np.frombuffer(_about_bytes(measurements, schema), np.uint8)}
    if (places := _places(measurements)) is not None:
        arrays["places"] = places
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def _places(measurements: Sequence[Measurement]) -> Ints | None:
    """Return the cells that a sparse measurement keeps; None for others. A sparse measurement is the only one."""
    last = measurements[-1]
    return last.places if isinstance(last, SparseMeasurement) else None


def is_as_written(content: bytes, measurements: Sequence[Measurement], schema: Schema) -> bool:
    """Whether an archive that was read as these measurements has exactly the content that `to_bytes` writes.

    Compression may depend on the machine, so the bytes of the archive are not compared.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        sparse = ["places.npy"] if _places(measurements) is not None else []
        alone = sorted(archive.namelist()) == ["about.npy", "coefficients.npy", *sparse] and not archive.comment
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return alone and bool(arrays["about"].tobytes() == _about_bytes(measurements, schema))


def _about_bytes(measurements: Sequence[Measurement], schema: Schema) -> bytes:
    about = [
        {
            "mechanism": m.strategy.name,
            "neighbours": str(m.strategy.neighbours),
            "growth": str(m.strategy.growth),
            "unit": str(m.cost.spent.unit),
            "spent": str(m.cost.spent.amount),
            "scale": m.scale.hex(),
            "total": m.total,
            "cells": _describe_cells(m.marginals.cells, schema),
            "subsets": [[schema.names[j] for j in subset] for subset in m.marginals.subsets],
            "weights": list(m.marginals.weights),
            **({} if m.values is None else {"values": _describe_values(m.values, schema)}),
            **({"above": m.above, "kept": len(m.places)} if isinstance(m, SparseMeasurement) else {}),
        }
        for m in measurements
    ]
    return json.dumps(about).encode()


def _describe_values(values: ValueCounts, schema: Schema) -> dict[str, int]:
    """The columns whose single values are counted, each with its weight."""
    marginals = values.marginals
    return {schema.names[subset[0]]: marginals.weight(j) for j, subset in enumerate(marginals.subsets)}


def _read_values(weights: dict[str, int], marginals: Marginals, schema: Schema) -> Marginals | None:
    """The marginals of single values, of columns whose cells are runs of these; None if there are none."""
    names = [schema.names[j] for (j,) in marginals.subsets] if weights else []
    wanted = [name for name in names if name in weights]
    if list(weights) != wanted or not all(type(w) is int and 1 <= w <= MAX_TABLE_WEIGHT for w in weights.values()):
        raise ValueError("the counts of values")
    cells = list(marginals.cells)
    for name in wanted:
        j = schema.names.index(name)
        own = schema.columns[j].values_below_points()
        if own is None or not has_runs_of(cells[j], own):
            raise ValueError("the counts of values")
        cells[j] = own
    subsets = tuple((schema.names.index(name),) for name in wanted)
    return Marginals(cells=tuple(cells), subsets=subsets, weights=tuple(weights.values())) if wanted else None


def from_bytes(content: bytes, schema: Schema) -> tuple[Measurement, ...]:
    """Read measurements back; raise InputError if they do not fit the schema."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            sizes = {part.filename: part.file_size for part in archive.infolist()}
            if sum(sizes.values()) > MAX_BYTES or sizes["about.npy"] > MAX_ABOUT_BYTES:
                raise InputError("measurements.npz is too large to be unpacked.")
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            # Zeros compress well, so the number of coefficients is checked before they are unpacked.
            described = json.loads(arrays["about"].tobytes())
            parts = [_read_description(part, schema) for part in described]
            needed = sum(length for lengths, _ in parts for length in lengths)
            names = {"coefficients.npy", "places.npy"} & set(sizes)
            if not parts or any(sizes[name] > 8 * needed + MAX_HEADER_BYTES for name in names):
                raise ValueError("the number of coefficients")
            flat, places = arrays["coefficients"], arrays["places"] if "places.npy" in names else None
        for array in (flat, places):
            if array is not None and (array.dtype != np.int64 or array.ndim != 1 or len(array) != needed):
                raise ValueError("the coefficients")
        blocks = iter(np.split(flat, list(itertools.accumulate(length for lengths, _ in parts for length in lengths))))
        made = tuple(made(tuple(itertools.islice(blocks, len(lengths)))) for lengths, made in parts)
        sparse = ["above" in part for part in described]
        if any(sparse) != (places is not None) or (any(sparse) and len(made) > 1):
            raise ValueError("the places")
        return made if places is None else (_as_sparse(made[0], places, described[0]["above"]),)
    except InputError:
        raise
    except Exception:
        raise InputError("measurements.npz does not fit the schema of the release.") from None


def _read_description(
    about: dict[str, Any], schema: Schema
) -> tuple[list[int], Callable[[tuple[Ints, ...]], Measurement]]:
    """Return the number of coefficients of each table, and a function that makes the measurement from them."""
    names = {name: j for j, name in enumerate(schema.names)}
    neighbours = Neighbours(about["neighbours"])
    weights = tuple(about["weights"])
    if not all(type(weight) is int and 1 <= weight <= MAX_TABLE_WEIGHT for weight in weights):
        raise ValueError("the weights")
    marginals = Marginals(
        cells=_read_cells(about["cells"], schema),
        subsets=tuple(tuple(names[name] for name in subset) for subset in about["subsets"]),
        weights=weights,
    )
    if weights and len(weights) != len(marginals.subsets):
        raise ValueError("the weights")
    growth = stored_rational(about["growth"])
    if growth > MAX_GROWTH:
        raise ValueError("the growth")
    strategy = strategy_named(about["mechanism"], neighbours=neighbours, growth=growth)
    spent = Budget(stored_rational(about["spent"]), Unit(about["unit"]))
    scale, total = float.fromhex(about["scale"]), about["total"]
    if not 0 < scale < math.inf:
        raise ValueError("the noise")
    if total is not None and (type(total) is not int or abs(total) >= 2**63):
        raise ValueError("the total")
    lengths = [strategy.length(marginals.of(subset)) for subset in marginals.subsets]
    if "above" in about:
        lengths = [_check_kept(about, strategy, lengths)]
    if not lengths:
        raise ValueError("the subsets")
    below, tables = _read_values(about.get("values", {}), marginals, schema), len(lengths)
    if below is not None:
        lengths += below.sizes()
    cost = Guarantee(spent=spent, neighbours=neighbours)
    return lengths, lambda blocks: FullMeasurement(
        marginals=marginals,
        strategy=strategy,
        coefficients=blocks[:tables],
        total=total,
        scale=scale,
        cost=cost,
        values=None if below is None else ValueCounts(below, blocks[tables:]),
    )


def _check_kept(about: dict[str, Any], strategy: Strategy, lengths: Sequence[int]) -> int:
    """Check and return the number of cells that were kept of a sparse grid."""
    above, kept = about["above"], about["kept"]
    whole = all(type(number) is int and 0 <= number < 2**62 for number in (above, kept, *lengths))
    if not (isinstance(strategy, LowDimensional) and len(lengths) == 1 and whole and kept <= lengths[0]):
        raise ValueError("the cells that were kept")
    return int(kept)


def _as_sparse(made: Measurement, places: Ints, above: int) -> SparseMeasurement:
    """Convert to a sparse measurement: its cells must be distinct, in order, and above the threshold."""
    (values,), (cells,) = made.coefficients, made.marginals.sizes()
    assert isinstance(made.strategy, LowDimensional)
    inside = not len(places) or (places[0] >= 0 and places[-1] < cells and (np.diff(places) > 0).all())
    sizes = np.abs(values) if made.strategy.signed else values
    if not inside or (sizes <= above).any() or is_kept_in_full(cells, len(made.marginals.cells)):
        raise ValueError("the places")
    fields = {name: getattr(made, name) for name in ("marginals", "strategy", "total", "scale", "cost")}
    return SparseMeasurement(**fields, coefficients=(values,), places=places, above=above)


def _describe_cells(cells: Sequence[Cells], schema: Schema) -> dict[str, Any]:
    """Describe even cells by their number; groups by the steps of their lattices, the first point of each group, and
    the groups of labels.
    """
    even = [c.steps for c in cells if not isinstance(c, Groups)]
    if even:
        return {"resolution": even[0]}
    groups = {name: c for name, c in zip(schema.names, cells, strict=True) if isinstance(c, Groups)}
    merged = {name: c for name, c in groups.items() if c.off_line < c.lattice.off_line}
    return {
        "lattice": {name: c.lattice.steps for name, c in groups.items()},
        "starts": {name: c.starts.tolist() for name, c in groups.items()},
        "kin": {name: c.group_of_label.tolist() for name, c in merged.items()},
        "heads": {name: c.representatives.tolist() for name, c in merged.items()},
    }


def _read_cells(about: dict[str, Any], schema: Schema) -> tuple[Cells, ...]:
    if "resolution" in about:
        resolution = RESOLUTION("resolution", about["resolution"])
        if resolution is None:
            raise ValueError("the resolution")
        return tuple(column.cells(resolution) for column in schema)
    lattice, starts = about["lattice"], about["starts"]
    if not all(type(lattice[c.name]) is int and _is_lattice(c, lattice[c.name]) for c in schema):
        raise ValueError("the lattice")
    kin, heads = about["kin"], about["heads"]
    if not all(type(code) is int for codes in (starts, kin, heads) for column in codes.values() for code in column):
        raise ValueError("the groups")
    return tuple(
        Groups.of(
            c.lattice(lattice[c.name]), _codes_of(starts, c.name), _codes_of(kin, c.name), _codes_of(heads, c.name)
        )
        for c in schema
    )


def _is_lattice(column: Column, steps: int) -> bool:
    """Whether a column's lattice may have so many steps: few, or those of all its values."""
    return 1 <= steps <= MAX_LATTICE_STEPS or steps == column.points().lattice.steps


def _codes_of(stored: dict[str, list[int]], name: str) -> Ints | None:
    return np.array(stored[name], np.int64) if name in stored else None
