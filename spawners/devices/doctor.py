"""Check the drivers of devices on this machine for ``carrel doctor``, by querying each once."""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Iterator

from ...hub.interfaces.backend_settings import BackendSettings
from ...hub.messages import units
from ...hub.records.diagnostics import Finding, Severity
from .inventory import DeviceInventory, NodeInventory


def findings(settings: BackendSettings) -> Iterator[Finding]:
    """Yield what the drivers of this machine list, and one finding for each driver that fails."""
    if settings.simulated_devices is not None:
        number = units.count(settings.simulated_devices, "simulated device")
        what = f"This installation has {number}; no driver is queried."
        yield Finding(subject="devices", verdict=Severity.FINE, what=what)
        return
    yield from report(DeviceInventory(socket.gethostname()).read())


def report(inventory: NodeInventory) -> Iterator[Finding]:
    """Yield the findings of an inventory."""
    models = Counter(each.device.model for each in inventory.found)
    listed = ", ".join(f"{number} {model}" for model, number in sorted(models.items()))
    what = f"Devices of this machine: {listed or 'none'}."
    verdict = Severity.WARNING if inventory.found and inventory.reason else Severity.FINE
    yield Finding(
        subject="devices",
        verdict=verdict,
        what=f"{what} {inventory.reason}".rstrip(),
        mend="Repair these devices, or ignore the message." if verdict is Severity.WARNING else "",
    )
    for problem in inventory.problems:
        yield Finding(
            subject=f"devices ({problem.driver})",
            verdict=Severity.WARNING,
            what=f"{problem.why} Its devices take no new work.",
            mend="Repair the driver, or reinstall the plug-in; running work continues meanwhile.",
        )
