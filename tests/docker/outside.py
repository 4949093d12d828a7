"""A host that is none of ours, as the internet has many: one address beyond a cable."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import docker

from ..requirements import need

ADDRESS = "198.51.100.2"
"""Of the range that is kept for examples: nobody has it."""
PORT = 8888
_OURS = "198.51.100.1"
_SEARCHED = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


@contextmanager
def outside_host(api: docker.APIClient, image: str) -> Iterator[None]:
    """A web server at ``ADDRESS``, which this machine reaches by a cable of its own."""
    ip, nsenter = (shutil.which(name, path=_SEARCHED) for name in ("ip", "nsenter"))
    need("docker", os.geteuid() == 0 and ip and nsenter, "a host outside needs iproute2 and root")
    body = {
        "Image": image,
        "Entrypoint": [],
        "Cmd": ["python", "-m", "http.server", str(PORT)],
        "HostConfig": {"NetworkMode": "none"},
    }
    server = api.create_container_from_config(body, f"carrel-test-{secrets.token_hex(4)}")["Id"]
    try:
        api.start(server)
        pid = str(api.inspect_container(server)["State"]["Pid"])
        here, there = (f"ct{end}{secrets.token_hex(4)}" for end in "ab")
        inside = (nsenter, "--target", pid, "--net", ip)
        for words in (
            (ip, "link", "add", here, "type", "veth", "peer", "name", there, "netns", pid),
            (ip, "addr", "add", f"{_OURS}/30", "dev", here),
            (ip, "link", "set", here, "up"),
            (*inside, "addr", "add", f"{ADDRESS}/30", "dev", there),
            (*inside, "link", "set", there, "up"),
        ):
            subprocess.run([str(word) for word in words], check=True)
        yield
    finally:
        # The cable goes with the network at its other end.
        api.remove_container(server, force=True)
