"""What a container sees of the host's folders: its owner's home, and a course's data."""

from __future__ import annotations

from typing import Final

from ....hub.config.state_folder import StateFolder
from ....hub.files.filenames import safe_name
from ....hub.files.home_folders import HomeFolders
from ....hub.interfaces.backend_settings import COURSE_DATA, COURSES, BackendSettings
from ....hub.interfaces.files import HomeUse
from ....hub.messages import units
from .template import HOMES, Mount

_ELSEWHERE: Final = "/tmp/recovery"  # noqa: S108  # a file system of the container's own
_WRITTEN: Final = {
    "JUPYTER_RUNTIME_DIR": "runtime",
    "JUPYTER_DATA_DIR": "data",
    "JUPYTER_CONFIG_DIR": "config",
    "JUPYTERLAB_SETTINGS_DIR": "settings",
    "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
    "IPYTHONDIR": "ipython",
}


def homes_of(settings: BackendSettings) -> HomeFolders:
    """The same that the service has."""
    assert settings.docker is not None
    return HomeFolders(
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
    if target := course_data(settings, group).get(COURSE_DATA):
        data = StateFolder(root=settings.state).course_data(group)
        found.append(Mount(source=str(data), target=target, read_only=True))
    return tuple(found)


def course_data(settings: BackendSettings, group: str) -> dict[str, str]:
    """Where the container finds it, as an environment; empty where there is none."""
    if not StateFolder(root=settings.state).course_data(group).is_dir():
        return {}
    return {COURSE_DATA: f"{COURSES}/{safe_name(group)}"}


def inside(owner: str) -> str:
    """The home as the container sees it."""
    return f"{HOMES}/{safe_name(owner)}"


def recovery(use: HomeUse | None) -> dict[str, str]:
    """Where a Jupyter server writes that finds its home full; empty while there is room.

    What is there may be read, and removed; only what the server itself needs lies elsewhere.
    """
    if use is None or not use.full:
        return {}
    return {
        # JupyterLab shows no more than 140 characters of it.
        "CARREL_RECOVERY": (
            f"Your home is full ({units.size(use.used)} of {units.size(use.size)}). In this "
            "recovery session delete what you no longer need; then stop it and start another."
        ),
        **{name: f"{_ELSEWHERE}/{folder}" for name, folder in _WRITTEN.items()},
    }
