"""Build the bubblewrap command of a fork server: what its sandboxes see of this machine."""

from __future__ import annotations

import os
import shutil
import site
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from ....hub.errors import BackendFailed, InvalidInput
from .. import guest as inside
from ..interface import SandboxSettings

_READABLE: Final = 0o005
PROGRAMS: Final = "/carrel"
_HOME: Final = "/home/student"
_ALIASES: Final = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_FROM_ETC: Final = ("ld.so.cache", "alternatives", "fonts", "localtime", "ssl/certs", "mime.types")
_ROOT_CAPABILITIES: Final = ("CAP_SYS_ADMIN", "CAP_SETUID", "CAP_SETGID")
_RESERVED: Final = ("/", "/usr", "/proc", "/dev", "/tmp", "/home", "/etc", PROGRAMS)  # noqa: S108


def command(settings: SandboxSettings, *, orders: int, users: int) -> list[str]:
    """The command line.

    Args:
        orders: descriptor of the socket on which the fork server gets its commands.
        users: descriptor of the content of its /etc/passwd.

    Raises:
        BackendFailed: bubblewrap is missing.
        InvalidInput: course data cannot be mounted at its path.
    """
    found = program()
    if found is None:
        raise BackendFailed(
            "The local grading sandbox needs bubblewrap, which is not installed.",
            accepted="Install the package bubblewrap.",
        )
    return [
        found,
        *_namespaces(),
        *("--dev", "/dev", "--dir", "/dev/shm", "--perms", "1777", "--tmpfs", "/tmp"),  # noqa: S108
        *_system(),
        *("--ro-bind-data", str(users), "/etc/passwd"),
        *_python(),
        *_data(settings.data),
        *("--dir", "/proc", "--dir", _HOME, "--dir", "/run", "--dir", "/var/tmp"),  # noqa: S108
        *("--remount-ro", "/dev", "--remount-ro", "/"),
        *("--new-session", "--chdir", "/"),
        *_environment(settings.environment),
        *(sys.executable, "-I", "-c", START_CODE, str(orders), *settings.imports),
    ]


START_CODE: Final = (
    f"import sys, runpy; sys.path.insert(0, {PROGRAMS!r}); "
    "runpy.run_module('guest.forkserver', run_name='__main__', alter_sys=True)"
)


def program() -> str | None:
    return shutil.which("bwrap")


def _namespaces() -> list[str]:
    """Root needs no user namespace, and gives up its capabilities in the fork server."""
    if os.geteuid() == 0:
        shared = ("ipc", "pid", "net", "uts")
        rights = [word for each in _ROOT_CAPABILITIES for word in ("--cap-add", each)]
        return [*(f"--unshare-{each}" for each in shared), "--cap-drop", "ALL", *rights]
    return ["--unshare-all", "--proc", "/proc"]


def _system() -> Iterator[str]:
    yield from ("--ro-bind", "/usr", "/usr")
    for name in _ALIASES:
        path = Path("/", name)
        if path.is_symlink():
            yield from ("--symlink", os.readlink(path), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))
    for name in _FROM_ETC:
        path = Path("/etc", name)
        if path.exists():
            yield from ("--ro-bind", str(path), str(path))


def _python() -> Iterator[str]:
    """The interpreter and its packages; of Carrel only the guest."""
    seen: list[Path] = [Path("/usr")]
    for path in (Path(sys.base_prefix), Path(sys.prefix), *_real(sys.executable)):
        if not any(path.is_relative_to(each) for each in seen):
            yield from _bound(path, str(path))
            seen.append(path)
    package = Path(inside.__file__).parents[3]
    for folder in site.getsitepackages():
        if package.parent == Path(folder):
            yield from ("--tmpfs", str(package))
    yield from _bound(Path(inside.__file__).parent, f"{PROGRAMS}/guest")


def _bound(source: Path, target: str) -> Iterator[str]:
    """Create the parent folders first: bubblewrap makes missing ones readable for root alone."""
    for above in reversed(PurePosixPath(target).parents):
        if len(above.parts) > 1:
            yield from ("--dir", str(above))
    yield from ("--ro-bind", str(source), target)


def _real(executable: str) -> Iterator[Path]:
    """Installation folders along the chain of links of a virtual environment's interpreter."""
    path = Path(executable)
    while path.is_symlink():
        path = path.parent / os.readlink(path)
        yield path.parent.parent


def _data(data: Mapping[str, Path]) -> Iterator[str]:
    for target, source in data.items():
        if not target.startswith("/") or os.path.normpath(target) != target or target in _RESERVED:
            raise InvalidInput(
                f"Course data cannot appear at {target!r}.",
                accepted="An absolute path of its own, such as /course/NAME.",
            )
        if os.geteuid() == 0 and source.stat().st_mode & _READABLE != _READABLE:
            raise InvalidInput(
                f"Course data in {source} cannot be read in a sandbox, which does not run as root.",
                accepted="Let others read the folder and what is in it: chmod -R o+rX.",
            )
        yield from _bound(source, target)


def _environment(more: Mapping[str, str]) -> Iterator[str]:
    """The whole environment. The service's own has tokens in it."""
    yield "--clearenv"
    own = {
        "PATH": f"{Path(sys.prefix, 'bin')}:/usr/local/bin:/usr/bin:/bin",
        "HOME": _HOME,
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
        **more,
    }
    for name, value in own.items():
        yield from ("--setenv", name, value)
