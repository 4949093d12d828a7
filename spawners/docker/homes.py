"""The folder behind a container's home: made, and given to the user that containers run as."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ...hub.naming import safe_name
from ...hub.ports.backend import BackendSettings, DockerOptions
from .template import COURSES, HOMES, Mount


@dataclass(frozen=True, slots=True, kw_only=True)
class Homes:
    """Attributes:
    state: the state folder.
    uid: who containers run as.
    """

    state: Path
    uid: int

    @classmethod
    def of(cls, settings: BackendSettings) -> Self:
        assert settings.docker is not None
        return cls(state=settings.state, uid=uid_inside(settings.docker))

    def ready(self, owner: str) -> Path:
        """The owner's home on this host; distinct owners never share one."""
        home = self.state / "homes" / safe_name(owner)
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if os.geteuid() == 0 and home.stat().st_uid != self.uid:
            os.chown(home, self.uid, self.uid, follow_symlinks=False)
        return home

    def mounts(self, owner: str, group: str) -> tuple[Mount, ...]:
        """The home, and the data of the group's course where there is any."""
        found = [Mount(source=str(self.ready(owner)), target=inside(owner))]
        if (data := self.state / "courses" / safe_name(group) / "data").is_dir():
            target = f"{COURSES}/{safe_name(group)}"
            found.append(Mount(source=str(data), target=target, read_only=True))
        return tuple(found)


def inside(owner: str) -> str:
    """The home as the container sees it."""
    return f"{HOMES}/{safe_name(owner)}"


def uid_inside(options: DockerOptions) -> int:
    """A service that is not root owns its files itself, and so do its containers."""
    return options.uid if os.geteuid() == 0 else os.geteuid()
