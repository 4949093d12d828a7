"""Pages and calls about the past, over a store with a past."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from carrel.hub.ports.history import DAY
from carrel.hub.scheduling.model import Group, Start

from ...contracts.store_kit import device as stored_device
from ...contracts.store_kit import job, running
from .fakes import API, PREFIX, World
from .test_pages import Page, check_page


@pytest.fixture
def world() -> World:
    """ada (cs101) has used 100 s on each side of the last midnight and 10 s since; ben, 5 s."""
    made = World()
    store = made.commands.store
    for name in ("cs101", "lab"):
        store.put_group(Group(name=name, max_devices=2, max_devices_per_user=2))
    store.set_teachers("cs101", ["ben"])
    store.sync_devices("n1", [stored_device("D0", 0), stored_device("D1", 1)])
    midnight = time.time() // DAY * DAY
    made.commands.clock = lambda: midnight + 110
    store.note_capacity(midnight - 1000)
    used = running(store, replace(job("a", owner="ada"), group="cs101"), "D0", at=midnight - 100)
    store.renew([used.id], now=midnight + 100, until=midnight + 130)
    store.charge(now=midnight + 100)
    store.submit(replace(job("b", owner="ben"), group="lab"), midnight + 45)
    store.grant([Start(request_id="j-b", devices=("D1",))], now=midnight + 105, lease_seconds=30)
    return made


def test_my_use_is_shown_by_day_and_by_request_down_to_the_ledger(world: World) -> None:
    answer = world.browser().get(f"{PREFIX}usage")
    assert answer.status_code == 200
    check_page(answer.text)
    assert "210 device-seconds" in answer.text
    page = Page(answer.text)
    assert page.all("svg")
    assert len(page.all("rect")) == 2
    assert "j-b" not in answer.text
    assert "200.0" in answer.text


def test_an_empty_past_says_what_to_do(world: World) -> None:
    html = world.browser("root-oauth").get(f"{PREFIX}usage").text
    check_page(html)
    assert "No device was used in this time." in html


def test_a_teacher_sees_the_group_and_not_others(world: World) -> None:
    html = world.browser("ben-oauth").get(f"{PREFIX}usage?whose=all&group=cs101").text
    check_page(html)
    assert "ada" in html
    assert "210 device-seconds" in html


@pytest.mark.parametrize("query", ["since=yesterday", "since=2026-02-30", "before=0"])
def test_days_that_are_none_are_refused_on_the_page(world: World, query: str) -> None:
    answer = world.browser().get(f"{PREFIX}usage?{query}")
    assert answer.status_code == 400
    check_page(answer.text)


def test_use_and_waits_are_for_administrators(world: World) -> None:
    answer = world.browser("root-oauth").get(f"{PREFIX}admin/use?span=day")
    assert answer.status_code == 200
    check_page(answer.text)
    assert len(Page(answer.text).all("svg")) == 3
    assert "60 s" in answer.text or "1 min" in answer.text
    assert world.browser("ben-oauth").get(f"{PREFIX}admin/use").status_code == 403


def test_a_course_is_for_its_teachers_and_does_not_exist_for_others(world: World) -> None:
    answer = world.browser("ben-oauth").get(f"{PREFIX}course/cs101?span=day")
    assert answer.status_code == 200
    check_page(answer.text)
    assert "Use by student" in answer.text
    assert f"{PREFIX}course/cs101" in answer.text
    assert world.browser("root-oauth").get(f"{PREFIX}course/lab").status_code == 200
    for who, group in (("ben-oauth", "lab"), ("ada-oauth", "cs101"), ("root-oauth", "x")):
        hidden = world.browser(who).get(f"{PREFIX}course/{group}")
        assert hidden.status_code == 404


def test_only_teachers_have_the_way_to_their_course(world: World) -> None:
    assert f"{PREFIX}course/cs101" in world.browser("ben-oauth").get(f"{PREFIX}usage").text
    assert f"{PREFIX}course/" not in world.browser("ada-oauth").get(f"{PREFIX}usage").text


def test_the_same_by_rest(world: World) -> None:
    ada = world.program("ada-reads")
    found = ada.get(f"{API}/usage?by=day").json()
    assert [row["charged"] for row in found["rows"]] == [100.0, 100.0]
    assert found["device_seconds"] == 210.0
    assert [line["device_seconds"] for line in found["ledger"]] == [200.0]
    assert ada.get(f"{API}/usage?lines=0").json()["ledger_complete"] is False
    assert ada.get(f"{API}/usage?by=year").status_code == 400
    assert ada.get(f"{API}/history").status_code == 403
    assert ada.get(f"{API}/history?group=cs101").status_code == 404
