"""Options of spawners on a lease, and the environment variables of a lease."""

from __future__ import annotations

import os
from collections.abc import Mapping

from traitlets import Float, Integer, Unicode
from traitlets.config import Configurable

from ...hub.scheduling.model.snapshot import Device, DeviceFile
from ...hub.schemas import DeviceOut, LeaseOut
from ..devices.environment import device_environment
from ..processes.lease_processes import LEASE_VARIABLE

SECRET_TICKET = "CARREL_SECRET_TICKET"  # noqa: S105  # the name of a variable
"""Read by ``extensions.session_secrets`` at the start of a session."""


class LeaseOptions(Configurable):
    """Options for every engine, set as ``c.LeaseMixin.service_url`` and so on."""

    service_url = Unicode(
        help="""URL at which the hub reaches the Carrel service, without a trailing slash, for
        example ``http://127.0.0.1:8082/services/carrel``.""",
    ).tag(config=True)

    hub_token = Unicode(
        help="""The hub's token for the Carrel service. Sessions never get it.""",
    ).tag(config=True)

    carrel_url = Unicode(
        help="""URL at which programs in sessions reach the Carrel service; sessions get it as
        ``CARREL_URL``.""",
    ).tag(config=True)

    carrel_public_url = Unicode(
        help="""URL at which browsers reach the Carrel service, such as
        ``https://carrel.example.org/services/carrel``, if it differs from ``carrel_url``: for
        links that programs in sessions show. Sessions get it as ``CARREL_PUBLIC_URL``.""",
    ).tag(config=True)

    state_root = Unicode(
        help="""The state folder of this installation. Sessions carry it as ``CARREL_STATE``,
        by which ``carrel down`` recognises them.""",
    ).tag(config=True)

    service_timeout = Float(
        60.0,
        help="""Seconds for which a start retries while the Carrel service does not answer.
        Once its request is queued, a start waits for as long as ``start_timeout`` allows,
        whether the service answers or not.""",
    ).tag(config=True)

    launch_timeout = Float(
        60.0,
        help="""Seconds that a server may take from the start of its process to its first
        answer. ``start_timeout`` must be longer than the longest wait in the queue; this is
        the limit for the launch itself.""",
    ).tag(config=True)

    launches_at_once = Integer(
        0,
        min=0,
        help="""How many servers may start on one node at the same time; 0 means two for each
        core of the hub's machine, and at least four. The others hold their lease and wait in
        the start queue, those with a device first; ``launch_timeout`` begins when a server
        leaves the queue.""",
    ).tag(config=True)

    poll_interval = Integer(
        2,
        help="""Seconds between two checks of the server's process. The service checks the
        processes too; this is how soon the hub's own pages show that a server has ended.""",
    ).tag(config=True)

    @property
    def starts_at_once(self) -> int:
        return int(self.launches_at_once) or max(4, 2 * (os.cpu_count() or 1))


def lease_environment(
    lease: LeaseOut,
    *,
    request_id: str,
    state_root: str,
    carrel_url: str,
    public_url: str,
    devices: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Return the variables that name the lease and exactly its devices.

    Args:
        devices: variables for the devices, from an engine that chooses them itself.
    """
    found = device_environment(devices_of(lease)) if devices is None else devices
    return dict(found) | {
        LEASE_VARIABLE: lease.id,
        "CARREL_REQUEST": request_id,
        "CARREL_STATE": state_root,
        "CARREL_URL": carrel_url,
        "CARREL_PUBLIC_URL": public_url,
    }


def devices_of(lease: LeaseOut) -> tuple[Device, ...]:
    return tuple(_device(device) for device in lease.devices)


def _device(seen: DeviceOut) -> Device:
    return Device(
        id=seen.id,
        node=seen.node,
        index=seen.index,
        model=seen.model,
        memory_bytes=seen.memory_bytes,
        simulated=seen.simulated,
        driver=seen.driver,
        files=tuple(DeviceFile(path=file.path, group=file.group) for file in seen.files),
    )
