"""Password hashes (scrypt), the rules for a new password, and readable random ones."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import unicodedata
from dataclasses import dataclass

from ..errors import InvalidInput

MIN_LENGTH = 8
MAX_BYTES = 1024
_SALT_BYTES = 16
_KEY_BYTES = 32
_CONSONANTS = "bdfghjklmnprstvz"
_VOWELS = "aeiou"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The parameters of scrypt, stored with every hash so that they can be raised later.

    The default takes 32 MB and about a quarter of a second.
    """

    n: int = 2**15
    r: int = 8
    p: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Hash:
    salt: bytes
    key: bytes
    cost: Cost


def hash_password(password: str, cost: Cost) -> Hash:
    salt = secrets.token_bytes(_SALT_BYTES)
    return Hash(salt=salt, key=_derive(prepared(password), salt, cost), cost=cost)


def matches(password: str, known: Hash) -> bool:
    """Return whether it is the password, however the keyboard composed its letters.

    Hashes of earlier versions are of the password as it was typed.
    """
    candidates = dict.fromkeys((prepared(password), password))
    found = [hmac.compare_digest(_derive(p, known.salt, known.cost), known.key) for p in candidates]
    return any(found)


def prepared(password: str) -> str:
    """Return the one form of a password: OpaqueString of RFC 8265, section 4.2.

    Letters are composed, and all blanks are the ASCII one. Control characters are not refused.
    """
    spaced = "".join(" " if unicodedata.category(c) == "Zs" else c for c in password)
    return unicodedata.normalize("NFC", spaced)


def decoy(cost: Cost) -> Hash:
    """Return a hash that matches no password; a check takes as long as with a real one."""
    return Hash(salt=bytes(_SALT_BYTES), key=secrets.token_bytes(_KEY_BYTES), cost=cost)


def check_new(password: str) -> None:
    """Raise InvalidInput if a new password is too short or too long."""
    password = prepared(password)
    if len(password) < MIN_LENGTH or len(_encode(password)) > MAX_BYTES:
        raise InvalidInput(
            f"The password has {len(password)} characters.",
            accepted=f"It needs at least {MIN_LENGTH}, and at most {MAX_BYTES} bytes.",
            field="password",
        )


def random_password() -> str:
    """Return a password of four pronounceable groups (``bami-kote-ruzi-lepa``): 50 bits."""
    return "-".join(
        "".join(secrets.choice(letters) for letters in (_CONSONANTS, _VOWELS) * 2) for _ in range(4)
    )


def _derive(password: str, salt: bytes, cost: Cost) -> bytes:
    return hashlib.scrypt(
        _encode(password)[: MAX_BYTES + 1],
        salt=salt,
        n=cost.n,
        r=cost.r,
        p=cost.p,
        # scrypt needs 128 * r * (n + p) bytes, more than the default limit of OpenSSL.
        maxmem=256 * cost.r * (cost.n + cost.p),
        dklen=_KEY_BYTES,
    )


def _encode(password: str) -> bytes:
    return password.encode("utf-8", "surrogatepass")
