"""Detection of injected faults: ``python -m tests.benchmarks.anomaly [PART] [--seeds N]``.

Rules were chosen with seeds below 1,000,000; with ``--first`` above, nothing was tuned on them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType

from .. import report
from . import devices, jobs, processes

PARTS: Mapping[str, Callable[[int, int], list[report.Row]]] = MappingProxyType(
    {
        "devices": devices.rows,
        "healthy": devices.healthy_rows,
        "jobs": jobs.rows,
        "processes": processes.rows,
    }
)
"""What is measured, each with a number of seeds and the first of them."""


def main() -> int:
    parser = report.parser(__doc__ or "")
    parser.add_argument("part", nargs="?", choices=list(PARTS), help="all parts by default")
    parser.add_argument("--seeds", type=int, default=20, help="runs of each kind")
    parser.add_argument("--first", type=int, default=0, help="first seed")
    chosen = parser.parse_args()
    parts = [chosen.part] if chosen.part else list(PARTS)
    rows = [row for part in parts for row in PARTS[part](chosen.seeds, chosen.first)]
    return report.finish(rows, as_json=chosen.json)


if __name__ == "__main__":
    sys.exit(main())
