"""Export proofs of a user's own lines, and show administrators the state of the log."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.exc import IntegrityError

from ..errors import InvalidInput, NotFound, Unavailable
from ..interfaces.clock import Clock
from ..proofs.document import MOST_LINES, ProofDocument, SignedHead
from ..proofs.verification import Head, UnprovenLine, verify_head
from ..provenance.signature import SigningKey
from ..records.identity import Identity, require_admin
from ..store.sql.merkle_log.growth import HeadSignature
from .log_store import LogState, SqlLogStore

_MOST_BATCHES = 20
"""Batches that are entered before an export; a longer queue is left to the background."""


@dataclass(frozen=True, slots=True)
class TransparencyLog:
    """The log of one site.

    Attributes:
        site: the address of the site, which its heads name.
    """

    store: SqlLogStore
    key: SigningKey
    site: str
    clock: Clock

    def enter_lines(self) -> int:
        """Enter a batch of queued lines, and return how many."""
        return self.store.enter_lines(self.clock())

    def make_head(self, only: Sequence[str] = ()) -> bool:
        """Anchor the logs that have grown, and sign a head; return whether there is a new one.

        Raises Unavailable: the log does not extend the head that was signed last.
        """
        return self.store.make_head(site=self.site, now=self.clock(), sign=self.sign, only=only)

    def sign(self, text: str) -> HeadSignature:
        signature = base64.b64encode(self.key.sign(text.encode("ascii"))).decode()
        return HeadSignature(key=self.key.public.id, signature=signature)

    def read_head(self, text: str, key: str, signature: str) -> Head:
        """Verify a head of this site. Raises UnprovenLine."""
        return verify_head(SignedHead(text=text, key=key, signature=signature), self.key.public)

    def prove_coursework(self, who: Identity, course: str, assignment: str) -> ProofDocument:
        """Prove the own submissions to an assignment, and their released feedback.

        Raises:
            NotFound: the caller has submitted nothing there.
            Unavailable: the log cannot prove it at the moment.
        """
        lines = self.store.coursework(course, assignment, who.name)
        if not lines:
            raise NotFound(f"You have not submitted anything to {assignment} of {course}.")
        return self._prove(lines)

    def prove_usage(
        self,
        who: Identity,
        *,
        group: str = "",
        since: float | None = None,
        until: float | None = None,
    ) -> ProofDocument:
        """Prove the own lines of the ledger that overlap a period.

        Raises:
            NotFound: there is none.
            InvalidInput: there are more than one file can contain.
            Unavailable: the log cannot prove it at the moment.
        """
        period = {"since": since, "until": until}
        lines = self.store.ledger_lines(who.name, group=group, limit=MOST_LINES + 1, **period)
        if not lines:
            raise NotFound("You have no ledger entries in this period.")
        if len(lines) > MOST_LINES:
            raise InvalidInput(
                f"The period has more than {MOST_LINES:,} ledger entries.",
                accepted="A shorter period, or one group.",
                field="since",
            )
        return self._prove(lines)

    def state(self, who: Identity) -> LogState:
        """Return sizes and publication. Raises Forbidden."""
        require_admin(who)
        return self.store.state()

    def _prove(self, lines: Sequence[tuple[str, str]]) -> ProofDocument:
        try:
            for _ in range(_MOST_BATCHES):
                if not self.enter_lines():
                    break
            missing = self.store.logs_to_anchor(lines)
            if missing:
                self.make_head(sorted(missing))
        except (LookupError, IntegrityError) as error:
            raise Unavailable(
                "The log is damaged, and cannot grow.",
                accepted="An administrator finds out more with: carrel audit verify.",
            ) from error
        return self.store.proof(lines)


def published_heads(text: str, log: TransparencyLog) -> tuple[Head, ...]:
    """Read a file of published heads, one JSON object a line.

    Raises:
        UnprovenLine: a line is no head, or not signed by this site.
    """
    heads = []
    for number, line in enumerate(filter(str.strip, text.splitlines()), start=1):
        try:
            found = SignedHead.model_validate_json(line)
        except ValueError:
            raise UnprovenLine(
                f"Line {number} of the published heads is not a head.",
                accepted="The file that the site has published, unchanged.",
            ) from None
        heads.append(log.read_head(found.text, found.key, found.signature))
    return tuple(heads)
