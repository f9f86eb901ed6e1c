"""The publisher's signature: an Ed25519 signature of the checksums, which OpenSSL can check as well.

`signer.pem` is the public key; `SHA256SUMS.sig` holds the 64 bytes of the signature of SHA256SUMS. The package
`cryptography` is installed by the extra `sign`, and imported only when a key is used.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from certsynth.base.files import FileTooLarge, read_small_file
from certsynth.errors import InputError

SIGNER, SIGNATURE = "signer.pem", "SHA256SUMS.sig"

INSTALL_COMMAND = "pip install 'certsynth[sign]'"

MAX_KEY_BYTES = 64 * 2**10  # an Ed25519 key has less than 1 kB

_SSH_KEY_TYPE = b"ssh-ed25519"


@dataclass(frozen=True, slots=True)
class PublicKey:
    """An Ed25519 public key: 32 bytes."""

    raw: bytes

    @property
    def pem(self) -> bytes:
        """The key as OpenSSL writes it: SubjectPublicKeyInfo with the fixed Ed25519 prefix (RFC 8410)."""
        text = base64.b64encode(bytes.fromhex("302a300506032b6570032100") + self.raw).decode()
        return f"-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n".encode()

    @property
    def fingerprint(self) -> str:
        """The fingerprint as `ssh-keygen -lf` shows it."""
        parts = (_SSH_KEY_TYPE, self.raw)
        blob = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
        return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")

    @classmethod
    def parse(cls, content: bytes) -> PublicKey | None:
        """Read a public key in PEM or OpenSSH format; None if it is not an Ed25519 key."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key, load_ssh_public_key

        content = content.strip()
        key: Any
        try:
            key = load_ssh_public_key(content) if content.startswith(b"ssh-") else load_pem_public_key(content)
        except Exception:  # a parser may raise anything on untrusted text
            return None
        return cls(key.public_bytes_raw()) if isinstance(key, Ed25519PublicKey) else None

    @classmethod
    def load(cls, path: str | Path) -> PublicKey:
        """Read the publisher's key from a file."""
        need_library()
        content = _read_key_file(path, "`key`")
        if b"PRIVATE KEY-----" in content:
            raise InputError(f"`key` {path} holds a private key; give the public one.")
        key = cls.parse(content)
        if key is None:
            raise InputError(
                f"`key` {path} is no Ed25519 public key; give a file in PEM (signer.pem is one) or the .pub file of "
                "OpenSSH."
            )
        return key

    def signed(self, content: bytes, signature: bytes) -> bool:
        """Whether `signature` is this key's signature of `content`."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, content)
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True, slots=True)
class Signer:
    """A private key, which neither `repr` nor pickling reveals."""

    public: PublicKey
    _private: Any = field(repr=False)

    @classmethod
    def load(cls, path: str | Path) -> Signer:
        """Read a private key without passphrase: PEM as `openssl genpkey` writes it, or the OpenSSH format."""
        need_library()
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_ssh_private_key

        content = _read_key_file(path, "`sign`")
        if b"PUBLIC KEY-----" in content or content.startswith(b"ssh-"):
            raise InputError(f"`sign` {path} holds a public key; give the private one.")
        openssh = b"BEGIN OPENSSH PRIVATE KEY" in content
        key: Any
        try:
            key = (load_ssh_private_key if openssh else load_pem_private_key)(content, password=None)
        except Exception as error:  # of any kind; its message is dropped, since the key is secret
            if isinstance(error, TypeError) or b"ENCRYPTED" in content or (openssh and _has_passphrase(content)):
                raise InputError(
                    f"`sign` {path} is locked by a passphrase; give a key without one, for example one made by "
                    "openssl genpkey -algorithm ed25519."
                ) from None
            raise InputError(
                f"`sign` {path} is no private key in PEM or OpenSSH form; make one with: openssl genpkey -algorithm "
                "ed25519 -out key.pem"
            ) from None
        if not isinstance(key, Ed25519PrivateKey):
            raise InputError(
                f"`sign` {path} is a key of another kind than Ed25519; make one with: openssl genpkey -algorithm "
                "ed25519 -out key.pem"
            )
        return cls(PublicKey(key.public_key().public_bytes_raw()), key)

    def sign(self, content: bytes) -> bytes:
        signature: bytes = self._private.sign(content)
        return signature

    def __reduce__(self) -> Any:
        raise TypeError("a private key is not pickled")


def as_signer(sign: str | Path | Signer | None) -> Signer | None:
    """Return a signer, reading its key from a file if necessary."""
    return sign if sign is None or isinstance(sign, Signer) else Signer.load(sign)


def have_library() -> bool:
    """Whether the extra `sign` is installed."""
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        return False
    return hasattr(ed25519, "Ed25519PrivateKey")


def need_library() -> None:
    if not have_library():
        raise InputError(f"signatures need the package cryptography: {INSTALL_COMMAND}.")


def _read_key_file(path: str | Path, option: str) -> bytes:
    try:
        return read_small_file(Path(path), max_bytes=MAX_KEY_BYTES)
    except OSError as error:
        raise InputError(f"{option} {path}: {error.strerror or 'cannot be read'}. Check the path.") from None
    except FileTooLarge:
        raise InputError(f"{option} {path} is too large for a key. Check the path.") from None


def _has_passphrase(content: bytes) -> bool:
    """Whether a key in OpenSSH format names a cipher in its first field (PROTOCOL.key of OpenSSH)."""
    try:
        blob = base64.b64decode(b"".join(content.strip().splitlines()[1:-1]))
    except ValueError:
        return False
    start = len(b"openssh-key-v1\0") + 4
    cipher = blob[start : start + int.from_bytes(blob[start - 4 : start], "big")]
    return cipher not in (b"", b"none")
