"""What an administrator set for DockerSpawner lies below, Carrel's template above: pure.

An administrator may mount volumes, name limits, set an environment and choose a runtime for
every session. What keeps a session inside its container and to its lease is not theirs to set
in passing: it comes last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from ....hub.records.json_value import Json

Body = Mapping[str, Json]

_FROM_ABOVE: Final = ("Image", "User", "Hostname", "WorkingDir", "Healthcheck")
_FROM_BELOW_IF_SET: Final = ("ShmSize", "Dns")
"""Of the host's part: memory counts whatever is put there, and a site may have its own resolver."""
_NOBODYS: Final = (
    *("CapAdd", "Devices", "DeviceCgroupRules", "Links", "VolumesFrom", "GroupAdd"),
    *("PidMode", "UTSMode", "UsernsMode", "Cgroup", "CgroupParent", "AutoRemove", "PortBindings"),
    # The same limits in the words of another option.
    *("CpuPeriod", "CpuQuota", "CpuShares", "Memory", "MemorySwap", "MemoryReservation"),
)
_NOBODYS_OUTSIDE: Final = ("NetworkingConfig", "NetworkDisabled", "MacAddress", "StopSignal")


def overlay(formed: Body, ours: Body, labels: Mapping[str, str]) -> dict[str, Json]:
    """The body of the create call.

    Args:
        formed: as DockerSpawner forms it from its options.
        ours: as the template forms it from the lease.
        labels: to be added.
    """
    body = {name: value for name, value in formed.items() if name not in _NOBODYS_OUTSIDE}
    body |= {name: ours[name] for name in _FROM_ABOVE}
    body["Entrypoint"] = formed.get("Entrypoint") or ours["Entrypoint"]
    body["Env"] = _environment(_strings(formed.get("Env")), _strings(ours["Env"]))
    body["Labels"] = {**_object(formed.get("Labels")), **_object(ours["Labels"]), **labels}
    body["HostConfig"] = _host(_object(formed.get("HostConfig")), _object(ours["HostConfig"]))
    return body


def _host(formed: Body, ours: Body) -> dict[str, Json]:
    below = {name: value for name, value in formed.items() if name not in _NOBODYS}
    host = {**below, **ours}
    for name in _FROM_BELOW_IF_SET:
        if below.get(name):
            host[name] = below[name]
    host["Mounts"] = [*_list(below.get("Mounts")), *_list(ours.get("Mounts"))]
    host["Tmpfs"] = {**_object(below.get("Tmpfs")), **_object(ours.get("Tmpfs"))}
    return host


def _environment(below: Sequence[str], above: Sequence[str]) -> list[Json]:
    """Each name once; the last one who set it has it."""
    found: dict[str, Json] = {}
    for each in (*below, *above):
        found[each.partition("=")[0]] = each
    return list(found.values())


def _object(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Json) -> Sequence[Json]:
    return cast(Sequence[Json], value) if isinstance(value, list | tuple) else ()


def _strings(value: Json) -> tuple[str, ...]:
    return tuple(str(each) for each in _list(value))
