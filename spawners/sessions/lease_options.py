"""What an administrator sets for spawners on a lease, and what a lease puts into a process."""

from __future__ import annotations

import os

from traitlets import Float, Integer, Unicode
from traitlets.config import Configurable

from ...hub.scheduling.model.snapshot import Device
from ...hub.schemas import DeviceOut, LeaseOut
from ..devices.environment import device_environment
from ..processes.lease_processes import LEASE_VARIABLE


class LeaseOptions(Configurable):
    """Set as ``c.LeaseMixin.service_url`` and so on, for every engine at once."""

    service_url = Unicode(
        help="""The Carrel service as the hub reaches it, without a trailing slash, for
        example ``http://127.0.0.1:8082/services/carrel``.""",
    ).tag(config=True)

    hub_token = Unicode(
        help="""The hub's own token at the Carrel service. It never reaches a session.""",
    ).tag(config=True)

    carrel_url = Unicode(
        help="""The Carrel service as programs in sessions reach it; sessions get it as
        ``CARREL_URL``.""",
    ).tag(config=True)

    carrel_public_url = Unicode(
        help="""The Carrel service as browsers reach it, such as
        ``https://carrel.example.org/services/carrel``, where that is another address: for the
        links that programs in sessions show. Sessions get it as ``CARREL_PUBLIC_URL``.""",
    ).tag(config=True)

    state_root = Unicode(
        help="""The state folder of this installation; sessions carry it as ``CARREL_STATE``,
        so that ``carrel down`` knows its own.""",
    ).tag(config=True)

    service_timeout = Float(
        60.0,
        help="""Seconds for which a start goes on trying while the Carrel service does not
        answer. Once it has a place in the queue, a start waits for as long as
        ``start_timeout`` allows, whether the service answers or not.""",
    ).tag(config=True)

    launch_timeout = Float(
        60.0,
        help="""Seconds between the start of the server's process and its first answer.
        ``start_timeout`` has to be longer than the longest wait in the queue; this is the
        limit for the launch itself.""",
    ).tag(config=True)

    launches_at_once = Integer(
        0,
        min=0,
        help="""How many servers of one machine come up at the same time; 0 for two for each
        core of this one, and at least four. The others have their lease and wait for their
        turn, those with a device first; ``launch_timeout`` begins with it.""",
    ).tag(config=True)

    poll_interval = Integer(
        2,
        help="""Seconds between two looks at the server's process. The service watches the
        processes too; this is how soon the hub's own pages know of a death.""",
    ).tag(config=True)

    @property
    def turns(self) -> int:
        return int(self.launches_at_once) or max(4, 2 * (os.cpu_count() or 1))


def lease_environment(
    lease: LeaseOut, *, request_id: str, state_root: str, carrel_url: str, public_url: str
) -> dict[str, str]:
    """The leased devices and nothing else, and whose lease it is."""
    return device_environment(devices_of(lease)) | {
        LEASE_VARIABLE: lease.id,
        "CARREL_REQUEST": request_id,
        "CARREL_STATE": state_root,
        "CARREL_URL": carrel_url,
        "CARREL_PUBLIC_URL": public_url,
    }


def devices_of(lease: LeaseOut) -> tuple[Device, ...]:
    return tuple(_device(each) for each in lease.devices)


def _device(seen: DeviceOut) -> Device:
    return Device(
        id=seen.id,
        node=seen.node,
        index=seen.index,
        model=seen.model,
        memory_bytes=seen.memory_bytes,
        simulated=seen.simulated,
    )
