"""Invoke commands of administrators on a state folder."""

from __future__ import annotations

from click.testing import CliRunner, Result

from carrel.hub.cli import cli
from carrel.hub.errors import CarrelError


def carrel(*arguments: str, stdin: str = "") -> str:
    done = invoke(*arguments, stdin=stdin)
    assert done.exit_code == 0, done.output
    return done.output


def invoke(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(cli, list(arguments), input=stdin)


def refusal(*arguments: str, stdin: str = "") -> str:
    done = invoke(*arguments, stdin=stdin)
    assert isinstance(done.exception, CarrelError), done.output
    return str(done.exception)
