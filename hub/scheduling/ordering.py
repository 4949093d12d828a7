"""Who is served first among those that wait."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

from .model import PriorityClass, Waiting

OrderKey = tuple[int, float, str]

_RANK = MappingProxyType({name: rank for rank, name in enumerate(PriorityClass)})


def order_key(request: Waiting) -> OrderKey:
    """Sort key of a request; the smaller one is served first.

    The numbers are the steps of the policy, and a tuple's places are in their order:

    2. priority class: urgent, interactive, normal, opportunistic
    7. age: who was submitted earlier; a request that comes back to the queue keeps its age
    8. request id: arbitrary, and the same every time

    The steps between are policies of their own and take their places in the tuple when they
    come: 1 a reservation due now, 3 groups below their guarantee, 4 fair share between groups
    and users, 5 expected remaining device-seconds, 6 deadline slack. Until then the order
    within a class is first come, first served.
    """
    return (
        _RANK[request.priority],  # 2
        request.submitted_at,  # 7
        request.id,  # 8
    )


def ordered(waiting: Iterable[Waiting]) -> tuple[Waiting, ...]:
    """All of them, the next one first, whatever order they came in."""
    return tuple(sorted(waiting, key=order_key))
