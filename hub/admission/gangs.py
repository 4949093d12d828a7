"""Check the roles of a job of several members, and whether the nodes could ever hold them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ..errors import InvalidInput, OverMaximum
from ..interfaces.backend import GangSupport
from ..messages.units import count
from ..records.gangs import MAX_MEMBERS, MAX_ROLES, JobGang, JobRole
from ..scheduling.model.snapshot import (
    Arrangement,
    Device,
    GangRole,
    Health,
    Kind,
    PendingRequest,
)
from ..scheduling.placement.device_pool import DevicePool, largest_node
from ..schemas import JobIn, RoleIn

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?")
_FEWER = "Ask for fewer members, or for fewer devices for each."

CheckCommand = Callable[[Sequence[str]], tuple[str, ...]]


def gang_of(body: JobIn, check_command: CheckCommand, support: GangSupport) -> JobGang | None:
    """Return the members of a job; None for a job without roles.

    Args:
        check_command: checks program and arguments of a role.
        support: what the engine can run.

    Raises:
        InvalidInput: a role is incomplete, contradicts the others, or the engine cannot run it.
    """
    if not body.roles:
        if body.must_succeed or body.arrangement != "pack":
            field = "must_succeed" if body.must_succeed else "arrangement"
            raise InvalidInput(
                f"The job has no roles, so {field!r} has no meaning.",
                accepted=f"Omit {field!r}, or give roles.",
                field=field,
            )
        return None
    _check_body(body)
    roles = tuple(_role(role, check_command) for role in body.roles)
    members = sum(role.wanted for role in roles)
    if not support.most_members:
        raise _invalid(
            "On this site the members of a job could not reach each other.",
            "A job of one member: a command or a notebook without roles.",
        )
    if members > support.most_members:
        raise _invalid(
            f"The job has {members:,} members, more than the nodes of this site can connect.",
            f"At most {support.most_members} in all roles together.",
        )
    arrangement = Arrangement(body.arrangement)
    if arrangement is Arrangement.SPREAD and not all(role.devices for role in roles):
        raise InvalidInput(
            "Members without devices cannot be spread over nodes.",
            accepted="Give every role devices, or choose the arrangement 'pack'.",
            field="arrangement",
        )
    if not support.across_nodes:
        if arrangement is Arrangement.SPREAD:
            raise InvalidInput(
                "On this site the members of a job share a network only on one node."
                + sentence(support.why_one_node),
                accepted="Choose the arrangement 'node' or 'pack'.",
                field="arrangement",
            )
        arrangement = Arrangement.NODE
    return JobGang(roles=roles, arrangement=arrangement, must_succeed=tuple(body.must_succeed))


def gang_fields(gang: JobGang) -> dict[str, object]:
    """Return the fields of a body that submits these members again."""
    return {
        "command": [],
        "devices": 0,
        "image": "",
        "roles": [
            {
                "name": role.name,
                "command": list(role.command),
                "devices": role.devices,
                "minimum": role.minimum,
                "maximum": role.wanted,
                "image": role.image,
            }
            for role in gang.roles
        ],
        "arrangement": str(gang.arrangement),
        "must_succeed": list(gang.must_succeed),
    }


def check_layout(
    gang: JobGang,
    pool: Iterable[Device],
    *,
    model: str | None,
    usable: frozenset[str] | None,
    why_one_node: str = "",
) -> None:
    """Refuse a gang that would not fit if all devices worked and were free.

    Args:
        model: the required device model; None for any.
        usable: models that the group may use; None for all.
        why_one_node: why the engine cannot connect nodes, if that is why one node is required.

    Raises:
        OverMaximum: the nodes can never hold the minimum number of members.
    """
    devices = [
        replace(each, health=Health.OK, marks=())
        for each in pool
        if (usable is None or each.model in usable) and model in (None, each.model)
    ]
    if _fits(gang.shape, gang.arrangement, devices, model):
        return
    largest = max(gang.roles, key=lambda role: role.devices)
    on_a_node = max((largest_node(devices, each) for each in {d.model for d in devices}), default=0)
    if largest.devices > on_a_node:
        raise OverMaximum(
            f"A member of the role {largest.name} needs {count(largest.devices, 'device')}, but no "
            f"node has more than {on_a_node} of one model that you may use.",
            accepted=f"Ask for 0 to {on_a_node} devices for each member.",
            field="roles",
        )
    raise OverMaximum(
        _LAYOUT_REASONS[gang.arrangement] + sentence(why_one_node),
        accepted=_most(gang, devices, model),
        field="roles",
    )


def sentence(text: str) -> str:
    """Return a sentence that follows another one; nothing for nothing."""
    return f" {text}" if text else ""


_LAYOUT_REASONS = {
    Arrangement.PACK: "The nodes can never hold that many members, with the devices of each on one "
    "node and all devices of one model.",
    Arrangement.SPREAD: "There are not enough nodes for each member on a node of its own.",
    Arrangement.NODE: "All members must be on one node, and no node has that many devices.",
}


def _most(gang: JobGang, devices: Sequence[Device], model: str | None) -> str:
    """Say how many members fit, if the job has one role."""
    if len(gang.roles) > 1:
        return _FEWER
    (role,) = gang.shape
    for members in range(role.minimum - 1, 0, -1):
        fewer = (replace(role, minimum=members, wanted=members),)
        if _fits(fewer, gang.arrangement, devices, model):
            return f"At most {count(members, 'member')} of {count(role.devices, 'device')}."
    return _FEWER


def _fits(
    shape: tuple[GangRole, ...],
    arrangement: Arrangement,
    devices: Sequence[Device],
    model: str | None,
) -> bool:
    request = PendingRequest(
        id="",
        kind=Kind.JOB,
        owner="",
        group="",
        devices=sum(role.devices * role.wanted for role in shape),
        seconds=1.0,
        submitted_at=0.0,
        model=model,
        gang=shape,
        arrangement=arrangement,
    )
    return DevicePool(devices, ()).fits(request)


def _check_body(body: JobIn) -> None:
    for given, name in (
        (body.notebook, "notebook"),
        (body.command, "command"),
        (body.devices, "devices"),
        (body.image, "image"),
    ):
        if not given:
            continue
        if name == "notebook":
            raise InvalidInput(
                "A notebook runs in one kernel and cannot have several members.",
                accepted="Give every role a command; a script can run a notebook.",
                field="notebook",
            )
        raise InvalidInput(
            f"The job has roles, and {name!r} beside them.",
            accepted=f"Give {name!r} for each role.",
            field=name,
        )
    names = [role.name for role in body.roles]
    if len(names) > MAX_ROLES:
        raise _invalid(f"The job has {len(names)} roles.", f"At most {MAX_ROLES}.")
    for name in names:
        if not _NAME.fullmatch(name):
            raise _invalid(
                f"The name {name[:80]!r} of a role cannot be used.",
                "1 to 32 lower-case letters, digits and hyphens.",
            )
        if names.count(name) > 1:
            raise _invalid(f"Two roles have the name {name}.", "A name of its own for each role.")
    unknown = [name for name in body.must_succeed if name not in names]
    if unknown:
        raise InvalidInput(
            f"The job has no role {unknown[0][:80]!r} that must succeed.",
            accepted=f"Roles of this job: {', '.join(names)}.",
            field="must_succeed",
        )


def _role(role: RoleIn, check_command: CheckCommand) -> JobRole:
    if not role.command:
        raise _invalid(
            f"The role {role.name} has no command.", "A program and its arguments for each role."
        )
    if role.count is not None and (role.minimum is not None or role.maximum is not None):
        raise _invalid(
            f"The role {role.name} has 'count' and also 'minimum' or 'maximum'.",
            "Either a count, or a minimum and a maximum.",
        )
    if role.count is not None:
        minimum = wanted = role.count
    else:
        wanted = role.maximum if role.maximum is not None else role.minimum or 1
        minimum = role.minimum if role.minimum is not None else wanted
    for number in (minimum, wanted):
        if not 1 <= number <= MAX_MEMBERS:
            raise _invalid(
                f"The role {role.name} has {number:,} members.", f"1 to {MAX_MEMBERS} members."
            )
    if minimum > wanted:
        raise _invalid(
            f"The role {role.name} has a minimum of {minimum} members, above its maximum of "
            f"{wanted}.",
            "A minimum that is at most the maximum.",
        )
    if role.devices < 0:
        raise _invalid(f"The role {role.name} has {role.devices} devices.", "0 or more.")
    return JobRole(
        name=role.name,
        command=check_command(role.command),
        devices=role.devices,
        wanted=wanted,
        minimum=minimum,
        image=role.image,
    )


def _invalid(message: str, accepted: str) -> InvalidInput:
    return InvalidInput(message, accepted=accepted, field="roles")
