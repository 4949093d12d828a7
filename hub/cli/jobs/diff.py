"""``carrel diff``: compare two runs."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from ...client import Client
from ...comparison.schemas import (
    ABSOLUTE,
    MOST_ABSOLUTE,
    MOST_RELATIVE,
    PARTS,
    RELATIVE,
    ComparisonIn,
    Part,
    RunIn,
    ToleranceIn,
)
from ...errors import InvalidInput, TooLarge
from ...schemas import MAX_NOTEBOOK_BYTES
from ..common import display
from ..common.client_command import WaitingCommand, json_option, site_option
from .diff_display import printed

_JOB = re.compile(r"[js]-[a-z0-9]{8}")
EQUAL, DIFFERENT = 0, 1
_STATUS_HELP = """\b
Exit status:
  0  the runs are equal
  1  they differ
  2  invalid usage
  6  refused, a run was not found, or Carrel is not responding"""


@click.command("diff", cls=WaitingCommand, epilog=_STATUS_HELP)
@click.argument("first", metavar="RUN")
@click.argument("second", metavar="RUN")
@click.option(
    "-t",
    "--tolerance",
    "relative",
    type=click.FloatRange(0, MOST_RELATIVE),
    default=RELATIVE,
    show_default=True,
    metavar="PART",
    help="Largest accepted difference of two numbers, as a part of the larger one.",
)
@click.option(
    "--absolute",
    type=click.FloatRange(0, MOST_ABSOLUTE),
    default=ABSOLUTE,
    show_default=True,
    metavar="NUMBER",
    help="Largest accepted difference of two numbers near zero.",
)
@click.option(
    "--pixel",
    type=click.IntRange(0, 255),
    default=0,
    show_default=True,
    metavar="N",
    help="Largest accepted difference of a colour of a pixel, of 255.",
)
@click.option(
    "--ignore",
    type=click.Choice(PARTS),
    multiple=True,
    help="A part whose differences do not count; may be repeated.",
)
@json_option
@site_option
def diff_command(
    *,
    first: str,
    second: str,
    relative: float,
    absolute: float,
    pixel: int,
    ignore: tuple[Part, ...],
    as_json: bool,
    site: str | None,
) -> None:
    """Compare two runs: two notebooks or two commands.

    RUN is the id of a job that has ended, or the path of an executed notebook (.ipynb), which is
    sent to the site for the comparison and not kept there. Sources are compared by lines, images
    by pixels, tables by cell, and numbers under a tolerance; also parameters, image and versions.

    \b
    Examples:
      carrel diff j-7k2m4qpz j-9x3w5rtn
      carrel diff j-7k2m4qpz results/train.ipynb --tolerance 1e-3
      carrel diff j-7k2m4qpz j-9x3w5rtn --ignore environment --json
    """
    wanted = ComparisonIn(
        a=_run(first),
        b=_run(second),
        tolerance=ToleranceIn(relative=relative, absolute=absolute, pixel=pixel),
        ignore=list(ignore),
    )
    with Client.from_environment(site) as client:
        found = client.compare(wanted)
    if as_json:
        display.as_json(found)
    else:
        for line in printed(found):
            click.echo(line)
    sys.exit(EQUAL if found.equal else DIFFERENT)


def _run(given: str) -> RunIn:
    path = Path(given).expanduser()
    if _JOB.fullmatch(given) and not path.exists():
        return RunIn(request=given)
    try:
        size = path.stat().st_size
        if size > MAX_NOTEBOOK_BYTES:
            raise TooLarge(
                f"{path} has {size / 2**20:.0f} MiB, which is too large to be compared.",
                accepted=f"Notebooks of at most {MAX_NOTEBOOK_BYTES >> 20} MiB.",
            )
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InvalidInput(
            f"{given} is neither the id of a job nor a file.",
            accepted="An id such as j-7k2m4qpz, or the path of an executed notebook.",
        ) from None
    except UnicodeDecodeError:
        raise InvalidInput(
            f"{path} is not a notebook: it is not UTF-8.", accepted="A Jupyter notebook (.ipynb)."
        ) from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from error
    if not text:
        raise InvalidInput(f"{path} is empty.", accepted="A Jupyter notebook (.ipynb).")
    return RunIn(notebook=text, name=path.name[:255])


COMMANDS: dict[str, click.Command] = {"diff": diff_command}
