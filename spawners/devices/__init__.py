"""Devices of a machine: inventory, health and activity, and the environment of a lease."""

from __future__ import annotations
