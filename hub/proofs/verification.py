"""Verify a file of a proof, or a signed head, with the public key of the site alone."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from ..errors import Refused, Unavailable
from ..provenance.signature import PublicKey
from .document import InclusionPath, ProofDocument, SignedHead
from .texts import leaf_hash

_MOST_BYTES: Final = 256 * 1024 * 1024


class UnprovenLine(Refused):
    """A proof or a head does not hold; the message says which part."""

    code = "unproven"


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """A head of the main log that the site has signed.

    Attributes:
        at: when it was signed, in seconds since 1970.
        size: the number of its leaves.
        root: 32 bytes.
    """

    site: str
    at: float
    size: int
    root: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ProvedLine:
    """A line that was in the log when the head was signed.

    Attributes:
        table: of the row: submissions, verdicts, changes, feedback or ledger.
        line: its columns; None if the row was missing when it should have been entered.
        entered_at: since when the log proves it.
    """

    log: str
    table: str
    line: Mapping[str, Any] | None
    entered_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedProof:
    head: Head
    lines: tuple[ProvedLine, ...]


def read_proof(text: str) -> ProofDocument:
    """Read a file of a proof. Raises UnprovenLine: it is no such file."""
    if len(text) > _MOST_BYTES:
        raise UnprovenLine("The file is too large for a proof.", accepted="At most 256 MiB.")
    try:
        return ProofDocument.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "file"
        raise UnprovenLine(
            f"The file is not a proof that this version can read: {where}: {first['msg']}.",
            accepted="A file of `carrel course proof` or `carrel usage --proof`, unchanged.",
        ) from None


def verify_proof(document: ProofDocument, key: PublicKey) -> VerifiedProof:
    """Verify the signature, and each path from a line to the signed head.

    Raises:
        UnprovenLine: a part does not hold.
        Unavailable: a library is missing.
    """
    head = verify_head(document.head, key)
    lines: list[ProvedLine] = []
    for number, log in enumerate(document.logs):
        anchor = _object(log.anchor.text, "anchor")
        name = str(anchor.get("log", ""))
        _included(log.anchor.text, log.anchor.inclusion, head.root, head.size, f"anchor {number}")
        root, size = _root(anchor, "anchor"), _integer(anchor, "size", "anchor")
        for each in log.lines:
            line = _object(each.text, "line")
            index = _integer(line, "index", "line")
            where = f"line {index} of the log {name}"
            if line.get("log") != name or each.inclusion.metadata.index != index + 1:
                raise UnprovenLine(f"The proof does not hold: {where} is from another place.")
            _included(each.text, each.inclusion, root, size, where)
            found = line.get("line")
            lines.append(
                ProvedLine(
                    log=name,
                    table=str(line.get("table", "")),
                    line=found if isinstance(found, dict) else None,
                    entered_at=float(line.get("entered_at", 0.0)),
                )
            )
    if not lines:
        raise UnprovenLine("The file proves nothing: it contains no line.")
    return VerifiedProof(head=head, lines=tuple(lines))


def verify_head(head: SignedHead, key: PublicKey) -> Head:
    """Verify the signature of a head. Raises UnprovenLine."""
    try:
        signature = base64.b64decode(head.signature, validate=True)
    except (binascii.Error, ValueError):
        signature = b""
    if not key.verifies(signature, head.text.encode("utf-8", "replace")):
        detail = f"the file names the key {head.key[:16]}, yours is {key.id}"
        raise UnprovenLine(
            f"The head is not signed by this key ({detail}), or was changed after it was signed.",
            accepted="The public key of the site that wrote the file: carrel site-key -o FILE.",
        )
    found = _object(head.text, "head")
    return Head(
        site=str(found.get("site", "")),
        at=float(found.get("at", 0.0)),
        size=_integer(found, "size", "head"),
        root=_root(found, "head"),
    )


def _included(text: str, path: InclusionPath, root: bytes, size: int, where: str) -> None:
    try:
        # Only for proofs: neither the start of the service nor `carrel --help` needs it.
        from pymerkle import InclusionProof, InvalidProof, verify_inclusion  # noqa: PLC0415
    except ModuleNotFoundError:
        raise Unavailable(
            "Proofs need the package pymerkle, which is not installed here.",
            accepted="Install it with: pip install 'carrel[proof]'",
        ) from None
    try:
        proof = InclusionProof.deserialize(path.model_dump())
        base = leaf_hash(text)
        verify_inclusion(base, root, proof, size=size, algorithm="sha256")
    except (InvalidProof, UnicodeEncodeError) as error:
        raise UnprovenLine(
            f"The proof does not hold: {where} was changed, or is not in the log ({error}).",
            accepted="The file as the site wrote it.",
        ) from None


def _object(text: str, what: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or found.get("format") != 1:
        raise UnprovenLine(f"The {what} of the proof cannot be read.")
    return found


def _integer(found: Mapping[str, Any], name: str, what: str) -> int:
    value = found.get(name)
    if not isinstance(value, int) or value < 0:
        raise UnprovenLine(f"The {what} of the proof has no {name}.")
    return value


def _root(found: Mapping[str, Any], what: str) -> bytes:
    try:
        return bytes.fromhex(str(found.get("root")))
    except ValueError:
        raise UnprovenLine(f"The {what} of the proof has no root.") from None
