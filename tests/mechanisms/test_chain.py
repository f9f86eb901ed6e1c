"""A file that only grows: whatever is cut off, changed, or written by many at once."""

from __future__ import annotations

import json
import os
import stat
import threading
from pathlib import Path

import pytest

from certsynth.errors import CheckFailed, InputError
from certsynth.mechanisms import chain as chains
from certsynth.mechanisms.chain import Chain, open_chain


def grown(path: Path, *texts: str) -> bytes:
    """The content of a chain after these lines were added to it."""
    for text in texts:
        with open_chain(path, write=True) as chain:
            chain.check()
            chain.append({"text": text})
    return path.read_bytes()


def read(path: Path) -> list[str | None]:
    """What its lines say, None for one that was cut off; the chain is whole."""
    with open_chain(path, write=False) as chain:
        chain.check()
        return [line.says["text"] if line.says else None for line in chain.lines]


def test_lines_follow_from_each_other_and_nobody_else_may_read_them(tmp_path):
    grown(tmp_path / "chain", "one", "two", "three")
    assert read(tmp_path / "chain") == ["one", "two", "three"]
    assert stat.S_IMODE((tmp_path / "chain").stat().st_mode) == 0o600


def test_whatever_a_crash_cuts_off_the_rest_stands_and_goes_on(tmp_path):
    """Every prefix of the file, as a crash in the middle of a write leaves it: lines count once they are whole."""
    content = grown(tmp_path / "chain", "one", "two", "three")
    ends = [i for i, byte in enumerate(content) if byte == ord("\n")]
    for size in range(ends[0], len(content) + 1):
        path = tmp_path / "cut"
        path.write_bytes(content[:size])
        whole = sum(end <= size for end in ends)  # the last one counts without its newline as well
        cut_off = [None] * (size not in (*ends, *(end + 1 for end in ends)))
        assert read(path) == [*["one", "two", "three"][:whole], *cut_off]
        grown(path, "more", "and more")
        assert read(path) == [*["one", "two", "three"][:whole], *cut_off, "more", "and more"]


def test_a_changed_bit_is_seen(tmp_path):
    content = grown(tmp_path / "chain", "one", "two", "three")
    for place in range(len(content)):
        for bit in range(8):
            changed = bytearray(content)
            changed[place] ^= 1 << bit
            (tmp_path / "changed").write_bytes(changed)
            with pytest.raises(CheckFailed):
                read(tmp_path / "changed")


@pytest.mark.parametrize("change", ["dropped", "swapped", "twice", "cut and ended"])
def test_a_changed_order_of_lines_is_seen(tmp_path, change):
    one, two, three = grown(tmp_path / "chain", "one", "two", "three").splitlines(keepends=True)
    changed = {
        "dropped": one + three,
        "swapped": one + three + two,
        "twice": one + two + two + three,
        "cut and ended": one + two + three[:-20] + b"\n",
    }[change]
    (tmp_path / "changed").write_bytes(changed)
    with pytest.raises(CheckFailed, match=r"line \d+ does not follow"):
        read(tmp_path / "changed")


def test_a_disk_that_is_full_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "chain"
    before = grown(path, "one")
    write = os.write
    for written in (0, 1, 30):
        monkeypatch.setattr(os, "write", lambda file, data, n=written: write(file, data[:n]))
        with pytest.raises(InputError, match=r"cannot be written \(No space left on device\)"):
            grown(path, "two")
        monkeypatch.undo()
        assert path.read_bytes() == before

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    for name in ("fsync", "write"):
        monkeypatch.setattr(chains.os, name, fail)
        with pytest.raises(InputError, match="Input/output error"):
            grown(path, "two")
        monkeypatch.undo()
        assert path.read_bytes() == before
    assert grown(path, "two").startswith(before)


def test_many_threads_write_one_after_the_other(tmp_path):
    threads = [threading.Thread(target=grown, args=(tmp_path / "chain", f"{i}", f"{i}!")) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = read(tmp_path / "chain")
    assert sorted(lines) == sorted([f"{i}" for i in range(12)] + [f"{i}!" for i in range(12)])


def test_waits_for_a_lock_and_gives_up(tmp_path, monkeypatch):
    path = tmp_path / "chain"
    grown(path, "one")
    monkeypatch.setattr(chains, "LOCK_TIMEOUT_SECONDS", 0.05)
    with open_chain(path, write=True):  # noqa: SIM117 — the second must come while the first is held
        with pytest.raises(InputError, match="another process has held"):
            grown(path, "two")
    with open_chain(path, write=False):
        assert read(path) == ["one"]  # readers do not wait for each other


def test_what_is_no_file_is_refused_and_a_pipe_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/null")):
        with pytest.raises(InputError, match=r"is not a file|cannot be opened"):
            read(path)
        with pytest.raises(InputError, match=r"is not a file|cannot be opened"):
            grown(path, "one")
    with pytest.raises(InputError, match="cannot be opened"):
        read(tmp_path / "nothing")


def test_a_huge_file_is_refused(tmp_path):
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(chains.MAX_FILE_BYTES + 1)
    with pytest.raises(InputError, match="too large"):
        read(tmp_path / "huge")


def test_a_system_without_locks_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(chains, "fcntl", None)
    with pytest.raises(InputError, match=r"no ledger on Windows, .* Leave `ledger` out"):
        read(tmp_path / "chain")


@pytest.mark.parametrize("text", [b"[]", b"1", b"null", b'"x"', b"{}", b'{"previous": 1}', b"[" * 100_000, b"\xff"])
def test_what_is_no_line_says_nothing(tmp_path, text):
    chain = Chain(tmp_path, -1, text)
    assert [line.says for line in chain.lines] == [None]
    assert json.loads(b"{}") == {}
