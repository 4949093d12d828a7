"""List the kernels of local jobs: in the home, beside this Python, and in the system."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_core.paths import ENV_JUPYTER_PATH, SYSTEM_JUPYTER_PATH


def installed_kernels(home: Path) -> frozenset[str]:
    """Return the names of the kernel specs that a process with this home finds."""
    extra = [folder for folder in os.environ.get("JUPYTER_PATH", "").split(os.pathsep) if folder]
    own = str(home / ".local" / "share" / "jupyter")
    roots = [*extra, own, *ENV_JUPYTER_PATH, *SYSTEM_JUPYTER_PATH]
    return _kernels_in([*_folders(roots), str(home / ".ipython" / "kernels")])


def environment_kernels() -> frozenset[str]:
    """Return the names of the kernel specs beside this Python, which a container binds."""
    return _kernels_in(_folders(ENV_JUPYTER_PATH))


def _folders(roots: Iterable[str]) -> list[str]:
    return [os.path.join(root, "kernels") for root in roots]


def _kernels_in(folders: list[str]) -> frozenset[str]:
    return frozenset(KernelSpecManager(kernel_dirs=folders).find_kernel_specs())
