"""The overview of commands, lazy imports, and the form of errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from carrel.hub.cli import ENTRIES, cli, main

from ...cli_reference import PAGE, page

BLOCKED = """
import sys

class Forbidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"sqlalchemy", "fastapi", "jupyterhub", "alembic", "tornado"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Forbidden())
from carrel.hub.cli import main
"""
"""Packages of the hub side cannot be imported."""
WITHOUT_THE_HUB = f"{BLOCKED}main(sys.argv[1:])"
EVERY_HELP_WITHOUT_THE_HUB = f"""{BLOCKED}
for name in sys.argv[1:]:
    try:
        main([name, "--help"])
    except SystemExit as ended:
        if ended.code:
            raise
"""


def without_the_hub(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT_THE_HUB, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_commands_for_all_users_need_no_hub_packages() -> None:
    commands = [name for name, entry in ENTRIES.items() if not entry.administrators]
    done = subprocess.run(
        [sys.executable, "-c", EVERY_HELP_WITHOUT_THE_HUB, *commands],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [name for name in commands if f"carrel {name}" not in done.stdout] == []


@pytest.mark.parametrize("words", [("user", "--help"), ("up", "--state", "new")], ids=" ".join)
def test_commands_for_administrators_say_what_they_need(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = without_the_hub(*words)
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: `carrel {words[0]}` needs the hub packages of Carrel")
    assert "pip install 'carrel[hub,session,runner]'" in done.stderr


def test_the_overview_lists_everything_by_reader() -> None:
    done = without_the_hub("--help")
    assert done.returncode == 0
    everybody, administrators = done.stdout.split("For administrators:")
    for name, entry in ENTRIES.items():
        part = administrators if entry.administrators else everybody
        assert f"\n  {name} " in part
        assert entry.help in part


def commands(group: click.Command, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = [path]
    if isinstance(group, click.Group):
        context = click.Context(group)
        for name in group.list_commands(context):
            below = group.get_command(context, name)
            assert below is not None
            found += commands(below, (*path, name))
    return found


@pytest.mark.parametrize("path", commands(cli), ids=" ".join)
def test_every_help_has_an_example(path: tuple[str, ...]) -> None:
    done = CliRunner().invoke(cli, [*path, "--help"])
    assert done.exit_code == 0
    assert f"  carrel {' '.join(path)}".rstrip() in done.output
    assert len(done.output) > 200


def test_the_reference_is_the_help_of_the_commands() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.cli_reference"


def test_a_refusal_is_one_sentence_on_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["user", "list", "--state", str(tmp_path)])
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (1, "")
    assert printed.err == (
        f"carrel: There is no Carrel installation in {tmp_path}. "
        f"Start one with: carrel up --state {tmp_path}\n"
    )


def test_wrong_usage_is_status_2() -> None:
    with pytest.raises(SystemExit) as ended:
        main(["up", "--port", "many"])
    assert ended.value.code == 2


@pytest.mark.parametrize(
    "word", ["course", "group", "images", "pool", "reserve", "session", "term", "user"]
)
def test_ls_and_list_are_the_same(word: str) -> None:
    context = click.Context(cli)
    found = cli.get_command(context, word)
    assert isinstance(found, click.Group)
    short, long = (found.get_command(context, each) for each in ("ls", "list"))

    assert short is long is not None


@pytest.mark.parametrize(
    "words",
    [
        "run --devices 0.5 -- true",
        "submit train.ipynb --devices 1.5",
        "session start --devices 0.5",
        "quote --devices 0.25",
        "change j-7k2m4qpz --devices 0.5",
    ],
)
def test_a_request_for_part_of_a_device_is_explained(words: str) -> None:
    done = CliRunner().invoke(cli, words.split())
    assert done.exit_code == 2
    assert "Only whole devices can be requested" in done.output
