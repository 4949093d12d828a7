from __future__ import annotations

from carrel.hub.scheduling.model import PriorityClass
from carrel.hub.scheduling.ordering import ordered

from .values import waiting


def test_the_class_comes_before_age_and_age_before_the_id() -> None:
    opportunistic = waiting("a", age=1000, priority=PriorityClass.OPPORTUNISTIC)
    young = waiting("b", age=1)
    old_twin = waiting("c", age=9)
    old = waiting("d", age=9)
    interactive = waiting("e", priority=PriorityClass.INTERACTIVE)
    urgent = waiting("f", priority=PriorityClass.URGENT)

    assert ordered([young, old, urgent, opportunistic, interactive, old_twin]) == (
        urgent,
        interactive,
        old_twin,
        old,
        young,
        opportunistic,
    )
