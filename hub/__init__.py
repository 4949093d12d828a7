"""The control plane: the scheduler core, the store, the service and its command line."""

from __future__ import annotations
