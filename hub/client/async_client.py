"""The asynchronous client: typed calls of the REST API, and event streams as iterators.

The calls are coroutines over a ``Transport``. ``Client`` runs the same coroutines over a blocking
transport (see ``sync_client``).
"""

from __future__ import annotations

from ..provenance.signature import PublicKeyOut
from ..scheduling.model.states import TERMINAL, State
from ..schemas import GroupOut, GroupsOut, MeOut, PoolOut, QueueOut
from ..schemas.explanation import WhyOut
from .api.admin import AdminCalls
from .api.announcements import AnnouncementCalls
from .api.courses import CourseCalls
from .api.gallery import GalleryCalls
from .api.images import ImageCalls
from .api.ngshare import NgshareCalls
from .api.notifications import NotificationCalls
from .api.open_links import OpenLinkCalls
from .api.programs import ProgramCalls
from .api.schedules import ScheduleCalls
from .api.secrets import SecretCalls
from .api.sessions import SessionCalls
from .api.streams import StreamCalls
from .api.usage import UsageCalls
from .transport.connection import segment

LIVE_STATES = tuple(str(state) for state in State if state not in TERMINAL)


class AsyncClient(
    StreamCalls,
    SessionCalls,
    ScheduleCalls,
    SecretCalls,
    GalleryCalls,
    UsageCalls,
    CourseCalls,
    NgshareCalls,
    ImageCalls,
    AnnouncementCalls,
    NotificationCalls,
    OpenLinkCalls,
    ProgramCalls,
    AdminCalls,
):
    """A client of one site for one user. Every call raises the classes of ``hub.errors``.

    >>> async with AsyncClient.from_environment() as carrel:
    ...     job = await carrel.submit(JobIn(group="cs101", notebook=…))
    ...     async for change in carrel.follow(job.id):
    ...         print(change)
    """

    async def me(self) -> MeOut:
        return await self._get("me", MeOut)

    async def site_key(self) -> PublicKeyOut:
        """Return the public key of the site; needs no sign-in."""
        return await self._get("site-key", PublicKeyOut)

    async def groups(self) -> list[GroupOut]:
        """Return the groups that the caller may use, with their current limits."""
        return (await self._get("groups", GroupsOut)).groups

    async def pool(self) -> PoolOut:
        return await self._get("pool", PoolOut)

    async def queue(self) -> QueueOut:
        """Return the queue in order, with reasons."""
        return await self._get("queue", QueueOut)

    async def why(self, request_id: str) -> WhyOut:
        """Return why a request is queued, which requests are ahead, and what would help."""
        return await self._get(f"requests/{segment(request_id)}/why", WhyOut)
