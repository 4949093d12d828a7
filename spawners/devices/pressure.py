"""Read how much this machine is short of cores, disk and memory (pressure stall information, PSI).

The kernel gives, for each resource, the share of the last minute in which some process waited for
it: https://docs.kernel.org/accounting/psi.html.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Final

from ...hub.records.utilization import NodePressure

_FOLDER: Final = Path("/proc/pressure")
_SOME: Final = re.compile(r"^some .*\bavg60=([0-9.]+)", re.MULTILINE)
_PERCENT: Final = 100.0


def node_pressure(folder: Path = _FOLDER) -> NodePressure | None:
    """Return the pressure on this machine; None on a kernel that does not measure it."""
    found = {name: _share(folder / name) for name in ("cpu", "io", "memory")}
    if all(share is None for share in found.values()):
        return None
    return NodePressure(cores=found["cpu"], disk=found["io"], memory=found["memory"])


def _share(file: Path) -> float | None:
    try:
        found = _SOME.search(file.read_text())
        share = float(found[1]) / _PERCENT if found else math.nan
    except (OSError, ValueError):
        return None
    return share if 0 <= share <= 1 else None
