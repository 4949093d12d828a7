"""``carrel gallery``: jobs, notebooks and pipelines that users publish for others to run."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TextIO

import click

from ...client import Client
from ...errors import InvalidArgument
from ...messages import units
from ...schemas import JobIn, parsers
from ...schemas.gallery import GalleryItemDetailOut, GalleryItemOut, GalleryJobOut
from ..common import display
from ..common.client_command import ClientCommand, ListOptions, json_option, site_option
from ..common.request_options import parameter_option

_SCRIPTS = (".ipynb", ".py")
item_argument = click.argument("item_id", metavar="ITEM")
version_option = click.option(
    "--version", type=click.IntRange(0), default=0, metavar="NUMBER", help="Default: the newest."
)
audience_options = (
    click.option("--for", "audience", default="", metavar="GROUP", help="Who may see it."),
    click.option("--everyone", is_flag=True, help="All users of the site may see it."),
)


@click.group("gallery", cls=ListOptions)
def gallery_command() -> None:
    """The gallery: jobs, notebooks and pipelines that users publish for others to run.

    \b
    Examples:
      carrel gallery list segmentation
      carrel gallery run g-7k2m4qpz -p lr 0.05
      carrel gallery publish j-7k2m4qpz --title "Train a classifier" --for cs101
    """


@gallery_command.command("list", cls=ClientCommand, short_help="List published items.")
@click.argument("words", metavar="[WORD]...", nargs=-1)
@click.option("--mine", is_flag=True, help="Only your own.")
@json_option
@site_option
def list_items(*, words: tuple[str, ...], mine: bool, as_json: bool, site: str | None) -> None:
    """List the items that you may see, the last changed first; with words, those that contain
    all of them in title, owner or description.

    \b
    Examples:
      carrel gallery list
      carrel gallery list image segmentation
      carrel gallery list --mine --json | jq -r .id
    """
    items: list[GalleryItemOut] = []
    offset = 0
    with Client.from_environment(site) as client:
        while True:
            page = client.gallery(" ".join(words), mine=mine, offset=offset)
            items += page.items
            offset = page.next
            if not offset:
                break
    empty = "No item matches." if words or mine else "Nothing is published for you yet."
    if display.listed(items, empty=empty, as_json=as_json):
        return
    now = time.time()
    rows = [
        [
            each.id,
            each.title,
            f"{each.kind}: {each.what}",
            each.owner,
            _audience(each),
            str(each.version),
            display.local_time(each.updated_at, now),
        ]
        for each in items
    ]
    display.table(["ID", "TITLE", "RUNS", "OWNER", "FOR", "VERSION", "CHANGED"], rows)


@gallery_command.command("show", cls=ClientCommand, short_help="Show an item.")
@item_argument
@version_option
@json_option
@site_option
def show_item(*, item_id: str, version: int, as_json: bool, site: str | None) -> None:
    """Show an item with its jobs and parameters.

    \b
    Examples:
      carrel gallery show g-7k2m4qpz
      carrel gallery show g-7k2m4qpz --version 1
    """
    with Client.from_environment(site) as client:
        found = client.gallery_item(item_id, version=version)
    if as_json:
        display.as_json(found)
        return
    now = time.time()
    shown = found.shown
    published = display.local_time(shown.published_at, now)
    click.echo(f"{found.id}: {display.printable(found.title)}")
    click.echo(f"{found.kind} by {found.owner}, for {_audience(found)}")
    click.echo(f"version {shown.version} of {found.version}, published {published}")
    if found.forked_from is not None:
        origin = found.forked_from
        click.echo(f"fork of {origin.id}, version {origin.version}, by {origin.owner}")
    if shown.request:
        state = "succeeded" if shown.succeeded else "had not succeeded when it was published"
        click.echo(f"run {shown.request}: {state}")
    if shown.description:
        click.echo(f"\n{display.printable(shown.description)}")
    for job in shown.jobs:
        _show_job(job)


@gallery_command.command("publish", cls=ClientCommand, short_help="Publish a job or a notebook.")
@click.argument("source", metavar="JOB|FILE")
@click.option("--title", default="", metavar="TEXT", help="Required, except with --item.")
@click.option(
    "--description",
    type=click.File(encoding="utf-8"),
    metavar="FILE",
    help="A file with a description in Markdown; - is standard input.",
)
@audience_options[0]
@audience_options[1]
@click.option("--pipeline", is_flag=True, help="All jobs of the pipeline of JOB.")
@click.option(
    "--outputs",
    is_flag=True,
    help="Publish also the executed notebook, or the log of a command. Read them first.",
)
@click.option("--item", default="", metavar="ITEM", help="Make it a new version of this item.")
@click.option("--group", default="", metavar="GROUP", help="With FILE: the group that it fits.")
@click.option("--devices", type=int, default=0, help="With FILE: devices that a run requests.")
@click.option("--time", "limit", default="1h", help="With FILE: the time limit of a run.")
@json_option
@site_option
def publish_item(
    *,
    source: str,
    title: str,
    description: TextIO | None,
    audience: str,
    everyone: bool,
    pipeline: bool,
    outputs: bool,
    item: str,
    group: str,
    devices: int,
    limit: str,
    as_json: bool,
    site: str | None,
) -> None:
    """Publish a job of yours, or a notebook that has not run, by default for the group of the job.

    The source of the notebook and the parameters are copied, without outputs. Files in your home
    and uploaded files are not published. With --item it becomes a new version; old versions can
    still be run.

    \b
    Examples:
      carrel gallery publish j-7k2m4qpz --title "Train a classifier" --description about.md
      carrel gallery publish j-7k2m4qpz --item g-9x3k7mpa
      carrel gallery publish j-7k2m4qpz --pipeline --title "Nightly report" --everyone
      carrel gallery publish start.ipynb --title "First steps" --group cs101
    """
    about = description.read() if description is not None else None
    to = _chosen_audience(audience, everyone=everyone)
    with Client.from_environment(site) as client:
        if source.endswith(_SCRIPTS):
            if pipeline or outputs:
                raise InvalidArgument(
                    "A file has no outputs and no pipeline.",
                    accepted="Omit --pipeline and --outputs, or publish a job that ran.",
                )
            job = JobIn(
                group=group or _only_group(client),
                devices=devices,
                seconds=parsers.seconds(limit),
                notebook=parsers.notebook(Path(source)),
            )
            made = client.publish(job=job, title=title, description=about, audience=to, item=item)
        else:
            made = client.publish(
                request=source,
                title=title,
                description=about,
                audience=to,
                pipeline=pipeline,
                outputs=outputs,
                item=item,
            )
    _published(made, as_json=as_json)


@gallery_command.command("run", cls=ClientCommand, short_help="Submit the jobs of an item.")
@item_argument
@version_option
@click.option("--group", default="", metavar="GROUP", help="Default: your only group.")
@parameter_option("Replaces a published parameter; as for `carrel submit`.")
@json_option
@site_option
def run_item(
    *,
    item_id: str,
    version: int,
    group: str,
    parameters: tuple[tuple[str, str], ...],
    as_json: bool,
    site: str | None,
) -> None:
    """Submit the jobs of an item as your own, with the published parameters.

    \b
    Examples:
      carrel gallery run g-7k2m4qpz
      carrel gallery run g-7k2m4qpz --version 1 -p lr 0.05 --group cs101
    """
    given = {name: parsers.parameter(text) for name, text in parameters}
    with Client.from_environment(site) as client:
        requests = client.run_gallery_item(item_id, version=version, group=group, parameters=given)
    for request in requests:
        if as_json:
            display.as_json(request)
        else:
            click.echo(f"Submitted {request.id}: {display.place(request)}.")


@gallery_command.command("fork", cls=ClientCommand, short_help="Publish your own copy.")
@item_argument
@version_option
@click.option("--title", default="", metavar="TEXT", help="Default: that of the item.")
@audience_options[0]
@audience_options[1]
@json_option
@site_option
def fork_item(
    *,
    item_id: str,
    version: int,
    title: str,
    audience: str,
    everyone: bool,
    as_json: bool,
    site: str | None,
) -> None:
    """Publish your own copy of an item, which names its origin; outputs are not copied.

    \b
    Example:
      carrel gallery fork g-7k2m4qpz --title "Train a classifier, with dropout"
    """
    to = _chosen_audience(audience, everyone=everyone)
    with Client.from_environment(site) as client:
        made = client.fork_gallery_item(item_id, version=version, title=title, audience=to)
    _published(made, as_json=as_json)


@gallery_command.command("withdraw", cls=ClientCommand, short_help="Withdraw an item.")
@item_argument
@json_option
@site_option
def withdraw_item(*, item_id: str, as_json: bool, site: str | None) -> None:
    """Withdraw an item with all its versions; jobs that were started from it stay.

    For its owner, teachers of its group and administrators.

    \b
    Example:
      carrel gallery withdraw g-7k2m4qpz
    """
    with Client.from_environment(site) as client:
        client.withdraw_gallery_item(item_id)
    if as_json:
        display.as_json({"withdrawn": item_id})
    else:
        click.echo(f"Withdrew {item_id}.")


def _audience(item: GalleryItemOut) -> str:
    return "all users" if item.audience == "*" else item.audience


def _chosen_audience(group: str, *, everyone: bool) -> str:
    if group and everyone:
        raise InvalidArgument("Both --for and --everyone are given.", accepted="One of them.")
    return "*" if everyone else group


def _only_group(client: Client) -> str:
    groups = [each.name for each in client.groups()]
    if len(groups) != 1:
        raise InvalidArgument(
            "Choose the group that a run of this file fits.",
            accepted=f"--group GROUP, one of: {', '.join(groups) or 'none'}.",
        )
    return groups[0]


def _published(made: GalleryItemDetailOut, *, as_json: bool) -> None:
    if as_json:
        display.as_json(made)
        return
    version = made.shown.version
    click.echo(f"Published {made.id}, version {version}, for {_audience(made)}.")
    for job in made.shown.jobs:
        for sentence in job.left_out:
            click.echo(f"{job.name}: {sentence}")


def _show_job(job: GalleryJobOut) -> None:
    click.echo("")
    what = job.notebook or " ".join(job.command)
    devices = units.devices(job.devices, job.model)
    click.echo(f"{job.name}: {what}, {devices}, {units.duration(job.seconds)} at most")
    if job.image:
        click.echo(f"  image {job.image}")
    for sentence in [job.image_missing, *job.left_out]:
        if sentence:
            click.echo(f"  {sentence}")
    for each in job.parameters:
        value = display.dumped(each.value) if each.given else each.default
        click.echo(f"  {each.name} = {display.printable(value)} ({each.type})")


COMMANDS: dict[str, click.Command] = {"gallery": gallery_command}
