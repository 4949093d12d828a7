"""Create and read the signing key of an installation: one file, which is never replaced."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress

from ..files.safe_fs import to_disk
from ..provenance.signature import SigningKey
from .state_folder import StateFolder


def site_signing_key(state: StateFolder) -> SigningKey:
    """Read the key, and create it at the first start.

    The file appears complete, by a hard link: of two processes that start at the same time, both
    use the key of the one that was first.
    """
    path = state.signing_key
    with suppress(FileNotFoundError):
        return SigningKey(path.read_text(encoding="utf-8"))
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(SigningKey.generate().pem)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            path.hardlink_to(draft)
            to_disk(path.parent)
    finally:
        draft.unlink()
    return SigningKey(path.read_text(encoding="utf-8"))
