"""The process that replays the history of the site; it has limits, since a history may be long.

It reads a ``WhatIfOrder`` and writes a ``WhatIfOut``, or an error of Carrel with the exit status 3,
as JSON.
"""

from __future__ import annotations

import json
import sys
from typing import Final

from ...config import garbage_collection
from ...errors import InvalidInput
from ...runtime.limited_process import limit_this_process
from .order import read_order
from .replay import compare

CPU_SECONDS: Final = 120
MEMORY_BYTES: Final = 3 << 30
REFUSED: Final = 3


def main() -> int:
    """Replay what comes on the standard input. Returns the exit status."""
    limit_this_process(cpu_seconds=CPU_SECONDS, memory_bytes=MEMORY_BYTES)
    garbage_collection.raise_thresholds()
    try:
        found = compare(read_order(sys.stdin.buffer.read()))
    except InvalidInput as error:
        sys.stdout.write(json.dumps({"message": error.message, "accepted": error.accepted}))
        return REFUSED
    sys.stdout.buffer.write(found.model_dump_json().encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
