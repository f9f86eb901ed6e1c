"""certsynth verify and report: what can be done with a release alone."""

from __future__ import annotations

import shutil

import pytest


@pytest.fixture
def folder(released, tmp_path, monkeypatch):
    """A copy of the release; the private rows are not there."""
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(released / "release", tmp_path / "release")


def test_verifies_without_the_private_rows(folder, run):
    done = run("verify", "release")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-1] == "release: all 11 checks passed."
    result = run("verify", "release", "--json").json
    assert result["ok"] is True
    assert all(check["ok"] and check["name"] and check["detail"] for check in result["checks"])


@pytest.mark.parametrize(
    "name",
    [
        "synthetic.csv",
        "synthetic.parquet",
        "certificate.json",
        "measurements.npz",
        "schema.toml",
        "report.html",
        "datapackage.json",
        "SHA256SUMS",
    ],
)
def test_fails_when_a_byte_is_flipped(folder, run, name):
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    done = run("verify", "release", "--json")
    assert done.code == 1
    assert done.json["ok"] is False
    said = run("verify", "release")
    assert said.code == 1
    assert said.out.splitlines()[-1].endswith("failed. Do not rely on this release.")


def test_fails_when_a_file_is_gone(folder, run):
    (folder / "measurements.npz").unlink()
    done = run("verify", "release", "--json")
    assert done.code == 1
    assert "measurements.npz" in str(done.json["checks"])


def test_refuses_what_is_no_release(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    for command in ("verify", "report"):
        assert run(command, "no").error == "no is not a release folder: there is no such folder."
        assert run(command, ".").error == ". is not a release folder: certificate.json cannot be read."


def test_writes_the_report_again(folder, run):
    done = run("report", "release", "--out", "again.html")
    assert (done.code, done.out) == (0, "again.html: written\n")
    assert (folder.parent / "again.html").read_bytes() == (folder / "report.html").read_bytes()
    again = run("report", "release", "--out", "again.html", "--json")
    assert again.json == {"out": "again.html", "written": False}


def test_puts_a_lost_report_back(folder, run):
    page = (folder / "report.html").read_bytes()
    assert run("report", "release").out == "release/report.html: is there already, byte for byte the same\n"
    (folder / "report.html").unlink()
    assert run("report", "release").code == 0
    assert (folder / "report.html").read_bytes() == page


def test_never_overwrites_another_file(folder, run):
    (folder.parent / "mine.html").write_text("precious")
    assert run("report", "release", "--out", "mine.html").error == (
        "mine.html exists already and is another file; choose another --out."
    )
    assert (folder.parent / "mine.html").read_text() == "precious"
    assert run("report", "release", "--out", "no/r.html").error == (
        "no/r.html was not written (No such file or directory); choose another --out."
    )
