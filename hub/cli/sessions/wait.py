"""Waiting for a session in a terminal: its place and estimate as they change, until it is there."""

from __future__ import annotations

import time

import click

from ...client import Client
from ...messages.timed_text import expected_start
from ...schemas import RequestOut
from ..common import display


def wait_for_session(client: Client, request: RequestOut, *, as_json: bool) -> RequestOut:
    """The request once it runs, has its device held, or has ended; tells every change until then.

    One that a claim has just freed is not held any more, and is waited for until it runs.
    """
    told = ""
    for found in client.follow(request.id):
        if not isinstance(found, RequestOut):
            continue
        line = display.dumped(found) if as_json else _line(found)
        if line != told:
            click.echo(line)
            told = line
        request = found
        if found.ended or found.state == "running" or found.claim_by is not None:
            break
    return request


def _line(request: RequestOut) -> str:
    """As ``carrel submit --wait`` tells it, with when it is expected to start."""
    now = time.time()
    line = display.change(request, now)
    if request.wait:
        line = f"{line} {display.dated(expected_start(request.wait, now), now)}".rstrip()
    return line
