"""The panel of a job that compares runs of the same work on other numbers of devices."""

from __future__ import annotations

from carrel.hub.schemas import RequestOut

from ...fakes import NOW, PREFIX, World, device, job, lease
from ...page_checks import check_page, text_of


def run(id_: str, devices: int, seconds: float, **changes: object) -> RequestOut:
    """Return a job that succeeded on so many devices of one node."""
    held = lease(*map(device, range(devices)), id=f"{id_}.1", granted_at=NOW - seconds)
    known = {"state": "succeeded", "ended": True, "ended_at": NOW, "lease": held.model_dump()}
    return job(id=id_, devices=devices, **known | changes)


def panel(world: World, id_: str) -> str:
    answer = world.browser().get(f"{PREFIX}requests/{id_}/workers")
    assert answer.status_code == 200
    return " ".join(text_of(answer.text).split())


def test_the_panel_recommends_a_number_of_devices_with_its_price() -> None:
    world = World()
    world.service.put(
        run("j-aaaaaaaa", 1, 1200.0),
        run("j-bbbbbbbb", 2, 700.0),
        run("j-cccccccc", 4, 450.0),
        run("j-dddddddd", 4, 9.0, parameters={"steps": 1}),
        run("j-eeeeeeee", 4, 9.0, owner="ben"),
        run("j-ffffffff", 4, 9.0, state="failed"),
    )
    world.service.devices = [device(number) for number in range(4)]
    page = world.browser().get(f"{PREFIX}requests/j-bbbbbbbb").text
    check_page(page)
    assert "More or fewer devices" in page
    shown = panel(world, "j-bbbbbbbb")
    assert "Use 4 devices: 1.6 times faster than 2, 1.3 times the cost." in shown
    assert "recommended 8 2 " in shown
    assert "measure before" in shown


def test_without_runs_on_other_numbers_the_panel_says_what_is_missing() -> None:
    world = World()
    world.service.put(run("j-aaaaaaaa", 2, 700.0))
    assert "1 run of it succeeded, on not more than one number" in panel(world, "j-aaaaaaaa")


def test_one_member_and_several_of_the_same_command_are_compared() -> None:
    world = World()
    role = {"name": "member", "command": ["train"], "devices": 1}
    plain = {"notebook": "", "output": "", "command": ["train"]}
    world.service.put(
        run("j-aaaaaaaa", 1, 1200.0, **plain), run("j-bbbbbbbb", 2, 700.0, roles=[role], **plain)
    )
    assert "Use 2 devices: 1.7 times faster than 1" in panel(world, "j-aaaaaaaa")


def test_the_panel_of_a_job_of_another_user_is_not_shown() -> None:
    world = World()
    world.service.put(run("j-aaaaaaaa", 2, 700.0, owner="ben"))
    assert world.browser().get(f"{PREFIX}requests/j-aaaaaaaa/workers").status_code == 404
