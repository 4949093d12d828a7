"""Mount the owner's home and the data of a course into a container."""

from __future__ import annotations

from typing import Final

from ....hub.config.state_folder import StateFolder
from ....hub.files.filenames import safe_name
from ....hub.files.home_folders import HomeFolders
from ....hub.interfaces.backend_settings import COURSE_DATA, COURSES, BackendSettings
from ....hub.interfaces.files import HomeUse
from ....hub.messages import units
from .template import HOMES, Mount

_RECOVERY: Final = "/tmp/recovery"  # noqa: S108  # a file system of the container's own
_RECOVERY_FOLDERS: Final = {
    "JUPYTER_RUNTIME_DIR": "runtime",
    "JUPYTER_DATA_DIR": "data",
    "JUPYTER_CONFIG_DIR": "config",
    "JUPYTERLAB_SETTINGS_DIR": "settings",
    "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
    "IPYTHONDIR": "ipython",
}


def home_folders(settings: BackendSettings) -> HomeFolders:
    """Return the home folders that the service uses too."""
    assert settings.docker is not None
    return HomeFolders(
        root=settings.state / "homes",
        disks=settings.state / "disks",
        owner=settings.docker.owner,
        size=settings.docker.home_size,
    )


def mounts(settings: BackendSettings, owner: str, group: str) -> tuple[Mount, ...]:
    """Prepare the home; return its mount, and the mount of the group's course data if it exists.

    Raises:
        BackendFailed: the home cannot be prepared.
    """
    home = Mount(source=str(home_folders(settings).ready(owner)), target=home_path(owner))
    target = course_data(settings, group).get(COURSE_DATA)
    if not target:
        return (home,)
    data = StateFolder(root=settings.state).course_data(group)
    return (home, Mount(source=str(data), target=target, read_only=True))


def course_data(settings: BackendSettings, group: str) -> dict[str, str]:
    """Return the variable that names the course data in a container; empty without data."""
    if not StateFolder(root=settings.state).course_data(group).is_dir():
        return {}
    return {COURSE_DATA: f"{COURSES}/{safe_name(group)}"}


def home_path(owner: str) -> str:
    """Return the home as the container sees it."""
    return f"{HOMES}/{safe_name(owner)}"


def recovery(use: HomeUse | None) -> dict[str, str]:
    """Return the variables that redirect a Jupyter server's own files if the home is full.

    The user can read and delete files in the home. Empty if the home is not full.
    """
    if use is None or not use.full:
        return {}
    return {
        # JupyterLab shows at most 140 characters.
        "CARREL_RECOVERY": (
            f"Your home is full ({units.size(use.used)} of {units.size(use.size)}). In this "
            "recovery session delete what you no longer need; then stop it and start another."
        ),
        **{name: f"{_RECOVERY}/{folder}" for name, folder in _RECOVERY_FOLDERS.items()},
    }
