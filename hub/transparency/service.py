"""Export proofs of a user's own lines, and show administrators the state of the log."""

from __future__ import annotations

import base64
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy.exc import IntegrityError

from ..errors import InvalidInput, NotFound, TooManyCalls, Unavailable
from ..interfaces.clock import Clock
from ..proofs.document import ProofDocument, SignedHead
from ..proofs.verification import Head, UnprovenLine, verify_head
from ..provenance.signature import SigningKey
from ..records.identity import Identity, require_admin
from ..store.sql.merkle_log.growth import HeadSignature
from .log_store import LogState, SqlLogStore

_MOST_BATCHES = 20
"""Batches that are entered before an export; a longer queue is left to the background."""
MOST_PROVED = 2_000
"""Lines of one new proof, which therefore takes at most a few seconds."""
DEMAND_SECONDS = 60.0
"""Least time between two heads that are signed for proofs."""


@dataclass(slots=True, eq=False)
class TransparencyLog:
    """The log of one site; usable from any thread.

    Attributes:
        site: the address of the site, which its heads name.
    """

    store: SqlLogStore
    key: SigningKey
    site: str
    clock: Clock
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _proving: set[str] = field(default_factory=set, init=False)
    _next_demand: float = field(default=0.0, init=False)

    def enter_lines(self) -> int:
        """Enter a batch of queued lines, and return how many. Raises Unavailable."""
        with _growth():
            return self.store.enter_lines(self.clock())

    def make_head(self) -> bool:
        """Anchor the logs that have grown, and sign a head; return whether there is a new one.

        Raises Unavailable: the log does not extend the head that was signed last, or is damaged.
        """
        with _growth():
            return self.store.make_head(site=self.site, now=self.clock(), sign=self.sign)

    def sign(self, text: str) -> HeadSignature:
        signature = base64.b64encode(self.key.sign(text.encode("ascii"))).decode()
        return HeadSignature(key=self.key.public.id, signature=signature)

    def read_head(self, text: str, key: str, signature: str) -> Head:
        """Verify a head of this site. Raises UnprovenLine."""
        return verify_head(SignedHead(text=text, key=key, signature=signature), self.key.public)

    def prove_coursework(self, who: Identity, course: str, assignment: str) -> ProofDocument:
        """Prove the own submissions to an assignment and its leaderboard, and released feedback.

        Raises:
            NotFound: the caller has submitted nothing there.
            TooManyCalls: another proof of the caller is being made.
            Unavailable: the log cannot prove it at the moment.
        """
        with self._one_proof(who.name):
            lines = self.store.coursework(course, assignment, who.name)
            if not lines:
                raise NotFound(
                    f"You have not submitted anything to {assignment} of {course}, or only weights "
                    "without a verdict."
                )
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
            InvalidInput: there are more than one proof may contain.
            TooManyCalls: another proof of the caller is being made.
            Unavailable: the log cannot prove it at the moment.
        """
        period = {"since": since, "until": until}
        with self._one_proof(who.name):
            lines = self.store.ledger_lines(who.name, group=group, limit=MOST_PROVED + 1, **period)
            if not lines:
                raise NotFound("You have no ledger entries in this period.")
            if len(lines) > MOST_PROVED:
                raise InvalidInput(
                    f"The period has more than {MOST_PROVED:,} ledger entries.",
                    accepted="A shorter period, or one group.",
                    field="since",
                )
            return self._prove(lines)

    def state(self, who: Identity) -> LogState:
        """Return sizes and publication. Raises Forbidden."""
        require_admin(who)
        return self.store.state()

    def _prove(self, lines: Sequence[tuple[str, str]]) -> ProofDocument:
        for _ in range(_MOST_BATCHES):
            if not self.enter_lines():
                break
        if self.store.logs_to_anchor(lines):
            self._make_head_on_demand()
        return self.store.proof(lines)

    @contextmanager
    def _one_proof(self, user: str) -> Iterator[None]:
        with self._lock:
            if user in self._proving:
                raise TooManyCalls(
                    "Another proof of yours is being made.",
                    accepted="Wait until you have it, and try again.",
                )
            self._proving.add(user)
        try:
            yield
        finally:
            with self._lock:
                self._proving.remove(user)

    def _make_head_on_demand(self) -> None:
        """Sign a head of all logs, but not more often than the publication can follow."""
        with self._lock:
            now = self.clock()
            if now < self._next_demand:
                left = math.ceil(self._next_demand - now)
                raise Unavailable(
                    "Your newest lines are not in a signed head of the log yet.",
                    accepted=f"Try again in {left} seconds.",
                )
            self._next_demand = now + DEMAND_SECONDS
        try:
            self.make_head()
        except Unavailable:
            # The next proof says again why, and not when to try again.
            self._next_demand = 0.0
            raise


@contextmanager
def _growth() -> Iterator[None]:
    """Map what a damaged log raises when it should grow."""
    try:
        yield
    except (LookupError, IntegrityError) as error:
        raise Unavailable(
            "The log is damaged, and cannot grow.",
            accepted="An administrator finds out more with: carrel audit verify.",
        ) from error


def published_heads(
    text: str, log: TransparencyLog, unread: Callable[[UnprovenLine], None]
) -> tuple[Head, ...]:
    """Read published heads: one JSON object a line, or the head of a whole file of a proof.

    Args:
        unread: called for each line that is not a head, or not signed by this site.
    """
    try:
        lines = [(0, ProofDocument.model_validate_json(text).head)]
    except ValueError:
        lines = list(_heads_of_lines(text, unread))
    heads = []
    for number, found in lines:
        try:
            heads.append(log.read_head(found.text, found.key, found.signature))
        except UnprovenLine as error:
            where = f"Line {number}: " if number else ""
            unread(UnprovenLine(f"{where}{error.message}", accepted=error.accepted))
    return tuple(heads)


def _heads_of_lines(
    text: str, unread: Callable[[UnprovenLine], None]
) -> Iterator[tuple[int, SignedHead]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            yield number, SignedHead.model_validate_json(line)
        except ValueError:
            unread(
                UnprovenLine(
                    f"Line {number} of the published heads is not a head.",
                    accepted="The file that the site has published, unchanged.",
                )
            )
