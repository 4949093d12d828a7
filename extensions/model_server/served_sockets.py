"""The Unix sockets of what a user serves, by name: links in the user's home.

A port would be open to all users of the machine. The socket lies in a private folder for temporary
files, since the path of a socket is short; the home has a link to it.
"""

from __future__ import annotations

import os
import re
import socket
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

from ...hub.errors import Conflict, InvalidInput

NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")


def name_of(source: str) -> str:
    """Return the name of a source unless the user says another: of its object or file."""
    last = source.rpartition(":")[2] if not Path(source).exists() else Path(source).stem
    return re.sub(r"[^a-z0-9]+", "-", last.lower()).strip("-")[:40] or "model"


def check_name(name: str) -> str:
    """Return a name. Raises InvalidInput where it cannot be part of an address."""
    if not NAME.fullmatch(name):
        raise InvalidInput(
            f"{name!r} cannot be part of an address.",
            accepted="At most 40 lower-case letters, digits and hyphens.",
            field="name",
        )
    return name


@contextmanager
def published(name: str) -> Iterator[Path]:
    """Return the path on which to listen, and link it until the end.

    Raises:
        Conflict: something of this name is served already.
    """
    link = names_folder() / name
    if find(name) is not None:
        raise Conflict(f"{name} is served already.", accepted="Another --name, or end the other.")
    link.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(prefix="carrel-served-") as place:
        path = Path(place) / "socket"
        draft = link.with_name(f"{name}.{os.getpid()}")
        draft.symlink_to(path)
        draft.replace(link)
        try:
            yield path
        finally:
            with suppress(OSError):
                if link.readlink() == path:
                    link.unlink()


def find(name: str) -> Path | None:
    """Return the socket of what the user serves now."""
    if not NAME.fullmatch(name):
        return None
    try:
        path = (names_folder() / name).readlink()
        about = path.stat()
    except OSError:
        return None
    if not stat.S_ISSOCK(about.st_mode) or about.st_uid != os.geteuid():
        return None
    with socket.socket(socket.AF_UNIX) as tried:
        tried.settimeout(1)
        return path if tried.connect_ex(str(path)) == 0 else None


def served_names() -> list[str]:
    """Return the names of what the user serves now from this session."""
    try:
        names = sorted(path.name for path in names_folder().iterdir())
    except OSError:
        return []
    return [name for name in names if find(name) is not None]


def names_folder() -> Path:
    """Return the folder with a link for each name that this session serves."""
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    # Sessions of one user, whose containers share the home, have names of their own.
    session = quote(os.environ.get("JUPYTERHUB_SERVICE_PREFIX", "/"), safe="")
    return Path(home) / "carrel" / "served" / session
