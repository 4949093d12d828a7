"""Merge an administrator's DockerSpawner options with Carrel's template, which takes precedence.

An administrator may mount volumes, set limits and environment variables, and choose a runtime for
every session. Options that isolate a session or bind it to its lease cannot be overridden.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from ....hub.records.json_value import Json

Body = Mapping[str, Json]

_FROM_TEMPLATE: Final = ("Image", "User", "Hostname", "WorkingDir", "Healthcheck")
_FROM_OPTIONS_IF_SET: Final = ("ShmSize", "Dns")
"""Options of HostConfig that a site may set: its own resolver, and the size of shared memory, which
counts as memory.
"""
_FORBIDDEN_IN_HOST: Final = (
    *("CapAdd", "Devices", "DeviceCgroupRules", "Links", "VolumesFrom", "GroupAdd"),
    *("PidMode", "UTSMode", "UsernsMode", "Cgroup", "CgroupParent", "AutoRemove", "PortBindings"),
    # The template sets these limits by other options.
    *("CpuPeriod", "CpuQuota", "CpuShares", "Memory", "MemorySwap", "MemoryReservation"),
)
_FORBIDDEN: Final = ("NetworkingConfig", "NetworkDisabled", "MacAddress", "StopSignal")


def overlay(options: Body, template: Body, labels: Mapping[str, str]) -> dict[str, Json]:
    """Return the body of the create call.

    Args:
        options: the body that DockerSpawner builds from its options.
        template: the body that the template builds from the lease.
        labels: labels to add.
    """
    body = {name: value for name, value in options.items() if name not in _FORBIDDEN}
    body |= {name: template[name] for name in _FROM_TEMPLATE}
    body["Entrypoint"] = options.get("Entrypoint") or template["Entrypoint"]
    body["Env"] = _environment(_strings(options.get("Env")), _strings(template["Env"]))
    body["Labels"] = {**_object(options.get("Labels")), **_object(template["Labels"]), **labels}
    body["HostConfig"] = _host(_object(options.get("HostConfig")), _object(template["HostConfig"]))
    return body


def _host(options: Body, template: Body) -> dict[str, Json]:
    lower = {name: value for name, value in options.items() if name not in _FORBIDDEN_IN_HOST}
    host = {**lower, **template}
    for name in _FROM_OPTIONS_IF_SET:
        if lower.get(name):
            host[name] = lower[name]
    host["Mounts"] = [*_list(lower.get("Mounts")), *_list(template.get("Mounts"))]
    host["Tmpfs"] = {**_object(lower.get("Tmpfs")), **_object(template.get("Tmpfs"))}
    return host


def _environment(lower: Sequence[str], upper: Sequence[str]) -> list[Json]:
    """Merge two lists of variables; ``upper`` takes precedence."""
    variables: dict[str, Json] = {}
    for entry in (*lower, *upper):
        variables[entry.partition("=")[0]] = entry
    return list(variables.values())


def _object(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Json) -> Sequence[Json]:
    return cast(Sequence[Json], value) if isinstance(value, list | tuple) else ()


def _strings(value: Json) -> tuple[str, ...]:
    return tuple(str(entry) for entry in _list(value))
