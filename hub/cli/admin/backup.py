"""``carrel backup`` and ``carrel restore``."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import click

from ...backup.copier import Advance
from ...backup.create import BackupOptions, back_up, record
from ...backup.manifest import Manifest
from ...backup.restore import Restored, RestoreOptions, verify
from ...backup.restore import restore as bring_back
from ...config.state_folder import StateFolder
from ...errors import CarrelError
from ...messages import units
from ...store import open_store
from ...store.sql.database import newest_revision
from ..common.notes import note
from ..common.operator_options import operator, state_option

_LEFT_OUT_SHOWN = 5

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object; progress goes to stderr."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watcher:
    """Prints progress on stderr, since a program may read stdout."""

    def say(self, text: str) -> None:
        click.echo(text, err=True)

    @contextmanager
    def bar(self, label: str, total: int) -> Iterator[Advance]:
        with click.progressbar(length=max(1, total), label=label, file=sys.stderr) as shown:

            def advance(size: int) -> None:
                shown.update(size)

            yield advance


@click.command()
@click.argument("target", metavar="DIR", type=click.Path(path_type=Path))
@state_option
@click.option("--homes", is_flag=True, help="Include the homes; prints their size first.")
@click.option("--keys", is_flag=True, help="Include the keys of users' secrets.")
@json_option
def backup(*, target: Path, state: StateFolder, homes: bool, keys: bool, as_json: bool) -> None:
    """Back up this site into DIR, also while it is running.

    The backup has the databases of Carrel, JupyterHub and the accounts, settings and secrets,
    and the inputs and outputs of all requests. The databases are copied as of one moment; users
    can continue to work. Homes are left out unless --homes is given.

    DIR must not exist or be empty. It is written as DIR.partial and renamed when it is complete.
    It contains password hashes and tokens: only your account can read it. Secrets of `carrel
    secret` are encrypted in it, and their keys are left out unless --keys is given: keep a copy
    of encryption.keys elsewhere, or users set their secrets again after a restore.

    --json prints: backup, made_at, version, revision, files, bytes, homes, left_out.

    \b
    Examples:
      carrel backup /backup/carrel-2026-11-21
      carrel backup /backup/carrel-$(date +%F) --homes --json
    """
    options = BackupOptions(state=state, target=target, homes=homes, keys=keys)
    made = back_up(options, Watcher(), time.time)
    _record(made, target, state)
    if as_json:
        click.echo(json.dumps({"backup": str(target.absolute()), **_facts(made)}))
        return
    click.echo(f"The backup {target.absolute()} is complete: {_summary(made)}.")
    for name in made.left_out[:_LEFT_OUT_SHOWN]:
        click.echo(f"Left out (not a file, folder or link, or not readable): {name}")
    if len(made.left_out) > _LEFT_OUT_SHOWN:
        click.echo(f"… and {len(made.left_out) - _LEFT_OUT_SHOWN} more; all are in its manifest.")
    click.echo(f"Verify it: carrel restore {shlex.quote(str(target.absolute()))} --check")


def _record(made: Manifest, target: Path, state: StateFolder) -> None:
    """List the backup in the audit log; the backup is complete also if that fails."""
    if made.revision != newest_revision():
        # Opening the store would upgrade the database, below a service of the older version.
        note("Not in the audit log: the site runs another version of Carrel.")
        return
    try:
        with closing(open_store(state.database)) as store:
            store.add_change(record(made, target, at=time.time(), who=operator()))
    except CarrelError as error:
        note(f"Not in the audit log: {error}")


@click.command()
@click.argument(
    "source", metavar="DIR", type=click.Path(path_type=Path, exists=True, file_okay=False)
)
@state_option
@click.option("--replace", is_flag=True, help="Move an existing state folder aside.")
@click.option("--drained", is_flag=True, help="Start no work until `carrel pool undrain NODE`.")
@click.option("--check", is_flag=True, help="Only check the backup; restore nothing.")
@json_option
def restore(
    *,
    source: Path,
    state: StateFolder,
    replace: bool,
    drained: bool,
    check: bool,
    as_json: bool,
) -> None:
    """Restore a state folder from the backup in DIR.

    The manifest and all files are verified before anything is written. The state folder must not
    be in use, and must be empty unless --replace moves it aside. Start it with `carrel up`.
    Processes of the backup no longer exist: running sessions end as failed; running jobs end with
    the result that they had stored, or as lost, or are queued again if they have retries.
    Queued requests keep their position.

    With --drained no work starts, so that you can inspect a copy beside the original site.

    --json prints: state, aside, made_at, version, revision, files, bytes, homes, left_out.

    \b
    Examples:
      carrel restore /backup/carrel-2026-11-21 --check
      carrel restore /backup/carrel-2026-11-21 --state /srv/carrel --replace
      carrel restore /backup/carrel-2026-11-21 --state /tmp/rehearsal --drained
    """
    if check:
        found = verify(source, Watcher())
        facts = {"state": None, "aside": None, **_facts(found)}
        click.echo(json.dumps(facts) if as_json else f"The backup is complete: {_summary(found)}.")
        return
    options = RestoreOptions(
        backup=source, state=state, replace=replace, drained=drained, who=operator()
    )
    done = bring_back(options, Watcher(), time.time)
    if as_json:
        aside = None if done.aside is None else str(done.aside)
        click.echo(json.dumps({"state": str(state.root), "aside": aside, **_facts(done.manifest)}))
        return
    _print_result(done, state, drained=drained)


def _print_result(done: Restored, state: StateFolder, *, drained: bool) -> None:
    click.echo(f"Restored {state.root}: {_summary(done.manifest)}.")
    if done.aside is not None:
        click.echo(f"The former state folder is in {done.aside}.")
        if not done.manifest.homes and (done.aside / "homes").is_dir():
            homes = shlex.join(["cp", "-a", str(done.aside / "homes"), str(state.root)])
            click.echo(f"The backup has no homes. Move the former ones with: {homes}")
    elif not done.manifest.homes:
        click.echo("The backup has no homes: all homes are empty.")
    if drained:
        click.echo("All nodes are drained: nothing starts until `carrel pool undrain NODE`.")
    click.echo(f"Start it with: carrel up --state {shlex.quote(str(state.root))}")


def _facts(manifest: Manifest) -> dict[str, object]:
    return {
        "made_at": manifest.made_at,
        "version": manifest.version,
        "revision": manifest.revision,
        "files": sum(1 for _ in manifest.files),
        "bytes": manifest.size,
        "homes": manifest.homes,
        "left_out": list(manifest.left_out),
    }


def _summary(manifest: Manifest) -> str:
    files = units.count(sum(1 for _ in manifest.files), "file")
    made = datetime.fromtimestamp(manifest.made_at, UTC).astimezone().strftime("%-d %b %Y %H:%M")
    homes = "with homes" if manifest.homes else "without homes"
    return f"{files}, {units.size(manifest.size)}, {homes}, as of {made}"


COMMANDS: dict[str, click.Command] = {"backup": backup, "restore": restore}
