"""Merge an administrator's DockerSpawner options with Carrel's template, which takes precedence.

An administrator may mount volumes, set limits and environment, and choose a runtime for every
session. What keeps a session inside its container and on its lease cannot be overridden.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from ....hub.records.json_value import Json

Body = Mapping[str, Json]

_FROM_TEMPLATE: Final = ("Image", "User", "Hostname", "WorkingDir", "Healthcheck")
_FROM_OPTIONS_IF_SET: Final = ("ShmSize", "Dns")
"""Of HostConfig: shared memory counts as memory anyway, and a site may have its own resolver."""
_FORBIDDEN_IN_HOST: Final = (
    *("CapAdd", "Devices", "DeviceCgroupRules", "Links", "VolumesFrom", "GroupAdd"),
    *("PidMode", "UTSMode", "UsernsMode", "Cgroup", "CgroupParent", "AutoRemove", "PortBindings"),
    # Limits that the template sets by other options.
    *("CpuPeriod", "CpuQuota", "CpuShares", "Memory", "MemorySwap", "MemoryReservation"),
)
_FORBIDDEN: Final = ("NetworkingConfig", "NetworkDisabled", "MacAddress", "StopSignal")


def overlay(options: Body, template: Body, labels: Mapping[str, str]) -> dict[str, Json]:
    """Return the body of the create call.

    Args:
        options: the body that DockerSpawner forms from its options.
        template: the body that the template forms from the lease.
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
    """Keep each variable once; the last value wins."""
    found: dict[str, Json] = {}
    for each in (*lower, *upper):
        found[each.partition("=")[0]] = each
    return list(found.values())


def _object(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Json) -> Sequence[Json]:
    return cast(Sequence[Json], value) if isinstance(value, list | tuple) else ()


def _strings(value: Json) -> tuple[str, ...]:
    return tuple(str(each) for each in _list(value))
