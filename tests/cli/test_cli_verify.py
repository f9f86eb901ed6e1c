"""certsynth verify and report: what can be done with a release alone."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from certsynth import Release
from certsynth.algorithm import verify as verification
from certsynth.cli.options import NO_LEDGER
from certsynth.domain import Category


def test_verifies_without_the_private_rows(folder, run):
    done = run("verify", "release")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-1] == "release: all 13 checks passed."
    result = run("verify", "release", "--json").json
    assert result["ok"] is True
    assert all(check["ok"] and check["name"] and check["detail"] for check in result["checks"])


def test_reads_labels_once_and_derives_the_expected_tables_once(folder, monkeypatch):
    """With many rows and columns these take most of the time. Reading numbers again takes little."""
    read, derived = [], []
    clean, derive = Category.clean, verification.stated_layers
    monkeypatch.setattr(Category, "clean", lambda self, raw: read.append((self.name, len(raw))) or clean(self, raw))
    monkeypatch.setattr(verification, "stated_layers", lambda *args: derived.append(args) or derive(*args))
    made = Release.load(folder)
    assert all(check["ok"] for check in made.verify())
    rows = len(made.rows[0])
    assert sorted(name for name, values in read if values == rows) == ["employed", "region"]
    assert len(derived) == 1


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
        "croissant.json",
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
    (tmp_path / "people.csv").touch()
    for command in ("verify", "report"):
        assert run(command, "no").error == "no is not a release folder: there is no such folder."
        assert run(command, ".").error == (
            ". is not a release folder: certificate.json cannot be read. Give a folder that `certsynth release` wrote."
        )
        assert run(command, "people.csv").error == (
            "people.csv is not a release folder: it is a file. Give the folder that it lies in."
        )


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
        "mine.html already exists with different content; choose another --out."
    )
    assert (folder.parent / "mine.html").read_text() == "precious"
    assert run("report", "release", "--out", "no/r.html").error == (
        "no/r.html was not written (No such file or directory); choose another --out."
    )


# ------------------------------------------------------------ what cannot be checked


def test_says_what_cannot_be_checked_apart_from_what_was(folder, run):
    result = run("verify", "release", "--json").json
    assert set(result) == {"ok", "checks", "cannot"}
    assert len(result["cannot"]) == 7
    assert result["cannot"][-1] == "who made it: the release is not signed"
    assert any("direct certificate" in each for each in result["cannot"])
    checked, _, cannot = run("verify", "release").said.partition("What cannot be checked from here:")
    assert cannot.startswith(" " + " ".join(f"- {each}" for each in result["cannot"]))
    assert not any(each in checked for each in result["cannot"])


def test_says_it_of_a_folder_that_cannot_be_read_as_well(folder, run):
    (folder / "certificate.json").write_text("{}")
    result = run("verify", "release", "--json")
    assert result.code == 1
    assert [check["name"] for check in result.json["checks"]] == ["files", "reading"]
    assert len(result.json["cannot"]) == 5


@pytest.mark.parametrize("name", ["synthetic.csv", "certificate.json", "SHA256SUMS", "signer.pem", "more"])
def test_a_pipe_in_the_folder_does_not_hang(folder, run, name):
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)
    for command in ("verify", "report"):
        done = run(command, "release")
        assert done.code in (1, 2)
        assert "not a plain file" in done.out + done.err


def test_names_of_files_cannot_steer_the_terminal(folder, run):
    (folder / "\x1b[2J\n").write_text("x")
    done = run("verify", "release")
    assert done.code == 1
    assert "\x1b" not in done.out


# ------------------------------------------------------------ signatures


@pytest.fixture
def key(tmp_path):
    pytest.importorskip("cryptography", reason="the extra `sign` is not installed")
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    made = Ed25519PrivateKey.generate()
    private = made.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    (tmp_path / "key.pem").write_bytes(private)
    public = made.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH)
    (tmp_path / "key.pub").write_bytes(public)
    return tmp_path / "key.pem"


RELEASE = ("release", "people.csv", "--schema", "schema.toml", "--epsilon", "2", "--resolution", "4")


def test_signs_and_verifies(town, key, run):
    done = run(*RELEASE, "--mechanism", "identity", "--quiet", "--out", "signed", "--sign", "key.pem")
    assert (done.code, done.err) == (0, f"{NO_LEDGER}\n")
    assert "key.pem" not in done.out
    said = run("verify", "signed", "--key", "key.pub")
    assert said.code == 0
    assert said.out.splitlines()[-1] == "signed: all 14 checks passed."
    assert "who made it" not in said.out
    bare = run("verify", "signed", "--json").json
    assert bare["ok"]
    assert "compare it with the publisher's" in bare["checks"][-1]["detail"]
    assert bare["cannot"][-1].startswith("who made it")
    assert run("report", "signed").code == 0
    (town / "signed" / "SHA256SUMS.sig").write_bytes(b"0" * 64)
    assert run("verify", "signed").code == 1


def test_a_release_that_is_not_signed_fails_with_a_key(folder, key, run):
    done = run("verify", "release", "--key", "key.pub")
    assert done.code == 1
    assert "FAILED  signature" in done.out


def test_a_wrong_key_is_one_line(folder, key, run, town):
    (town / "text").write_text("hello")
    assert "no Ed25519 public key" in run("verify", "release", "--key", "text").error
    assert "holds a private key" in run("verify", "release", "--key", "key.pem").error
    assert run("verify", "release", "--key", "no").error == "--key no: No such file or directory. Check the path."
    for private, why in (("no", "No such file"), ("text", "no private key"), ("key.pub", "holds a public key")):
        assert why in run(*RELEASE, "--out", "signed", "--sign", private).error
    assert not (town / "signed").exists()


def test_a_key_is_asked_for_without_the_extra(folder, run, tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    (tmp_path / "k").write_text("ssh-ed25519 AAAA")
    remedy = "signatures need the package cryptography: pip install 'certsynth[sign]'."
    assert run("verify", "release", "--key", "k").error == remedy


def test_help_is_quick_since_nothing_that_verifies_is_imported():
    script = (
        "import sys; from certsynth.cli import main\n"
        "try: main(['verify', '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'jsonschema', 'cryptography', 'numpy', 'duckdb'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.DEVNULL)
