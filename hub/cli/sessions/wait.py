"""Wait for a session in a terminal, and print its position and estimate as they change."""

from __future__ import annotations

import time

import click

from ...client import Client
from ...messages.timed_text import expected_start
from ...schemas import RequestOut
from ..common import display


def wait_for_session(client: Client, request: RequestOut, *, as_json: bool) -> RequestOut:
    """Return the request when it is running, held or ended, and print changes until then.

    A session that was just claimed is not held any more; wait until it is running.
    """
    printed = ""
    for found in client.follow(request.id):
        if not isinstance(found, RequestOut):
            continue
        line = display.dumped(found) if as_json else _line(found)
        if line != printed:
            click.echo(line)
            printed = line
        request = found
        if found.ended or found.state == "running" or found.claim_by is not None:
            break
    return request


def _line(request: RequestOut) -> str:
    """Return the line of a change, with the expected start."""
    now = time.time()
    line = display.change(request, now)
    if request.wait:
        line = f"{line} {display.dated(expected_start(request.wait, now), now)}".rstrip()
    return line
