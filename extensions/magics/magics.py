"""``%load_ext carrel`` and ``%carrel``: the commands of the terminal in a notebook's cell.

It runs the command line itself, so that options, help and words are the same in both places;
``submit`` and ``run`` come back as a ``Job``.
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
MAKES_A_JOB = frozenset({"submit", "run"})
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

submit and run give a Job:   job = %carrel submit train.ipynb
check-assignment and submit-assignment take what is saved: save the notebook before.
With --wait or --follow they show what happens until its end.
%carrel COMMAND --help explains one. Further ones: """ + ", ".join(COMMANDS[5:11])


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Called by ``%load_ext carrel``."""
    shell.magics_manager.register_function(carrel_magic, magic_kind="line", magic_name="carrel")


def carrel_magic(line: str) -> Job | None:
    """The commands of ``carrel``; ``%carrel`` alone lists them."""
    try:
        words = shlex.split(line)
        return _command(words)
    except ValueError as error:  # a quotation mark without its other half
        _say(f"carrel: this cannot be read: {error}.\n", error=True)
    except CarrelError as error:
        _say(f"carrel: {error}\n", error=True)
    return None


def _command(words: list[str]) -> Job | None:
    if not words or words[0] in {"-h", "--help", "help"}:
        _say(f"{HELP}\n")
        return None
    if words[0] not in COMMANDS:
        raise InvalidInput(
            f"There is no %carrel {words[0]}.", accepted=f"Accepted: {', '.join(COMMANDS)}."
        )
    if words[0] in assignments.COMMANDS:
        _show(assignments.as_typed(words, Path.cwd()))
        return None
    own = words[: words.index("--")] if "--" in words else words
    if words[0] in MAKES_A_JOB and _is_answered_at_once(own):
        return _job(words)
    _show(words)
    return None


def _is_answered_at_once(options: list[str]) -> bool:
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
        _say(_sentence(done.stderr), error=done.returncode != 0)
    if done.returncode != 0:
        return None
    return Job(client_of(_site(words)), RequestOut.model_validate_json(done.stdout))


def _sentence(said: str) -> str:
    """What --json says of an error is JSON; everything else is for people already."""
    lines = said.splitlines()
    try:
        error = ErrorOut.model_validate_json(lines[-1]).error
    except (ValidationError, IndexError):
        return said
    told = f"carrel: {error.message} {error.accepted}".rstrip()
    return "\n".join([*lines[:-1], told]) + "\n"


def _site(words: list[str]) -> str | None:
    for word, following in zip(words, [*words[1:], ""], strict=True):
        if word == "--":
            break
        if word == "--site":
            return following
        if word.startswith("--site="):
            return word.removeprefix("--site=")
    return None


def _show(words: list[str]) -> None:
    """Line by line as they come; interrupting the cell ends the command, and no job."""
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
                _say(line)
        except KeyboardInterrupt:
            process.terminate()


def _say(text: str, *, error: bool = False) -> None:
    (sys.stderr if error else sys.stdout).write(text)


# The command line is above this layer: it is called as a program, not imported.
_PROGRAM = (sys.executable, "-m", "carrel.hub.cli")
