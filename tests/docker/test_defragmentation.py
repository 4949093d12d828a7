"""Defragmentation: a small job is relocated to another machine to free a whole node.

Its owner is notified, it saves, is stopped, and continues there from its checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from carrel.hub.config.settings import Settings
from carrel.hub.config.state_folder import StateFolder

from ..docker_engine import DockerEngine
from ..e2e.browser import Person, chromium
from ..e2e.lending import BORROWER as SMALL
from ..e2e.lending import OWNER as LARGE
from ..e2e.lending import WORK, begun, overlaps
from ..e2e.support import Installation, eventually
from .outside import far_machine, two_machines

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.browser]

GRACE = 30.0
MACHINES = {"local", "far"}


@pytest.fixture
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


@pytest.fixture
def site(
    docker_engine: DockerEngine, base_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    """Two devices on each of two machines; cs101 and lab are guaranteed two each."""
    state = StateFolder.at(tmp_path_factory.mktemp("moving") / "state")
    state.create()
    Settings(preemption_grace_seconds=GRACE).save(state)
    with (
        far_machine(docker_engine, base_image) as far,
        two_machines(docker_engine, far, state.root, devices=2) as made,
    ):
        where = ("--state", str(made.state))
        limits = ("--max-devices", "4", "--max-devices-per-user", "4", "--guaranteed", "2")
        made.cli("group", "set", "cs101", *limits, *where)
        made.cli("group", "add", "lab", *limits, "--member", SMALL, *where)
        yield made


def submit(site: Installation, user: str, group: str, devices: int) -> str:
    body = {
        "group": group,
        "devices": devices,
        "seconds": 1200,
        "workdir": ".",
        "command": ["python", "-c", WORK],
    }
    answer = site.api("POST", "/requests", user=user, json=body)
    assert answer.is_success, answer.text
    return str(answer.json()["id"])


def runs_on(site: Installation, request_id: str, user: str) -> str:
    found = site.wait_for(request_id, "running", user=user, within=240)
    (node,) = {device["node"] for device in found["lease"]["devices"]}
    return str(node)


def one_on_each(site: Installation) -> dict[str, str]:
    """By machine, a job of lab: four ran, and one on each has ended."""
    found: dict[str, list[str]] = {}
    for request_id in [submit(site, SMALL, "lab", 1) for _ in range(4)]:
        found.setdefault(runs_on(site, request_id, SMALL), []).append(request_id)
    for _, ends in found.values():
        site.cli("cancel", ends, "--yes", user=SMALL)
        site.wait_for(ends, "cancelled", user=SMALL)
    assert found.keys() == MACHINES
    for stays, _ in found.values():
        eventually(lambda stays=stays: begun(site, stays), f"{stays} has begun")
    return {node: stays for node, (stays, _) in found.items()}


def test_both_run_in_the_end_on_machines_of_their_own(browser: Browser, site: Installation) -> None:
    small = one_on_each(site)
    begun = {node: site.request(name, user=SMALL)["lease"]["id"] for node, name in small.items()}
    large = submit(site, LARGE, "cs101", 2)

    def told() -> tuple[str, dict[str, Any]] | None:
        for name in small.values():
            warning = site.request(name, user=SMALL)["warning"]
            if warning:
                return name, warning
        return None

    moved, warning = eventually(told, "the small job is relocated")
    assert "goes on elsewhere" in warning["message"]
    person = Person.sits_down(browser, site, SMALL)
    person.sign_in()
    person.page.goto(f"{site.service}/requests/{moved}")
    state = person.page.locator("#request-state")
    expect(state.locator(".idle-warning")).to_contain_text("goes on elsewhere")
    person.picture("moved-notice")
    why = site.cli("why", large, user=LARGE).stdout
    assert "it starts when the notice ends" in why, why

    left = next(node for node, name in small.items() if name == moved)
    assert runs_on(site, large, LARGE) == left
    # What it saved is all that was left to do.
    ended = site.wait_for(moved, "succeeded", user=SMALL, within=240)
    (other,) = MACHINES - {left}
    assert {device["node"] for device in ended["lease"]["devices"]} == {other}
    assert ended["lease"]["epoch"] == 2
    expect(state).to_contain_text("succeeded")
    person.picture("moved-and-done")
    stayed = site.request(small[other], user=SMALL)
    assert (stayed["state"], stayed["lease"]["id"]) == ("running", begun[other])
    charged = [
        (line["starts_at"], line["ends_at"])
        for line in site.ledger(SMALL)
        if line["lease_id"] in (begun[left], ended["lease"]["id"])
    ]
    assert len(charged) >= 2
    assert not overlaps(charged)
