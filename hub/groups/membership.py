"""The groups that a user may use, and those in which they are a teacher.

Membership is read from JupyterHub at the time of the call, not from a cached sign-in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass

from ..errors import InvalidInput, NotAMember, NotFound, Unavailable
from ..interfaces.jupyterhub import JupyterHub
from ..interfaces.store import Store
from ..records.audit import AuditAction, ChangeFilter
from ..records.identity import Identity, Viewer
from ..runtime.context import Context
from ..scheduling.model.snapshot import Group
from ..scheduling.quota import tree as quota_tree
from ..schemas import GroupOut, GroupsOut, MeOut


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChoice:
    """A group that a user may choose, with the smallest limits on its path to the root."""

    name: str
    max_devices: int
    max_devices_per_user: int
    max_seconds: int
    idle_seconds: int = 0
    models: tuple[str, ...] | None = None
    """Device models that its members may request, by name; None for all."""


@dataclass(frozen=True, slots=True)
class Membership:
    """Answers from JupyterHub's groups and the teachers in the store."""

    store: Store
    hub: JupyterHub

    @classmethod
    def of(cls, context: Context) -> Membership:
        return cls(context.store, context.hub)

    def me(self, who: Identity) -> MeOut:
        """Describe the caller."""
        return MeOut(
            name=who.name,
            admin=who.admin,
            groups=[group.name for group in self.known_groups(who)],
            teaches=sorted(self.store.taught_by(who.name)),
        )

    def groups(self, who: Identity) -> GroupsOut:
        """List the groups that the caller may use, with their teachers."""
        return GroupsOut(
            groups=[
                GroupOut(**asdict(choice), teachers=list(self.store.teachers(choice.name)))
                for choice in self.choices(who)
            ]
        )

    def choices(self, who: Identity) -> list[GroupChoice]:
        """Return the groups that the user may use, with their limits."""
        return choices(self.known_groups(who), self.store.groups())

    def names(self, who: Identity, known: Collection[str] | None = None) -> set[str]:
        """Return the names of the user's groups; ``known`` saves the call to JupyterHub."""
        return {group.name for group in self.known_groups(who)} if known is None else set(known)

    def known_groups(self, who: Identity) -> tuple[Group, ...]:
        """Return the user's groups; those at sign-in while JupyterHub is not available."""
        try:
            return self.groups_of(who.name, for_page=True)
        except (Unavailable, NotFound):
            entitled = who.groups | self.store.taught_by(who.name)
            return tuple(group for group in self.store.groups() if group.name in entitled)

    def groups_of(self, owner: str, *, for_page: bool = False) -> tuple[Group, ...]:
        """Return the groups with a quota in which the owner is a member or a teacher now.

        Raises:
            NotFound: JupyterHub has no such user.
            Unavailable: JupyterHub does not answer.
        """
        entitled = self.hub.user(owner, for_page=for_page).groups | self.store.taught_by(owner)
        return tuple(group for group in self.store.groups() if group.name in entitled)

    def choose_group(self, owner: str, wanted: str, *, for_page: bool = False) -> str:
        """Return the group that is charged: the wanted one, or the only one.

        Raises:
            NotAMember: there is no such group, or the owner is not in it.
            InvalidInput: none was named and there are several.
        """
        mine = [group.name for group in self.groups_of(owner, for_page=for_page)]
        yours = (
            f"Your groups: {', '.join(mine)}."
            if mine
            else "You are not in a group yet: ask your teacher or administrator to add you to one."
        )
        if wanted in mine:
            return wanted
        if wanted:
            try:
                self.store.group(wanted)
            except NotFound:
                raise NotAMember(
                    f"There is no group {wanted[:80]!r}.", accepted=yours, field="group"
                ) from None
            raise NotAMember(f"You are not a member of {wanted}.", accepted=yours, field="group")
        if len(mine) == 1:
            return mine[0]
        if not mine:
            raise NotAMember("Every request needs a group, and you are not in one.", accepted=yours)
        raise InvalidInput("Choose a group for this request.", accepted=yours, field="group")


def viewer_of(store: Store, who: Identity | None) -> Viewer:
    """Return the caller with the groups that they teach; None stands for the service itself."""
    # A program has no rights of its owner over the work of others.
    teaches = store.taught_by(who.name) if who and who.program is None else frozenset[str]()
    return Viewer(identity=who, teaches=teaches)


def choices(groups: Iterable[Group], known: Iterable[Group]) -> list[GroupChoice]:
    """Return the usable ones of ``groups``, with the limits that their ancestors leave them.

    Args:
        known: all groups.
    """
    tree = quota_tree.GroupTree(known)
    limits = [
        (group, quota_tree.limits(tree, group.name), tree.models(group.name)) for group in groups
    ]
    return [
        GroupChoice(
            name=group.name,
            max_devices=found.max_devices,
            max_devices_per_user=found.max_devices_per_user,
            max_seconds=int(found.max_seconds),
            idle_seconds=group.idle_seconds,
            models=None if models is None else tuple(sorted(models)),
        )
        for group, found, models in limits
        if found is not None
    ]


def account_removed_since(store: Store, name: str, at: float) -> bool:
    """Return whether an account of this name was removed since, in Carrel's own accounts."""
    which = ChangeFilter(action=AuditAction.ACCOUNT_REMOVE, target=name, limit=1)
    return any(change.at >= at for change in store.changes(which))
