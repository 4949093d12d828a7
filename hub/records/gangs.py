"""Gangs: jobs of several members, which start together or not at all.

A gang has one lease, with the devices of all members, and one process group for each member. The
id of a member, ``LEASE.mRANK``, names its process group where a lease id names that of other jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..scheduling.model.snapshot import Arrangement, GangRole
from .json_value import Json

MAX_MEMBERS = 128
"""Members of one job on any engine."""
MAX_ROLES = 16
_MARK = ".m"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRole:
    """Equal members of a job.

    Attributes:
        devices: of one member.
        wanted: number of members that it requests.
        minimum: smallest number of members with which it starts.
        image: ``NAME@sha256:…``; empty for the image of the job.
    """

    name: str
    command: tuple[str, ...]
    devices: int = 0
    wanted: int = 1
    minimum: int = 1
    image: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobGang:
    """The members of a job, by role.

    Attributes:
        must_succeed: roles whose members must all succeed; empty for all roles. The job ends when
            they have succeeded; other members are then stopped.
    """

    roles: tuple[JobRole, ...]
    arrangement: Arrangement = Arrangement.PACK
    must_succeed: tuple[str, ...] = ()

    @property
    def shape(self) -> tuple[GangRole, ...]:
        """Return the roles as the scheduler needs them."""
        return tuple(
            GangRole(name=r.name, devices=r.devices, wanted=r.wanted, minimum=r.minimum)
            for r in self.roles
        )

    def role(self, name: str) -> JobRole:
        """Return the role of this name. Raises KeyError."""
        return {role.name: role for role in self.roles}[name]

    def is_required(self, role: str) -> bool:
        """Whether the members of a role must succeed."""
        return not self.must_succeed or role in self.must_succeed

    def as_json(self) -> dict[str, Json]:
        roles: list[Json] = [asdict(role) | {"command": list(role.command)} for role in self.roles]
        return {
            "roles": roles,
            "arrangement": str(self.arrangement),
            "must_succeed": list(self.must_succeed),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> JobGang:
        return cls(
            roles=tuple(
                JobRole(**{**role, "command": tuple(role["command"])}) for role in values["roles"]
            ),
            arrangement=Arrangement(values["arrangement"]),
            must_succeed=tuple(values["must_succeed"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberEnd:
    """How a member ended.

    Attributes:
        code: a ``CauseCode``.
        message: one sentence; ``details`` has a traceback or the end of the log.
    """

    code: str
    message: str
    details: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GangMember:
    """A member of the gang of one attempt.

    Attributes:
        rank: from 0, by role and number; member 0 is the one that the others connect to.
        number: from 0, within its role.
        devices: ids of its devices, a part of those of the lease.
        pid, process_started_at: of its runner, once that has reported; see ``Handle``.
        address: at which the other members reach it, as its runner reports it.
        port: a free port at that address.
        ended_at: when its end was stored.
    """

    rank: int
    role: str
    number: int
    node: str
    devices: tuple[str, ...] = ()
    pid: int | None = None
    process_started_at: float = 0.0
    address: str = ""
    port: int = 0
    joined_at: float | None = None
    ended_at: float | None = None
    end: MemberEnd | None = None

    @property
    def name(self) -> str:
        """The name of the member in messages."""
        return f"member {self.number} of the role {self.role}"

    def as_json(self) -> dict[str, Json]:
        return {
            **{key: getattr(self, key) for key in self.__slots__},
            "devices": list(self.devices),
            "end": None if self.end is None else asdict(self.end),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> GangMember:
        end = values["end"]
        return cls(
            **{
                **values,
                "devices": tuple(values["devices"]),
                "end": None if end is None else MemberEnd(**end),
            }
        )


def members_of(
    gang: JobGang,
    counts: Iterable[int],
    devices: tuple[str, ...],
    nodes: Mapping[str, str],
    node: str,
) -> tuple[GangMember, ...]:
    """Return the members of a new attempt.

    Args:
        counts: number of members of each role; empty for as many as are wanted.
        devices: by role and member.
        nodes: the node of each device; a member without devices is on ``node``.
    """
    members: list[GangMember] = []
    counts = tuple(counts) or tuple(role.wanted for role in gang.roles)
    at = 0
    for role, count in zip(gang.roles, counts, strict=True):
        for number in range(count):
            own = devices[at : at + role.devices]
            at += role.devices
            members.append(
                GangMember(
                    rank=len(members),
                    role=role.name,
                    number=number,
                    node=nodes[own[0]] if own else node,
                    devices=own,
                )
            )
    return tuple(members)


def member_id(lease_id: str, rank: int) -> str:
    """Return the id of a member's process group."""
    return f"{lease_id}{_MARK}{rank}"


def split_member_id(group: str) -> tuple[str, int | None]:
    """Return lease and rank of a process group; the rank is None if it is no member."""
    lease_id, mark, rank = group.rpartition(_MARK)
    if mark and rank.isascii() and rank.isdigit():
        return lease_id, int(rank)
    return group, None
