"""The hub under test: ``ours-…`` servers on a lease, ``plain-…`` ones of batchspawner alone.

It becomes the ``jupyterhub_config.py`` of a state folder with the Slurm engine.
"""

from __future__ import annotations

import os
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from batchspawner.batchspawner import SlurmSpawner
from jupyterhub.spawner import Spawner
from traitlets import default

from carrel.spawners.sessions.local import LocalSession
from carrel.spawners.slurm.session import SlurmSession

if TYPE_CHECKING:
    from traitlets.config import Config

    c: Config

STATE = Path(os.environ["CARREL_STATE"])
PROGRAMS = str(Path(sys.prefix) / "bin")


class PlainSlurmSession(SlurmSpawner):  # type: ignore[misc]  # untyped base
    """Batchspawner's own, told to start the same program as the account of the hub."""

    @default("cmd")
    def _cmd_default(self) -> list[str]:
        return LocalSession._cmd_default(self)

    @default("args")
    def _args_default(self) -> list[str]:
        args = LocalSession._args_default(self)
        return [*args, "--allow-root"] if os.geteuid() == 0 else args

    @default("req_homedir")
    def _req_homedir_default(self) -> str:
        return str(STATE / "homes" / self.user.name)

    def state_gethost(self) -> str:
        """The names of the nodes are those of the test kit's cluster: all are this machine."""
        return "127.0.0.1"

    def user_env(self, env: dict[str, str]) -> dict[str, str]:
        """The accounts of the demo are none of this machine."""
        return env


class EitherSlurmSession(SlurmSession):
    """Makes one or the other by the server's name; each is then entirely itself."""

    def __new__(cls, **kwargs: Any) -> Spawner:
        if kwargs["orm_spawner"].name.startswith("plain-"):
            return PlainSlurmSession(**kwargs)
        return super().__new__(cls, **kwargs)


# Batchspawner's commands take it from the environment of the hub, or of the session.
os.environ["SLURM_CONF"] = tomllib.loads((STATE / "carrel.toml").read_text())["slurm"]["conf"]
c.JupyterHub.spawner_class = EitherSlurmSession
c.PlainSlurmSession.exec_prefix = ""
c.PlainSlurmSession.batch_submit_cmd = "sbatch --parsable"
c.PlainSlurmSession.batchspawner_singleuser_cmd = f"{PROGRAMS}/batchspawner-singleuser"
c.PlainSlurmSession.req_memory = "512M"
c.PlainSlurmSession.req_options = "--gres=gpu:1"
c.PlainSlurmSession.default_url = "/lab"
c.PlainSlurmSession.environment = {
    "PATH": os.pathsep.join([PROGRAMS, os.environ["PATH"]]),
    "SLURM_CONF": os.environ["SLURM_CONF"],
}
