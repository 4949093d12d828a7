"""The orders of the members of a gang, from the order of one attempt."""

from __future__ import annotations

from dataclasses import replace

from carrel.hub.attempts.spec import FILES, member_folder
from carrel.hub.interfaces.backend import LaunchOrder, MemberOrder
from carrel.hub.records.gangs import member_id


def gang_orders(order: LaunchOrder, members: int) -> list[LaunchOrder]:
    """Return orders by rank for equal members of one role, with folders beside that of ``order``.

    They share the folder for output files below it.
    """
    return [
        replace(
            order,
            lease_id=member_id(order.lease_id, rank),
            folder=member_folder(order.folder, rank),
            member=MemberOrder(
                rank=rank,
                size=members,
                role="worker",
                number=rank,
                role_size=members,
                output_folder=order.folder / FILES,
            ),
        )
        for rank in range(members)
    ]
