"""Turn a lease into a running process: devices, session spawners, job backends, the runner."""

from __future__ import annotations
