"""Wait for a session in a terminal, and print changes of its position and estimate."""

from __future__ import annotations

import time

import click

from ...client import Client
from ...messages.timed_text import expected_start
from ...schemas import RequestOut
from ..common import display


def wait_for_session(client: Client, request: RequestOut, *, as_json: bool) -> RequestOut:
    """Print changes of a session until it is running, held or ended; return its request.

    A session that was just claimed is no longer held: it is followed until it is running.
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
    """Format a change as one line, with the expected start."""
    now = time.time()
    line = display.change(request, now)
    if request.wait:
        line = f"{line} {display.dated(expected_start(request.wait, now), now)}".rstrip()
    return line
