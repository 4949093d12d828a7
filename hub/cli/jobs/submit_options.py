"""Options, upload and submission of ``carrel submit`` and ``carrel run``."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict, TypeVar

import click
from pydantic import JsonValue

from ...attempts.compile_caches import LABEL, OFF
from ...client import Client, job_builder, roles_file, session_home
from ...client.job_builder import WorkingFolder
from ...client.work_archive import WorkArchive
from ...errors import InvalidInput
from ...messages import units
from ...schemas import JobIn, RequestOut, parsers
from ..common import display
from ..common.client_command import DeviceCount
from ..common.notes import confirmed, note
from ..common.request_options import model_field, model_option, parameter_option
from ..common.wait import wait_for

F = TypeVar("F", bound=Callable[..., object])


class SubmitOptions(TypedDict):
    """The values of the options that both commands have."""

    devices: int
    model: str | None
    limit: str
    memory: str | None
    retries: int | None
    priority: str
    not_preemptible: bool
    deadline: str | None
    group: str | None
    image: str
    no_internet: bool
    no_compile_cache: bool
    after: tuple[str, ...]
    secrets: tuple[str, ...]
    labels: tuple[str, ...]
    inputs: tuple[Path, ...]
    upload: bool
    workdir: str | None
    yes: bool
    wait_for_end: bool
    follow: bool


time_option = click.option(
    "--time",
    "limit",
    default="1h",
    show_default=True,
    metavar="SPAN",
    help=f"Time limit: {parsers.TIME_HELP}.",
)
_OPTIONS = (
    click.option(
        "--devices",
        type=DeviceCount(min=0),
        default=0,
        show_default=True,
        help="Whole devices (GPUs); 0 for a job on CPU.",
    ),
    model_option,
    time_option,
    click.option(
        "--memory",
        metavar="SIZE",
        help=f"Memory for all its processes: {parsers.MEMORY_HELP}. "
        "A job that uses more ends with the cause out_of_memory.",
    ),
    click.option(
        "--retries",
        type=click.IntRange(min=0),
        metavar="N",
        help="How often the job is tried again after a transient error or a lost process; "
        "by default 0 and 3 times. With 0 it never runs twice. Errors of the job's own code are "
        "not retried.",
    ),
    click.option(
        "--priority",
        type=click.Choice(["opportunistic", "normal", "urgent"]),
        default="normal",
        show_default=True,
        help="Opportunistic jobs start last and are preempted first; urgent is for teachers "
        "and administrators.",
    ),
    click.option(
        "--not-preemptible",
        is_flag=True,
        help="Never preempt it; it then starts only on devices that no other group can reclaim.",
    ),
    click.option(
        "--deadline",
        metavar="WHEN",
        help=f"When it should have ended: {parsers.MOMENT_HELP}. Its order in its "
        "group improves when the deadline is close.",
    ),
    click.option("--group", help="Group to charge; optional for members of one group."),
    click.option(
        "--image",
        default="",
        metavar="IMAGE",
        help="Image to run in: its name, or NAME@sha256:… for one build; see `carrel images`.",
    ),
    click.option(
        "--no-internet",
        is_flag=True,
        help="Allow network access to this site's service only; requires containers.",
    ),
    click.option(
        "--no-compile-cache",
        is_flag=True,
        help="Neither load what earlier jobs have compiled with PyTorch, nor keep what this one "
        "compiles: the label compile-cache=off.",
    ),
    click.option(
        "--after",
        multiple=True,
        metavar="JOB[:ok|:any]",
        help="Start when this job has succeeded, or with :any when it has ended; until then the "
        "job holds nothing. May be repeated.",
    ),
    click.option(
        "--secret",
        "secrets",
        multiple=True,
        metavar="NAME[:file|:env[=VARIABLE]]",
        help="A secret of `carrel secret`: as the file $CARREL_SECRETS/NAME, or with :env as an "
        "environment variable. May be repeated.",
    ),
    click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="May be repeated."),
    click.option(
        "--input",
        "inputs",
        multiple=True,
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="Copy this file into the job's working folder, which is then a folder of its own; "
        "may be repeated.",
    ),
    click.option(
        "--upload",
        is_flag=True,
        help="Upload this folder, without the patterns in .carrelignore (as in .gitignore).",
    ),
    click.option(
        "--workdir", metavar="DIR", help="Working folder in your home on the site; . is the home."
    ),
    click.option("--yes", "-y", is_flag=True, help="Do not ask before an upload."),
    click.option("--wait", "wait_for_end", is_flag=True, help="Wait until it has ended."),
    click.option(
        "--follow", "-f", is_flag=True, help="Wait, and show cells, outputs and progress."
    ),
)


_NOTEBOOK_OPTIONS = (
    parameter_option(
        "A parameter of the notebook. VALUE is a number, true, false or null if it looks like "
        "one, and text otherwise."
    ),
    click.option(
        "-r",
        "--raw",
        "raw",
        nargs=2,
        multiple=True,
        metavar="NAME TEXT",
        help="A parameter whose value is always text.",
    ),
    click.option(
        "--result",
        "results",
        nargs=2,
        multiple=True,
        metavar="NAME JOB.VALUE",
        help="A parameter that gets a value of a job of --after when that has ended: "
        "JOB.report.NAME, the last value reported as NAME (of a sweep, by its best trial); "
        "JOB.best.NAME, a parameter of the best trial of a sweep; JOB.trial, its number; or "
        "JOB.id. May be repeated.",
    ),
    click.option(
        "--output", default="", metavar="NAME", help="File name of the executed notebook."
    ),
    click.option(
        "--kernel", default="", metavar="NAME", help="Kernel to use instead of the notebook's."
    ),
)


roles_option = click.option(
    "--roles",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A TOML file with roles whose members run together, each with its own command, number "
    "of members, devices and image.",
)


def notebook_options(function: F) -> F:
    for option in reversed(_NOTEBOOK_OPTIONS):
        function = option(function)
    return function


def notebook_fields(
    path: Path,
    parameters: tuple[tuple[str, str], ...],
    raw: tuple[tuple[str, str], ...],
    *,
    results: tuple[tuple[str, str], ...],
    output: str,
    kernel: str,
) -> dict[str, object]:
    """Return the fields of a notebook job; reads the notebook."""
    given: dict[str, JsonValue] = {name: parsers.parameter(text) for name, text in parameters}
    return {
        "notebook": parsers.notebook(path),
        "parameters": given | dict(raw),
        **({"results": dict(results)} if results else {}),
        "output": output,
        "kernel": kernel,
    }


def job_options(function: F) -> F:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def send(
    what: dict[str, object],
    folder: Path,
    common: SubmitOptions,
    *,
    needs_files: bool,
    nodes: int | None = None,
    as_json: bool,
    site: str | None,
) -> None:
    """Submit a job; with --wait or --follow, exit with its result as the exit status.

    ``nodes``: the number of members that run the command together; None: one, as usual.
    """
    fields = built_fields(what, folder, common, needs_files=needs_files, site=site)
    if nodes is not None:
        fields = roles_file.of_nodes(nodes, fields)
    send_fields(fields, common, as_json=as_json, site=site)


def send_fields(
    fields: dict[str, object], common: SubmitOptions, *, as_json: bool, site: str | None
) -> None:
    """Submit a job of these fields; with --wait or --follow, exit with its result."""
    with Client.from_environment(site) as client:
        request = client.submit(built_job(client, fields, common))
        if request.notes:
            note(f"{request.notebook} was repaired: {' '.join(request.notes)}")
        waits = common["wait_for_end"] or common["follow"]
        if not (waits and as_json):
            _submitted(request, as_json=as_json, hint=not waits)
        if waits:
            sys.exit(wait_for(client, [request.id], None, as_json, follow=common["follow"]))


def built_job(client: Client, fields: dict[str, object], common: SubmitOptions) -> JobIn:
    """Return the body of the job, charged to the chosen or the only group."""
    group = common["group"] or job_builder.only_group(client, "--group")
    return job_builder.job(fields | {"group": group}, maker="cli")


def built_fields(
    what: dict[str, object],
    folder: Path,
    common: SubmitOptions,
    *,
    needs_files: bool,
    site: str | None,
) -> dict[str, object]:
    """Return the fields of a job from the options, with its packed files."""
    labels = dict(parsers.label(text) for text in common["labels"])
    if common["no_compile_cache"]:
        labels[LABEL] = OFF
    fields: dict[str, object] = {
        "devices": common["devices"],
        "seconds": parsers.seconds(common["limit"]),
        "labels": labels,
    }
    fields |= model_field(common["model"])
    if common["memory"]:
        fields["memory_bytes"] = parsers.memory_bytes(common["memory"])
    if common["retries"] is not None:
        fields["retries"] = common["retries"]
    if common["priority"] != "normal":
        fields["priority"] = common["priority"]
    if common["not_preemptible"]:
        fields["preemptible"] = False
    if common["image"]:
        fields["image"] = common["image"]
    if common["no_internet"]:
        fields["internet"] = False
    if common["after"]:
        fields["after"] = list(common["after"])
    if common["secrets"]:
        fields["secrets"] = list(common["secrets"])
    if common["deadline"]:
        fields["deadline"] = parsers.moment(common["deadline"], time.time())
    place = job_builder.working_folder(
        folder,
        home=session_home(site),
        upload=common["upload"],
        inputs=common["inputs"],
        workdir=common["workdir"],
        needed=needs_files,
    )
    packed = _packed(place, folder, yes=common["yes"], ask=common["upload"])
    return fields | what | packed


def _packed(place: WorkingFolder, folder: Path, *, yes: bool, ask: bool) -> dict[str, str]:
    """Return the fields of the upload; print its size, and ask for confirmation if ``ask``."""
    if place.upload is None:
        return place.fields
    fields = place.fields
    size = units.size(len(fields["archive"]) * 3 // 4)
    description = _described(place.upload, folder if ask else None, size)
    if yes or not ask:
        note(f"{description}.")
        return fields
    if not confirmed(f"{description}. Upload?", default=True):
        raise InvalidInput(
            "Nothing was uploaded.",
            accepted="Add --yes in scripts, and list unneeded files in .carrelignore.",
        )
    return fields


def _described(archive: WorkArchive, folder: Path | None, packed_size: str) -> str:
    files = units.count(len(archive.items), "file")
    origin = f" of {folder.resolve()}" if folder else ""
    text = f"{files}{origin}, {units.size(archive.size_bytes)} ({packed_size} packed)"
    if archive.left_out:
        shown = ", ".join(archive.left_out[:3]) + (", …" if archive.left_out[3:] else "")
        text += f"; links are not uploaded: {shown}"
    return text


def _submitted(request: RequestOut, *, as_json: bool, hint: bool) -> None:
    if as_json:
        display.as_json(request)
        return
    waits = f" {request.wait.sentence}" if request.wait else ""
    click.echo(f"Submitted {request.id}: {display.place(request)}.{waits}")
    if hint:
        click.echo(f"Follow its log with: carrel logs -f {request.id}")
