"""``%load_ext carrel`` and ``%carrel``: the terminal's commands in a notebook cell.

It runs the command line itself, so that options, help and messages are the same in both places;
``submit`` and ``run`` return a ``Job``.
"""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from ...hub.errors import CarrelError, InvalidInput
from ...hub.schemas import ErrorOut, RequestOut
from ..job import Job, client_of
from . import assignments

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

COMMANDS = (
    *("submit", "run", "ps", "cancel", "usage", "show", "logs", "queue", "pool", "output"),
    *("course", *assignments.COMMANDS),
)
RETURNS_JOB = frozenset({"submit", "run"})
HELP = """%carrel COMMAND, as in a terminal:

  %carrel submit train.ipynb -p lr 0.05 --devices 1 --time 30m
  %carrel run --devices 1 -- python train.py --lr 0.1
  %carrel ps --all --label sweep=7
  %carrel cancel j-7k2m4qpz
  %carrel cancel --label sweep=7 --yes
  %carrel usage
  %carrel fetch-assignment ps1
  %carrel check-assignment ps1
  %carrel submit-assignment ps1

submit and run return a Job:   job = %carrel submit train.ipynb
check-assignment and submit-assignment use the saved files: save the notebook first.
With --wait or --follow a command shows progress until the job has ended.
%carrel COMMAND --help explains a command. Other commands: """ + ", ".join(COMMANDS[5:11])


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the magic; called by ``%load_ext carrel``."""
    shell.magics_manager.register_function(carrel_magic, magic_kind="line", magic_name="carrel")


def carrel_magic(line: str) -> Job | None:
    """Run a command of ``carrel``; ``%carrel`` alone lists them."""
    try:
        words = shlex.split(line)
        return _command(words)
    except ValueError as error:  # an unmatched quotation mark
        _print(f"carrel: this line cannot be parsed: {error}.\n", error=True)
    except CarrelError as error:
        _print(f"carrel: {error}\n", error=True)
    return None


def _command(words: list[str]) -> Job | None:
    if not words or words[0] in {"-h", "--help", "help"}:
        _print(f"{HELP}\n")
        return None
    if words[0] not in COMMANDS:
        raise InvalidInput(
            f"%carrel {words[0]} does not exist.", accepted=f"Commands: {', '.join(COMMANDS)}."
        )
    if words[0] in assignments.COMMANDS:
        _show(assignments.command_line(words, Path.cwd()))
        return None
    options = words[: words.index("--")] if "--" in words else words
    if words[0] in RETURNS_JOB and _returns_at_once(options):
        return _job(words)
    _show(words)
    return None


def _returns_at_once(options: list[str]) -> bool:
    return not {"--wait", "--follow", "-f", "--help", "-h", "--json"} & set(options)


def _job(words: list[str]) -> Job | None:
    done = subprocess.run(
        [*_PROGRAM, words[0], "--json", *words[1:]],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.stderr:
        _print(_message(done.stderr), error=done.returncode != 0)
    if done.returncode != 0:
        return None
    return Job(client_of(_site(words)), RequestOut.model_validate_json(done.stdout))


def _message(stderr: str) -> str:
    """Return an error's message; with --json errors are JSON, all else is text already."""
    lines = stderr.rstrip("\n").split("\n")
    try:
        error = ErrorOut.model_validate_json(lines[-1]).error
    except (ValidationError, IndexError):
        return stderr
    text = f"carrel: {error.message} {error.accepted}".rstrip()
    return "\n".join([*lines[:-1], text]) + "\n"


def _site(words: list[str]) -> str | None:
    for word, value in zip(words, [*words[1:], ""], strict=True):
        if word == "--":
            break
        if word == "--site":
            return value
        if word.startswith("--site="):
            return word.removeprefix("--site=")
    return None


def _show(words: list[str]) -> None:
    """Print lines as they come; interrupting the cell ends the command, but not the job."""
    with subprocess.Popen(
        [*_PROGRAM, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                _print(line)
        except KeyboardInterrupt:
            process.terminate()


def _print(text: str, *, error: bool = False) -> None:
    (sys.stderr if error else sys.stdout).write(text)


# The command line is a higher layer: it is run as a program, not imported.
_PROGRAM = (sys.executable, "-P", "-m", "carrel.hub.cli")
