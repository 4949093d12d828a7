"""Refusals of an engine become messages with a remedy."""

from __future__ import annotations

import pytest
import requests
from docker.errors import APIError

from carrel.hub.errors import BackendFailed
from carrel.spawners.docker.engine.client import NameTaken, translate_error


def refused(status: int, said: str) -> BackendFailed:
    answer = requests.Response()
    answer.status_code = status
    return translate_error(APIError(said, response=answer, explanation=said), "gpu1")


@pytest.mark.parametrize(
    "said", ["write /data/overlay2/l/X: no space left on device", "Disk quota exceeded"]
)
def test_a_disk_that_is_full(said: str) -> None:
    found = refused(500, said)
    assert str(found) == (
        "The disk of gpu1 is full: no container can be created there. "
        "An administrator can free space: carrel images prune."
    )


def test_a_name_in_use_has_its_own_error() -> None:
    assert isinstance(refused(409, "Conflict. The container name is already in use"), NameTaken)
    assert isinstance(refused(403, "Pool overlaps with other one on this address space"), NameTaken)


def test_other_errors_show_the_engines_message() -> None:
    found = refused(500, "the runtime is broken")
    assert str(found) == "The Docker engine on gpu1 says: the runtime is broken."
