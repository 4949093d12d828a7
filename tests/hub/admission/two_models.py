"""A pool with devices of two models."""

from __future__ import annotations

from dataclasses import replace

from carrel.hub.schemas import RequestOut

from ..doubles import device
from ..world import World

OLD, NEW = "NVIDIA A100", "NVIDIA H200"


POOL = (replace(device(0), model=OLD), replace(device(1), model=NEW))


def model_of(world: World, request: RequestOut) -> str:
    """Return the model of the only device of a request."""
    lease = world.see(request).lease
    assert lease is not None
    (found,) = lease.devices
    return found.model
