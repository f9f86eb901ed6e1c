"""Writing a folder: whole or absent, whatever gets in the way. Reading one: plain files, and nothing that waits."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from forging import copied

from certsynth import Release, Schema
from certsynth.artefact import folder as writing
from certsynth.artefact.folder import MAX_FILE_BYTES, check_sums, check_target, write_folder
from certsynth.domain import Ordered
from certsynth.errors import InputError, SchemaError
from certsynth.report.contents import SIZED, size_text, stated_sizes
from small import NATIVE

FILES = {"a": b"1", "b": b"22"}


# ------------------------------------------------------------ writing


def test_every_file_and_both_folders_are_synced_before_and_after_the_rename(tmp_path, monkeypatch):
    done: list[str] = []
    sync, rename = writing.sync, writing._rename_into_place
    monkeypatch.setattr(writing, "sync", lambda path: (done.append(path.name), sync(path)))
    monkeypatch.setattr(writing, "_rename_into_place", lambda a, b: (done.append("rename"), rename(a, b)))
    write_folder(tmp_path / "out", FILES, sign=lambda sums: b"s" * 64)
    *files, partial, renamed, parent = done
    assert sorted(files) == ["SHA256SUMS", "SHA256SUMS.sig", "a", "b"]
    assert partial.endswith(".partial")
    assert (renamed, parent) == ("rename", tmp_path.name)


def test_the_signature_is_of_the_checksums_and_is_not_listed(tmp_path):
    seen: list[bytes] = []
    write_folder(tmp_path / "out", FILES, sign=lambda sums: (seen.append(sums), b"x" * 64)[1])
    sums = (tmp_path / "out" / "SHA256SUMS").read_bytes()
    assert seen == [sums]
    assert sums.decode() == "".join(f"{hashlib.sha256(c).hexdigest()}  {n}\n" for n, c in FILES.items())


@pytest.mark.parametrize("kind", ["empty folder", "folder", "file", "link", "dangling link", "link to a folder"])
@pytest.mark.parametrize("kernel", [True, False], ids=["renameat2", "rename"])
def test_what_comes_to_stand_there_midway_is_left_as_it_is(tmp_path, monkeypatch, kind, kernel):
    """Somebody makes the target after it was looked at, and before the rename."""
    if not kernel:
        monkeypatch.setattr(writing, "_rename_without_replacing", lambda *_: errno.ENOSYS)
    target, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine").write_text("mine")

    def race(partial: Path) -> None:
        if "folder" in kind and "link" not in kind:
            target.mkdir()
        if kind == "folder":
            (target / "mine").write_text("mine")
        if kind == "file":
            target.write_text("mine")
        if "link" in kind:
            ends = {"link": elsewhere / "mine", "dangling link": tmp_path / "no", "link to a folder": elsewhere}
            target.symlink_to(ends[kind])

    with pytest.raises(InputError, match="never overwritten"):
        write_folder(target, FILES, race)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "out"]
    assert [path.name for path in elsewhere.iterdir()] == ["mine"]
    if target.is_symlink():
        assert "link" in kind
    elif target.is_dir():
        assert [path.name for path in target.iterdir()] == (["mine"] if kind == "folder" else [])
    else:
        assert target.read_text() == "mine"


@pytest.mark.skipif(sys.platform != "linux", reason="renameat2 is Linux's")
def test_the_kernel_refuses_an_empty_folder_that_a_plain_rename_would_replace(tmp_path):
    for name in ("one", "two", "three"):
        (tmp_path / name).mkdir()
    assert writing._rename_without_replacing(tmp_path / "one", tmp_path / "two") in (errno.EEXIST, errno.EINVAL)
    (tmp_path / "one").rename(tmp_path / "three")  # the control: POSIX lets it
    assert sorted(path.name for path in tmp_path.iterdir()) == ["three", "two"]


@pytest.mark.parametrize("failure", [KeyboardInterrupt, MemoryError, RuntimeError, SystemExit, GeneratorExit])
@pytest.mark.parametrize("step", ["others", "sign", "digest", "sync", "_rename_into_place"])
def test_nothing_is_left_whatever_happens_at_any_step(tmp_path, monkeypatch, failure, step):
    def fail(*_: object) -> bytes:
        raise failure

    asked = {step: fail} if step in ("others", "sign") else {}
    if not asked:
        monkeypatch.setattr(writing, step, fail)
    with pytest.raises(failure):
        write_folder(tmp_path / "out", FILES, **asked)
    assert list(tmp_path.iterdir()) == []


def test_a_parent_that_vanishes_midway_is_told_in_one_line(tmp_path):
    parent = tmp_path / "parent"
    parent.mkdir()
    with pytest.raises(InputError, match=r"out was not written \([^)]+\); nothing is left behind\.$"):
        write_folder(parent / "out", FILES, lambda partial: shutil.rmtree(parent))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_but_not_yet_safe_is_told_as_that(tmp_path, monkeypatch):
    sync = writing.sync

    def fail(path: Path) -> None:
        if path == tmp_path:
            raise OSError(errno.EIO, "Input/output error")
        sync(path)

    monkeypatch.setattr(writing, "sync", fail)
    with pytest.raises(InputError, match="is written, but may be lost"):
        write_folder(tmp_path / "out", FILES)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"a", "b", "SHA256SUMS"}


@pytest.mark.parametrize("place", ["/proc", "/sys", "/proc/self"])
def test_a_place_that_refuses_even_root_is_refused_before_anything_is_spent(place):
    if not Path(place).is_dir():
        pytest.skip(f"there is no {place}")
    with pytest.raises(InputError, match=rf"^{place} cannot be written to; choose another `out`\.$"):
        check_target(Path(place) / "out")


def test_a_long_name_is_as_good_as_a_short_one(tmp_path):
    write_folder(tmp_path / ("ü" * 120), FILES)
    assert [path.name for path in tmp_path.iterdir()] == ["ü" * 120]


def test_a_link_to_the_parent_is_followed_and_the_target_is_a_folder(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_folder(tmp_path / "link" / "out", FILES)
    assert (tmp_path / "real" / "out" / "SHA256SUMS").is_file()


LIMITED = """
import os, resource, sys
from certsynth import Release, Schema
from certsynth.domain import Ordered
from certsynth.errors import InputError, SchemaError
from certsynth.report.contents import SIZED, size_text, stated_sizes
made, out, folder = Release.load(sys.argv[1]), sys.argv[2], os.path.dirname(sys.argv[2])
for limit in map(int, sys.argv[3:]):
    child = os.fork()  # each with a limit of its own
    if not child:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            made.save(out)
        except InputError as error:
            print(f"{limit}: {error}", flush=True)
        else:
            print(f"{limit}: written", flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    print(f"{limit}: left {os.listdir(folder)}", flush=True)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="files are limited in other ways here")
def test_a_disk_that_is_full_leaves_nothing(variants, tmp_path):
    """The limit on the size of files fails writes as a full disk does: at any file, the tables by DuckDB as well."""
    source = variants("more rows").folder
    sizes = {path.name: path.stat().st_size for path in source.iterdir()}
    middle = (sizes["synthetic.parquet"] + sizes["measurements.npz"]) // 2
    small, enough = (0, 100, 3000, middle, max(sizes.values()) - 1), max(sizes.values()) + 4096
    command = [sys.executable, "-c", LIMITED, str(source), str(tmp_path / "out"), *map(str, (*small, enough))]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    for limit, (error, left) in zip(small, zip(said[:-2:2], said[1:-2:2], strict=True), strict=True):
        assert error.startswith(f"{limit}: "), said
        assert "was not written" in error
        assert "nothing is left behind" in error
        assert left == f"{limit}: left []"
    assert said[-2:] == [f"{enough}: written", f"{enough}: left ['out']"]


# ------------------------------------------------------------ reading


@pytest.fixture
def received(variants, tmp_path) -> Path:
    return shutil.copytree(variants("pairs").folder, tmp_path / "received")


def resummed(folder: Path) -> None:
    """Checksums that fit whatever is there."""
    names = sorted(path.name for path in folder.iterdir() if path.name not in ("SHA256SUMS", "SHA256SUMS.sig"))
    lines = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    (folder / "SHA256SUMS").write_text("".join(lines))


HAND = {
    "a link to itself elsewhere": lambda path, other: path.symlink_to(shutil.copy(path.with_name("x"), other)),
    "a dangling link": lambda path, other: path.symlink_to(other / "no"),
    "a link to a device": lambda path, other: path.symlink_to("/dev/zero"),
    "a folder": lambda path, other: path.mkdir(),
    "a pipe that nobody writes to": lambda path, other: os.mkfifo(path),
    "a socket": lambda path, other: socket.socket(socket.AF_UNIX).bind(str(path)[-100:]),
}


@pytest.mark.filterwarnings("ignore:unclosed")
@pytest.mark.parametrize("kind", HAND)
@pytest.mark.parametrize("name", [*sorted(MAX_FILE_BYTES), "another"])
def test_nothing_but_plain_files_is_opened(received, tmp_path, monkeypatch, name, kind):
    """In place of any file, or beside them; with a pipe that a careless reader would wait for."""
    path = received / name
    if path.exists():
        path.rename(tmp_path / "x")
        (tmp_path / "x").rename(path.with_name("x"))
    else:
        path.with_name("x").write_bytes(b"x")
    monkeypatch.chdir(received)
    HAND[kind](Path(name) if kind == "a socket" else path, tmp_path)
    path.with_name("x").unlink()
    opened = []
    monkeypatch.setattr(writing.os, "open", lambda *a: opened.append(a))
    with pytest.raises(InputError, match=r"(is a link, and a release has none|is not a plain file)"):
        Release.load(received)
    assert check_sums(received)
    assert opened == []


def test_a_pipe_that_appears_after_the_look_is_not_waited_for(received, monkeypatch):
    (received / "certificate.json").unlink()
    os.mkfifo(received / "certificate.json")
    with pytest.raises(InputError, match=r"certificate\.json cannot be read"):
        writing.read_plain(received, "certificate.json")
    (received / "report.html").unlink()
    (received / "report.html").symlink_to(received / "schema.toml")
    with pytest.raises(InputError, match=r"report\.html cannot be read"):
        writing.read_plain(received, "report.html")


@pytest.mark.parametrize("name", [name for name in MAX_FILE_BYTES if name != "SHA256SUMS.sig"])
def test_a_file_that_is_absurdly_large_is_not_read(received, name):
    with (received / name).open("ab") as file:
        file.truncate(MAX_FILE_BYTES[name] + 1)  # a hole: it takes no room
    with pytest.raises(InputError, match="larger than any release's"):
        Release.load(received)
    assert "larger than any release's" in "".join(check_sums(received))


def test_a_folder_of_very_many_files_is_not_listed_to_its_end(received):
    for i in range(200):
        (received / f"file {i}").touch()
    with pytest.raises(InputError, match="more than 100 files"):
        Release.load(received)


SUMS_OF_A_FORGER = {
    "empty": lambda text: "",
    "no newline at the end": lambda text: text[:-1],
    "an empty line": lambda text: text + "\n",
    "a file twice": lambda text: text + text.splitlines(keepends=True)[0],
    "a file twice, with another sum first": lambda text: "0" * 64 + text.splitlines(keepends=True)[0][64:] + text,
    "a sum in capitals": lambda text: text[:64].upper() + text[64:],
    "a sum too short": lambda text: text[1:],
    "one space": lambda text: text.replace("  ", " "),
    "the mark of binary files": lambda text: text.replace("  ", " *"),
    "a comment": lambda text: "# sums\n" + text,
    "windows lines": lambda text: text.replace("\n", "\r\n"),
    "another separator of lines": lambda text: text.replace("\n", "\u2028"),
    "a path": lambda text: text.replace("  certificate.json", "  ../certificate.json"),
    "an absolute path": lambda text: text + "0" * 64 + "  /etc/passwd\n",
    "a path into a folder": lambda text: text + "0" * 64 + "  a/b\n",
    "a folder": lambda text: text + "0" * 64 + "  ..\n",
    "itself": lambda text: text + "0" * 64 + "  SHA256SUMS\n",
    "the signature": lambda text: text + "0" * 64 + "  SHA256SUMS.sig\n",
    "a file that is not there": lambda text: text + "0" * 64 + "  notes.txt\n",
    "a file too few": lambda text: "".join(text.splitlines(keepends=True)[1:]),
    "a name that steers terminals": lambda text: text + "0" * 64 + "  \x1b[2J\n",
}


@pytest.mark.parametrize("change", SUMS_OF_A_FORGER.values(), ids=SUMS_OF_A_FORGER)
def test_checksums_that_are_no_list_of_the_files_are_seen(received, change):
    assert check_sums(received) == []
    path = received / "SHA256SUMS"
    path.write_bytes(change(path.read_text()).encode())
    assert check_sums(received)
    assert all(problem.isprintable() for problem in check_sums(received))


def test_checksums_that_are_no_text_are_seen(received):
    (received / "SHA256SUMS").write_bytes(b"\xff\xfe")
    assert check_sums(received) == ["SHA256SUMS is not a text"]
    (received / "SHA256SUMS").unlink()
    assert check_sums(received) == ["SHA256SUMS is missing"]


@pytest.mark.parametrize("name", ["notes.txt", "evil\n  name", "=cmd()", ".hidden"])
def test_a_file_too_many_is_seen_listed_or_not(received, name):
    (received / name).write_text("x")
    problems = check_sums(received)
    assert len(problems) == 1
    assert "is not listed" in problems[0]
    assert problems[0].isprintable()
    resummed(received)
    assert check_sums(received)


@pytest.mark.parametrize("name", sorted(set(MAX_FILE_BYTES) - {"SHA256SUMS", "SHA256SUMS.sig", "signer.pem"}))
def test_a_file_too_few_is_seen_listed_or_not(received, name):
    (received / name).unlink()
    assert check_sums(received) == [f"{name} is missing"]
    resummed(received)
    assert check_sums(received) == [f"{name} is missing"]


# ------------------------------------------------------------ files with fitting checksums that say something else


def failed(made: Release, folder: Path, **files: bytes) -> set[str]:
    return {c["name"] for c in copied(made, folder, **files) if not c["ok"]}


def test_another_description_is_seen(variants, tmp_path):
    made = variants("pairs")
    text = (made.folder / "datapackage.json").read_bytes()
    for i, other in enumerate((b"{}", text.replace(b'"maximum": 6', b'"maximum": 7'), text + b" ", text[:-1])):
        assert failed(made, tmp_path / str(i), datapackage_json=other) == {"description"}
    text = (made.folder / "croissant.json").read_bytes()
    flag = b'"rai:hasSyntheticData": true'
    assert flag in text
    for i, other in enumerate((b"{}", text.replace(flag, flag.replace(b"true", b"false")), text + b" ", text[:-1])):
        assert failed(made, tmp_path / f"croissant {i}", croissant_json=other) == {"description"}


def test_a_table_that_became_a_pipe_after_it_was_read_is_not_waited_for(variants, tmp_path):
    copied(variants("pairs"), tmp_path / "x")
    made = Release.load(tmp_path / "x")
    (made.folder / "synthetic.csv").unlink()
    os.mkfifo(made.folder / "synthetic.csv")
    assert {c["name"] for c in made.verify() if not c["ok"]} >= {"files", "description"}


def test_another_wording_of_the_schema_is_seen(variants, tmp_path):
    made = variants("pairs")
    text = (made.folder / "schema.toml").read_bytes()
    for i, other in enumerate((text + b"# trust me\n", text.replace(b" = ", b"="), text.replace(b"\n", b"\r\n"))):
        assert failed(made, tmp_path / str(i), schema_toml=other) == {"schema"}
    other = text.replace(b'name = "table"', b'name = "another"')
    assert {"schema", "description"} <= failed(made, tmp_path / "name", schema_toml=other)
    draft = text.replace(b"\n\n", b"\ndraft = true\n\n", 1)
    assert failed(made, tmp_path / "draft", schema_toml=draft) == {"schema"}


def csv_of(made: Release) -> list[list[str]]:
    return [line.split(",") for line in (made.folder / "synthetic.csv").read_text().splitlines()]


FORGED_CSV = {
    "another header": lambda rows: rows[0].__setitem__(0, "income"),
    "columns with each other's names": lambda rows: rows[0].reverse(),
    "no header": lambda rows: rows.pop(0),
    "a row too few": lambda rows: rows.pop(),
    "a row too many": lambda rows: rows.append(rows[-1]),
    "another order of rows": lambda rows: rows[1:].sort() or rows.__setitem__(slice(1, None), sorted(rows[1:])),
    "a column too many": lambda rows: [row.append("x") for row in rows],
    "a cell too many": lambda rows: rows[5].append("x"),
    "another number": lambda rows: rows[5].__setitem__(0, str((int(rows[5][0]) + 1) % 7)),
    "a number beyond the bounds, which counts as the bound": lambda rows: (
        [row.__setitem__(0, "600") for row in rows[1:] if row[0] == "6"]
        or rows[1].__setitem__(0, "-" + rows[1][0] if rows[1][0] == "0" else "99")
    ),
    "a number in another way": lambda rows: rows[5].__setitem__(0, rows[5][0] + ".0"),
    "a number with spaces": lambda rows: rows[5].__setitem__(0, " " + rows[5][0]),
    "a formula in place of the first label": lambda rows: [
        row.__setitem__(2, "=cmd()") for row in rows[1:] if row[2] == "x"
    ],
    "a label in capitals": lambda rows: rows[5].__setitem__(2, rows[5][2].upper()),
}


@pytest.mark.quick_cases(5)
@pytest.mark.parametrize("change", FORGED_CSV.values(), ids=FORGED_CSV)
def test_a_csv_file_that_says_something_else_is_seen(variants, tmp_path, change):
    made = variants("pairs")
    rows = csv_of(made)
    before = [list(row) for row in rows]
    change(rows)
    assert rows != before
    text = "".join(",".join(row) + "\n" for row in rows).encode()
    assert "rows" in failed(made, tmp_path / "forged", synthetic_csv=text)


def parquet(frame: pl.DataFrame, path: Path, *, compression: str = "snappy", **notes: str) -> bytes:
    import pyarrow.parquet

    table = frame.to_arrow()
    kept = pyarrow.table({name: table[name].cast(_plain(table[name].type)) for name in table.column_names})
    pyarrow.parquet.write_table(
        kept.replace_schema_metadata(notes or None), path, store_schema=bool(notes), compression=compression
    )
    return path.read_bytes()


def _plain(kind):
    import pyarrow

    return pyarrow.string() if kind == pyarrow.large_string() else kind


def test_a_parquet_file_that_another_tool_wrote_alike_is_as_good(variants, tmp_path):
    """The control for what follows."""
    made = variants("pairs")
    frame = pl.read_parquet(made.folder / "synthetic.parquet")
    assert failed(made, tmp_path / "same", synthetic_parquet=parquet(frame, tmp_path / "x")) == set()


def test_the_page_states_the_sizes_of_all_files_that_are_complete_before_it(variants):
    made = variants("pairs")
    sizes = stated_sizes((made.folder / "report.html").read_bytes())
    assert sizes == {name: size_text((made.folder / name).stat().st_size) for name in SIZED}
    assert set(MAX_FILE_BYTES) - set(sizes) == {"SHA256SUMS", "SHA256SUMS.sig", "report.html", "signer.pem"}


def test_a_table_of_another_size_is_mentioned_and_does_not_make_the_page_wrong(variants, tmp_path):
    made = variants("pairs")
    longer = parquet(pl.read_parquet(made.folder / "synthetic.parquet"), tmp_path / "x", compression="none")
    checks = {each["name"]: each for each in copied(made, tmp_path / "same", synthetic_parquet=longer)}
    assert checks["report"]["ok"]
    assert checks["report"]["detail"].endswith("; it states another size of synthetic.parquet")


@pytest.mark.parametrize("size", ["9.9 TB", "1.23 kB", "<b>1.2 kB</b>", "0 bytes"])
def test_a_page_that_states_no_size_in_its_place_is_refused(variants, tmp_path, size):
    made = variants("pairs")
    page = (made.folder / "report.html").read_bytes()
    stated = stated_sizes(page)["schema.toml"]
    cell = '<code>schema.toml</code></th><td class="n">{}</td>'
    forged = page.replace(cell.format(stated).encode(), cell.format(size).encode())
    assert forged != page
    assert failed(made, tmp_path / "forged", report_html=forged) == {"report"}


FORGED_PARQUET = {
    "a column too many": lambda frame: frame.with_columns(secret=pl.lit("private")),
    "a column too few": lambda frame: frame.drop("c"),
    "another order of columns": lambda frame: frame.select("b", "a", "c"),
    "another name": lambda frame: frame.rename({"a": "A"}),
    "numbers of another type": lambda frame: frame.with_columns(pl.col("a").cast(pl.Float64)),
    "smaller numbers": lambda frame: frame.with_columns(pl.col("a").cast(pl.Int8)),
    "numbers as texts": lambda frame: frame.with_columns(pl.col("a").cast(pl.String)),
}


@pytest.mark.parametrize("change", FORGED_PARQUET.values(), ids=FORGED_PARQUET)
def test_a_parquet_file_with_other_columns_is_refused(variants, tmp_path, change):
    made = variants("pairs")
    frame = change(pl.read_parquet(made.folder / "synthetic.parquet"))
    with pytest.raises(InputError, match="not a table with the schema's columns"):
        copied(made, tmp_path / "forged", synthetic_parquet=parquet(frame, tmp_path / "x"))


def test_a_parquet_file_with_notes_is_refused(variants, tmp_path):
    made = variants("pairs")
    frame = pl.read_parquet(made.folder / "synthetic.parquet")
    with pytest.raises(InputError, match="carries notes"):
        copied(made, tmp_path / "forged", synthetic_parquet=parquet(frame, tmp_path / "x", pandas="{}"))


def test_a_parquet_file_of_more_rows_than_any_is_refused(variants, tmp_path, monkeypatch):
    from certsynth.artefact import table

    monkeypatch.setattr(table, "MAX_ROWS", 199)
    with pytest.raises(InputError, match="more rows than any"):
        Release.load(variants("pairs").folder)


def test_an_archive_that_holds_more_than_the_measurements_is_seen(variants, tmp_path):
    import io
    import json

    made = variants("pairs")
    with np.load(made.folder / "measurements.npz") as arrays:
        parts = dict(arrays)
    about = json.loads(parts["about"].tobytes())

    def stored(**others: np.ndarray) -> bytes:
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **(parts | others))
        return buffer.getvalue()

    assert failed(made, tmp_path / "same", measurements_npz=stored()) == set()
    assert failed(made, tmp_path / "more", measurements_npz=stored(secret=np.arange(3))) == {"measurements"}
    about[0]["note"] = "private"
    text = np.frombuffer(json.dumps(about).encode(), np.uint8)
    assert failed(made, tmp_path / "note", measurements_npz=stored(about=text)) == {"measurements"}


def test_names_that_differ_by_their_case_only_are_refused():
    """DuckDB does not tell them apart: files would have other names than the schema, and columns be mixed up."""
    for other in ("A", "a"):
        with pytest.raises(SchemaError, match=r"differ in case only|listed twice"):
            Schema((NATIVE.columns[0], Ordered(name=other, low=0, high=6)))
