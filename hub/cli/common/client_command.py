"""Base classes of the commands for all users: common options and error output."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import IO, Any, TypeVar

import click
from pydantic import ValidationError

from ...errors import CarrelError, InvalidArgument
from ...messages.help_pages import local_help
from ...messages.validation import invalid
from ...schemas.base import NO_PARTS, is_part
from . import display
from .exit_status import NO_ANSWER, USAGE

F = TypeVar("F", bound=Callable[..., object])
_LISTS: Mapping[str, str] = MappingProxyType({"ls": "list", "list": "ls"})

ENVIRONMENT = """\b
Environment:
  CARREL_URL    the site to use, instead of the default one
  CARREL_TOKEN  the token to use there"""


class ListOptions(click.Group):
    """A group of commands in which ``ls`` and ``list`` are the same."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = super().get_command(ctx, cmd_name)
        other = _LISTS.get(cmd_name)
        return super().get_command(ctx, other) if found is None and other else found


class AddByDefault(ListOptions):
    """A group in which ``add`` may be omitted: ``carrel reserve cs101 …`` reserves."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            args = ["add", *args]
        return super().resolve_command(ctx, args)


class Failed(click.ClickException):
    """An error, printed as one sentence on stderr, or as JSON with --json."""

    def __init__(self, error: CarrelError, *, as_json: bool, status: int = 1) -> None:
        super().__init__(str(error))
        self.error, self.as_json = error, as_json
        self.status = USAGE if isinstance(error, InvalidArgument) else status

    @property
    def exit_code(self) -> int:  # type: ignore[override]  # click has one per class
        return self.status

    def show(self, file: IO[Any] | None = None) -> None:
        about = self.error.help_url or local_help(self.error)
        if not self.as_json:
            click.echo(f"carrel: {self.message}", err=True)
            if about:
                click.echo(f"Help: {about}", err=True)
            return
        body = {"code": self.error.code, "message": self.error.message}
        body |= {"accepted": self.error.accepted} | ({"help": about} if about else {})
        click.echo(display.dumped({"error": body}), err=True)


class ClientCommand(click.Command):
    """A command that turns errors of Carrel into messages and exit statuses."""

    failure_status = 1

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        as_json = "--json" in args
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            if not as_json:
                raise
            raise Failed(InvalidArgument(error.format_message()), as_json=True) from error

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except CarrelError as error:
            raise self._failed(ctx, error) from error
        except (
            ValidationError
        ) as error:  # a value that no body accepts, such as an extension of a year
            wrong = invalid(error.errors(include_url=False), {})
            raise self._failed(ctx, wrong) from error

    def _failed(self, ctx: click.Context, error: CarrelError) -> Failed:
        as_json = bool(ctx.params.get("as_json"))
        return Failed(error, as_json=as_json, status=self.failure_status)


class ClientGroup(ClientCommand, click.Group):
    """A group that is also a command of its own, without a subcommand."""


class WaitingCommand(ClientCommand):
    """A command whose exit status is the result of a job, so that errors have a status above 1."""

    failure_status = NO_ANSWER


class DeviceCount(click.IntRange):
    """A number of devices, with an explanation for parts of a device."""

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
