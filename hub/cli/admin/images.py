"""``carrel images``: the images of a site, and the pins of groups."""

from __future__ import annotations

import time

import click

from ...client import Client
from ...errors import InvalidInput, NotFound
from ...messages import units
from ...records.images import ACCEPTED, Reference
from ...schemas.images import ImageOut, ImagesOut
from ..common import display
from ..common.client_command import ClientCommand, ListOptions, json_option, site_option
from ..common.terminal import plain
from .image_builds import bootstrap_command, build_command, prune_command, verify_command

_NO_CHOICE = (
    "Sessions and jobs of this site run directly on the machine: there are no images to choose."
)


@click.group("images", cls=ListOptions, invoke_without_command=True)
@json_option
@site_option
@click.pass_context
def images_command(ctx: click.Context, as_json: bool, site: str | None) -> None:
    """Images for sessions and jobs.

    NAME is the build that your group has pinned, or else the newest build; NAME@sha256:… is one
    specific build.

    build, verify, prune and bootstrap need a Docker engine; the other commands query a site.

    \b
    Examples:
      carrel images
      carrel submit --image torch train.ipynb
      carrel images pin torch --group cs101 --until 2027-02-15
      carrel images build base datascience torch
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_command, every=False, as_json=as_json, site=site)


@images_command.command("list", cls=ClientCommand)
@click.option("--all", "-a", "every", is_flag=True, help="Include older builds.")
@json_option
@site_option
def list_command(*, every: bool, as_json: bool, site: str | None) -> None:
    """List the images of a site; the default command of `images`.

    \b
    Example:
      carrel images list --all
    """
    with Client.from_environment(site) as client:
        found = client.images()
    if as_json:
        display.as_json(found)
        return
    if not found.choice:
        click.echo(_NO_CHOICE)
        return
    shown = [i for i in found.images if every or i.newest or i.pinned]
    now = time.time()
    display.table(
        ["IMAGE", "TITLE", "SIZE", "BUILT", "ON", "PINNED"],
        (
            [
                units.short_reference(image.reference) + ("" if image.newest else " (older)"),
                image.title + (" (default)" if image.default else ""),
                _size(image),
                display.local_time(image.built_at, now),
                ", ".join(image.nodes),
                _pinned(image),
            ]
            for image in shown
        ),
    )
    for pin in found.pins:
        if pin.holds and not pin.there:
            click.echo(f"{pin.image} is {pin.sentence}.")


@images_command.command("show", cls=ClientCommand)
@click.argument("image")
@json_option
@site_option
def show_command(*, image: str, as_json: bool, site: str | None) -> None:
    """Show everything about an image.

    \b
    Examples:
      carrel images show torch
      carrel images show torch --json | jq -r .reference
    """
    with Client.from_environment(site) as client:
        shown = _found(client.images(), image)
    if as_json:
        display.as_json(shown)
        return
    facts = [
        ("Image", shown.reference),
        ("Title", shown.title),
        ("Summary", shown.summary),
        ("Packages", ", ".join(shown.packages)),
        ("Kernels", ", ".join(shown.kernels)),
        ("Size", _size(shown)),
        ("Built", display.local_time(shown.built_at, time.time())),
        ("On", ", ".join(shown.nodes)),
        ("Pinned", _pinned(shown)),
    ]
    for name, value in facts:
        if value:
            click.echo(f"{name + ':':12} {plain(value)}")


@images_command.command("pin", cls=ClientCommand)
@click.argument("image")
@click.option("--group", required=True, metavar="GROUP", help="Group, including its subgroups.")
@click.option(
    "--until", default="", metavar="DAY", help="Last day of the pin (UTC), such as 2027-02-15."
)
@json_option
@site_option
def pin_command(*, image: str, group: str, until: str, as_json: bool, site: str | None) -> None:
    """Pin an image for a group (teachers of the group and administrators).

    A bare NAME pins the newest build; NAME@sha256:… pins that build. A pinned build is never
    pruned.

    \b
    Examples:
      carrel images pin torch --group cs101 --until 2027-02-15
    """
    wanted = _reference(image)
    with Client.from_environment(site) as client:
        made = client.pin(group, wanted.name, digest=wanted.digest, until=until)
    if as_json:
        display.as_json(made)
        return
    click.echo(f"{made.reference} is {made.sentence}.")


@images_command.command("unpin", cls=ClientCommand)
@click.argument("image")
@click.option("--group", required=True, metavar="GROUP")
@json_option
@site_option
def unpin_command(*, image: str, group: str, as_json: bool, site: str | None) -> None:
    """Unpin an image: its name means the newest build again.

    \b
    Example:
      carrel images unpin torch --group cs101
    """
    name = _reference(image).name
    with Client.from_environment(site) as client:
        client.unpin(group, name)
    if as_json:
        display.as_json({"group": group, "image": name})
        return
    click.echo(f"{group} uses the newest build of {name} from now on.")


def _size(image: ImageOut) -> str:
    return units.size(image.size_bytes) if image.size_bytes else "unknown"


def _pinned(image: ImageOut) -> str:
    """Return the pins of a build, without the word that the heading repeats."""
    return "; ".join(each.removeprefix("pinned ") for each in image.pinned)


def _reference(text: str) -> Reference:
    found = Reference.read(text)
    if found is None:
        raise InvalidInput(f"{text[:80]!r} is not the name of an image.", accepted=f"{ACCEPTED}.")
    return found


def _found(catalogue: ImagesOut, text: str) -> ImageOut:
    wanted = _reference(text)
    for image in catalogue.images:
        exact = image.digest.startswith(wanted.digest) if wanted.digest else image.newest
        if image.name == wanted.name and exact:
            return image
    names = ", ".join(sorted({image.name for image in catalogue.images}))
    raise NotFound(
        f"There is no image {units.short_reference(text)}.",
        accepted=f"One of: {names}." if names else _NO_CHOICE if not catalogue.choice else "",
    )


for _command in (build_command, verify_command, prune_command, bootstrap_command):
    images_command.add_command(_command)


COMMANDS: dict[str, click.Command] = {"images": images_command}
