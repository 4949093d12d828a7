"""Create simulated devices, for demonstrations, tests and machines without a GPU.

A file ``simulated-faults.json`` in the state folder makes them fail. It holds an object by device
id or index, with any of ``health`` (``sick`` or ``gone``), ``why``, ``signals`` (the fields of
``DeviceSignals``) and ``speed`` (what a validation measures, 1 for a device in order)::

    {"0": {"health": "sick", "why": "Simulated: 2 uncorrected memory errors."}, "1": {"speed": 0.8}}
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...hub.interfaces.devices import NO_SIGNALS, DeviceSignals
from ...hub.scheduling.model.snapshot import Device, Health
from .signals import parse_signals

log = logging.getLogger(__name__)

FAULTS: Final = "simulated-faults.json"
MODEL = "Simulated GPU"
MEMORY_BYTES = 16 * 1024**3

_FASTEST: Final = 1e6
_NAMESPACE = uuid.UUID("4f0b3b0c-6b6e-5f0e-9f57-0c4a4a7f9d11")


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedFault:
    """What is wrong with a simulated device.

    Attributes:
        speed: relative to a device in order.
    """

    health: Health = Health.OK
    why: str = ""
    signals: DeviceSignals = NO_SIGNALS
    speed: float = 1.0


NO_FAULT: Final = SimulatedFault()


def simulated_devices(
    node: str, count: int, faults: Mapping[str, SimulatedFault] | None = None
) -> tuple[Device, ...]:
    """Return ``count`` devices of a node; the same node and index always give the same id."""
    devices = []
    for index in range(count):
        identity = f"SIM-{uuid.uuid5(_NAMESPACE, f'{node}/{index}')}"
        fault = fault_of(identity, index, faults or {})
        devices.append(
            Device(
                id=identity,
                node=node,
                index=index,
                model=MODEL,
                memory_bytes=MEMORY_BYTES,
                simulated=True,
                health=fault.health,
                why=fault.why,
            )
        )
    return tuple(devices)


def fault_of(identity: str, index: int, faults: Mapping[str, SimulatedFault]) -> SimulatedFault:
    """Return the fault of a device."""
    return faults.get(identity, faults.get(str(index), NO_FAULT))


def read_faults(state: Path) -> dict[str, SimulatedFault]:
    """Return the faults in the state folder; none without a file, or with a damaged one."""
    path = state / FAULTS
    try:
        written = json.loads(path.read_bytes())
        return {str(name): _fault(each) for name, each in written.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        log.warning("%s is ignored: %s", path, error)
        return {}


def _fault(written: Mapping[str, object]) -> SimulatedFault:
    health = Health(str(written.get("health", Health.OK)))
    speed = written.get("speed", 1.0)
    if not isinstance(speed, int | float) or not 0 < speed < _FASTEST:
        raise ValueError(f"speed is {speed!r:.40}, accepted: a number above 0")
    why = str(written.get("why", "")) or ("" if health is Health.OK else "A simulated fault.")
    return SimulatedFault(
        health=health, why=why, signals=parse_signals(written.get("signals")), speed=float(speed)
    )
