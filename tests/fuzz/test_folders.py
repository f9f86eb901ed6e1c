"""Release folders made by somebody else: checks fail, or the folder is refused in one line; nothing is waited for."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import os
import shutil
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from fuzzing import LENGTHS, check_refusal, hunt, texts
from hypothesis import strategies as st

from certsynth import Release, release
from certsynth.cli import main
from certsynth.errors import CertsynthError
from small import EVERY_KIND, NATIVE, native, without_progress, workers

ELSEWHERE = "what-stands-elsewhere"
FILES = ["SHA256SUMS", "certificate.json", "croissant.json", "datapackage.json"]
FILES += ["measurements.npz", "report.html", "schema.toml"]
FILES += ["synthetic.csv", "synthetic.parquet"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a small release."""
    out = tmp_path_factory.mktemp("made") / "out"
    release(native(60), NATIVE, epsilon=3, resolution=2, mechanism="identity", out=out)
    return {path.name: path.read_bytes() for path in out.iterdir()}


@pytest.fixture
def folder(made: dict[str, bytes], tmp_path: Path) -> Path:
    return written(made, tmp_path / "release")


def written(files: dict[str, bytes], folder: Path, *, fitting: bool = False) -> Path:
    """A folder of these files, and of no other; with checksums that fit, if they are to."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    if fitting:
        lines = [
            f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files) if name != "SHA256SUMS"
        ]
        (folder / "SHA256SUMS").write_text("".join(lines))
    return folder


def check_folder(folder: Path, *, sound: bool | None = False) -> None:
    """`verify` says no, or refuses in one line; so does `report`, or it writes a page; so does `Release.load`.

    `sound=None`: whether it is sound is not known.
    """
    done = CliRunner().invoke(main, ["verify", str(folder)])
    shown = done.output + without_progress(done.stderr)
    assert "internal error" not in shown, shown
    assert done.exit_code in ({0, 1, 2} if sound is None else {1, 2}), shown
    assert (done.exit_code == 0) == shown.endswith("checks passed.\n")
    if done.exit_code == 2:
        assert len(without_progress(done.stderr).splitlines()) == 1
        assert done.stdout == ""
    assert ELSEWHERE not in shown
    page = folder.parent / "page.html"
    page.unlink(missing_ok=True)
    done = CliRunner().invoke(main, ["report", str(folder), "--out", str(page)])
    assert "internal error" not in done.stderr, done.stderr
    assert done.exit_code in (0, 2)
    assert len(without_progress(done.stderr).splitlines()) == (done.exit_code == 2)
    assert ELSEWHERE not in done.output + done.stderr
    try:
        Release.load(folder).verify()
    except CertsynthError as error:
        check_refusal(error, hidden=ELSEWHERE)
    except OSError:  # a file that is none: Python's own words have its name, and nothing of what is in it
        pass


def test_the_folder_is_sound_before_anything_is_done_to_it(made, folder):
    done = CliRunner().invoke(main, ["verify", str(folder)])
    assert (done.exit_code, sorted(made)) == (0, FILES)


# ------------------------------------------------------------ the certificate, with any value in any place

json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-2, 3),
        st.sampled_from([2**63, -(10**30), 10**400, 1e308, float("nan"), float("inf"), -0.0, 0.5]),
        st.sampled_from(
            ["1", "1/0", "1/3", "1e400", "-1", "nan", "replace-one", "0x1p-1074", "0x1p1023", "9" * 500, "a"]
        ),
        texts.filter(lambda text: "\ud800" not in text),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=5,
)


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a JSON document."""
    yield path
    inside = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    for key, value in inside:
        yield from places(value, (*path, key))


def changed(document: Any, path: tuple[Any, ...], value: Any, *, remove: bool) -> Any:
    if not path:
        return value
    document = copy.deepcopy(document)
    parent = document
    for key in path[:-1]:
        parent = parent[key]
    if remove:
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return document


@LENGTHS
def test_any_value_in_any_place_of_the_certificate(made, scratch, times):
    document = json.loads(made["certificate.json"])
    everywhere = sorted(places(document), key=str)

    def check(path: tuple[Any, ...], value: Any, remove: bool, fitting: bool) -> None:
        forged = changed(document, path, value, remove=remove)
        same = json.dumps(forged, sort_keys=True) == json.dumps(document, sort_keys=True)
        files = made | {"certificate.json": (json.dumps(forged, indent=2) + "\n").encode()}
        check_folder(written(files, scratch / "release", fitting=fitting), sound=None if fitting or same else False)

    hunt(
        check,
        examples=12,
        times=times,
        path=st.sampled_from(everywhere),
        value=json_values,
        remove=st.booleans(),
        fitting=st.booleans(),
    )


@LENGTHS
def test_any_value_in_what_is_said_of_the_measurements(made, scratch, times):
    with np.load(io.BytesIO(made["measurements.npz"])) as arrays:
        about, coefficients = json.loads(arrays["about"].tobytes()), arrays["coefficients"]
    everywhere = sorted(places(about), key=str)

    def check(path: tuple[Any, ...], value: Any, remove: bool) -> None:
        text = json.dumps(changed(about, path, value, remove=remove)).encode()
        buffer = io.BytesIO()
        np.savez_compressed(buffer, coefficients=coefficients, about=np.frombuffer(text, np.uint8))
        files = made | {"measurements.npz": buffer.getvalue()}
        check_folder(written(files, scratch / "release", fitting=True), sound=None)

    hunt(check, examples=15, times=times, path=st.sampled_from(everywhere), value=json_values, remove=st.booleans())


@pytest.mark.quick_cases(3)
@LENGTHS
@pytest.mark.parametrize("name", FILES)
def test_any_file_with_bytes_changed_or_cut(made, name, scratch, times):
    content = made[name]

    def check(place: int, bits: int, cut: bool, fitting: bool) -> None:
        place %= len(content)
        forged = content[:place] if cut else content[:place] + bytes([content[place] ^ bits]) + content[place + 1 :]
        check_folder(
            written(made | {name: forged}, scratch / "release", fitting=fitting), sound=None if fitting else False
        )

    where = st.integers(0, 10**6)
    hunt(
        check, examples=3, times=times, place=where, bits=st.integers(1, 255), cut=st.booleans(), fitting=st.booleans()
    )


# ------------------------------------------------------------ what is no file, or not in its place

WHATS = ["gone", "empty", "folder", "link to nowhere", "link to itself", "link", "pipe", "device"]


@pytest.mark.quick_cases(12)
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("what", WHATS)
def test_something_else_in_place_of_a_file(folder, tmp_path, name, what):
    path, elsewhere = folder / name, tmp_path / "elsewhere"
    elsewhere.write_text(f"{ELSEWHERE}\n")
    path.unlink()
    replace: dict[str, Callable[[], object]] = {
        "gone": lambda: None,
        "empty": path.touch,
        "folder": path.mkdir,
        "pipe": lambda: os.mkfifo(path),
        "link to nowhere": lambda: path.symlink_to(tmp_path / "nowhere"),
        "link to itself": lambda: path.symlink_to(path),
        "link": lambda: path.symlink_to(elsewhere),
        "device": lambda: path.symlink_to("/dev/zero"),
    }
    replace[what]()
    check_folder(folder)


@pytest.mark.parametrize("what", ["folder", "pipe", "link", "file", "odd name"])
def test_something_more_than_the_files(folder, tmp_path, what):
    more = folder / "more"
    make: dict[str, Callable[[], object]] = {
        "folder": lambda: (more / "deep").mkdir(parents=True),
        "pipe": lambda: os.mkfifo(more),
        "link": lambda: more.symlink_to("/dev/zero"),
        "file": more.touch,
        "odd name": (folder / "two\nlines\x1b[31m").touch,
    }
    make[what]()
    check_folder(folder)


@pytest.mark.parametrize("what", ["pipe", "file", "nowhere", "device"])
def test_what_is_no_folder(tmp_path, what):
    path = tmp_path / "release"
    if what == "pipe":
        os.mkfifo(path)
    elif what == "file":
        path.touch()
    elif what == "device":
        path.symlink_to("/dev/zero")
    check_folder(path)


def test_the_schema_of_another_release(made, folder):
    (folder / "schema.toml").write_text(EVERY_KIND.to_toml())
    check_folder(folder)
    check_folder(written(made | {"schema.toml": EVERY_KIND.to_toml().encode()}, folder, fitting=True))


def _parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


TABLES = {
    "no rows": pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.int64()), "c": pa.array([], pa.string())}),
    "texts": pa.table({"a": ["=1"], "b": ["x"], "c": ["y"]}),
    "lists": pa.table({"a": [[1]], "b": [[1]], "c": [["x"]]}),
    "records": pa.table({"a": [{"a": 1}], "b": [{"a": 1}], "c": [{"a": 1}]}),
    "times": pa.table({name: pa.array([2**62], pa.timestamp("us", "UTC")) for name in "abc"}),
    "numbers": pa.table({"a": [float("nan")], "b": [float("inf")], "c": [1e300]}),
    "nothing": pa.table({"a": pa.nulls(1), "b": pa.nulls(1), "c": pa.nulls(1)}),
    "twins": pa.table([[1], [1], [1], ["x"]], names=["a", "a", "b", "c"]),
    "other columns": pa.table({"z": [1]}),
}


@pytest.mark.parametrize("case", TABLES)
def test_another_table_with_fitting_checksums(made, scratch, case):
    check_folder(written(made | {"synthetic.parquet": _parquet(TABLES[case])}, scratch / "release", fitting=True))


def test_measurements_that_unpack_to_very_much_fill_no_memory(made, scratch):
    """Zeros by the gigabyte, in a few megabytes."""
    buffer = io.BytesIO()
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<i8", "fortran_order": False, "shape": (2**26,)})
    with (
        zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        np.load(io.BytesIO(made["measurements.npz"])) as arrays,
    ):
        with archive.open("coefficients.npy", "w") as file:
            file.write(header.getvalue())
            for _ in range(512):
                file.write(bytes(2**20))
        with archive.open("about.npy", "w") as file:
            np.lib.format.write_array(file, arrays["about"], allow_pickle=False)
    written(made | {"measurements.npz": buffer.getvalue()}, scratch / "release", fitting=True)
    tracemalloc.start()
    check_folder(scratch / "release")
    assert tracemalloc.get_traced_memory()[1] < 100 * 2**20
    tracemalloc.stop()


def test_a_release_of_every_kind_is_read_like_any_other(scratch):
    out = scratch / "every-kind[1]"
    release(workers(60), EVERY_KIND, epsilon=3, resolution=2, mechanism="identity", columns=["age", "job"], out=out)
    decoy = scratch / "every-kind1"
    decoy.mkdir()
    shutil.copy(out / "schema.toml", decoy / "synthetic.parquet")
    done = CliRunner().invoke(main, ["verify", str(out)])
    assert done.exit_code == 0, done.output
