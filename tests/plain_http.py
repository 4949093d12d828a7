"""Requests to servers of a test, each with a connection of its own and without cookies.

They read the certificates of the system once, and not for each request, which takes longer than
most answers.
"""

from __future__ import annotations

import ssl
from typing import Any

import httpx

_CERTIFICATES = ssl.create_default_context()


def request(method: str, url: str, **more: Any) -> httpx.Response:
    return httpx.request(method, url, verify=_CERTIFICATES, **more)


def get(url: str, **more: Any) -> httpx.Response:
    return request("GET", url, **more)


def post(url: str, **more: Any) -> httpx.Response:
    return request("POST", url, **more)


def client(**more: Any) -> httpx.Client:
    """Return a client that keeps connections and cookies."""
    return httpx.Client(verify=_CERTIFICATES, **more)
