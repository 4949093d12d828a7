"""Arguments that are no text, odd ids and output that cannot be written end in one sentence."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from carrel.hub.cli import cli, main
from carrel.hub.cli.common.client_command import ClientCommand

from ...fake_service import FakeService
from .invocation import Carrel, carrel, client_commands, service

__all__ = ["carrel", "service"]

NO_TEXT = "\udcff"
COMMANDS = client_commands()
ODD = {"empty": "", "dot": ".", "dots": "..", "long": "x" * 70_000, "lines": "a/b\nc"}
SITES = ("\udcff", ".", "x" * 70_000, "\u0663", "\x7f\x1b[0m", "http://[", "http://a..b")


def leaves(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from leaves(found, (*path, name))
    elif isinstance(command, ClientCommand):
        yield path


def arguments_of(path: tuple[str, ...]) -> int:
    command: click.Command = COMMANDS[path[0]]
    for name in path[1:]:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), name)
        assert found is not None
        command = found
    return sum(max(1, each.nargs) for each in command.params if isinstance(each, click.Argument))


LEAVES = {" ".join(path): path for name, each in COMMANDS.items() for path in leaves(each, (name,))}


@pytest.fixture(autouse=True)
def no_installation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Commands for the machine of a site find none, also on the machine of a developer."""
    monkeypatch.setenv("CARREL_STATE", str(tmp_path / "none"))


@pytest.mark.parametrize("leaf", LEAVES)
def test_odd_ids_and_names_never_end_in_a_traceback(carrel: Carrel, leaf: str) -> None:
    path = LEAVES[leaf]
    for value in ODD.values():
        ended = carrel(*path, *[value] * arguments_of(path)).exception
        # main() makes a sentence of the error about a path that is too long.
        assert isinstance(ended, SystemExit | OSError | None), (value, ended)
    done = [carrel(*path, *["x"] * arguments_of(path), "--site", site) for site in SITES]
    assert all(isinstance(each.exception, SystemExit | None) for each in done), done


@pytest.mark.parametrize("command", ["show", "logs", "output", "why", "cancel", "wait"])
@pytest.mark.parametrize("value", ["", ".", "..", "x" * 70_000])
def test_an_id_that_no_address_holds_is_refused_with_status_2(
    service: FakeService, carrel: Carrel, command: str, value: str
) -> None:
    for flags in ((), ("--json",)):
        done = carrel(command, value, *flags)
        assert done.exit_code == 2
        assert done.stderr.count("\n") == 1
        assert not flags or json.loads(done.stderr)["error"]["code"] == "invalid_argument"
    assert service.calls == []


@pytest.mark.parametrize("command", ["show", "submit", "run", "user", "group", "course", "pool"])
def test_bytes_that_are_no_text_are_refused_with_status_2(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, NO_TEXT])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said == "carrel: The argument '\\udcff' is not text. Give UTF-8 text.\n"
    with pytest.raises(SystemExit) as ended:
        main([command, NO_TEXT, "--json"])
    assert ended.value.code == 2
    assert json.loads(capsys.readouterr().err)["error"]["code"] == "invalid_argument"


def test_wrong_usage_is_json_with_json(carrel: Carrel) -> None:
    done = carrel("show", "--json")
    assert done.exit_code == 2
    assert json.loads(done.stderr)["error"]["message"] == "Missing argument 'ID'."


def test_a_number_that_json_cannot_hold_is_refused_with_a_sentence(carrel: Carrel) -> None:
    done = carrel("submit", "train.ipynb", "-p", "x", "1e400", "--group", "cs101")
    assert done.stderr == (
        "carrel: The number '1e400' is too large. Give a number below 1e308, or text with --raw.\n"
    )


def test_nothing_precedes_the_json_of_an_error(
    service: FakeService, carrel: Carrel, tmp_path: Path
) -> None:
    service.refuse = (409, {"code": "refused", "message": "No.", "accepted": ""})
    for more in ("--upload", "--upload --yes", "--input data.csv"):
        (tmp_path / "data.csv").write_text("1")
        done = carrel(
            "submit", "train.ipynb", "--group", "cs101", "--json", *more.split(), input="y\n"
        )
        assert "error" in json.loads(done.stderr), more


@pytest.mark.parametrize("arguments", [["--help"], ["ps", "--help"], ["doctor", "--json"]])
def test_output_that_cannot_be_written_ends_in_a_sentence(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "carrel.hub.cli", *arguments],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert "The output cannot be written: No space left on device." in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_path_that_no_file_system_takes_ends_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(**_options: object) -> None:
        raise OSError(errno.ENAMETOOLONG, "File name too long", "xxx")

    monkeypatch.setattr(cli.get_command(click.Context(cli), "ps"), "callback", fails)
    with pytest.raises(SystemExit) as ended:
        main(["ps"])
    assert (ended.value.code, capsys.readouterr().err) == (1, "carrel: xxx: File name too long.\n")
