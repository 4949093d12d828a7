"""The quota tree for administrators: usage beside limits, previews, changes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace

from ..accounts.usernames import check_name
from ..errors import InvalidInput, NotFound
from ..records.audit import AuditAction
from ..records.calendar import span_of
from ..records.json_value import Json
from ..records.usage import LedgerFilter, UsageBy
from ..runtime.audit_trail import AuditTrail
from ..scheduling.explanation.quota_change import UNAFFECTED, consequences
from ..scheduling.model.snapshot import Budget, Device, Group, Period, Snapshot
from ..scheduling.model.text import hours
from ..scheduling.quota.tree import GroupTree, Tally
from ..schemas import NAME
from ..schemas.admin import GroupIn, QuotaOut
from ..schemas.calendar import BudgetIn

_MORE = (
    *("guaranteed", "borrowing", "lending", "weight"),
    *("max_sessions", "sessions_borrow", "programs"),
)
"""Fields of ``GroupIn`` that keep their value when a request omits them."""


@dataclass(frozen=True, slots=True)
class GroupQuotas(AuditTrail):
    """Lists and changes the quotas and teachers of groups; every change is audited."""

    # -- queries --------------------------------------------------------------------------

    def all(self) -> list[QuotaOut]:
        """Return all groups, parents before children, siblings by name."""
        snapshot = self.store.snapshot(self.clock())
        tree = GroupTree(snapshot.groups)
        tally = Tally(tree, snapshot.allocations)
        waiting = _queued_owners(tree, snapshot)
        seconds = self._device_seconds(tree)
        budgets = {left.group: left.used for left in snapshot.budgets}
        return [
            QuotaOut.model_validate(
                group_values(group)
                | {
                    "depth": depth,
                    "teachers": self.store.teachers(group.name),
                    "held": tally.of_group(group.name),
                    "waiting": len(waiting.get(group.name, ())),
                    "device_seconds": round(seconds.get(group.name, 0.0), 3),
                    "budget_used": budgets.get(group.name),
                }
            )
            for group, depth in _in_order(snapshot.groups)
        ]

    def _device_seconds(self, tree: GroupTree) -> Mapping[str, float]:
        found: dict[str, float] = {}
        for usage in self.store.usage(now=self.clock()):
            for group in tree.ancestry(usage.group):
                found[group.name] = found.get(group.name, 0.0) + usage.total
        return found

    def check_unchanged(self, name: str, *, who: str) -> None:
        """Raise ChangedMeanwhile if the group is newer than the form that changes it."""
        self._check_unchanged(AuditAction.GROUP_SET, name, who)

    def preview(self, after: Group, teachers: Iterable[str] | None = None) -> tuple[str, ...]:
        """Return the consequences of saving this group now; none if it does not change.

        Raises InvalidInput as saving would.
        """
        snapshot = self.store.snapshot(self.clock())
        check_fits(after, snapshot.groups)
        before = self._known(after.name)
        check_models(after, before, snapshot.devices)
        changed = () if teachers is None else self._teacher_changes(after.name, set(teachers))
        if after in snapshot.groups:
            return changed
        sentences = consequences(after, snapshot, self.clock())
        if budget := tuple(self._budget_consequences(before, after)):
            sentences = tuple(sentence for sentence in sentences if sentence != UNAFFECTED)
        return (*sentences, *budget, *changed)

    def _budget_consequences(self, before: Group | None, after: Group) -> Iterator[str]:
        """Describe what a new budget means for the group's requests."""
        if after.budget is None or (before is not None and before.budget == after.budget):
            return
        now = self.clock()
        span = span_of(after.budget.period, self.store.terms(), now)
        if span is None:
            yield f"There is no current term: requests of {after.name} wait for the next one."
            return
        if not after.budget.device_seconds:
            yield f"With a budget of 0 no request of {after.name} starts on a device."
        tree = GroupTree([*self.store.groups(), *([] if before else [after])])
        which = LedgerFilter(groups=tree.subtree(after.name), since=span[0])
        used = sum(row.total for row in self.store.used(which, UsageBy.OWNER, now=now))
        if used >= after.budget.device_seconds > 0:
            yield (
                f"{after.name} has already used {hours(used)} device-hours of these "
                f"{hours(after.budget.device_seconds)}: no new requests start, and running ones "
                "are warned and then stopped."
            )

    def _teacher_changes(self, name: str, after: set[str]) -> tuple[str, ...]:
        before = set(self.store.teachers(name))
        return (
            *(f"{user} becomes a teacher of {name}." for user in sorted(after - before)),
            *(f"{user} is no longer a teacher of {name}." for user in sorted(before - after)),
        )

    def wanted(self, name: str, body: GroupIn) -> Group:
        """Return the group that a request body describes; omitted fields keep their value."""
        check_group_name(name)
        before = self._known(name) or Group(name=name)
        after = replace(
            before,
            parent=body.parent or None,
            max_devices=body.max_devices,
            max_devices_per_user=body.max_devices_per_user,
            max_seconds=body.max_seconds,
        )
        if body.idle_seconds is not None:
            after = replace(after, idle_seconds=body.idle_seconds)
        if "models" in body.model_fields_set:
            models = None if body.models is None else frozenset(body.models)
            after = replace(after, models=models)
        if "budget" in body.model_fields_set:
            after = replace(after, budget=None if body.budget is None else _budget(body.budget))
        named = {name: getattr(body, name) for name in _MORE if name in body.model_fields_set}
        return replace(after, **named)

    # -- changes --------------------------------------------------------------------------

    def put(self, after: Group, *, who: str) -> None:
        """Create or change a group. Raises InvalidInput if it does not fit into the tree."""
        before = self._known(after.name)
        if before == after:
            return
        check_models(after, before, self.store.devices())
        old, new = _differences(before, after)
        change = self._change(AuditAction.GROUP_SET, after.name, who, before=old, after=new)
        self.store.put_group(after, change=change)

    def set_teachers(self, name: str, teachers: Iterable[str], *, who: str) -> None:
        before, after = sorted(self.store.teachers(name)), sorted(set(teachers))
        if before == after:
            return
        for teacher in set(after).difference(before):
            check_name(teacher)
        change = self._change(
            *(AuditAction.TEACHERS_SET, name, who),
            before={"teachers": before},
            after={"teachers": after},
        )
        self.store.set_teachers(name, after, change=change)

    def remove(self, name: str, *, who: str) -> None:
        """Delete a group. Raises NotFound, or Conflict while it is in use."""
        self._check_unchanged(AuditAction.GROUP_REMOVE, name, who)
        before, _ = _differences(self.store.group(name), None)
        change = self._change(AuditAction.GROUP_REMOVE, name, who, before=before)
        self.store.remove_group(name, at=self.clock(), change=change)

    def _known(self, name: str) -> Group | None:
        try:
            return self.store.group(name)
        except NotFound:
            return None


def check_group_name(name: str) -> None:
    """Raise InvalidInput for an invalid name of a group."""
    if not re.fullmatch(NAME, name):
        raise InvalidInput(
            f"{name[:80]!r} is not a valid name of a group.",
            accepted="Use 1 to 64 of a to z, 0 to 9, dot, underscore, @ and hyphen.",
        )


def check_fits(after: Group, groups: Iterable[Group]) -> None:
    """Raise InvalidInput for a parent that is unknown or a descendant of the group."""
    tree = GroupTree([*(group for group in groups if group.name != after.name), after])
    if not tree.chain(after.name):
        known = any(group.name == after.parent for group in tree.groups)
        unknown = f"There is no group {after.parent}."
        raise InvalidInput(
            f"{after.parent} cannot be the parent of {after.name}." if known else unknown,
            accepted="An existing group that is not below it, or none.",
            field="parent",
        )


def check_models(after: Group, before: Group | None, devices: Iterable[Device]) -> None:
    """Raise InvalidInput for an added model that no device has."""
    known = {device.model for device in devices}
    named = (after.models or frozenset()) - ((before and before.models) or frozenset())
    if unknown := sorted(named - known):
        raise InvalidInput(
            f"There is no device of the model {unknown[0][:80]}.",
            accepted=f"Models of the pool: {', '.join(sorted(known)) or 'none yet'}.",
            field="models",
        )


def _budget(body: BudgetIn) -> Budget:
    return Budget(device_seconds=body.device_seconds, period=Period(body.period))


def _queued_owners(tree: GroupTree, snapshot: Snapshot) -> Mapping[str, set[str]]:
    """Return the owners of queued requests by group; groups include their descendants."""
    found: dict[str, set[str]] = {}
    for waiting in snapshot.pending:
        for group in tree.ancestry(waiting.group):
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
    """Return the fields that differ, before and after; all of them if one group is None."""
    names = [field.name for field in fields(Group) if field.name != "name"]
    if before is None or after is None:
        return _values(before, names), _values(after, names)
    changed = [name for name in names if getattr(before, name) != getattr(after, name)]
    return _values(before, changed), _values(after, changed)


def _values(group: Group | None, names: Iterable[str]) -> dict[str, Json]:
    shown = {} if group is None else group_values(group)
    return {name: shown[name] for name in names if name in shown}


def group_values(group: Group) -> dict[str, Json]:
    """Return the fields of a group as JSON values."""
    models = None if group.models is None else sorted(group.models)
    return asdict(group) | {"models": models}
