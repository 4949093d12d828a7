"""The Docker engine: sessions and jobs in containers that see only their devices."""

from __future__ import annotations
