"""``carrel login`` and ``carrel logout``: store or remove a token of a site."""

from __future__ import annotations

import sys
import time

import click

from ..client import CredentialsFile, SiteUrl, login, sign_in_with_token
from .common import display
from .common.client_command import ENVIRONMENT, ClientCommand, json_option


@click.command("login", cls=ClientCommand, epilog=ENVIRONMENT)
@click.argument("url")
@click.option("--user", "username", metavar="NAME", help="Your user name; prompted for if missing.")
@click.option(
    "--password-stdin", is_flag=True, help="Read the password from standard input, for scripts."
)
@click.option(
    "--token",
    "by_token",
    is_flag=True,
    help="Sign in with a token from the hub's token page, for sites with single sign-on. "
    "It is prompted for, or read from standard input.",
)
@json_option
def login_command(
    url: str, username: str | None, password_stdin: bool, by_token: bool, as_json: bool
) -> None:
    """Sign in to a Carrel site on this computer, and make it the default one.

    URL is any address of the site in the browser. Carrel stores a token that can read your
    requests and submit jobs for 90 days (or less, if the site allows less), but not your
    password. In a session you are already signed in.

    \b
    Examples:
      carrel login http://127.0.0.1:8000
      carrel login https://jupyter.example.edu/hub/home --user anna
      carrel login https://jupyter.example.edu --token
    """
    site = SiteUrl.at(url)
    if by_token:
        credentials = sign_in_with_token(site.base, _secret("Token", from_stdin=False))
    else:
        name = username or click.prompt(f"Name at {site.base}", err=True)
        password = _secret("Password", from_stdin=password_stdin)
        credentials = login(site.base, name, password)
    stored = CredentialsFile.of_current_user()
    stored.add(credentials)
    if as_json:
        told = {"url": credentials.url, "user": credentials.user}
        display.as_json(told | {"expires_at": credentials.expires_at})
        return
    click.echo(f"Signed in to {credentials.url} as {credentials.user}.")
    if credentials.expires_at is not None:
        ends = display.local_time(credentials.expires_at, time.time())
        click.echo(f"The token on this computer ends on {ends}; then sign in again.")


def _secret(label: str, *, from_stdin: bool) -> str:
    if from_stdin or not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    secret: str = click.prompt(label, hide_input=True, err=True)
    return secret


@click.command("logout", cls=ClientCommand)
@click.argument("url", required=False)
def logout_command(url: str | None) -> None:
    """Sign out of a site on this computer (without URL: of the default one).

    \b
    Examples:
      carrel logout
      carrel logout https://jupyter.example.edu
    """
    stored = CredentialsFile.of_current_user()
    credentials = stored.find(url)
    stored.remove(credentials.url)
    click.echo(
        f"Signed out of {credentials.url} on this computer. The token itself can be revoked at "
        f"{SiteUrl.at(credentials.url).hub}/token."
    )


COMMANDS: dict[str, click.Command] = {"login": login_command, "logout": logout_command}
