"""Read the nodes of a cluster and their devices (GRES of the name ``gpu``).

Slurm counts devices; it names them only by an index on their node. A device of the pool is one such
index. Which index a job gets is Slurm's choice: devices of one type on one node are alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

_GPU: Final = re.compile(r"^gpu(?::(?P<type>[^:()]+))?:(?P<count>\d+)")
_RANGES: Final = re.compile(r"(?P<name>[^\[]*)\[(?P<ranges>[\d,-]+)\](?P<rest>.*)")
_NOT_READY: Final = {
    "down": "is down",
    "drain": "is drained in Slurm",
    "drained": "is drained in Slurm",
    "draining": "is being drained in Slurm",
    "fail": "has failed",
    "failing": "is failing",
    "error": "reports an error",
    "future": "does not exist yet",
    "maint": "is under maintenance",
    "not_responding": "does not respond to Slurm",
    "powered_down": "is powered down",
    "powering_down": "is powering down",
    "reboot": "is being rebooted",
    "rebooting": "is being rebooted",
    "unknown": "has not registered with Slurm",
}
"""What a state or flag of a node means, after the node's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gres:
    """Devices of one type on a node.

    Attributes:
        type: empty for a GRES without types.
    """

    type: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmNode:
    """A node as ``sinfo --json`` shows it.

    Attributes:
        states: its state and flags, in lower case.
        gres: its devices, by type, in the order of their indices.
        address: by which other machines reach it.
        used: how many of them jobs have, by type.
    """

    name: str
    address: str
    states: tuple[str, ...]
    gres: tuple[Gres, ...]
    used: Mapping[str, int]
    reason: str = ""
    partitions: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """Read one entry, of Slurm 22.05 or a later one, whose state is a list."""
        state = found.get("state") or "unknown"
        names = state if isinstance(state, list) else [state, *(found.get("state_flags") or ())]
        used: dict[str, int] = {}
        for each in parse_gres(found.get("gres_used") or ""):
            used[each.type] = used.get(each.type, 0) + each.count
        return cls(
            name=str(found["name"]),
            address=str(found.get("address") or found.get("hostname") or found["name"]),
            states=tuple(str(name).lower() for name in names),
            gres=parse_gres(found.get("gres") or ""),
            used=used,
            reason=str(found.get("reason") or ""),
            partitions=tuple(found.get("partitions") or ()),
        )

    def is_in(self, partition: str) -> bool:
        """Whether it belongs to a partition; every node does if that is empty."""
        return not partition or partition in self.partitions

    @property
    def why_not(self) -> str:
        """Why no job can start on it, as a sentence; empty if one can."""
        for state in self.states:
            if state in _NOT_READY:
                told = f" ({self.reason})" if self.reason else ""
                return f"{self.name} {_NOT_READY[state]}{told}."
        return ""


def hostnames(text: str) -> Iterator[str]:
    """Yield the names in a list of hosts of Slurm, such as ``gpu[1-2,08],login``."""
    for part in re.split(r",(?![^\[]*\])", text):
        match = _RANGES.fullmatch(part)
        if match is None:
            if part:
                yield part
            continue
        for each in match["ranges"].split(","):
            first, _, last = each.partition("-")
            for number in range(int(first), int(last or first) + 1):
                for rest in hostnames(match["rest"]) if match["rest"] else ("",):
                    yield f"{match['name']}{number:0{len(first)}}{rest}"


def parse_gres(text: str) -> tuple[Gres, ...]:
    """Read ``gpu:a100:4(S:0-1),gpu:v100:2(IDX:0)``; entries of other names are left out."""
    found = []
    for entry in re.split(r",(?![^(]*\))", text):
        match = _GPU.match(entry.strip().removeprefix("gres:"))
        if match is not None:
            kind = match["type"] or ""
            found.append(Gres(type="" if kind == "(null)" else kind, count=int(match["count"])))
    return tuple(found)
