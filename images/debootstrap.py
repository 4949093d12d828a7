"""Create a Debian image with debootstrap, for sites that cannot reach a registry."""

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


def bootstrap(docker: Docker, mirror: str, report: Callable[[str], None]) -> str:
    """Create the image and return its digest.

    Args:
        mirror: a Debian mirror; empty for debootstrap's default.

    Raises:
        ImageFailed: debootstrap is missing, not permitted, or failed.
    """
    program = shutil.which("debootstrap", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if program is None or os.geteuid() != 0:
        raise ImageFailed(
            "Creating a Debian image needs root and the program debootstrap.",
            accepted="On Debian: apt-get install debootstrap. If you can reach a registry, you do "
            "not need this: `carrel images build base` pulls Debian's own image.",
        )
    with tempfile.TemporaryDirectory(prefix="carrel-debian-") as name:
        root = Path(name) / "root"
        report(f"debootstrap downloads Debian {SUITE}; this takes some minutes …")
        words = [program, "--variant=minbase", SUITE, str(root), *([mirror] if mirror else [])]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            end = "\n".join(done.stdout.splitlines()[-5:] + done.stderr.splitlines()[-5:])
            raise ImageFailed(f"debootstrap failed:\n{end}")
        report("Importing it into the engine …")
        return _import(docker, root)


def _import(docker: Docker, root: Path) -> str:
    packed = ["tar", "--numeric-owner", "--exclude=./var/cache/apt/archives/*.deb", "-C", str(root)]
    with subprocess.Popen([*packed, "-c", "."], stdout=subprocess.PIPE) as tar:
        imported = subprocess.run(
            [docker.program, "import", "--change", 'CMD ["bash"]', "-", BOOTSTRAPPED],
            env=docker.environment,
            stdin=tar.stdout,
            capture_output=True,
            text=True,
            check=False,
        )
    if imported.returncode or tar.returncode:
        raise ImageFailed(f"The engine could not import it: {imported.stderr.strip()[-400:]}")
    return imported.stdout.strip()
