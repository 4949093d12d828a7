"""Schedules over HTTP and on their page."""

from __future__ import annotations

import pytest

from carrel.hub.controller.loop import Loop
from carrel.hub.records.identity import Identity

from ...doubles import STRANGER, STUDENT1, TEACHER, no_time
from ...notebooks import notebook
from ..fakes import API, PREFIX
from ..page_checks import check_page, text_of
from ..site import Site, site

__all__ = ["site"]

JOB = {
    "group": "cs101",
    "seconds": 600,
    "notebook": {"name": "report.ipynb", "content": notebook("print(1)")},
}
DAILY = {"cron": "0 6 * * *", "zone": "Europe/Berlin", "job": JOB, "idempotency_key": "k"}
PAGE = f"{PREFIX}schedules"


@pytest.fixture
def made(site: Site) -> str:
    """Return the id of a daily schedule of student1."""
    created = site.api(STUDENT1).post(f"{API}/schedules", json=DAILY)
    assert created.status_code == 201, created.text
    return str(created.json()["id"])


def fire(site: Site) -> None:
    """Run the loop a day later, until it has submitted what is due."""
    site.clock.pass_(86400)
    loop = Loop(site.context, node="local", decision_clock=no_time)
    loop.cycle()
    assert loop.wait_for_actions(60)
    loop.close()


def press(site: Site, who: Identity, schedule_id: str, do: str) -> tuple[int, str]:
    """Press a button of the page, and return the status and the text of the next page."""
    answer = site.page(who).post(PAGE, data={"id": schedule_id, "do": do})
    return answer.status_code, answer.text


def test_create_list_change_run_and_remove(site: Site, made: str) -> None:
    api = site.api(STUDENT1)
    assert api.post(f"{API}/schedules", json=DAILY).json()["id"] == made
    (listed,) = api.get(f"{API}/schedules").json()["schedules"]
    assert listed == api.get(f"{API}/schedules/{made}").json()
    assert (listed["what"], listed["group"], listed["state"]) == ("report.ipynb", "cs101", "active")

    at = f"{API}/schedules/{made}"
    changed = api.post(f"{at}/change", json={"cron": "0 7 * * *"}).json()
    assert changed["next_at"] == listed["next_at"] + 3600
    assert api.post(f"{at}/change", json={"state": "paused"}).json()["next_at"] is None

    request = api.post(f"{at}/run", json={})
    assert request.status_code == 201
    assert request.json()["labels"] == {"schedule": made}

    assert api.delete(at).status_code == 204
    assert api.delete(at).status_code == 404
    assert api.get(f"{API}/schedules").json() == {"schedules": []}


def test_the_job_of_a_schedule_is_shown_and_runs_once_with_other_parameters(site: Site) -> None:
    api, at = site.api(STUDENT1), f"{API}/schedules"
    job = {**JOB, "parameters": {"lr": 0.1, "epochs": 3}, "labels": {"a": "b"}}
    own = api.post(at, json={**DAILY, "job": job, "idempotency_key": "p"}).json()["id"]
    shown = api.get(f"{at}/{own}/job").json()
    assert (shown["notebook"], shown["seconds"]) == ("report.ipynb", 600)
    assert (shown["parameters"], shown["labels"]) == (job["parameters"], {"a": "b"})
    assert not shown["uploaded"]
    assert site.api(TEACHER).get(f"{at}/{own}/job").status_code == 404

    request = api.post(f"{at}/{own}/run", json={"parameters": {"lr": 0.5}})
    assert request.json()["parameters"] == {"lr": 0.5, "epochs": 3}
    assert api.get(f"{at}/{own}/job").json() == shown


def test_bad_schedules_are_refused_with_what_is_accepted(site: Site) -> None:
    api = site.api(STUDENT1)
    for body, status, accepted in (
        ({**DAILY, "cron": "every day"}, 400, "Five fields: minute"),
        ({**DAILY, "zone": "Berlin"}, 400, "A name such as Europe/Berlin"),
        ({**DAILY, "job": {**JOB, "group": "cs999"}}, 403, "Your groups: cs101."),
    ):
        answer = api.post(f"{API}/schedules", json=body)
        assert answer.status_code == status
        assert accepted in answer.json()["error"]["accepted"]
    assert api.post(f"{API}/schedules", json={"cron": "0 6 * * *"}).status_code == 400
    assert api.get(f"{API}/schedules").json() == {"schedules": []}


def test_other_users_neither_see_nor_change_it(site: Site, made: str) -> None:
    for who in (STRANGER, TEACHER):
        api = site.api(who)
        answers = [
            api.get(f"{API}/schedules/{made}"),
            api.post(f"{API}/schedules/{made}/change", json={"state": "paused"}),
            api.post(f"{API}/schedules/{made}/run", json={}),
            api.delete(f"{API}/schedules/{made}"),
        ]
        assert {answer.status_code for answer in answers} == {404}
        assert press(site, who, made, "remove")[0] == 404
        assert "report.ipynb" not in site.page(who).get(PAGE).text
    assert site.api(STUDENT1).get(f"{API}/schedules/{made}").json()["state"] == "active"


def test_the_page_lists_times_and_results(site: Site, made: str) -> None:
    page = site.page(STUDENT1)
    shown = page.get(PAGE).text
    check_page(shown)
    assert "report.ipynb" in shown
    assert "none yet" in shown
    fire(site)
    (request,) = page.get(f"{API}/requests").json()["requests"]
    assert f'href="{PREFIX}requests/{request["id"]}"' in page.get(PAGE).text
    site.context.hub.members["cs101"].discard("student1")  # type: ignore[attr-defined]  # the fake
    fire(site)
    assert "refused. You are not a member of cs101." in text_of(page.get(PAGE).text)


def test_the_buttons_of_the_page(site: Site, made: str) -> None:
    api = site.api(STUDENT1)
    at = f"{API}/schedules/{made}"
    assert press(site, STUDENT1, made, "pause")[0] in {200, 303}
    assert api.get(at).json()["state"] == "paused"
    check_page(site.page(STUDENT1).get(PAGE).text)
    press(site, STUDENT1, made, "resume")
    assert api.get(at).json()["state"] == "active"
    press(site, STUDENT1, made, "run")
    assert len(api.get(f"{API}/requests").json()["requests"]) == 1
    press(site, STUDENT1, made, "remove")
    assert api.get(at).status_code == 404
    status, text = press(site, STUDENT1, made, "dance")
    assert (status, "contains no action" in text) == (400, True)
    assert "You have no schedules" in site.page(STUDENT1).get(PAGE).text


def test_a_form_of_another_site_changes_nothing(site: Site, made: str) -> None:
    browser = site.world.browser("student1-oauth")
    assert browser.post(PAGE, data={"id": made, "do": "remove"}).status_code == 403
    assert site.api(STUDENT1).get(f"{API}/schedules/{made}").status_code == 200


def test_the_page_changes_the_times(site: Site, made: str) -> None:
    page, at = site.page(STUDENT1), f"{API}/schedules/{made}"
    assert "every day at 06:00 Europe/Berlin" in text_of(page.get(PAGE).text)
    weekly = {"every": "week", "cron_at": "07:30", "cron_on_Mon": "yes", "cron_on_Thu": "yes"}
    fields = {"id": made, "do": "change", "zone": "UTC", **weekly}
    assert page.post(PAGE, data=fields).status_code == 303
    now = site.api(STUDENT1).get(at).json()
    assert (now["cron"], now["zone"]) == ("30 7 * * 1,4", "UTC")
    shown = page.get(PAGE).text
    assert "every week on Mon, Thu at 07:30 UTC" in text_of(shown)
    for name, typed in (("cron_at", "noon"), ("zone", "Mars/Base"), ("cron_on_Mon", "")):
        wrong = {**fields, name: typed} | ({"cron_on_Thu": ""} if name == "cron_on_Mon" else {})
        answer = page.post(PAGE, data=wrong)
        assert answer.status_code == 400
        (invalid,) = (e for e in check_page(answer.text).all("input") if "aria-invalid" in e)
        assert invalid["name"] == name
        assert invalid["value"] in (typed, "yes")
    assert site.api(STUDENT1).get(at).json() == now


def test_the_submit_form_creates_a_schedule(site: Site) -> None:
    page = site.page(STUDENT1)
    fields = {"group": "cs101", "kind": "command", "command": "true", "time": "5", "key": "k"}
    times = {"every": "month", "cron_at": "04:15", "cron_month_day": "31", "zone": "Europe/Berlin"}
    for _ in range(2):
        answer = page.post(f"{PREFIX}submit", data=fields | times, follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, PAGE)
    (schedule,) = site.api(STUDENT1).get(f"{API}/schedules").json()["schedules"]
    assert (schedule["cron"], schedule["zone"]) == ("15 4 31 * *", "Europe/Berlin")
    assert site.api(STUDENT1).get(f"{API}/requests").json()["requests"] == []
    refused = page.post(f"{PREFIX}submit", data=fields | times | {"cron_month_day": "32"})
    assert refused.status_code == 400
    assert 'id="cron_month_day-wrong"' in refused.text
    check_page(refused.text)
