"""The pure core: values in, decisions out. No I/O, clock, randomness, logging or async."""

from __future__ import annotations
