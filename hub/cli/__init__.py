"""The command ``carrel``: every command is loaded only when it is called.

Commands for all users import only ``hub.client``, so that they work without the hub packages;
commands for administrators report if these are missing.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import click

from ... import __version__
from ..config import garbage_collection
from ..errors import CarrelError, InvalidArgument


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandEntry:
    """The module of a command, and its help line in the overview (which must not load it)."""

    module: str
    help: str
    administrators: bool = False


ENTRIES = {
    "login": CommandEntry(module=".login", help="Sign in to a Carrel site on this computer."),
    "logout": CommandEntry(module=".login", help="Sign out of a site on this computer."),
    "submit": CommandEntry(module=".jobs.submit", help="Run a notebook as a job."),
    "run": CommandEntry(module=".jobs.submit", help="Run a command as a job."),
    "ps": CommandEntry(module=".jobs.requests", help="List sessions and jobs."),
    "show": CommandEntry(module=".jobs.requests", help="Show everything about one request."),
    "why": CommandEntry(
        module=".jobs.why", help="Show why a request is queued, and what would help."
    ),
    "change": CommandEntry(module=".jobs.why", help="Change a queued request to need less."),
    "logs": CommandEntry(module=".jobs.requests", help="Print the log of a job."),
    "cancel": CommandEntry(
        module=".jobs.requests", help="Cancel requests, one by one or by label."
    ),
    "halt": CommandEntry(module=".jobs.halt", help="Let a running job save its work, and stop it."),
    "resume": CommandEntry(
        module=".jobs.resume", help="Go on with a job that failed or was stopped."
    ),
    "output": CommandEntry(
        module=".jobs.output", help="Fetch a job's executed notebook, or its files."
    ),
    "diff": CommandEntry(
        module=".jobs.diff", help="Compare two runs: sources, outputs, parameters."
    ),
    "wait": CommandEntry(
        module=".jobs.submit", help="Wait for a job; the exit status is its result."
    ),
    "schedule": CommandEntry(
        module=".jobs.schedules",
        help="Run a notebook by cron: add, list, pause, resume, run, remove.",
    ),
    "secret": CommandEntry(
        module=".secrets", help="Tokens and keys for jobs and sessions: set, list, remove."
    ),
    "gallery": CommandEntry(
        module=".jobs.gallery", help="Published jobs: list, show, publish, run, fork, withdraw."
    ),
    "import": CommandEntry(
        module=".jobs.job_files", help="Run job files of OpenPAI or FfDL: files or a folder."
    ),
    "export": CommandEntry(module=".jobs.job_files", help="Print a job as a job file of OpenPAI."),
    "pipeline": CommandEntry(
        module=".jobs.pipeline", help="Submit the jobs of a file, of which some wait for others."
    ),
    "sweep": CommandEntry(
        module=".jobs.sweep", help="Run a notebook with many parameters; common cells run once."
    ),
    "trials": CommandEntry(
        module=".jobs.sweep", help="List the trials of a sweep, and their results."
    ),
    "session": CommandEntry(
        module=".sessions.sessions",
        help="Sessions: start, ls, claim, keep, keep-place, extend, open, stop.",
    ),
    "serve": CommandEntry(
        module=".sessions.serve", help="Serve a model or function from a session."
    ),
    "quote": CommandEntry(
        module=".sessions.quote", help="Show how long a request would wait, without submitting it."
    ),
    "advise": CommandEntry(
        module=".jobs.advise", help="Measure a notebook, and advise on its batch."
    ),
    "predict": CommandEntry(module=".jobs.predict", help="Show how long a notebook would run."),
    "workers": CommandEntry(
        module=".jobs.workers", help="Show how many devices a job should have, and the price."
    ),
    "split": CommandEntry(
        module=".jobs.workers", help="Split a model into stages on several devices."
    ),
    "queue": CommandEntry(module=".jobs.requests", help="Show the queue in order, with reasons."),
    "pool": CommandEntry(
        module=".admin.pool", help="Show the devices of the pool; drain, quarantine."
    ),
    "notify": CommandEntry(
        module=".notify", help="Messages by mail, webhook or chat: list, set, off, test."
    ),
    "usage": CommandEntry(module=".usage", help="Show device-hours and ledger entries."),
    "history": CommandEntry(module=".usage", help="Show past utilization and wait times."),
    "unused": CommandEntry(module=".unused", help="Show what you held and did not use in a week."),
    "cache": CommandEntry(
        module=".compile_cache", help="Show or delete what your jobs have compiled with PyTorch."
    ),
    "report": CommandEntry(module=".report", help="Report usage, waits, money and kWh of a month."),
    "plan": CommandEntry(module=".plan", help="Plan the devices of the courses of a term."),
    "images": CommandEntry(
        module=".admin.images", help="Images: list, show, pin; build, verify, prune."
    ),
    "course": CommandEntry(
        module=".courses.courses",
        help="Courses: assignments, fetch, submit; create, roster, release.",
    ),
    "receipt": CommandEntry(
        module=".receipts.receipt", help="Fetch the signed receipt of an ended job."
    ),
    "rerun": CommandEntry(
        module=".receipts.rerun",
        help="Run a job again by its receipt, on the same image and inputs.",
    ),
    "verify": CommandEntry(
        module=".receipts.verify",
        help="Check a receipt, or an executed notebook, without the site.",
    ),
    "site-key": CommandEntry(
        module=".receipts.site_key", help="Show the public key that verifies receipts of the site."
    ),
    "token": CommandEntry(
        module=".programs.token", help="Programs with a budget of their own: create, ls, revoke."
    ),
    "approve": CommandEntry(
        module=".programs.token", help="Approve jobs that your programs submitted."
    ),
    "mcp": CommandEntry(
        module=".programs.mcp", help="Serve the Model Context Protocol, for agents."
    ),
    "audit": CommandEntry(
        module=".admin.audit",
        help="Show the audit log; verify the log that can be proved.",
        administrators=True,
    ),
    "up": CommandEntry(
        module=".admin.up",
        help="Start Carrel on this machine, and keep it running.",
        administrators=True,
    ),
    "down": CommandEntry(
        module=".down",
        help="Stop Carrel with all sessions and jobs.",
        administrators=True,
    ),
    "doctor": CommandEntry(
        module=".admin.doctor",
        help="Check this machine for missing or unsafe settings.",
        administrators=True,
    ),
    "backup": CommandEntry(
        module=".admin.backup",
        help="Back up the site, also while it is running.",
        administrators=True,
    ),
    "restore": CommandEntry(
        module=".admin.backup",
        help="Restore a state folder from a backup.",
        administrators=True,
    ),
    "node": CommandEntry(
        module=".admin.nodes",
        help="Machines of the pool: list, add, drain, remove.",
        administrators=True,
    ),
    "slurm": CommandEntry(
        module=".admin.slurm",
        help="A Slurm cluster as the engine: check, sync.",
        administrators=True,
    ),
    "user": CommandEntry(
        module=".admin.users",
        help="Accounts: add, import, link, passwd, list, remove.",
        administrators=True,
    ),
    "group": CommandEntry(
        module=".admin.groups",
        help="Groups, their limits, members and teachers.",
        administrators=True,
    ),
    "term": CommandEntry(
        module=".admin.calendar",
        help="Terms: the periods of budgets.",
        administrators=True,
    ),
    "reserve": CommandEntry(
        module=".admin.calendar",
        help="Reserve devices for a group, once or weekly.",
        administrators=True,
    ),
    "announce": CommandEntry(
        module=".admin.announcements",
        help="Announcements: banners on all pages, from and until.",
        administrators=True,
    ),
    "simulate": CommandEntry(
        module=".admin.simulate",
        help="Compare policies on a trace or on the history of the site.",
        administrators=True,
    ),
    "policy": CommandEntry(
        module=".policy",
        help="Try a learned queue order without its effects: shadow, show.",
        administrators=True,
    ),
    "rotate-keys": CommandEntry(
        module=".admin.secret_keys",
        help="Encrypt stored secrets under a new key.",
        administrators=True,
    ),
    "metrics-token": CommandEntry(
        module=".admin.metrics_token",
        help="Print the token for /metrics.",
        administrators=True,
    ),
}
_HUB_PACKAGES = frozenset(
    {"alembic", "fastapi", "jupyterhub", "psutil", "sqlalchemy", "tornado", "traitlets", "uvicorn"}
)


def _missing(command: str, error: ModuleNotFoundError) -> click.ClickException:
    """Return what a command needs whose import has failed. Raises other errors again."""
    if (error.name or "").partition(".")[0] not in _HUB_PACKAGES:
        raise error
    return click.ClickException(
        f"`carrel {command}` needs the hub packages of Carrel ({error.name} is missing). "
        "Install it with: pip install 'carrel[hub,session,runner]'"
    )


class LazyCommands(click.Group):
    """A group that loads a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(ENTRIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = ENTRIES.get(cmd_name)
        if entry is None:
            return None
        try:
            module = importlib.import_module(entry.module, __name__)
        except ModuleNotFoundError as error:
            raise _missing(cmd_name, error) from error
        command: click.Command = module.COMMANDS[cmd_name]
        return command

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:  # some packages are imported where they are used
            raise _missing(ctx.invoked_subcommand or "", error) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, administrators in (("For all users", False), ("For administrators", True)):
            rows = [
                (name, entry.help)
                for name, entry in ENTRIES.items()
                if entry.administrators is administrators
            ]
            with formatter.section(title):
                formatter.write_dl(rows)


@click.group(
    cls=LazyCommands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Help and examples for each command: carrel COMMAND --help",
)
@click.version_option(__version__, prog_name="carrel")
def cli() -> None:
    """Notebook sessions and batch notebook jobs on one shared GPU pool.

    \b
    A first job:
      carrel login http://127.0.0.1:8000
      carrel submit train.ipynb -p lr 0.05 --devices 1 --time 30m --group cs101
      carrel logs -f j-7k2m4qpz

    \b
    A first site, on this machine:
      carrel up --demo
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; errors of Carrel are one sentence on stderr, with exit status 1 or 2."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    garbage_collection.raise_thresholds()
    try:
        _check_text(given)
        cli.main(given, prog_name="carrel")
    except CarrelError as error:
        _fail(error, given)
    except OSError as error:
        if error.filename is not None:
            _fail(CarrelError(f"{str(error.filename)[:200]}: {error.strerror}."), given)
        # Python flushes stdout again when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        _fail(CarrelError(f"The output cannot be written: {error.strerror or error}."), given)


def _check_text(arguments: Sequence[str]) -> None:
    """Raise InvalidArgument for arguments that are not text in the encoding of this terminal."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise InvalidArgument(
                f"The argument {argument[:80]!r} is not text.", accepted="Give UTF-8 text."
            ) from None


def _fail(error: CarrelError, arguments: Sequence[str]) -> NoReturn:
    from .common.client_command import Failed  # noqa: PLC0415  # the overview loads no command

    failed = Failed(error, as_json="--json" in arguments)
    failed.show()
    sys.exit(failed.exit_code)
