"""Find, stop and identify the Linux processes of a lease.

``ask`` must stay importable from here: the service calls it in containers of older images.
"""

from __future__ import annotations

from .lease_processes import ask

__all__ = ["ask"]
