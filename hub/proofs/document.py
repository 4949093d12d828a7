"""The file of a proof: lines, their paths in the log of their group, its anchor, a signed head."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from ..schemas import Out

KIND: Final = "carrel proof"
MOST_LINES: Final = 10_000
"""Most lines of one file."""
_LONGEST = 4 * 1024 * 1024
Text = Annotated[str, Field(max_length=_LONGEST)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class PathMetadata(Out):
    """Attributes:
    size: of the tree for which the path holds.
    index: of the leaf, from 1 on.
    """

    algorithm: Literal["sha256"] = "sha256"
    security: Literal[True] = True
    size: Annotated[int, Field(ge=1, lt=2**63)]
    index: Annotated[int, Field(ge=1, lt=2**63)]


class InclusionPath(Out):
    """An inclusion proof in the form of the library pymerkle.

    Attributes:
        rule: on which side the hash so far is, for each step: 0 left, 1 right.
        path: the hash of the leaf, and the hashes to combine it with, up to the root.
    """

    type: Literal["inclusion"] = "inclusion"
    metadata: PathMetadata
    rule: Annotated[list[Literal[0, 1]], Field(max_length=128)]
    path: Annotated[list[Digest], Field(max_length=128)]


class ProvedText(Out):
    """The text of a leaf, and its path to the root of its log."""

    text: Text
    inclusion: InclusionPath


class LogProof(Out):
    """Lines of one log, and the leaf of the main log that anchors it."""

    anchor: ProvedText
    lines: Annotated[list[ProvedText], Field(max_length=MOST_LINES)]


class SignedHead(Out):
    """A head of the main log: `text` is JSON with the size, root and time, and is signed.

    Attributes:
        key: the id of the site's key.
        signature: Ed25519, in base64.
    """

    text: Text
    key: str
    signature: str


class ProofDocument(Out):
    """A file that proves lines of the log without the service."""

    kind: Literal["carrel proof"] = KIND
    format: Literal[1] = 1
    head: SignedHead
    logs: list[LogProof]
