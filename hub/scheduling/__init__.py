"""Scheduler core: a snapshot goes in, a plan comes out. No I/O, clock, randomness, logging or
async."""

from __future__ import annotations
