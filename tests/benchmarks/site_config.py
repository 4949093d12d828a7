"""The hub under test: ``ours-…`` servers on a lease, ``plain-…`` ones without Carrel.

It becomes the ``jupyterhub_config.py`` of a state folder. The plain servers get the command,
arguments, environment and home that Carrel gives its own; everything else is JupyterHub's.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyterhub.spawner import SimpleLocalProcessSpawner, Spawner
from traitlets import default

from carrel.spawners.sessions.local import LocalSession

if TYPE_CHECKING:
    from traitlets.config import Config

    c: Config


class PlainSession(SimpleLocalProcessSpawner):  # type: ignore[misc]  # untyped base
    """JupyterHub's own, told to start the same program."""

    @default("cmd")
    def _cmd_default(self) -> list[str]:
        return LocalSession._cmd_default(self)

    @default("args")
    def _args_default(self) -> list[str]:
        args = LocalSession._args_default(self)
        return [*args, "--allow-root"] if os.geteuid() == 0 else args

    @default("env_keep")
    def _env_keep_default(self) -> list[str]:
        return LocalSession._env_keep_default(self)


class EitherSession(LocalSession):
    """Makes one or the other by the server's name; each is then entirely itself."""

    def __new__(cls, **kwargs: Any) -> Spawner:
        if kwargs["orm_spawner"].name.startswith("plain-"):
            return PlainSession(**kwargs)
        return super().__new__(cls, **kwargs)


STATE = Path(os.environ["CARREL_STATE"])
PROGRAMS = str(Path(sys.prefix) / "bin")

c.JupyterHub.spawner_class = EitherSession
c.PlainSession.home_dir_template = str(STATE / "homes" / "{username}")
c.PlainSession.default_url = "/lab"
c.PlainSession.environment = {"PATH": os.pathsep.join([PROGRAMS, os.environ["PATH"]])}
