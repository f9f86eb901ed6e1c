"""Signed releases: whoever has the publisher's key can tell them from anybody else's, with or without certsynth."""

from __future__ import annotations

import base64
import hashlib
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("cryptography", reason="the extra `sign` is not installed")

from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric import ec, ed448, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import certsynth.algorithm.release as releasing
from certsynth import Release, release
from certsynth.algorithm import verify
from certsynth.artefact import signature
from certsynth.artefact.signature import PublicKey, Signer
from certsynth.errors import InputError
from small import NATIVE, native

QUICK = {"epsilon": 3, "resolution": 2, "mechanism": "identity", "seed": 4}
NONE = form.NoEncryption()
LOCKED = form.BestAvailableEncryption(b"secret")


def pem(key, kind=form.PrivateFormat.PKCS8, lock=NONE) -> bytes:
    return key.private_bytes(form.Encoding.PEM, kind, lock)


@pytest.fixture(scope="module")
def keys(tmp_path_factory) -> Path:
    """The publisher's key and somebody else's, in files of every kind."""
    here = tmp_path_factory.mktemp("keys")
    for name in ("mine", "other"):
        key = Ed25519PrivateKey.generate()
        (here / f"{name}.pem").write_bytes(pem(key))
        (here / f"{name}.ssh").write_bytes(pem(key, form.PrivateFormat.OpenSSH))
        public = key.public_key()
        (here / f"{name}-public.pem").write_bytes(
            public.public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
        )
        line = public.public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH)
        (here / f"{name}.pub").write_bytes(line + b" somebody@somewhere\n")
    return here


@pytest.fixture(scope="module")
def signed(keys, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("signed") / "out"
    release(native(200), NATIVE, out=folder, sign=keys / "mine.pem", **QUICK)
    return folder


@pytest.fixture
def received(signed, tmp_path) -> Path:
    return shutil.copytree(signed, tmp_path / "received")


def found(folder: Path, key: Path | None = None) -> tuple[bool, str]:
    """Whether all checks pass, and what is said of the signature."""
    checks = Release.load(folder).verify(key=key)
    said = [check["detail"] for check in checks if check["name"] == "signature"]
    return all(check["ok"] for check in checks), said[0] if said else ""


def resummed(folder: Path) -> None:
    names = sorted(path.name for path in folder.iterdir() if path.name not in ("SHA256SUMS", "SHA256SUMS.sig"))
    lines = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    (folder / "SHA256SUMS").write_text("".join(lines))


def test_a_signed_release_has_two_files_more(signed):
    names = {path.name for path in signed.iterdir()}
    assert len(names) == 11
    assert {"signer.pem", "SHA256SUMS.sig"} < names
    assert len((signed / "SHA256SUMS.sig").read_bytes()) == 64
    listed = (signed / "SHA256SUMS").read_text()
    assert "  signer.pem\n" in listed
    assert "SHA256SUMS.sig" not in listed


@pytest.mark.parametrize("name", ["mine-public.pem", "mine.pub"])
def test_it_is_verified_with_the_publishers_key_in_either_form(signed, keys, name):
    ok, said = found(signed, keys / name)
    assert ok
    assert said.startswith("signed by the key that was given, SHA256:")
    assert not any("who made it" in each for each in Release.load(signed).cannot_verify(key=keys / name))


def test_without_a_key_it_says_whose_to_compare(signed, keys):
    ok, said = found(signed)
    assert ok
    assert PublicKey.load(keys / "mine.pub").fingerprint in said
    assert "compare it with the publisher's" in said
    assert "who made it" in Release.load(signed).cannot_verify()[-1]


def test_keys_of_openssl_and_openssh_sign_alike(keys, tmp_path, variants):
    made = variants("pairs")
    for name in ("mine.pem", "mine.ssh"):
        made.save(tmp_path / name, sign=keys / name)
        assert found(tmp_path / name, keys / "mine.pub")[0]
    first, second = ((tmp_path / name / "SHA256SUMS.sig").read_bytes() for name in ("mine.pem", "mine.ssh"))
    assert first == second  # Ed25519 has no randomness


def test_an_unsigned_release_says_so_and_fails_where_a_key_is_asked_for(variants, keys):
    folder = variants("pairs").folder
    assert found(folder) == (True, "")
    assert "who made it: the release is not signed" in Release.load(folder).cannot_verify()
    ok, said = found(folder, keys / "mine.pub")
    assert not ok
    assert said.startswith("the release is not signed")


# ------------------------------------------------------------ forgeries


def test_another_key_is_seen(signed, keys):
    ok, said = found(signed, keys / "other.pub")
    assert not ok
    assert PublicKey.load(keys / "other.pub").fingerprint in said


def test_a_release_signed_anew_by_somebody_else_is_seen_with_the_key(received, keys):
    (received / "signer.pem").write_bytes((keys / "other-public.pem").read_bytes())
    resummed(received)
    sums = (received / "SHA256SUMS").read_bytes()
    (received / "SHA256SUMS.sig").write_bytes(Signer.load(keys / "other.pem").sign(sums))
    assert found(received)[0]  # it is a signed release, and who signed it is said
    assert not found(received, keys / "mine.pub")[0]


def test_another_signer_with_the_old_signature_is_seen(received, keys):
    (received / "signer.pem").write_bytes((keys / "other-public.pem").read_bytes())
    resummed(received)
    for key in (None, keys / "mine.pub", keys / "other.pub"):
        ok, said = found(received, key)
        assert not ok
        assert "is not the signature" in said


def test_a_signature_of_another_folder_is_seen(received, keys, variants, tmp_path):
    variants("haar").save(tmp_path / "another", sign=keys / "mine.pem")
    shutil.copy(tmp_path / "another" / "SHA256SUMS.sig", received)
    assert "is not the signature" in found(received)[1]
    assert not found(received, keys / "mine.pub")[0]


@pytest.mark.quick_cases(2)
@pytest.mark.parametrize(
    "change",
    [lambda s: s[:-1], lambda s: s[:32], lambda s: b"", lambda s: b"\0" * 64, lambda s: bytes([s[0] ^ 1]) + s[1:]],
    ids=["a byte less", "half of it", "empty", "zeros", "a bit"],
)
def test_a_broken_signature_is_seen(received, keys, change):
    path = received / "SHA256SUMS.sig"
    path.write_bytes(change(path.read_bytes()))
    for key in (None, keys / "mine.pub"):
        ok, said = found(received, key)
        assert not ok
        assert "is not the signature" in said


def test_a_signature_with_something_behind_it_is_not_even_read(received):
    path = received / "SHA256SUMS.sig"
    path.write_bytes(path.read_bytes() + b"\0")
    with pytest.raises(InputError, match="larger than any release's"):
        Release.load(received)


@pytest.mark.parametrize("names", [["signer.pem"], ["SHA256SUMS.sig"], ["signer.pem", "SHA256SUMS.sig"]], ids=str)
def test_a_signature_that_was_removed_is_seen_with_the_key(received, keys, names):
    for name in names:
        (received / name).unlink()
    assert not found(received, keys / "mine.pub")[0]
    resummed(received)
    assert not found(received, keys / "mine.pub")[0]
    assert found(received)[0] == (len(names) == 2)  # then it is a release that is not signed


def test_any_changed_file_breaks_a_signed_release_even_with_new_checksums(received, keys):
    (received / "report.html").write_text("<p>all is well")
    resummed(received)
    ok, said = found(received, keys / "mine.pub")
    assert not ok
    assert "is not the signature" in said


def test_a_signer_in_other_words_is_seen(received, keys):
    key = PublicKey.load(keys / "mine.pub")
    signer = Signer.load(keys / "mine.pem")
    for other in (key.pem + b"private notes\n", b"x\n" + key.pem, (keys / "mine.pub").read_bytes(), b"", b"\xff"):
        (received / "signer.pem").write_bytes(other)
        resummed(received)
        (received / "SHA256SUMS.sig").write_bytes(signer.sign((received / "SHA256SUMS").read_bytes()))
        for given in (None, keys / "mine.pub"):
            ok, said = found(received, given)
            assert not ok
            assert said == "signer.pem is not an Ed25519 public key as OpenSSL writes it"


# ------------------------------------------------------------ the key stays at home


def test_nothing_of_the_private_key_is_in_the_folder(signed, keys):
    private = form.load_pem_private_key((keys / "mine.pem").read_bytes(), None)
    seed = private.private_bytes(form.Encoding.Raw, form.PrivateFormat.Raw, NONE)
    line = (keys / "mine.pem").read_text().splitlines()[1]
    secrets = [seed, base64.b64encode(seed), seed.hex().encode(), line.encode(), line[-40:].encode()]
    secrets += [b"mine.pem", str(keys).encode(), keys.name.encode()]
    for path in signed.iterdir():
        content = path.read_bytes()
        assert b"PRIVATE" not in content
        assert not any(secret in content for secret in secrets), path.name
    assert line[-40:].encode() in (keys / "mine.pem").read_bytes()  # the control


def test_a_signer_is_neither_shown_nor_pickled(keys):
    signer = Signer.load(keys / "mine.pem")
    assert "rivate" not in repr(signer)
    with pytest.raises(TypeError, match="not pickled"):
        pickle.dumps(signer)


# ------------------------------------------------------------ keys that are none


@pytest.fixture(scope="module")
def wrong(tmp_path_factory, keys) -> dict[str, Path]:
    here = tmp_path_factory.mktemp("wrong")
    key = Ed25519PrivateKey.generate()
    contents = {
        "rsa": pem(rsa.generate_private_key(65537, 2048)),
        "rsa of old": pem(rsa.generate_private_key(65537, 2048), form.PrivateFormat.TraditionalOpenSSL),
        "curve": pem(ec.generate_private_key(ec.SECP256R1()), form.PrivateFormat.OpenSSH),
        "ed448": pem(ed448.Ed448PrivateKey.generate()),
        "locked": pem(key, lock=LOCKED),
        "public": (keys / "mine-public.pem").read_bytes(),
        "public line": (keys / "mine.pub").read_bytes(),
        "text": b"hello\n",
        "empty": b"",
        "cut": pem(key)[:-40],
        "cut ssh": pem(key, form.PrivateFormat.OpenSSH)[:80],
        "bytes": bytes(range(256)),
        "large": b"a" * 100_000,
        "two bytes too few": pem(key).replace(b"MC4", b"MC"),
    }
    for name, content in contents.items():
        (here / name).write_bytes(content)
    (here / "folder").mkdir()
    return {name: here / name for name in [*contents, "folder", "absent"]}


REASONS = {
    "rsa": "another kind than Ed25519",
    "rsa of old": "another kind than Ed25519",
    "curve": "another kind than Ed25519",
    "ed448": "another kind than Ed25519",
    "locked": "locked by a passphrase",
    "public": "holds a public key",
    "public line": "holds a public key",
    "text": "no private key",
    "empty": "no private key",
    "cut": "no private key",
    "cut ssh": "no private key",
    "bytes": "no private key",
    "large": "too large for a key",
    "two bytes too few": "no private key",
    "folder": "Is a directory",
    "absent": "No such file or directory",
}


@pytest.mark.parametrize("name", REASONS)
def test_a_key_that_cannot_sign_is_refused_before_any_data_is_opened(wrong, monkeypatch, tmp_path, name):
    opened = []
    monkeypatch.setattr(releasing, "open_source", lambda *a, **k: opened.append(a))
    with pytest.raises(InputError, match=rf"^`sign`:? [^\n]*{REASONS[name]}[^\n]*$"):
        release("private.csv", NATIVE, out=tmp_path / "out", sign=wrong[name], **QUICK)
    assert opened == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", sorted(set(REASONS) - {"public", "public line"}))
def test_a_key_that_cannot_be_compared_is_refused(wrong, signed, name):
    with pytest.raises(InputError, match=r"^`key`:? [^\n]*$"):
        Release.load(signed).verify(key=wrong[name])


def test_signing_needs_a_folder(keys):
    with pytest.raises(InputError, match="give `out` as well"):
        release("private.csv", NATIVE, sign=keys / "mine.pem", **QUICK)


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="there is no ssh-keygen here")
def test_a_key_that_openssh_locked_is_told_as_that(tmp_path):
    make = ["ssh-keygen", "-q", "-t", "ed25519", "-f", str(tmp_path / "key")]
    subprocess.run([*make, "-N", "secret"], check=True)
    with pytest.raises(InputError, match="locked by a passphrase"):
        Signer.load(tmp_path / "key")


# ------------------------------------------------------------ other tools agree


@pytest.mark.skipif(not shutil.which("openssl"), reason="there is no openssl here")
def test_openssl_alone_checks_the_signature(received):
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "verify.md").read_text(encoding="utf-8")
    (command,) = [line for line in page.splitlines() if line.startswith("openssl pkeyutl")]
    shutil.copy(received / "signer.pem", received.parent / "publisher.pem")
    done = subprocess.run(command.split(), cwd=received, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "Signature Verified Successfully")
    (received / "SHA256SUMS").write_text("forged")
    assert subprocess.run(command.split(), cwd=received, capture_output=True, check=False).returncode != 0


@pytest.mark.skipif(not shutil.which("openssl"), reason="there is no openssl here")
def test_a_key_that_openssl_made_signs(variants, tmp_path):
    key, public = tmp_path / "key.pem", tmp_path / "public.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(key)], check=True)
    subprocess.run(["openssl", "pkey", "-in", str(key), "-pubout", "-out", str(public)], check=True)
    variants("pairs").save(tmp_path / "out", sign=key)
    assert (tmp_path / "out" / "signer.pem").read_bytes() == public.read_bytes()
    assert found(tmp_path / "out", public)[0]


@pytest.mark.skipif(not shutil.which("ssh-keygen"), reason="there is no ssh-keygen here")
def test_the_fingerprint_is_the_one_that_openssh_shows(variants, tmp_path):
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    shown = subprocess.run(
        ["ssh-keygen", "-lf", str(key.with_suffix(".pub"))], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    variants("pairs").save(tmp_path / "out", sign=key)
    assert PublicKey.load(key.with_suffix(".pub")).fingerprint == shown
    assert shown in found(tmp_path / "out")[1]


@pytest.mark.skipif(not shutil.which("sha256sum"), reason="there is no sha256sum here")
def test_sha256sum_checks_the_files(received):
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"], cwd=received, check=True)


# ------------------------------------------------------------ without the extra


@pytest.fixture
def bare(monkeypatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)


@pytest.mark.usefixtures("bare")
def test_without_the_extra_it_says_what_to_install(signed, keys, tmp_path):
    assert not signature.have_library()
    with pytest.raises(InputError, match=r"pip install 'certsynth\[sign\]'"):
        release("private.csv", NATIVE, out=tmp_path / "out", sign=keys / "mine.pem", **QUICK)
    made = Release.load(signed)
    with pytest.raises(InputError, match=r"pip install 'certsynth\[sign\]'"):
        made.verify(key=keys / "mine.pub")
    assert "signature" not in [check["name"] for check in made.verify()]
    assert "pip install 'certsynth[sign]'" in verify.cannot_verify(made)[-1]


@pytest.mark.usefixtures("bare")
def test_half_a_signature_is_seen_without_the_extra(received):
    (received / "SHA256SUMS.sig").unlink()
    assert found(received) == (False, "SHA256SUMS.sig is missing")
