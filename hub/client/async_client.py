"""The service's REST API as typed calls, and its event streams as iterators.

Everything is written once, as coroutines over a ``Transport``. ``Client`` runs the same coroutines
over a transport that blocks (see ``sync_client``).
"""

from __future__ import annotations

from ..scheduling.model.states import TERMINAL, State
from ..schemas import GroupOut, GroupsOut, MeOut, PoolOut, QueueOut
from ..schemas.explanation import WhyOut
from .api.admin import AdminCalls
from .api.courses import CourseCalls
from .api.images import ImageCalls
from .api.ngshare import NgshareCalls
from .api.sessions import SessionCalls
from .api.streams import StreamCalls
from .api.usage import UsageCalls
from .transport.connection import segment

LIVE_STATES = tuple(str(state) for state in State if state not in TERMINAL)


class AsyncClient(
    StreamCalls, SessionCalls, UsageCalls, CourseCalls, NgshareCalls, ImageCalls, AdminCalls
):
    """One site, one person. Every call raises the classes of ``hub.errors``.

    >>> async with AsyncClient.from_environment() as carrel:
    ...     job = await carrel.submit(JobIn(group="cs101", notebook=…))
    ...     async for change in carrel.follow(job.id):
    ...         print(change)
    """

    async def me(self) -> MeOut:
        return await self._get("me", MeOut)

    async def groups(self) -> list[GroupOut]:
        """Those that one may use, with the limits that hold now."""
        return (await self._get("groups", GroupsOut)).groups

    async def pool(self) -> PoolOut:
        return await self._get("pool", PoolOut)

    async def queue(self) -> QueueOut:
        """What waits, in order, with reasons."""
        return await self._get("queue", QueueOut)

    async def why(self, request_id: str) -> WhyOut:
        """Why a request waits, behind whom, and what would start it now."""
        return await self._get(f"requests/{segment(request_id)}/why", WhyOut)
