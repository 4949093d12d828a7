"""The hub under test: ``ours-…`` containers on a lease, ``plain-…`` ones without Carrel.

It becomes the ``jupyterhub_config.py`` of a state folder. The plain servers get the image, the
command, the arguments, the limits and a home of Carrel's own; everything else is DockerSpawner's.
Which image and engine, says ``benchmark.json`` in that folder.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dockerspawner import DockerSpawner
from jupyterhub.spawner import Spawner
from traitlets import default

from carrel.hub.config.state_folder import StateFolder
from carrel.spawners.docker.session import DockerSession

if TYPE_CHECKING:
    from traitlets.config import Config

    c: Config

HOME = "/home/student"


class PlainSession(DockerSpawner):  # type: ignore[misc]  # untyped base
    """DockerSpawner as it comes, told to start the same program."""

    @default("cmd")
    def _cmd_default(self) -> list[str]:
        return DockerSession._cmd_default(self)

    @default("args")
    def _args_default(self) -> list[str]:
        return DockerSession._args_default(self)


class EitherSession(DockerSession):
    """Makes one or the other by the server's name; each is then entirely itself."""

    def __new__(cls, **kwargs: Any) -> Spawner:
        if kwargs["orm_spawner"].name.startswith("plain-"):
            return PlainSession(**kwargs)
        return super().__new__(cls, **kwargs)


FOLDER = StateFolder.at(os.environ["CARREL_STATE"])
GIVEN = json.loads((FOLDER.root / "benchmark.json").read_text())

c.JupyterHub.spawner_class = EitherSession
c.PlainSession.image = GIVEN["image"]
c.PlainSession.client_kwargs = {"base_url": GIVEN["engine"]}
# One network for everybody, as sites with DockerSpawner have it.
c.PlainSession.network_name = GIVEN["network"]
c.PlainSession.use_internal_ip = True
c.PlainSession.remove = True
# Within the 60 seconds of the hub one of twenty that start at once fails; it is to be timed.
c.PlainSession.http_timeout = 600
c.PlainSession.pull_policy = "never"
c.PlainSession.default_url = "/lab"
c.PlainSession.mem_limit = "4G"
c.PlainSession.cpu_limit = 2.0
c.PlainSession.volumes = {str(Path(FOLDER.homes) / "{username}"): HOME}
c.PlainSession.environment = {"HOME": HOME, "SHELL": "/bin/bash"}
