"""The process that analyses the notebook of a sweep, which is not trusted, so that it has limits.

The time of an analysis grows with the product of cells and functions. It reads ``name``,
``notebook`` and ``space`` as JSON, and writes a ``SharingOut``.
"""

from __future__ import annotations

import json
import sys
from typing import Final

from ...runtime.limited_process import limit_this_process
from ...schemas.sweeps import SharingOut
from ...sweeps.notebook_cells import read_sweep_notebook
from ...sweeps.space_syntax import space_from_json
from ...sweeps.stage_description import analysed_sweep, sharing_out

CPU_SECONDS: Final = 10
MEMORY_BYTES: Final = 2 << 30


def main() -> int:
    """Analyse what comes on the standard input. Returns the exit status."""
    limit_this_process(cpu_seconds=CPU_SECONDS, memory_bytes=MEMORY_BYTES)
    given = json.load(sys.stdin.buffer)
    found = _analysed(given["name"], given["notebook"], given["space"])
    sys.stdout.buffer.write(found.model_dump_json().encode())
    return 0


def _analysed(name: str, text: str, document: dict[str, object]) -> SharingOut:
    notebook = read_sweep_notebook(name, text)
    trials = space_from_json(document).check(notebook).trials()
    return sharing_out(analysed_sweep(notebook, trials))


if __name__ == "__main__":
    sys.exit(main())
