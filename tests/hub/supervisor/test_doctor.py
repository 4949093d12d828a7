"""``carrel doctor``: messages, JSON and exit status."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from carrel.hub import plugins
from carrel.hub.cli import cli
from carrel.hub.config.settings import EngineKind, Settings
from carrel.hub.config.state_folder import StateFolder
from carrel.hub.errors import Unavailable
from carrel.hub.records.diagnostics import Finding, Severity

from ...mail_server import mail_server


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    return StateFolder.at(tmp_path / "state")


def called(state: StateFolder, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["doctor", "--state", str(state.root), *words])
    return done.exit_code, done.output


def about(state: StateFolder, subject: str, *words: str) -> dict[str, str]:
    _, said = called(state, "--json", *words)
    found: list[dict[str, str]] = json.loads(said)["findings"]
    return next(each for each in found if each["subject"] == subject)


class Ground:
    """An engine with one finding."""

    def findings(self) -> Iterator[Finding]:
        yield Finding(
            subject="limits", verdict=Severity.MISSING, what="No limit holds.", mend="Boot anew."
        )


def test_the_doctor_works_before_the_first_start_and_changes_nothing(state: StateFolder) -> None:
    status, said = called(state)
    assert status == 0
    assert "carrel.toml: There is no such file." in said
    assert "not isolated from each other" in said
    assert not state.root.exists()


def test_a_missing_part_sets_the_exit_status_and_has_a_remedy(
    state: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugins, "load_host_setup", lambda *_: Ground())
    status, said = called(state, "--engine", "docker")
    assert status == 1
    assert "MISSING  limits: No limit holds.\n         Boot anew.\n" in said
    status, said = called(state, "--engine", "docker", "--json")
    assert status == 1
    assert json.loads(said)["ok"] is False


def test_an_engine_that_does_not_answer_is_a_finding(
    state: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_: object) -> None:
        raise Unavailable("The Docker engine on local does not answer.")

    monkeypatch.setattr(plugins, "load_host_setup", silent)
    assert about(state, "engine", "--engine", "docker")["verdict"] == "missing"


def test_a_machine_on_which_no_image_can_be_built_is_a_warning(
    state: StateFolder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(plugins, "load_host_setup", lambda *_: Ground())
    monkeypatch.setenv("PATH", str(tmp_path))
    found = about(state, "BuildKit", "--engine", "docker")
    assert found["verdict"] == "warning"
    assert "docker.io" in found["mend"]
    docker = tmp_path / "docker"
    docker.write_text("#!/bin/sh\necho '--secret stringArray'\n")
    docker.chmod(0o755)
    assert about(state, "BuildKit", "--engine", "docker")["verdict"] == "fine"


def test_a_mistake_in_the_site_file_is_reported_with_its_position(state: StateFolder) -> None:
    state.create()
    state.site_file.write_text("[docker]\nprivileged = true\n")
    found = about(state, "carrel.toml")
    assert found["verdict"] == "missing"
    assert "docker.privileged: unknown key" in found["what"]


def test_a_port_in_use_is_reported_with_its_process(state: StateFolder) -> None:
    state.create()
    with socket.create_server(("127.0.0.1", 0)) as server:
        Settings(port=server.getsockname()[1]).save(state)
        found = about(state, "ports")
    assert found["verdict"] == "missing"
    assert "which people connect to, is taken by" in found["what"]
    assert about(state, "ports")["verdict"] == "fine"


def test_an_address_of_a_network_that_does_not_exist_yet_is_free(state: StateFolder) -> None:
    state.create()
    Settings(engine=EngineKind.LOCAL, port=0, internal_ip="10.255.255.1", hub_port=80).save(state)
    assert about(state, "ports")["verdict"] == "fine"


def test_access_without_https_is_a_warning(state: StateFolder) -> None:
    assert about(state, "certificate")["verdict"] == "fine"
    found = about(state, "certificate", "--url", "http://jupyter.example.edu")
    assert found["verdict"] == "warning"
    assert "passwords cross the network unencrypted" in found["what"]


def test_an_https_address_that_does_not_answer_is_reported(state: StateFolder) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    found = about(state, "certificate", "--url", f"https://127.0.0.1:{port}")
    assert found["verdict"] == "missing"
    assert "does not answer on port" in found["what"]


def test_a_mail_server_is_reported_while_it_answers_and_when_it_does_not(
    state: StateFolder,
) -> None:
    state.root.mkdir()
    keys = 'smtp = "127.0.0.1"\nsender = "carrel@example.edu"\nown_address = "{user}@example.edu"\n'
    with mail_server() as mail:
        text = f"[notifications]\nsmtp_port = {mail.port}\n{keys}"
        state.site_file.write_text(text, encoding="utf-8")
        assert about(state, "mail server")["verdict"] == Severity.FINE
    found = about(state, "mail server")
    assert found["verdict"] == Severity.MISSING
    assert f"port {mail.port}, cannot be used" in found["what"]
    assert "smtp_port below [notifications]" in found["mend"]
