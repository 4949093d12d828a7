"""Show and delete the compile cache of a user, for the user and for administrators."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ..errors import NotFound
from ..records.audit import AuditAction, AuditEntry
from ..records.identity import Identity, require_admin
from ..runtime.context import Context
from ..schemas.usage import CompileCacheEntryOut, CompileCacheOut


@dataclass(frozen=True, slots=True)
class UserCompileCaches:
    """The compile caches of all users, with the access checks. An empty owner is the caller."""

    context: Context

    def show(self, who: Identity, owner: str = "") -> CompileCacheOut:
        """Return what is kept for a user, last used first. Raises Forbidden."""
        caches = self.context.compile_caches
        kept = caches.kept(_allowed_owner(who, owner))
        return CompileCacheOut(
            entries=[CompileCacheEntryOut(**asdict(each)) for each in kept],
            size=sum(each.size for each in kept),
            limit=caches.most_bytes,
        )

    def clear(self, who: Identity, request: str = "", *, owner: str = "") -> CompileCacheOut:
        """Delete what is kept for a user, or what one job has compiled; return what is left.

        Jobs that run have a copy of their own. What they compile is kept when they end.

        Raises:
            Forbidden: only administrators may do that for another user.
            NotFound: nothing is kept that this job has compiled.
        """
        name, caches = _allowed_owner(who, owner), self.context.compile_caches
        if not request:
            caches.clear(name)
        elif not caches.remove(name, request):
            raise NotFound(
                f"Nothing is kept that the job {request[:80]} has compiled.",
                accepted="The list names the job of each entry.",
            )
        if name != who.name:
            self.context.store.add_change(
                AuditEntry(
                    at=self.context.clock(),
                    who=who.name,
                    action=AuditAction.COMPILE_CACHE_CLEAR,
                    target=name,
                    before={"request": request} if request else {},
                )
            )
        return self.show(who, owner)


def _allowed_owner(who: Identity, owner: str) -> str:
    if owner not in ("", who.name):
        require_admin(who)
    return owner or who.name
