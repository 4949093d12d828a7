"""The quota tree as administrators see and change it: use beside limits, previews, removal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace

from .errors import InvalidInput, NotFound
from .ports.audit import Action, Change
from .ports.records import Json
from .ports.store import Store
from .ports.world import Clock
from .scheduling.consequences import consequences
from .scheduling.model import Group, Snapshot
from .scheduling.quota import Tally, Tree
from .wire import NAME
from .wire.administration import GroupIn, QuotaOut


@dataclass(frozen=True, slots=True)
class QuotaTree:
    """Everything that changes a group's quota or teachers goes through here, with its line in
    the audit list."""

    store: Store
    clock: Clock

    # -- looking --------------------------------------------------------------------------

    def all(self) -> list[QuotaOut]:
        """Every group after the one above it, siblings by name."""
        snapshot = self.store.snapshot()
        tree = Tree(snapshot.groups)
        tally = Tally(tree, snapshot.holdings)
        waiting = _people(tree, snapshot)
        seconds = self._device_seconds(tree)
        return [
            QuotaOut(
                name=group.name,
                parent=group.parent,
                depth=depth,
                max_devices=group.max_devices,
                max_devices_per_user=group.max_devices_per_user,
                max_seconds=group.max_seconds,
                idle_seconds=group.idle_seconds,
                teachers=list(self.store.teachers(group.name)),
                held=tally.of_group(group.name),
                waiting=len(waiting.get(group.name, ())),
                device_seconds=round(seconds.get(group.name, 0.0), 3),
            )
            for group, depth in _in_order(snapshot.groups)
        ]

    def _device_seconds(self, tree: Tree) -> Mapping[str, float]:
        found: dict[str, float] = {}
        for usage in self.store.usage(now=self.clock()):
            for group in tree.known(usage.group):
                found[group.name] = found.get(group.name, 0.0) + usage.total
        return found

    def preview(self, after: Group, teachers: Iterable[str] | None = None) -> tuple[str, ...]:
        """What saving this group would mean now: nothing at all where it is as it was.

        Raises InvalidInput as saving would.
        """
        snapshot = self.store.snapshot()
        check_fits(after, snapshot.groups)
        new = () if teachers is None else self._teachers_said(after.name, set(teachers))
        if after in snapshot.groups:
            return new
        return (*consequences(after, snapshot, self.clock()), *new)

    def _teachers_said(self, name: str, after: set[str]) -> tuple[str, ...]:
        before = set(self.store.teachers(name))
        return (
            *(f"{each} becomes a teacher of {name}." for each in sorted(after - before)),
            *(f"{each} is no teacher of {name} any more." for each in sorted(before - after)),
        )

    def wanted(self, name: str, body: GroupIn) -> Group:
        """The group that a body describes; what it leaves out stays as it is."""
        check_group_name(name)
        before = self._known(name) or Group(name=name)
        after = replace(
            before,
            parent=body.parent or None,
            max_devices=body.max_devices,
            max_devices_per_user=body.max_devices_per_user,
            max_seconds=body.max_seconds,
        )
        return (
            after if body.idle_seconds is None else replace(after, idle_seconds=body.idle_seconds)
        )

    # -- changing -------------------------------------------------------------------------

    def put(self, after: Group, *, who: str) -> None:
        """Make or change a group. Raises InvalidInput where it does not fit into the tree."""
        before = self._known(after.name)
        if before == after:
            return
        changed = _differences(before, after)
        self.store.put_group(
            after, change=self._change(who, Action.GROUP_SET, after.name, *changed)
        )

    def set_teachers(self, name: str, teachers: Iterable[str], *, who: str) -> None:
        before, after = sorted(self.store.teachers(name)), sorted(set(teachers))
        if before == after:
            return
        lines = {"teachers": before}, {"teachers": after}
        self.store.set_teachers(
            name, after, change=self._change(who, Action.TEACHERS_SET, name, *lines)
        )

    def remove(self, name: str, *, who: str) -> None:
        """Raises NotFound, or Conflict where something stands on it."""
        before, _ = _differences(self.store.group(name), None)
        self.store.remove_group(
            name,
            at=self.clock(),
            change=self._change(who, Action.GROUP_REMOVE, name, before, {}),
        )

    def _known(self, name: str) -> Group | None:
        try:
            return self.store.group(name)
        except NotFound:
            return None

    def _change(
        self,
        who: str,
        action: Action,
        target: str,
        before: Mapping[str, Json],
        after: Mapping[str, Json],
    ) -> Change:
        return Change(
            at=self.clock(), who=who, action=action, target=target, before=before, after=after
        )


def check_group_name(name: str) -> None:
    """Raises InvalidInput."""
    if not re.fullmatch(NAME, name):
        raise InvalidInput(
            f"{name[:80]!r} is not a name that a group can have.",
            accepted="It has 1 to 64 of a to z, 0 to 9, dot, underscore, @ and hyphen.",
        )


def check_fits(after: Group, groups: Iterable[Group]) -> None:
    """Raises InvalidInput for a group above that is unknown, or would be below it."""
    tree = Tree([*(group for group in groups if group.name != after.name), after])
    if not tree.chain(after.name):
        raise InvalidInput(
            f"{after.parent} cannot be above {after.name}.",
            accepted="An existing group that is not below it, or none.",
            field="parent",
        )


def _people(tree: Tree, snapshot: Snapshot) -> Mapping[str, set[str]]:
    """Who waits in each group, those of the groups below it included."""
    found: dict[str, set[str]] = {}
    for waiting in snapshot.waiting:
        for group in tree.known(waiting.group):
            found.setdefault(group.name, set()).add(waiting.owner)
    return found


def _in_order(groups: Iterable[Group]) -> Iterator[tuple[Group, int]]:
    every = sorted(groups, key=lambda group: group.name)
    names = {group.name for group in every}

    def below(parent: str | None, depth: int) -> Iterator[tuple[Group, int]]:
        for group in every:
            if (group.parent if group.parent in names else None) == parent:
                yield group, depth
                yield from below(group.name, depth + 1)

    yield from below(None, 0)


def _differences(
    before: Group | None, after: Group | None
) -> tuple[dict[str, Json], dict[str, Json]]:
    """Only the fields that differ; all of them where one of the two does not exist."""
    names = [field.name for field in fields(Group) if field.name != "name"]
    if before is None or after is None:
        return _values(before, names), _values(after, names)
    changed = [name for name in names if getattr(before, name) != getattr(after, name)]
    return _values(before, changed), _values(after, changed)


def _values(group: Group | None, names: Iterable[str]) -> dict[str, Json]:
    return {} if group is None else {name: getattr(group, name) for name in names}
