"""``python -m inside MODULE…``: the one cage of a container.

Standard input and output are the line to the outside. The container is the wall: it was made for
one submission, and this is its first process.
"""

from __future__ import annotations

import os
import sys

from .forkserver import prepare
from .supervisor import serve


class Standard:
    """Standard input and output, as if they were one socket; the student's code gets others."""

    def __init__(self) -> None:
        self._out = os.dup(1)
        os.dup2(2, 1)

    def fileno(self) -> int:
        return 0

    def recv(self, most: int, /) -> bytes:
        return os.read(0, most)

    def sendall(self, data: bytes, /) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._out, rest) :]

    def close(self) -> None:
        os.close(self._out)


if __name__ == "__main__":
    serve(Standard(), prepare(sys.argv[1:], walled=False), None)
