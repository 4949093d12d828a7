"""``carrel workers`` and ``carrel split``: how many devices to use, from measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TextIO

import click

from ...client import Client
from ...errors import InvalidArgument, InvalidInput
from ...insight.job_samples import (
    SEARCHED_NAME,
    comparable_jobs,
    devices_per_node,
    job_samples,
    worker_noun,
)
from ...insight.pipeline_split import MOST_STAGES, PipelineSplit, best_split, operations_from_csv
from ...insight.step_samples import MOST_WORKERS, of_one_model, samples_from_csv
from ...insight.worker_advice import (
    WorkerAdvice,
    advice_sentences,
    advise_workers,
    choice_note,
)
from ...messages import units
from ...schemas import DeviceOut, RequestOut
from ..common import display
from ..common.client_command import ClientCommand, json_option, site_option

_NEWEST = 1000
"""How many of the owner's jobs are searched for runs of the same work."""


@click.command("workers", cls=ClientCommand)
@click.argument("jobs", metavar="JOB", nargs=-1)
@click.option(
    "--samples",
    type=click.File(encoding="utf-8-sig"),
    metavar="FILE",
    help="Measured steps instead of jobs: a CSV file with workers, seconds and, where you know "
    "them, nodes, batch (of one worker) and model; - for stdin.",
)
@click.option(
    "--total-batch",
    type=click.FloatRange(min=0, min_open=True, max=1e15),
    metavar="N",
    help="Batch of all workers together, the same for all numbers of workers.",
)
@click.option(
    "--per-node",
    type=click.IntRange(1, MOST_WORKERS),
    metavar="N",
    help="How many workers fit on a node; by default the devices of a node of the site, and with "
    "--samples as many as were measured on one.",
)
@click.option(
    "--most",
    type=click.IntRange(1, MOST_WORKERS),
    metavar="N",
    help="Largest number of workers to show.",
)
@click.option("--model", metavar="NAME", default="", help="Only samples of this device model.")
@json_option
@site_option
def workers_command(
    *,
    jobs: tuple[str, ...],
    samples: TextIO | None,
    total_batch: float | None,
    per_node: int | None,
    most: int | None,
    model: str,
    as_json: bool,
    site: str | None,
) -> None:
    """Show how a job gets faster with more devices, what that costs, and recommend a number.

    With one JOB, its owner's runs of the same notebook or command with the same parameters are
    compared by their run times; with several, exactly these. They must have run on at least two
    numbers of devices (or of members). With --samples, steps that you have measured are compared.

    SPEED-UP and COST (device time for the same work) are relative to the fewest workers measured.
    Between the bounds are 9 of 10 steps. Nothing is submitted or changed.

    \b
    Examples:
      carrel workers j-7k2m4qpz
      carrel workers j-7k2m4qpz j-9x3w5rtn --per-node 8
      carrel workers --samples steps.csv --total-batch 512 --json
    """
    if (samples is None) == (not jobs):
        raise InvalidArgument("Name jobs, or a file with --samples, and not both.")
    if samples is not None:
        found = of_one_model(samples_from_csv(_text_of(samples)), model)
        noun, unit = "worker", "step"
    else:
        if total_batch is not None:
            raise InvalidArgument("--total-batch is for --samples: a run does all work of a job.")
        compared, devices = _compared_jobs(jobs, site)
        found = of_one_model(job_samples(compared), model)
        per_node = per_node or devices_per_node(devices, found[0].model)
        noun, unit = worker_noun(compared), "run"
    advice = advise_workers(found, total_batch=total_batch, per_node=per_node, most=most)
    sentences = advice_sentences(advice, noun)
    if as_json:
        display.as_json(_as_json(advice, unit, len(found), sentences))
        return
    _print_choices(advice, noun, unit)
    for sentence in sentences:
        click.echo(sentence)


def _text_of(file: TextIO) -> list[str]:
    """Return the lines of a file.

    Raises:
        InvalidInput: it is not text.
    """
    try:
        return file.read().splitlines(keepends=True)
    except UnicodeDecodeError:
        raise InvalidInput(
            f"{file.name} is not a CSV file: it is not UTF-8.", accepted="A CSV file."
        ) from None


def _compared_jobs(
    ids: Sequence[str], site: str | None
) -> tuple[list[RequestOut], list[DeviceOut]]:
    """Return these jobs and the devices of the site.

    For a single job these are the newest ones of its owner with the same work.
    """
    with Client.from_environment(site) as client:
        devices = client.pool().devices
        jobs = [client.request(each) for each in dict.fromkeys(ids)]
        if len(jobs) > 1:
            return jobs, devices
        [job] = jobs
        known = client.requests(
            kind="job",
            states=("succeeded",),
            owner=job.owner,
            text=job.notebook[:SEARCHED_NAME],
            mine=False,
            limit=_NEWEST,
        )
    return comparable_jobs(job, known), devices


def _print_choices(advice: WorkerAdvice, noun: str, unit: str) -> None:
    header = [f"{noun.upper()}S", "NODES", unit.upper(), "BOUNDS", "SPEED-UP", "COST", ""]
    rows = [
        [
            str(each.workers),
            str(each.nodes),
            units.exact_duration(each.step.seconds),
            f"{units.exact_duration(each.step.low)} to {units.exact_duration(each.step.high)}",
            f"{each.speed_up:.2f}",
            f"{each.cost:.2f}",
            choice_note(each, advice),
        ]
        for each in advice.choices
    ]
    display.table(header, rows, right=f"{header[0]},NODES,{header[2]},SPEED-UP,COST")
    click.echo()


def _as_json(
    advice: WorkerAdvice, unit: str, samples: int, sentences: Sequence[str]
) -> dict[str, object]:
    return {
        "unit": unit,
        "samples": samples,
        "recommended": advice.recommended.workers,
        "total_batch": advice.total_batch,
        "choices": [asdict(each) for each in advice.choices],
        "sentences": list(sentences),
    }


@click.command("split", cls=ClientCommand)
@click.argument("operations", metavar="FILE", type=click.File(encoding="utf-8-sig"))
@click.option(
    "--devices",
    type=click.IntRange(1, MOST_STAGES),
    required=True,
    metavar="N",
    help="Number of equal devices.",
)
@click.option(
    "--link",
    "links",
    type=click.FloatRange(min=0, min_open=True, max=1e15),
    multiple=True,
    required=True,
    metavar="BYTES",
    help="Bytes per second from each device to the next; give it once for all links, or once for "
    "each in their order.",
)
@click.option(
    "--micro-batches",
    type=click.IntRange(1, 10**6),
    default=8,
    show_default=True,
    metavar="N",
    help="How many pass the pipeline before the weights change.",
)
@click.option(
    "--memory",
    type=click.FloatRange(min=0, min_open=True, max=1e15),
    metavar="BYTES",
    help="Memory of one device; no limit without it.",
)
@json_option
def split_command(
    *,
    operations: TextIO,
    devices: int,
    links: tuple[float, ...],
    micro_batches: int,
    memory: float | None,
    as_json: bool,
) -> None:
    """Show the best split of a model into stages on several devices, as a pipeline.

    FILE is a CSV file with a row for each operation (such as a layer) in their order: seconds of
    one micro-batch, forward and backward; result_bytes that go to the next device if the split is
    after it; and, where you know them, name and memory in bytes. - is stdin.

    \b
    Examples:
      carrel split layers.csv --devices 4 --link 12e9 --micro-batches 16
      carrel split layers.csv --devices 3 --link 200e9 --link 12e9 --memory 80e9 --json
    """
    if len(links) == 1:
        links *= devices - 1
    elif len(links) != devices - 1:
        raise InvalidArgument(
            f"{devices} devices have {units.count(devices - 1, 'link')}, and --link is given "
            f"{len(links)} times.",
            accepted="--link once, or once for each link.",
        )
    chain = operations_from_csv(_text_of(operations))
    limit = {} if memory is None else {"memory": memory}
    found = best_split(chain, links, micro_batches, **limit)
    alone = sum(each.seconds for each in chain) * micro_batches
    if as_json:
        display.as_json(asdict(found) | {"one_device_seconds": alone})
        return
    _print_stages(found, [each.name for each in chain])
    click.echo(
        f"{micro_batches} micro-batch{'es take' if micro_batches > 1 else ' takes'} "
        f"{units.exact_duration(found.seconds)}, {alone / found.seconds:.1f} times as fast as on "
        "one device."
    )


def _print_stages(split: PipelineSplit, names: Sequence[str]) -> None:
    bounds = [0, *split.cuts, len(names)]
    sent = [*map(units.exact_duration, split.link_seconds), ""]
    rows = [
        [str(number), _operations(names, begin, end), units.exact_duration(seconds), link]
        for number, (begin, end, seconds, link) in enumerate(
            zip(bounds[:-1], bounds[1:], split.stage_seconds, sent, strict=True), start=1
        )
    ]
    display.table(["STAGE", "OPERATIONS", "TIME", "LINK"], rows, right="STAGE,TIME,LINK")
    click.echo()


def _operations(names: Sequence[str], begin: int, end: int) -> str:
    """Return the first and the last operation of a stage, by number from 1 and by name."""
    first, last = (f"{at + 1} {names[at]}".rstrip() for at in (begin, end - 1))
    return first if end - begin == 1 else f"{first} to {last}"


COMMANDS: dict[str, click.Command] = {"workers": workers_command, "split": split_command}
