"""What is odd about the guarantees of a group, said before they are saved.

None of it is refused: a pool grows, and a tree is changed one group after the other.
"""

from __future__ import annotations

from collections.abc import Iterator

from .model.snapshot import Group, Snapshot
from .model.text import plural
from .quota.tree import guarantees


def odd_guarantees(after: Group, changed: Snapshot) -> Iterator[str]:
    """Sentences about a group as it will be; ``changed`` has it already.

    1. it is guaranteed more than it may hold
    2. the groups below it are guaranteed more together than it is itself
    3. it and those beside it are guaranteed more than the group above
    4. all groups together are guaranteed more than the pool has
    """
    if after.guaranteed > after.max_devices:
        yield (
            f"{after.name} is guaranteed {plural(after.guaranteed, 'device')} and may hold "
            f"{after.max_devices}: it never has them all."
        )
    groups = {group.name: group for group in changed.groups}
    for above in filter(None, (after, groups.get(after.parent or ""))):
        below = _sum(changed, above.name)
        if below > above.guaranteed > 0 and (above is after or after.guaranteed):
            yield (
                f"The groups below {above.name} are guaranteed {plural(below, 'device')} "
                f"together, more than {above.name} itself with {above.guaranteed}: it counts as "
                f"guaranteed {below}."
            )
    own = guarantees(changed.groups)
    roots = sum(own[group.name] for group in changed.groups if group.parent is None)
    pool = len(changed.devices)
    if after.guaranteed and roots > pool:
        yield (
            f"All groups together are guaranteed {plural(roots, 'device')}; the pool has {pool}: "
            "not all can have theirs at once."
        )


def _sum(changed: Snapshot, parent: str | None) -> int:
    return sum(group.guaranteed for group in changed.groups if group.parent == parent)
