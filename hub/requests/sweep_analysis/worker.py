"""The process that analyses the notebook of a sweep, which is not trusted, so that it has limits.

The time of an analysis grows with the product of cells and functions. It reads ``name``,
``notebook``, ``space`` and ``what`` as JSON, and writes a ``SharingOut`` or ``SweepOutline``.
"""

from __future__ import annotations

import json
import sys
from typing import Final

from ...runtime.limited_process import limit_this_process
from ...sweeps.notebook_cells import read_sweep_notebook
from ...sweeps.space_syntax import space_from_json
from ...sweeps.stage_description import analysed_sweep, sharing_out
from .outline import sweep_outline

CPU_SECONDS: Final = 10
MEMORY_BYTES: Final = 2 << 30


def main() -> int:
    """Analyse what comes on the standard input. Returns the exit status."""
    limit_this_process(cpu_seconds=CPU_SECONDS, memory_bytes=MEMORY_BYTES)
    given = json.load(sys.stdin.buffer)
    notebook = read_sweep_notebook(given["name"], given["notebook"])
    trials = space_from_json(given["space"]).check(notebook).trials()
    found = analysed_sweep(notebook, trials)
    if given["what"] == "outline":
        sys.stdout.write(json.dumps(sweep_outline(notebook, found).as_json()))
    else:
        sys.stdout.buffer.write(sharing_out(found).model_dump_json().encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
