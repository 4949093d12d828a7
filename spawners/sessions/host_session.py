"""Sessions that run with the Python of the service, in homes that it sees: no containers.

``HostSession`` comes between ``LeaseMixin`` and an engine's spawner.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import BinaryIO

from traitlets import Unicode, default

from ...extensions.environment import jupyter_environment
from ...hub.config.state_folder import StateFolder
from ...hub.files.filenames import safe_name
from ...hub.files.home_folders import unusable
from ..common import course_links
from .lease_mixin import LeaseMixin

LOG_BYTES = 2 * 1024 * 1024
"""A longer log is rotated when a session starts; one older log is kept."""
TAIL_BYTES = 4000
TAIL_LINES = 25


class HostSession(LeaseMixin):
    """A session with the programs of the service and a home below its state folder."""

    home_dir = Unicode(help="""The user's home.""")

    homes = Unicode(
        help="""Folder of the homes: one folder for each user, named so that no two users
        share one.""",
    ).tag(config=True)

    logs = Unicode(
        help="""Folder of the sessions' logs, one file for each server.""",
    ).tag(config=True)

    _log_start = 0
    _graded: tuple[str, ...] | None = None
    """The courses that the user grades; None if not known."""

    @default("home_dir")
    def _home_dir_default(self) -> str:
        return str(Path(self.homes) / safe_name(self.user.name))

    @default("default_url")
    def _default_url_default(self) -> str:
        return "/lab"

    @default("cmd")
    def _cmd_default(self) -> list[str]:
        return [str(Path(sys.prefix) / "bin" / "jupyterhub-singleuser")]

    @default("args")
    def _args_default(self) -> list[str]:
        """Disable requests to external hosts, and keep the session's PATH in terminals.

        By default Jupyter starts a login shell, which would reset PATH to the system's, so that
        ``carrel`` would not be found.
        """
        return [
            "--ServerApp.terminado_settings=shell_command=['/bin/bash']",
            "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
            "--LabApp.news_url=None",
            "--LabApp.extension_manager=readonly",
        ]

    @default("env_keep")
    def _env_keep_default(self) -> list[str]:
        """Pass only these variables on, because the hub's environment contains secrets."""
        return ["PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "TZ"]

    def get_args(self) -> list[str]:
        args: list[str] = super().get_args()
        return [*args, "--allow-root"] if os.geteuid() == 0 else args

    def user_env(self, env: dict[str, str]) -> dict[str, str]:
        env = env | {"USER": self.user.name, "HOME": self.home_dir, "SHELL": "/bin/bash"}
        # In a session's terminal, `carrel` is the command of this installation.
        own = str(Path(sys.prefix) / "bin")
        others = [part for part in env.get("PATH", os.defpath).split(os.pathsep) if part != own]
        env = env | {"PATH": os.pathsep.join([own, *others])}
        courses = course_links.environment(self.home_dir, self._graded, self._group)
        if self.state_root:
            courses |= course_links.course_data(Path(self.state_root), self._group)
        return env | jupyter_environment(env) | courses

    async def prepare_home(self) -> None:
        """Create the home and link its courses. Raises BackendFailed if it cannot be used."""
        home = Path(self.home_dir)
        try:
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise unusable(self.user.name, home, error) from error
        await self._link_courses(home)

    async def _link_courses(self, home: Path) -> None:
        graded = await course_links.graded_by(self._lease_request.link, self.user.name)
        if graded is None or not self.state_root:
            return
        try:
            course_links.link_into(home, StateFolder.at(self.state_root).courses, graded)
        except OSError as error:
            self.log.warning("course folders of %s were not linked: %s", self._log_name, error)
        else:
            self._graded = graded

    def log_tail(self) -> str:
        try:
            with self.log_path.open("rb") as log:
                end = log.seek(0, os.SEEK_END)
                log.seek(max(self._log_start, end - TAIL_BYTES))
                text = log.read().decode(errors="replace")
        except FileNotFoundError:
            return ""
        return "\n".join(text.splitlines()[-TAIL_LINES:])

    @property
    def log_path(self) -> Path:
        """``USER.log`` or ``USER--SERVER.log``; a safe name never contains two hyphens in a row."""
        server = f"--{safe_name(self.name)}" if self.name else ""
        return Path(self.logs) / f"{safe_name(self.user.name)}{server}.log"

    def open_log(self) -> BinaryIO:
        """Open the log to append; a long one is rotated."""
        path = self.log_path
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > LOG_BYTES:
            path.replace(path.with_name(path.name + ".1"))
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        log = os.fdopen(descriptor, "ab")
        self._log_start = os.fstat(descriptor).st_size
        return log
