"""What each group of the tree is guaranteed, with what those below it bring."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .model import Group


def guarantees(groups: Iterable[Group]) -> Mapping[str, int]:
    """Devices by group: its own guarantee, or that of all below it where that is more.

    What a lab is guaranteed its department has to be given as well, else the lab's promise
    would end at the department's door. Kueue counts a cohort's quota in the same way
    (``resource_node.go``). Groups in a circle count for themselves alone.
    """
    known = {group.name: group for group in groups}
    below: dict[str, list[Group]] = {name: [] for name in known}
    roots = []
    for group in known.values():
        if group.parent in known:
            below[group.parent].append(group)
        else:
            roots.append(group)
    found = {name: group.guaranteed for name, group in known.items()}
    order = list(roots)
    for group in order:
        order += below[group.name]
    for group in reversed(order):
        together = sum(found[child.name] for child in below[group.name])
        found[group.name] = max(group.guaranteed, together)
    return found
