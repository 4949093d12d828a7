"""List the kernels of local jobs: in the home, beside this Python, and in the system."""

from __future__ import annotations

import os
from pathlib import Path

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_core.paths import ENV_JUPYTER_PATH, SYSTEM_JUPYTER_PATH


def installed_kernels(home: Path) -> frozenset[str]:
    """Return the names of the kernel specs that a process with this home finds."""
    extra = [folder for folder in os.environ.get("JUPYTER_PATH", "").split(os.pathsep) if folder]
    own = str(home / ".local" / "share" / "jupyter")
    roots = [*extra, own, *ENV_JUPYTER_PATH, *SYSTEM_JUPYTER_PATH]
    folders = [os.path.join(root, "kernels") for root in roots]
    specs = KernelSpecManager(kernel_dirs=[*folders, str(home / ".ipython" / "kernels")])
    return frozenset(specs.find_kernel_specs())
