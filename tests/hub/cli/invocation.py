"""Invoke the command line against a fake service."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from carrel.hub.cli import ENTRIES, cli

from ...fake_service import FakeService

NOTEBOOK = json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


Carrel = Callable[..., Result]


def client_commands() -> dict[str, click.Command]:
    """Return the commands that call the service, by name."""
    context = click.Context(cli)
    found = {
        name: cli.get_command(context, name)
        for name, entry in ENTRIES.items()
        if not entry.administrators or name == "audit"
    }
    return {name: command for name, command in found.items() if command is not None}


@pytest.fixture
def service() -> Iterator[FakeService]:
    with FakeService() as fake:
        yield fake


@pytest.fixture
def carrel(service: FakeService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Carrel:
    """Run one command in an empty folder that holds train.ipynb."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CARREL_URL", service.url)
    monkeypatch.setenv("CARREL_TOKEN", "a-token")
    monkeypatch.setenv("TZ", "UTC")
    (tmp_path / "train.ipynb").write_text(NOTEBOOK)

    def run(name: str, *arguments: str, input: str | None = None) -> Result:
        return CliRunner().invoke(cli, [name, *arguments], input=input)

    return run
