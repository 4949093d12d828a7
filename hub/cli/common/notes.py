"""Notes and questions on stderr, which with --json holds nothing but the JSON of an error."""

from __future__ import annotations

import click


def note(text: str) -> None:
    """Print a note beside the result of a command, unless it prints JSON."""
    if not _prints_json():
        click.echo(text, err=True)


def confirmed(question: str, *, default: bool = False) -> bool:
    """Ask a question; without an answer, and with --json, it is not confirmed."""
    if _prints_json():
        return False
    try:
        return click.confirm(question, default=default, err=True)
    except click.Abort:
        return False


def _prints_json() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.params.get("as_json"))
