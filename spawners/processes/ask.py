"""Send SIGUSR1 to those processes of a lease, on this node, that handle it.

``python -m carrel.spawners.processes.ask LEASE STATE``: for engines that start processes on other
machines, where the service cannot see them.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from . import lease_processes


def main(arguments: Sequence[str]) -> None:
    lease, state = arguments
    lease_processes.ask(lease, None, signal.SIGUSR1, state=Path(state))


if __name__ == "__main__":
    main(sys.argv[1:])
