"""JAX for the tests of its course unit: ``python -m tests.jax_packages`` installs it."""

from __future__ import annotations

from .extra_packages import ROOT, ExtraPackages

PACKAGES = ExtraPackages(module="jax", title="JAX", lock=ROOT / "images/jax/requirements.txt")

if __name__ == "__main__":
    PACKAGES.install()
