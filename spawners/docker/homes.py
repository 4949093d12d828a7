"""What a container sees of the host's folders: its owner's home, and a course's data."""

from __future__ import annotations

from ...hub.homes import Homes
from ...hub.naming import safe_name
from ...hub.ports.backend import BackendSettings
from .template import COURSES, HOMES, Mount


def homes_of(settings: BackendSettings) -> Homes:
    """The same that the service has."""
    assert settings.docker is not None
    return Homes(
        root=settings.state / "homes",
        disks=settings.state / "disks",
        owner=settings.docker.owner,
        size=settings.docker.home_size,
    )


def mounts(settings: BackendSettings, owner: str, group: str) -> tuple[Mount, ...]:
    """The home, made ready, and the data of the group's course where there is any.

    Raises:
        BackendFailed: the home cannot be made ready.
    """
    found = [Mount(source=str(homes_of(settings).ready(owner)), target=inside(owner))]
    if (data := settings.state / "courses" / safe_name(group) / "data").is_dir():
        target = f"{COURSES}/{safe_name(group)}"
        found.append(Mount(source=str(data), target=target, read_only=True))
    return tuple(found)


def inside(owner: str) -> str:
    """The home as the container sees it."""
    return f"{HOMES}/{safe_name(owner)}"
