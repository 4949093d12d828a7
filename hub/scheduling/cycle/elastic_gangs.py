"""Let elastic gangs start with as many members as their quotas leave headroom for.

Dispatch reduces a gang to the members that fit on free devices, but counts all wanted members for
quotas. A gang whose group uses a part of its max quota would wait for that part, too.
"""

from __future__ import annotations

from dataclasses import replace

from ..model.snapshot import PendingRequest, Snapshot
from ..placement.gangs import forms, is_elastic
from ..quota.headroom import limit_reached
from ..quota.tree import GroupTree, Tally


def within_headroom(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with elastic gangs of at most as many members as quotas allow now.

    A gang whose minimum exceeds a quota now is unchanged.
    """
    if not any(is_elastic(request) for request in snapshot.pending):
        return snapshot
    tree = GroupTree(snapshot.groups)
    tally = Tally(tree, snapshot.allocations)

    def reduced(request: PendingRequest) -> PendingRequest:
        if not is_elastic(request):
            return request
        allowed = (each for each in forms(request) if limit_reached(each, tree, tally) is None)
        return next(allowed, request)

    return replace(snapshot, pending=tuple(map(reduced, snapshot.pending)))
