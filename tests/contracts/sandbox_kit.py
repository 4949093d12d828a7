"""Docker options for tests of sandboxes in containers."""

from __future__ import annotations

from carrel.hub.interfaces.backend_settings import DockerHost, DockerOptions


def docker_options(url: str) -> DockerOptions:
    return DockerOptions(
        hosts=(DockerHost(node="local", url=url),),
        subnets="",
        internal_ip="127.0.0.1",
        hub_port=1,
        service_port=2,
        image="",
        uid=1000,
        memory=1 << 30,
        cpus=1.0,
        pids=64,
        tmp=1 << 26,
    )
