"""The first image where no registry can be reached: Debian, made by debootstrap."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from ..hub.errors import ImageFailed
from .build import BOOTSTRAPPED
from .docker_cli import Docker

SUITE = "bookworm"


def bootstrap(docker: Docker, mirror: str, tell: Callable[[str], None]) -> str:
    """Make the image and give back its digest.

    Args:
        mirror: where Debian's packages are; empty for debootstrap's own choice.

    Raises:
        ImageFailed: debootstrap is missing, may not or could not.
    """
    program = shutil.which("debootstrap", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None or os.geteuid() != 0:
        raise ImageFailed(
            "Making an image of Debian takes root and the program debootstrap.",
            accepted="On Debian: apt-get install debootstrap. Where a registry can be reached, "
            "nothing needs to be made: `carrel images build base` pulls Debian's own image.",
        )
    with tempfile.TemporaryDirectory(prefix="carrel-debian-") as name:
        root = Path(name) / "root"
        tell(f"debootstrap fetches Debian {SUITE}: half a minute, or a few …")
        words = [program, "--variant=minbase", SUITE, str(root), *([mirror] if mirror else [])]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            end = "\n".join(done.stdout.splitlines()[-5:] + done.stderr.splitlines()[-5:])
            raise ImageFailed(f"debootstrap did not succeed:\n{end}")
        tell("Handing it to the engine …")
        return _import(docker, root)


def _import(docker: Docker, root: Path) -> str:
    packed = ["tar", "--numeric-owner", "--exclude=./var/cache/apt/archives/*.deb", "-C", str(root)]
    with subprocess.Popen([*packed, "-c", "."], stdout=subprocess.PIPE) as tar:
        taken = subprocess.run(
            [docker.program, "import", "--change", 'CMD ["bash"]', "-", BOOTSTRAPPED],
            env=docker.environment,
            stdin=tar.stdout,
            capture_output=True,
            text=True,
            check=False,
        )
    if taken.returncode or tar.returncode:
        raise ImageFailed(f"The engine did not take it: {taken.stderr.strip()[-400:]}")
    return taken.stdout.strip()
