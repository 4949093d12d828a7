"""Detect a machine's devices, their health and activity, and form a lease's environment."""

from __future__ import annotations
