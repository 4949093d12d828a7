"""Sandboxes on this machine: bubblewrap, and a fork for each submission."""

from __future__ import annotations
