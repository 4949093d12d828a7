"""The receipt of an official check: what was checked and the result, signed by the site.

It is a JSON object: ``check`` has the facts, ``key`` the id of the key, and ``signature`` is over
the canonical form of ``check``. Only the id is in it, so that it is verified with the key of a site
that the reader knows.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from pydantic import ValidationError

from ..errors import InvalidInput, Unavailable
from ..schemas import Out
from .canonical_json import canonical, parse_object
from .signature import PublicKey, SigningKey
from .verification import NotVerified

_FIELDS = frozenset({"check", "signature"})


class OfficiallyCheckedOut(Out):
    """What an official check ran on, and its result; times are in seconds since the epoch.

    ``files_sha256`` is of the student's files, ``tests_sha256`` of the source with the tests.
    """

    id: str
    course: str
    assignment: str
    version: int
    person: str
    files_sha256: str
    tests_sha256: str
    image: str
    asked_at: float
    outcome: str
    points: float | None
    max_points: float | None


def signed_check(check: OfficiallyCheckedOut, key: SigningKey) -> str:
    """Return the receipt as JSON; with null as its signature where the key is damaged."""
    content = check.model_dump(mode="json")
    signed: dict[str, Any] = {"check": content}
    try:
        signature = base64.b64encode(key.sign(canonical(content))).decode()
        signed |= {"key": key.public.id, "signature": signature}
    except Unavailable:
        signed["signature"] = None
    return canonical(signed).decode()


def is_official_check(content: bytes) -> bool:
    """Return whether a file is a receipt of an official check, by the names of its parts."""
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.keys() >= _FIELDS


def verify_check(content: bytes, key: PublicKey) -> OfficiallyCheckedOut:
    """Check the signature of a receipt.

    Raises:
        InvalidInput: it is not a receipt of an official check.
        NotVerified: it is not what the site with this key has signed.
    """
    found = parse_object(content, "The receipt")
    if found.get("signature") is None:
        raise NotVerified("The receipt is not signed: the site had no key when it was written.")
    named = str(found.get("key"))[:80]
    if named != key.id:
        raise NotVerified(
            f"The receipt was signed with the key {named}, which is not that of the expected site "
            f"({key.id}).",
            accepted="Use --key with a key of the site that ran the check.",
        )
    try:
        signature = base64.b64decode(str(found["signature"]), validate=True)
    except (binascii.Error, ValueError):
        signature = b""
    if not key.verifies(signature, canonical(found["check"])):
        raise NotVerified("The receipt was edited: its signature does not match its content.")
    try:
        return OfficiallyCheckedOut.model_validate(found["check"])
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InvalidInput(f"The receipt is not valid: {place}: {first['msg']}.") from None
