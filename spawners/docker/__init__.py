"""Run sessions and jobs in Docker containers that see only the devices of their lease."""

from __future__ import annotations
