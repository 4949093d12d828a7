"""Run sessions and jobs on their leases: devices, session spawners, job backends, the runner."""

from __future__ import annotations
