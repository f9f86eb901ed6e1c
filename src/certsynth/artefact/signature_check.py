"""The check of a release's signature, by the key that came with it and the one that was wanted."""

from __future__ import annotations

import os
from pathlib import Path

from certsynth.artefact.folder import SUMS, read_plain
from certsynth.artefact.signature import SIGNATURE, SIGNER, PublicKey, have_library
from certsynth.errors import InputError


def signature_files(folder: Path) -> set[str]:
    """The files of a signature that are there."""
    return {name for name in (SIGNER, SIGNATURE) if os.path.lexists(folder / name)}


def check_signature(folder: Path, wanted: PublicKey | None) -> tuple[bool, str] | None:
    """Check the signature of the checksums; None if there is none, or no library to check it."""
    files = signature_files(folder)
    if not files:
        return None if wanted is None else (False, f"the release is not signed; wanted {wanted.fingerprint}")
    if len(files) == 1:
        return False, f"{({SIGNER, SIGNATURE} - files).pop()} is missing"
    if not have_library():
        return None
    try:
        pem, signature, sums = (read_plain(folder, name) for name in (SIGNER, SIGNATURE, SUMS))
    except InputError as error:
        return False, f"could not be checked: {error}"
    signer = PublicKey.parse(pem)
    if signer is None or pem != signer.pem:
        return False, f"{SIGNER} is not an Ed25519 public key as OpenSSL writes it"
    if not signer.signed(sums, signature):
        return False, f"{SIGNATURE} is not the signature of {SUMS} by the key in {SIGNER}"
    if wanted is None:
        return True, f"signed by the key {signer.fingerprint}; compare it with the publisher's"
    if signer != wanted:
        return False, f"signed by the key {signer.fingerprint}; wanted {wanted.fingerprint}"
    return True, f"signed by the key that was given, {signer.fingerprint}"
