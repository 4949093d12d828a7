"""PyTorch for the tests of ``carrel.execution``: ``python -m tests.torch_packages`` installs it."""

from __future__ import annotations

import importlib
from typing import Any

from .extra_packages import ROOT, ExtraPackages

PACKAGES = ExtraPackages(
    module="torch", title="PyTorch", lock=ROOT / "requirements" / "execution.txt"
)
available = PACKAGES.available


def load() -> tuple[Any, Any]:
    """Return the modules torch and carrel.execution, for a test module.

    The test module is skipped where PyTorch is missing, or fails where CARREL_REQUIRE names it.
    """
    torch = PACKAGES.load()
    # Threads of several workers wait for each other actively.
    torch.set_num_threads(1)
    return torch, importlib.import_module("carrel.extensions.execution")


if __name__ == "__main__":
    PACKAGES.install()
