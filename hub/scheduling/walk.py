"""One pass along the queue: who starts now, and which rule holds everybody else.

The cycle makes this pass once with what is true now, and the estimate makes it again at every
moment at which devices are expected back. Both therefore follow the same rules.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .model import Reason, Waiting
from .placement import Pool
from .quota import NoRoom, Tally, Tree, room


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    request: Waiting
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A request that stays, the rule that holds it, and what the rule's sentence names."""

    request: Waiting
    reason: Reason
    detail: str = ""


def walk(
    queue: Iterable[Waiting], *, pool: Pool, tree: Tree, tally: Tally, line: Line | None = None
) -> tuple[tuple[Started, ...], tuple[Held, ...]]:
    """Serve an ordered queue first come, first served. ``pool`` and ``tally`` change with it,
    and ``line``, which is of those that were walked before.

    For each request, the first rule that applies:

    1. a limit of its group or owner leaves no room: it waits. Whoever comes later and needs
       room under the same limit waits behind it; others go on.
    2. it needs no device: it starts, unless every node is drained.
    3. fewer fitting devices may be lent than it asks for: it waits, alone.
    4. somebody ahead waits for devices, or for room under a limit that binds it too: it
       waits behind.
    5. one node has the devices free: it starts.
    6. too few are free: it waits, and all behind it that need devices wait too.
    """
    started: list[Started] = []
    held: list[Held] = []
    line = line or Line()
    for request in queue:
        hold = _hold(request, room(request, tree, tally), pool, tree, line)
        if hold is not None:
            held.append(hold)
            continue
        devices = pool.take(request.devices, request.model) if request.devices else ()
        if devices is None:
            line.for_devices = True
            detail = request.model or ""
            held.append(Held(request=request, reason=Reason.NO_FREE_DEVICE, detail=detail))
            continue
        tally.add(request.group, request.owner, len(devices))
        started.append(Started(request=request, devices=devices))
    return tuple(started), tuple(held)


class Line:
    """What somebody further ahead already waits for: devices, or room under some limits."""

    def __init__(self) -> None:
        self.for_devices = False
        self._groups: set[str] = set()
        self._users: set[tuple[str, str]] = set()

    def copy(self) -> Line:
        made = Line()
        made.for_devices = self.for_devices
        made._groups, made._users = set(self._groups), set(self._users)
        return made

    def wait_for(self, request: Waiting, limit: NoRoom) -> None:
        """A request that is larger than the limit itself does not stand in anybody's way."""
        if limit.for_good:
            return
        if limit.reason is Reason.USER_MAXIMUM:
            self._users.add((limit.group, request.owner))
        else:
            self._groups.add(limit.group)

    def is_ahead_of(self, request: Waiting, tree: Tree) -> bool:
        if self.for_devices:
            return True
        if not self._groups and not self._users:
            return False
        return any(
            group.name in self._groups or (group.name, request.owner) in self._users
            for group in tree.chain(request.group)
        )


def _hold(
    request: Waiting, limit: NoRoom | None, pool: Pool, tree: Tree, line: Line
) -> Held | None:
    """Rules 1 to 4: what holds the request whether or not devices are free."""
    if limit is not None:
        line.wait_for(request, limit)
        reason = Reason.ABOVE_MAXIMUM if limit.for_good else limit.reason
        return Held(request=request, reason=reason, detail=limit.group)
    if request.devices == 0:
        return None if pool.takes_work else Held(request=request, reason=Reason.DRAINING)
    if not pool.could_fit(request.devices, request.model):
        detail = request.model or ""
        return Held(request=request, reason=Reason.POOL_TOO_SMALL, detail=detail)
    if line.is_ahead_of(request, tree):
        return Held(request=request, reason=Reason.BEHIND_OTHERS)
    return None
