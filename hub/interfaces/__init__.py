"""Protocols that the adapters of the service implement: store, backend, files, JupyterHub."""

from __future__ import annotations
