"""``carrel node``: machines that join and leave the pool while Carrel runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from functools import partial
from inspect import cleandoc

import click
from pydantic import ValidationError

from ... import plugins
from ...config.site import LOCAL_NODE, NodeTable, SiteFile
from ...config.state_folder import StateFolder
from ...errors import InvalidInput
from ...records.diagnostics import Finding
from ...scheduling.model.snapshot import MarkKind
from ...supervisor.nodes import Nodes
from ..common import display
from ..common.client_command import ListOptions
from ..common.operator_options import existing, operator, state_option
from ..common.site_store import site_store
from .pool import drain_command, undrain_command

dry_run_option = click.option("--dry-run", is_flag=True, help="Only check, and show the effect.")


@click.group(cls=ListOptions)
def node() -> None:
    """Machines of the pool, with a Docker engine each: list, add, drain, remove.

    A machine is a table [[nodes]] in carrel.toml. `add` and `remove` change the file and restart
    JupyterHub and the service, which takes some seconds; sessions and jobs keep running. `drain`
    and `undrain` are those of `carrel pool`.

    \b
    Examples:
      carrel node add gpu2 --docker-host ssh://carrel@gpu2 --address 10.1.2.5
      carrel node drain gpu2 --until 2h --why 'It moves to another rack.'
      carrel node remove gpu2
    """


def _alias(command: click.Command, text: str) -> click.Command:
    """Return a command of `carrel pool` for names of machines, which are no parts of device ids."""
    alias = copy(command)
    assert command.callback is not None
    alias.callback = partial(command.callback, exact=True)
    alias.help = cleandoc(text)
    return alias


node.add_command(
    _alias(
        drain_command,
        """Drain a machine: no new work starts on it (administrators).

        \b
        Examples:
          carrel node drain gpu2
          carrel node drain gpu2 --until 2h --why 'It moves to another rack.'
        """,
    ),
    "drain",
)
node.add_command(
    _alias(
        undrain_command,
        """End the drain of a machine (administrators).

        \b
        Example:
          carrel node undrain gpu2
        """,
    ),
    "undrain",
)


@node.command("list", short_help="List the machines.")
@state_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
def list_nodes(*, state: StateFolder, as_json: bool) -> None:
    """List the machines with their devices, leases and drains.

    --json prints for each: name, docker_host, devices, drained.

    \b
    Example:
      carrel node list
    """
    tables = {each.name: each.docker_host for each in SiteFile.load(state).nodes}
    with _nodes(state) as nodes:
        devices = nodes.store.devices()
        drained = {m.target for m in nodes.store.marks() if m.kind is MarkKind.DRAIN}
        names = sorted({LOCAL_NODE, *tables, *nodes.store.nodes()})
    found = [
        {
            "name": name,
            "docker_host": tables.get(name, ""),
            "devices": sum(each.node == name for each in devices),
            "drained": name in drained,
        }
        for name in names
    ]
    if as_json:
        click.echo(json.dumps(found))
        return
    rows = [
        [
            str(each["name"]),
            str(each["devices"]),
            "yes" if each["drained"] else "",
            str(each["docker_host"]) or ("this machine" if each["name"] == LOCAL_NODE else "left"),
        ]
        for each in found
    ]
    display.table(["NODE", "DEVICES", "DRAINED", "ENGINE"], rows, right="DEVICES")


@node.command(short_help="Check a machine and add it.")
@click.argument("name")
@click.option(
    "--docker-host",
    metavar="URL",
    required=True,
    help="ssh://USER@HOST, or tcp://HOST:2376 with the three TLS files.",
)
@click.option(
    "--address", metavar="IP", required=True, help="Its IP address, as this machine reaches it."
)
@click.option("--tls-ca", metavar="FILE", default="", help="CA of the engine's certificate.")
@click.option("--tls-cert", metavar="FILE", default="", help="Client certificate.")
@click.option("--tls-key", metavar="FILE", default="", help="Key of the client certificate.")
@dry_run_option
@state_option
def add(  # each option is a key of the table
    *,
    name: str,
    docker_host: str,
    address: str,
    tls_ca: str,
    tls_cert: str,
    tls_key: str,
    dry_run: bool,
    state: StateFolder,
) -> None:
    """Check a machine as `carrel doctor` does, and add it to the pool.

    Nothing changes if the machine lacks something that Carrel needs.

    \b
    Examples:
      carrel node add gpu2 --docker-host ssh://carrel@gpu2 --address 10.1.2.5 --dry-run
      carrel node add gpu2 --docker-host ssh://carrel@gpu2 --address 10.1.2.5
    """
    try:
        wanted = NodeTable(
            name=name,
            docker_host=docker_host,
            address=address,
            tls_ca=tls_ca,
            tls_cert=tls_cert,
            tls_key=tls_key,
        )
    except ValidationError as error:
        problems = error.errors(include_url=False)
        said = " ".join(
            f"{'.'.join(map(str, each['loc']))}: {each['msg'].removeprefix('Value error, ')}."
            for each in problems
        )
        raise InvalidInput(f"The machine cannot be added. {said}".replace(". :", ".")) from error
    with _nodes(state) as nodes:
        _say(nodes.add(wanted, dry_run=dry_run))


@node.command(short_help="Remove a drained machine.")
@click.argument("name")
@dry_run_option
@state_option
def remove(*, name: str, dry_run: bool, state: StateFolder) -> None:
    """Remove a drained machine on which nothing runs, with its devices.

    Also removes a machine that has left carrel.toml before, whose devices are still listed.

    \b
    Examples:
      carrel node remove gpu2 --dry-run
      carrel node remove gpu2
    """
    with _nodes(state) as nodes:
        _say(nodes.remove(name, dry_run=dry_run))


@contextmanager
def _nodes(state: StateFolder) -> Iterator[Nodes]:
    settings = existing(state)

    def checks(site: SiteFile) -> tuple[Finding, ...]:
        setup = plugins.load_host_setup(state, settings, site=site)
        return () if setup is None else tuple(setup.findings())

    before = SiteFile.load(state)

    def clear(name: str) -> None:
        setup = plugins.load_host_setup(state, settings, site=before)
        if setup is not None:
            setup.clear_node(name)

    with site_store(state) as store:
        yield Nodes(state=state, store=store, checks=checks, clear=clear, who=operator())


def _say(sentences: tuple[str, ...]) -> None:
    for sentence in sentences:
        click.echo(sentence)


COMMANDS: dict[str, click.Command] = {"node": node}
