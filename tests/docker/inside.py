"""Run a program in a container and return its whole output."""

from __future__ import annotations

import docker

_BEGIN, _END = "all of it from here ", " to here"
_BETWEEN_MARKS = f'exec 2>&1; printf "{_BEGIN}"; "$@"; printf "{_END}"'


def inside(client: docker.APIClient, container: str, *command: str) -> str:
    """What it prints there to either stream; it is run again where some of that was lost.

    docker-py reads below the buffer in which it read the headers of the answer, and so loses
    what came with them: the beginning, where a program prints at once (its issue 2042).
    """
    for _ in range(5):
        made = client.exec_create(container, ["sh", "-c", _BETWEEN_MARKS, "-", *command])
        said = bytes(client.exec_start(made["Id"])).decode(errors="replace")
        if said.startswith(_BEGIN) and said.endswith(_END):
            return said.removeprefix(_BEGIN).removesuffix(_END)
    raise AssertionError(f"{command} did not say all: {said!r}")
