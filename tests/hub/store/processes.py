"""Start other processes that use the same database."""

from __future__ import annotations

import subprocess
import sys
from textwrap import dedent

_PREAMBLE = """
import sys
from carrel.hub.records.requests import *
from carrel.hub.scheduling.model.snapshot import *
from carrel.hub.scheduling.model.plan import *
from carrel.hub.store import open_store
"""


def child(work: str, **names: str) -> subprocess.Popen[str]:
    """Start a process that runs ``work``, with these names bound and pipes attached."""
    bound = "".join(f"{name} = {value!r}\n" for name, value in names.items())
    return subprocess.Popen(
        [sys.executable, "-c", _PREAMBLE + bound + dedent(work)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
