"""What the commands of everybody share: options, and how an error is told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import IO, Any, TypeVar

import click
from pydantic import ValidationError

from ...errors import CarrelError
from ...messages.validation import invalid
from ...schemas.base import NO_PARTS, is_part
from . import display
from .exit_status import NO_ANSWER

F = TypeVar("F", bound=Callable[..., object])
_LISTS: Mapping[str, str] = MappingProxyType({"ls": "list", "list": "ls"})

ENVIRONMENT = """\b
Environment:
  CARREL_URL    the site to use, instead of the default one
  CARREL_TOKEN  the token to use there"""


class ListOptions(click.Group):
    """Commands about one kind of thing; what is there is listed by ``ls`` and ``list`` alike."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = super().get_command(ctx, cmd_name)
        other = _LISTS.get(cmd_name)
        return super().get_command(ctx, other) if found is None and other else found


class Failed(click.ClickException):
    """What went wrong, in one sentence on stderr, or as JSON where JSON was asked for."""

    def __init__(self, error: CarrelError, *, as_json: bool, status: int = 1) -> None:
        super().__init__(str(error))
        self.error, self.as_json = error, as_json
        self.status = status

    @property
    def exit_code(self) -> int:  # type: ignore[override]  # click has one per class
        return self.status

    def show(self, file: IO[Any] | None = None) -> None:
        if not self.as_json:
            click.echo(f"carrel: {self.message}", err=True)
            return
        body = {"code": self.error.code, "message": self.error.message}
        click.echo(display.dumped({"error": body | {"accepted": self.error.accepted}}), err=True)


class ClientCommand(click.Command):
    """Turns the errors of Carrel into messages and exit statuses."""

    failure_status = 1

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except CarrelError as error:
            raise self._failed(ctx, error) from error
        except ValidationError as error:  # a value that no body takes, such as a year of more time
            wrong = invalid(error.errors(include_url=False), {})
            raise self._failed(ctx, wrong) from error

    def _failed(self, ctx: click.Context, error: CarrelError) -> Failed:
        as_json = bool(ctx.params.get("as_json"))
        return Failed(error, as_json=as_json, status=self.failure_status)


class WaitingCommand(ClientCommand):
    """One whose exit status says how a job ended: 1 is taken."""

    failure_status = NO_ANSWER


class DeviceCount(click.IntRange):
    """How many devices; whoever asks for part of one is told why there is none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if is_part(value):
            self.fail(f"{value!r} is not a whole number. {NO_PARTS}", param, ctx)
        return super().convert(value, param, ctx)


def site_option(function: F) -> F:
    return click.option("--site", metavar="URL", help="Site to use instead of the default one.")(
        function
    )


def json_option(function: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(
        function
    )


def request_argument(function: F) -> F:
    return click.argument("request_id", metavar="ID")(function)
