"""Start fork servers, and find those that clients share."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, Final

from . import forkserver
from .forkserver import KERNEL, ForkSettings, interpreter_of, start_variables

SOCKET: Final = "fork"
PACKAGES: Final = "packages"
SHOWN: Final = ("CARREL_LEASE", "CARREL_STATE", "CARREL_REQUEST")
IDLE_SECONDS: Final = 600.0
"""How long a shared server waits for the next kernel."""
KERNEL_SETTINGS: Final = ForkSettings(
    program=KERNEL,
    imports=(
        "ipykernel_launcher",
        "ipykernel.kernelapp",
        "ipykernel.debugger",  # takes 35 ms in each kernel otherwise
        "ipykernel.zmqshell",
        "IPython.core.completerlib",
        "IPython.core.async_helpers",
        # Each kernel imports these when it starts.
        "IPython.core.debugger",
        "IPython.core.logger",
        "IPython.core.oinspect",
        "IPython.extensions.storemagic",
        "IPython.utils.wildcard",
        "faulthandler",
        "pwd",
        "sqlite3",
        "tornado.platform.asyncio",
    ),
    shown=SHOWN,
)
"""The settings of a server for IPython kernels."""
_TITLE_SPACE: Final = "-" * 400
"""An argument whose memory is reused for the command line of a fork."""
_OWN: Final = ("HOME", "CARREL_LEASE")
"""Variables by which clients share a server, besides those that act at a start."""


def start(
    settings: ForkSettings,
    *,
    interpreter: str,
    environment: Mapping[str, str],
    safe_path: bool = False,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """Start a server with exactly this environment, in a session of its own.

    Its socket appears when it is ready; what it says goes to a log beside it.

    Args:
        safe_path: start Python with ``-P``, and so its forks.

    Raises:
        OSError: the interpreter cannot be started.
    """
    flags = ("-P",) if safe_path else ()
    with Path(settings.socket).with_name("log").open("wb") as log:
        return subprocess.Popen(
            (
                interpreter,
                *flags,
                forkserver.__file__,
                json.dumps(asdict(settings)),
                _TITLE_SPACE,
            ),
            env={**environment, forkserver.SPACE: "-" * forkserver.SPACE_BYTES},
            stdin=stdin,
            stdout=subprocess.DEVNULL,
            stderr=log,
            cwd=os.sep,
            start_new_session=True,
        )


def in_folder(settings: ForkSettings, folder: Path) -> ForkSettings:
    """Return the settings of a server that has its files in a folder."""
    learns = settings.program == KERNEL
    return replace(
        settings,
        socket=str(folder / SOCKET),
        packages=str(folder / PACKAGES) if learns else "",
    )


def shared_folder(interpreter: str, environment: Mapping[str, str]) -> Path:
    """Return the private folder of the server that clients with this environment share.

    Raises:
        OSError: it cannot be created, or is not a private folder of this account.
    """
    own = {name: environment.get(name, "") for name in _OWN}
    parts = [interpreter_of(interpreter), start_variables(environment), own]
    text = json.dumps(parts, sort_keys=True)
    name = hashlib.sha256(text.encode()).hexdigest()[:16]
    base = Path(environment.get("XDG_RUNTIME_DIR") or tempfile.gettempdir())
    folder = base / f"carrel-fork-{os.getuid()}" / name
    for path in (folder.parent, folder):
        path.mkdir(mode=0o700, exist_ok=True)
        found = path.lstat()
        if found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise PermissionError(f"{path} is not a private folder of this account")
    return folder


def start_shared(folder: Path, *, interpreter: str, environment: Mapping[str, str]) -> None:
    """Start the server of a shared folder, unless one is being started.

    It ends by itself when it has been idle, not with this process.

    Raises:
        OSError: it cannot be started.
    """
    with (folder / "lock").open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        # The server inherits the lock as its standard input: it is free when the server has ended.
        start(
            in_folder(replace(KERNEL_SETTINGS, idle=IDLE_SECONDS), folder),
            interpreter=interpreter,
            environment=environment,
            stdin=lock,
        )
