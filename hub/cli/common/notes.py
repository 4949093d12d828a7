"""Notes and questions on stderr; with --json, stderr contains only the JSON of an error."""

from __future__ import annotations

import click


def note(text: str) -> None:
    """Print a note on stderr, unless the command prints JSON."""
    if not _prints_json():
        click.echo(text, err=True)


def confirmed(question: str, *, default: bool = False) -> bool:
    """Ask a question; return False without an answer, and with --json."""
    if _prints_json():
        return False
    try:
        return click.confirm(question, default=default, err=True)
    except click.Abort:
        return False


def _prints_json() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.params.get("as_json"))
