"""Write docs/reference/cli.md from the help of the commands: ``python -m tests.cli_reference``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from carrel.hub.cli import ENTRIES, cli

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "cli.md"
WIDTH = 88

INTRODUCTION = """\
# The command line

This page is what `carrel COMMAND --help` prints; after a change there, run
`python -m tests.cli_reference`.

Commands for all users work wherever Carrel is installed with `pip install carrel`, and in the
terminal of every session. They use the site of the last `carrel login URL`, another one with
`--site`, or the one in `CARREL_URL` and `CARREL_TOKEN`, which are set in a session. Commands for
administrators work on a state folder (`--state`, or `CARREL_STATE`) of the same machine.

With `--json`, output is JSON on standard output, one document per line; an error of a command for
all users is then `{"error": {"code", "message", "accepted"}}` on standard error. Unless its help
says otherwise, the exit status of a command is 0 on success, 1 on failure, and 2 for invalid
usage.
"""


def page() -> str:
    """Return the page."""
    root = click.Context(cli, info_name="carrel", terminal_width=WIDTH, **cli.context_settings)
    parts = [INTRODUCTION, _help(root)]
    for title, administrators in (("For all users", False), ("For administrators", True)):
        parts.append(f"## {title}\n")
        for name, entry in ENTRIES.items():
            if entry.administrators is administrators:
                parts += _sections(_below(root, name))
    return "\n".join(parts)


def _sections(context: click.Context) -> Iterator[str]:
    """Yield the section of a command, then those of its subcommands."""
    yield f"### {context.command_path}\n"
    yield _help(context)
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            yield from _sections(_below(context, name))


def _below(context: click.Context, name: str) -> click.Context:
    assert isinstance(context.command, click.Group)
    command = context.command.get_command(context, name)
    assert command is not None
    return click.Context(command, info_name=name, parent=context, terminal_width=WIDTH)


def _help(context: click.Context) -> str:
    return f"```text\n{context.get_help()}\n```\n"


def main() -> None:
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    print(f"Wrote {PAGE}")


if __name__ == "__main__":
    main()
