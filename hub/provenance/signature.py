"""Ed25519 signatures of a site (RFC 8032), over bytes that the caller has brought into one form.

The library ``cryptography`` is imported at the first use: most calls of the service and most
commands of the client sign and verify nothing.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Self

from ..errors import InvalidInput, Unavailable
from ..schemas import Out

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

ALGORITHM: Final = "Ed25519"
_KEY_BYTES: Final = 32
_ID_DIGITS: Final = 16
_LONGEST_PEM: Final = 4096


class PublicKeyOut(Out):
    """The key with which a site's signatures are verified."""

    algorithm: str
    id: str
    """The first 16 hexadecimal digits of the SHA-256 of the key."""
    key: str
    """Its 32 bytes in base64."""
    pem: str
    """The same as a file that ``openssl`` and ``carrel verify --key`` read."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """Verifies the signatures of one site; ``raw`` has 32 bytes."""

    raw: bytes

    @classmethod
    def from_base64(cls, text: str) -> Self:
        """Raises InvalidInput."""
        try:
            raw = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raw = b""
        if len(raw) != _KEY_BYTES:
            raise InvalidInput(
                f"{text[:80]!r} is not a public key.",
                accepted="A key has 32 bytes in base64.",
            )
        return cls(raw)

    @classmethod
    def from_pem(cls, text: str) -> Self:
        """Raises InvalidInput."""
        _require()
        from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415
        from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
            load_pem_public_key,
        )

        try:
            key = load_pem_public_key(text[:_LONGEST_PEM].encode())
        except (ValueError, UnsupportedAlgorithm):
            key = None
        if not isinstance(key, ed25519.Ed25519PublicKey):
            raise InvalidInput(
                "The file contains no public key of a site.",
                accepted="Write one with: carrel site-key -o site.pem",
            )
        return cls(key.public_bytes_raw())

    @property
    def id(self) -> str:
        """A short name of the key: the first 16 hexadecimal digits of its SHA-256."""
        return hashlib.sha256(self.raw).hexdigest()[:_ID_DIGITS]

    @property
    def base64(self) -> str:
        return base64.b64encode(self.raw).decode()

    @property
    def pem(self) -> str:
        _require()
        from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
            Encoding,
            PublicFormat,
        )

        form = PublicFormat.SubjectPublicKeyInfo
        return _public(self.raw).public_bytes(Encoding.PEM, form).decode()

    def verifies(self, signature: bytes, content: bytes) -> bool:
        """Return whether the site with this key has signed exactly these bytes."""
        _require()
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415

        try:
            _public(self.raw).verify(signature, content)
        except InvalidSignature:
            return False
        return True

    def out(self) -> PublicKeyOut:
        return PublicKeyOut(algorithm=ALGORITHM, id=self.id, key=self.base64, pem=self.pem)


@dataclass(frozen=True, slots=True, repr=False)
class SigningKey:
    """Signs in the name of a site; ``pem`` is the private key in PKCS #8.

    The text is parsed at the first signature.
    """

    pem: str

    @classmethod
    def generate(cls) -> Self:
        _require()
        from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415
        from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
            Encoding,
            NoEncryption,
            PrivateFormat,
        )

        key = ed25519.Ed25519PrivateKey.generate()
        return cls(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())

    @property
    def public(self) -> PublicKey:
        """Raises Unavailable: the private key is damaged."""
        return PublicKey(_private(self.pem).public_key().public_bytes_raw())

    def sign(self, content: bytes) -> bytes:
        """Return the 64 bytes of the signature. Raises Unavailable: the key is damaged."""
        return _private(self.pem).sign(content)


def _require() -> None:
    try:
        import cryptography  # noqa: F401, PLC0415
    except ModuleNotFoundError:
        raise Unavailable(
            "Signatures need the package cryptography, which is not installed here.",
            accepted="Install it with: pip install 'carrel[proof]'",
        ) from None


@lru_cache(maxsize=8)
def _private(pem: str) -> Ed25519PrivateKey:
    _require()
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
        load_pem_private_key,
    )

    try:
        key = load_pem_private_key(pem.encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise Unavailable(
            "The signing key of this site is damaged.",
            accepted="An administrator can restore signing-key.pem from a backup.",
        )
    return key


@lru_cache(maxsize=32)
def _public(raw: bytes) -> Ed25519PublicKey:
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415

    return ed25519.Ed25519PublicKey.from_public_bytes(raw)
