"""Find, stop and identify the Linux processes of a lease.

``ask`` stays importable from here: a service runs it inside containers of older images.
"""

from __future__ import annotations

from .lease_processes import ask

__all__ = ["ask"]
