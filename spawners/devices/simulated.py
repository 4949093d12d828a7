"""Create simulated devices, for demonstrations, tests and machines without a GPU."""

from __future__ import annotations

import uuid

from ...hub.scheduling.model.snapshot import Device

MODEL = "Simulated GPU"
MEMORY_BYTES = 16 * 1024**3

_NAMESPACE = uuid.UUID("4f0b3b0c-6b6e-5f0e-9f57-0c4a4a7f9d11")


def simulated_devices(node: str, count: int) -> tuple[Device, ...]:
    """Return ``count`` devices of a node; the same node and index always give the same id."""
    return tuple(
        Device(
            id=f"SIM-{uuid.uuid5(_NAMESPACE, f'{node}/{index}')}",
            node=node,
            index=index,
            model=MODEL,
            memory_bytes=MEMORY_BYTES,
            simulated=True,
        )
        for index in range(count)
    )
