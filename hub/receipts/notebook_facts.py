"""Describe a notebook for a receipt: a large one in a process with limits, as it is not trusted.

Parsing and hashing a notebook of 64 MiB with numbers holds the interpreter for seconds, in which
the service would answer no call. The process reads the notebook and writes ``NotebookFacts`` as
JSON.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from typing import Final

from ..provenance.canonical_json import digest
from ..provenance.notebook_hash import cells, source_hash, without_receipt
from ..provenance.receipt import SeedOut
from ..runtime.limited_process import LimitedProcess, limit_this_process, module_command
from ..schemas import Out
from .seeds import seeds_of

LARGE_BYTES: Final = 2 << 20
"""Notebooks up to this size are described by the service itself."""
SECONDS: Final = 120.0
CPU_SECONDS: Final = 60
MEMORY_BYTES: Final = 3 << 30
"""Address space of the process."""
DESCRIBING: Final = LimitedProcess(
    module_command("receipts.notebook_facts"), SECONDS, "Other large notebooks are being hashed."
)
_log = logging.getLogger(__name__)


class NotebookFacts(Out):
    """What a receipt says of the content of a notebook; without hashes, ``note`` says why."""

    content_sha256: str = ""
    source_sha256: str = ""
    seeds: tuple[SeedOut, ...] = ()
    note: str = ""


_TOO_LARGE: Final = NotebookFacts(note="too large: its content was not hashed")


def notebook_facts(content: bytes) -> NotebookFacts:
    """Describe a notebook; blocks the calling thread while a process describes a large one.

    Raises:
        Unavailable: too many large notebooks are being described.
    """
    if len(content) <= LARGE_BYTES:
        return described(content)
    try:
        ended = DESCRIBING.run(content)
    except subprocess.TimeoutExpired:
        return _TOO_LARGE
    if ended.returncode:
        _log.warning("a notebook was not hashed: %s", ended.stderr[-500:].decode(errors="replace"))
        return _TOO_LARGE
    return NotebookFacts.model_validate_json(ended.stdout)


def described(content: bytes) -> NotebookFacts:
    """Describe a notebook in this process."""
    try:
        notebook = json.loads(content)
    except (ValueError, RecursionError):
        notebook = None
    if not isinstance(notebook, dict):
        return NotebookFacts(note="not a notebook in JSON")
    return NotebookFacts(
        content_sha256=digest(without_receipt(notebook)),
        source_sha256=source_hash(notebook),
        seeds=tuple(seeds_of([source for kind, source, _ in cells(notebook) if kind == "code"])),
    )


def main() -> int:
    """Describe the notebook on the standard input. Returns the exit status."""
    limit_this_process(cpu_seconds=CPU_SECONDS, memory_bytes=MEMORY_BYTES)
    sys.stdout.buffer.write(described(sys.stdin.buffer.read()).model_dump_json().encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
