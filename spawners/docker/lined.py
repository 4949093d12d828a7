"""Containers of the service's own that do what they are told on a line, and go with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import requests.exceptions
from docker.errors import APIError, DockerException

from ...hub.errors import CarrelError, Unavailable
from ...hub.interfaces.backend import DockerHost
from ...hub.records.requests import Json
from .engine.client import START_SECONDS, Engine, connect, in_words
from .engine.stdio import AttachedLine

_LINE: Final = ("AttachStdin", "AttachStdout", "OpenStdin", "StdinOnce")


def lined(body: Mapping[str, Json], label: str, installation: str) -> dict[str, Json]:
    """A body of the template for one that has no lease, so that it is none of the reconciler's."""
    host = body["HostConfig"]
    assert isinstance(host, Mapping)
    return {
        **body,
        "Labels": {label: installation},
        "HostConfig": {
            **host,
            # It goes with its line, also where nobody is left to remove it.
            "AutoRemove": True,
            "LogConfig": {"Type": "none"},
        },
        **dict.fromkeys(_LINE, True),
        "AttachStderr": False,
        "Tty": False,
    }


def started(
    engine: Engine, host: DockerHost, name: str, body: Mapping[str, Json]
) -> tuple[str, AttachedLine]:
    """Its id, and the line to it from its first byte on.

    Raises:
        BackendFailed, Unavailable: there is none then.
    """
    made = engine.create(name, body)
    try:
        line = _attached(host, made)
        engine.start(made)
    except CarrelError:
        engine.remove(made)
        raise
    return made, line


def _attached(host: DockerHost, made: str) -> AttachedLine:
    try:
        return AttachedLine(connect(host, START_SECONDS), made)
    except APIError as error:
        raise in_words(error, host.node) from error
    except (DockerException, requests.exceptions.RequestException, OSError) as error:
        raise Unavailable(f"The Docker engine on {host.node} does not answer.") from error
