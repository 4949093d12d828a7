"""Sessions whose device is held for their owner: the place kept, a desk on CPU, the claim.

A session that is to be claimed needs nobody at the hub while it waits. Once granted, its lease
is held for the claim window (``Loop`` ends it there), and starts only when its owner comes.
Each step is one transaction; what has to be asked of the hub after it, the loop asks again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count

from ..admission.policy import check_server_name
from ..controller.sessions import SessionController
from ..errors import CarrelError, Conflict, NotFound, Unavailable
from ..records.identity import Identity
from ..records.requests import Cause, CauseCode, NewRequest, RequestRecord
from ..runtime.context import Context
from ..scheduling.model.states import State
from ..scheduling.quota import tree
from ..schemas import RequestOut, SessionIn

CPU_DESK = ""
"""The server name of the desk on CPU: the default one."""
_NAME = "gpu"


@dataclass(frozen=True, slots=True)
class HeldSessions:
    """What people do with sessions that are held for them."""

    commands: Context

    def start(self, who: Identity, server_name: str, options: SessionIn) -> RequestOut:
        """Queue a session that will be held; without a name it gets a free one."""
        name = check_server_name(server_name) or self._free_name(who.name)
        live = self.commands.store.live_session(who.name, name)
        if live is not None:
            raise Conflict(
                f"Your session {name} is {live.state} already.",
                accepted="Stop it first, or choose another name.",
            )
        wanted = options.model_copy(update={"claim": True})
        record = self.commands.queue_session(who.name, name, wanted)
        return self.commands.request(who, record.id)

    def keep_place(self, who: Identity, request_id: str) -> RequestOut:
        """Open the desk on CPU now; the session that waits keeps its place in the queue.

        It gives up the name of the desk, if it has it, and is claimed when its device comes.
        Safe to repeat: what is kept stays as it is, and a desk that has ended is opened again.
        """
        c = self.commands
        before = c.own(who, request_id)
        name = before.server_name
        if name == CPU_DESK:
            name = self._free_name(who.name)
        c.store.keep_place(before.id, name, now=c.clock(), desk=self._desk(before))
        c.notifier.notify()
        if not before.unclaimed:
            self._call_off(before)
        desk = c.store.live_session(who.name, CPU_DESK)
        if desk is not None and desk.state in (State.QUEUED, State.GRANTED) and not desk.unclaimed:
            self._ask(desk)
        return c.request(who, request_id)

    def claim(self, who: Identity, request_id: str) -> RequestOut:
        """Come for the device that is held: its session starts now. Twice is the same as once."""
        c = self.commands
        claimed = c.store.claim(c.own(who, request_id).id, now=c.clock())
        c.notifier.notify()
        if claimed.state is State.GRANTED:
            self._ask(claimed)
        return c.request(who, request_id)

    # -- within ---------------------------------------------------------------------------

    def _desk(self, before: RequestRecord) -> NewRequest | None:
        """For as long as the group allows: a desk on CPU costs none of its devices."""
        c = self.commands
        live = c.store.live_session(before.owner, CPU_DESK)
        if live is not None and live.id != before.id:
            return None
        limits = tree.limits(tree.GroupTree(c.store.groups()), before.group)
        hours = (limits.max_seconds if limits else before.seconds) / 3600
        options = SessionIn(devices=0, hours=hours, group=before.group)
        return c.intake.session(before.owner, CPU_DESK, options)

    def _free_name(self, owner: str) -> str:
        """``gpu``, ``gpu-2``, …: the first that no session of this person has, at the hub too."""
        c = self.commands
        at_hub = c.hub.user(owner).servers
        free = (
            name
            for name in _names()
            if name not in at_hub and c.store.live_session(owner, name) is None
        )
        return next(free)

    def _call_off(self, before: RequestRecord) -> None:
        """End the hub's wait for it, so that the name is free at the hub."""
        # Where the hub is away, its spawner hears that the place is kept and leaves by itself.
        with suppress(Unavailable, NotFound):
            self.commands.hub.stop_server(before.owner, before.server_name)

    def _ask(self, request: RequestRecord) -> None:
        """Ask the hub for the server; a hub that is away is asked again by the loop."""
        c = self.commands
        try:
            SessionController(c).ask_hub(request)
        except Unavailable:
            return
        except CarrelError as refused:
            cause = Cause(code=CauseCode.START_FAILED, message=str(refused))
            c.store.stop(request.id, State.FAILED, cause, now=c.clock())
            c.notifier.notify()
            raise


def _names() -> Iterator[str]:
    yield _NAME
    for number in count(2):
        yield f"{_NAME}-{number}"
