"""Stream the result of a DuckDB query as arrays, batch by batch: Arrow's C structs, read without pyarrow.

DuckDB's own conversion to NumPy holds the whole result at once and takes twice as long. The structs are those of the
Arrow C data and stream interfaces (https://arrow.apache.org/docs/format/CDataInterface.html).
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

import duckdb
import numpy as np

from certsynth.sources.person_ids import Letters
from certsynth.sources.reading import objects

T = TypeVar("T")


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.POINTER(_Schema)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Schema))),
    ("private_data", ctypes.c_void_p),
]
_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.POINTER(_Array)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))),
    ("private_data", ctypes.c_void_p),
]
_Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Schema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Array))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(_Stream))),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Stream))),
    ("private_data", ctypes.c_void_p),
]

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]

_NUMBERS = {
    b"c": np.int8,
    b"C": np.uint8,
    b"s": np.int16,
    b"S": np.uint16,
    b"i": np.int32,
    b"I": np.uint32,
    b"l": np.int64,
    b"L": np.uint64,
    b"f": np.float32,
    b"g": np.float64,
    b"tdD": np.int32,
    b"tsu:": np.int64,
}
_TIMES = {b"tdD": "datetime64[D]", b"tsu:": "datetime64[us]"}


def stream_batches(query: duckdb.DuckDBPyRelation, take: Callable[[Sequence[np.ndarray]], T]) -> Generator[T]:
    """Yield `take(columns)` for each batch of rows, in order.

    The arrays are views of DuckDB's memory, valid only until `take` returns: copy what must outlive it. Nulls are
    masked, or None among texts. Blobs are `Letters`.
    """
    capsule = query.__arrow_c_stream__()  # owns the stream and releases it
    stream = _Stream.from_address(_pointer(capsule, b"arrow_array_stream"))
    schema = _Schema()
    _check(stream.get_schema(ctypes.byref(stream), ctypes.byref(schema)))
    try:
        formats = [schema.children[j].contents.format for j in range(schema.n_children)]
    finally:
        schema.release(ctypes.byref(schema))
    while True:
        batch = _Array()
        _check(stream.get_next(ctypes.byref(stream), ctypes.byref(batch)))
        if not batch.release:
            return
        try:
            columns = [_column(batch.children[j].contents, kind) for j, kind in enumerate(formats)]
            taken = take(columns)
            del columns
        finally:
            batch.release(ctypes.byref(batch))
        yield taken


def _check(code: int) -> None:
    if code:  # the message may quote a cell
        raise ValueError("the query fails")


def _column(array: _Array, kind: bytes) -> Any:
    rows, offset = array.length, array.offset
    values: Any
    if kind == b"b":
        values = _bits(array.buffers[1], offset, rows)
    elif kind in _NUMBERS:
        values = _memory(array.buffers[1], _NUMBERS[kind], offset, rows)
        if kind in _TIMES:
            values = values.astype(np.int64, copy=False).view(_TIMES[kind])
    elif kind == b"U":
        return _texts(array)
    elif kind == b"Z":
        return _letters(array)
    else:
        raise ValueError("unexpected Arrow type")
    if not array.null_count or not array.buffers[0]:
        return np.asarray(values)
    return np.ma.masked_array(values, mask=~_bits(array.buffers[0], offset, rows))


def _texts(array: _Array) -> np.ndarray:
    rows, offset = array.length, array.offset
    ends = _memory(array.buffers[1], np.int64, offset, rows + 1)
    letters = _memory(array.buffers[2], np.uint8, 0, int(ends[-1]) if rows else 0).tobytes()
    cuts = ends.tolist()
    found: list[str | None] = [letters[a:b].decode() for a, b in itertools.pairwise(cuts)]
    if array.null_count and array.buffers[0]:
        there = _bits(array.buffers[0], offset, rows).tolist()
        found = [text if present else None for text, present in zip(found, there, strict=True)]
    return objects(found)


def _letters(array: _Array) -> Letters:
    """Texts as bytes, for the hashes of ids."""
    rows, offset = array.length, array.offset
    ends = _memory(array.buffers[1], np.int64, offset, rows + 1)
    letters = _memory(array.buffers[2], np.uint8, 0, int(ends[-1]) if rows else 0)
    there = array.null_count and array.buffers[0]
    return Letters(letters, ends, ~_bits(array.buffers[0], offset, rows) if there else None)


def _bits(address: int, offset: int, count: int) -> np.ndarray:
    packed = _memory(address, np.uint8, 0, -(-(offset + count) // 8))
    return np.unpackbits(packed, count=offset + count, bitorder="little")[offset:].view(bool)


def _memory(address: int, kind: Any, offset: int, count: int) -> np.ndarray:
    size = np.dtype(kind).itemsize
    if not count:
        return np.empty(0, kind)
    return np.frombuffer((ctypes.c_char * (size * count)).from_address(address + size * offset), kind)
