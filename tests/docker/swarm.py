"""Two machines with a Docker engine each, which can form a swarm; both are network namespaces."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from ..docker_engine import DockerEngine, site_file
from ..e2e.support import Installation, installation
from ..requirements import need
from .outside import HERE_NETWORK, cable, engine_in, ip, network_namespace

HERE, NEAR = "198.51.100.17", "198.51.100.18"
"""This machine, as the first one reaches it, and that first one, ``local`` in the pool."""
FROM_FAR, FAR = "198.51.100.21", "198.51.100.22"
"""The same for the second one, ``far`` in the pool."""
_FIRST_DATA, _SECOND_DATA = "198.51.100.25", "198.51.100.26"
"""The ends of a cable of their own, for the swarm alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoEngines:
    """Attributes:
    near, far: the engines.
    """

    near: DockerEngine
    far: DockerEngine

    def connect(self) -> None:
        """Make one swarm of both, which the first one manages."""
        near, far = self.near.client(), self.far.client()
        near.init_swarm(advertise_addr=_FIRST_DATA)
        token = near.inspect_swarm()["JoinTokens"]["Worker"]
        far.join_swarm([_FIRST_DATA], token, advertise_addr=_SECOND_DATA)

    def overlays(self) -> list[str]:
        """Return the names of the overlay networks that Carrel has created."""
        label = {"label": "carrel.installation", "driver": "overlay"}
        engines = (self.near.client(), self.far.client())
        return sorted({each["Name"] for api in engines for each in api.networks(filters=label)})


@contextmanager
def two_engines(first: DockerEngine, image: str) -> Iterator[TwoEngines]:
    """Yield two engines with the image; a machine reaches each by a cable, and they each other."""
    need("docker", shutil.which("dockerd"), "other machines need dockerd")
    with ExitStack() as stack:
        networks = [stack.enter_context(network_namespace()) for _ in range(2)]
        cable(HERE_NETWORK, networks[0], HERE, NEAR)
        cable(HERE_NETWORK, networks[1], FROM_FAR, FAR)
        # The service has one address for all nodes.
        ip("route", "add", HERE, "via", FROM_FAR, within=("nsenter", f"--net={networks[1]}"))
        cable(networks[0], networks[1], _FIRST_DATA, _SECOND_DATA)
        near, far = (
            stack.enter_context(engine_in(network, first, image, swarm=True))
            for network in networks
        )
        yield TwoEngines(near=near, far=far)


@contextmanager
def site_of_two(engines: TwoEngines, state: Path) -> Iterator[Installation]:
    """Both as one pool, with a simulated device each."""
    nodes = f'[[nodes]]\nname = "far"\ndocker_host = "{engines.far.url}"\naddress = "{FAR}"\n'
    site_file(state, engines.near, f'address = "{HERE}"\n{nodes}')
    with installation(state, "--simulated-devices", "1", "--engine", "docker") as made:
        yield made
