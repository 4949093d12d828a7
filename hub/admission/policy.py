"""May this person ask for this, and could it ever run? Refused at once, or let into the queue.

Membership is read from JupyterHub now, not from a cached sign-in.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ..errors import InvalidInput, NotAMember, NotFound, OverMaximum
from ..interfaces.jupyterhub import JupyterHub
from ..interfaces.store import Store
from ..scheduling.explanation import admission_rules
from ..scheduling.explanation.admission_rules import AdmissionRules, Rule
from ..scheduling.model.snapshot import Device, Group, Kind, PriorityClass

_SERVER_NAME = re.compile(r"[a-z0-9](?:-?[a-z0-9])*")
"""JupyterHub's rule for named servers."""
SERVER_NAME_LENGTH = 30
_FIELDS: Mapping[Rule, str] = MappingProxyType(
    {
        Rule.SECONDS: "hours",
        Rule.SECONDS_MAXIMUM: "hours",
        Rule.UNKNOWN_MODEL: "model",
        Rule.FORBIDDEN_MODEL: "model",
        Rule.NEEDLESS_MODEL: "model",
    }
)
"""The fields that rules are about, where it is not the number of devices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceRequest:
    """What is asked for, whoever asks and whatever kind it is."""

    owner: str
    group: str
    devices: int
    seconds: int
    model: str | None = None
    kind: Kind = Kind.JOB
    preemptible: bool = False


@dataclass(frozen=True, slots=True)
class Admission:
    """The rules, over the store and the hub."""

    store: Store
    hub: JupyterHub

    def groups_of(self, owner: str) -> tuple[Group, ...]:
        """Groups with a quota whose member (or teacher) the owner is now.

        Raises:
            NotFound: the hub has no such user.
            Unavailable: the hub does not answer.
        """
        entitled = self.hub.user(owner).groups | self.store.taught_by(owner)
        return tuple(group for group in self.store.groups() if group.name in entitled)

    def choose_group(self, owner: str, wanted: str) -> str:
        """The group that pays: the wanted one, or the only one there is.

        Raises:
            NotAMember: unknown group, or one of somebody else.
            InvalidInput: none was named and there are several.
        """
        mine = [group.name for group in self.groups_of(owner)]
        yours = (
            f"Your groups: {', '.join(mine)}."
            if mine
            else ("You are in no group yet: ask your teacher or administrator to add you to one.")
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
            raise NotAMember("Every request belongs to a group, and you have none.", accepted=yours)
        raise InvalidInput("Say which group this is for.", accepted=yours, field="group")

    def admit(self, ask: ResourceRequest) -> None:
        """Whether it could ever run.

        Raises:
            InvalidInput: numbers that make no sense.
            OverMaximum: more than the group, the user or the pool may ever have, or than is left
                beside what others are guaranteed.
        """
        check_ask(ask, self.store.groups(), self.store.devices())


def check_ask(ask: ResourceRequest, groups: Iterable[Group], devices: Iterable[Device]) -> None:
    """``Admission.admit`` with what there is: raises as it does."""
    refusal = AdmissionRules(groups, devices).refusal(
        group=ask.group,
        devices=ask.devices,
        seconds=ask.seconds,
        kind=ask.kind,
        preemptible=ask.preemptible,
        model=ask.model,
    )
    if refusal is None:
        return
    kind = InvalidInput if refusal.rule in admission_rules.MALFORMED else OverMaximum
    field = _FIELDS.get(refusal.rule, "devices")
    raise kind(refusal.message, accepted=refusal.accepted, field=field)


def class_of(kind: Kind) -> PriorityClass:
    """Where nobody chose one: what somebody sits in front of goes before what runs alone."""
    return PriorityClass.INTERACTIVE if kind is Kind.SESSION else PriorityClass.NORMAL


def check_server_name(name: str) -> str:
    """Raises InvalidInput unless JupyterHub takes it; "" is the default server."""
    if name and (len(name) > SERVER_NAME_LENGTH or not _SERVER_NAME.fullmatch(name)):
        raise InvalidInput(
            f"The session name {name[:80]!r} cannot be used.",
            accepted=f"1 to {SERVER_NAME_LENGTH} lower-case letters, digits and single hyphens.",
            field="server_name",
        )
    return name


def seconds_of(hours: float) -> int:
    """Whole seconds of a number of hours.

    Raises:
        InvalidInput: not a positive, finite number.
    """
    if not math.isfinite(hours) or hours <= 0:
        raise InvalidInput(
            f"{hours} hours make no session.", accepted="More than 0, such as 1.5.", field="hours"
        )
    return max(1, round(hours * 3600))
