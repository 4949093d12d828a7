"""Actions on the desk: quotes, CPU sessions, claims, extensions and links into sessions."""

from __future__ import annotations

from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from carrel.hub.errors import InvalidInput
from carrel.hub.files.local import LocalFiles
from carrel.hub.interfaces.files import HomeUse
from carrel.hub.records.identity import Identity
from carrel.hub.records.notices import NoticeKind, StopNotice
from carrel.hub.records.requests import Cause, CauseCode
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.queries import RequestQueries
from carrel.hub.requests.termination import RequestTermination
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.schemas import JobIn
from carrel.hub.transitions import lifecycle, preemption
from carrel.hub.web.html.urls import page_in_session, server_url, wait_url

from ...doubles import STUDENT1, STUDENT2
from ...world import World
from ..fakes import PREFIX, Client
from ..page_checks import check_page, text_of
from .desk_site import BOSS, FORM, Site, site_over
from .jobs.samples import NOTEBOOK


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    world = World.over(tmp_path, devices=1)
    yield site_over(world)
    world.loop.close()


# -- before anything is sent -------------------------------------------------------------------


def test_a_free_device_starts_immediately_and_the_quote_shows_the_cost(site: Site) -> None:
    words = text_of(site.post("quote", **FORM).text)
    assert "Starts immediately." in words
    assert "at most 1.0 device-hours" in words
    assert "no device immediately" in words
    assert RequestQueries(site.world.context).requests(STUDENT1, limit=10) == [], (
        "nothing is sent by it"
    )


def test_a_device_in_use_is_quoted_with_its_wait_and_offers_a_cpu_session(site: Site) -> None:
    site.somebody_else_runs()
    html = site.post("quote", **FORM).text
    assert 'data-waits="yes"' in html
    assert "Queued at position 1" in text_of(html)
    without = site.post("quote", **(FORM | {"devices": "0"})).text
    assert 'data-waits="no"' in without
    desk = site.desk()
    check_page(desk)
    assert 'name="how" value="cpu"' in desk


def test_a_job_is_quoted_by_its_time_limit(site: Site) -> None:
    fields = {"for": "job", "group": "cs101", "devices": "1", "time": "30m"}
    assert "at most 0.5 device-hours" in text_of(site.post("quote", **fields).text)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"hours": "soon"}, "Invalid number of hours"),
        ({"hours": "nan"}, "Invalid number of hours"),
        ({"hours": "1e999"}, "Invalid number of hours"),
        ({"hours": "1e300"}, "is not a valid number of hours"),
        ({"hours": "0"}, "is not a valid number of hours"),
        ({"devices": "-3"}, "Invalid number of devices"),
        ({"devices": "0.5"}, "Only whole devices can be requested"),
        ({"group": "maths"}, "maths"),
        ({"for": "job", "time": "soon"}, "Invalid duration"),
    ],
)
def test_an_incomplete_form_gets_a_message(site: Site, wrong: dict[str, str], said: str) -> None:
    answer = site.post("quote", **(FORM | wrong))
    assert answer.status_code == 200
    assert said in answer.text


# -- the desk on CPU, the claim, more time -----------------------------------------------------


def test_open_on_cpu_now_keeps_the_position_and_opens_the_cpu_session(site: Site) -> None:
    site.somebody_else_runs()
    answer = site.post("sessions", **FORM, how="cpu")
    assert (answer.status_code, answer.headers["location"]) == (303, f"{PREFIX}wait/-")
    assert site.session("gpu").claim
    assert site.session("").devices == 0
    site.world.settle()
    words = text_of(site.desk())
    assert "Its position is kept" in words


def test_the_waiting_page_opens_a_cpu_session_too(site: Site) -> None:
    site.somebody_else_runs()
    site.post("sessions", **FORM)
    waits = site.session("")
    page = site.browser().get(f"{PREFIX}wait/-").text
    check_page(page)
    assert f'action="{PREFIX}requests/{waits.id}/keep-place"' in page
    assert f"{PREFIX}requests/{waits.id}/claim" not in page
    answer = site.post(f"requests/{waits.id}/keep-place")
    assert answer.headers["location"] == f"{PREFIX}wait/-"
    assert site.session("gpu").id == waits.id


@pytest.mark.parametrize("server", ["", "gpu"])
def test_the_cpu_session_opens_the_page_that_the_session_was_started_for(
    site: Site, server: str
) -> None:
    site.somebody_else_runs()
    site.post("sessions", **FORM | {"server_name": server})
    waits = site.session(server)
    name = waits.owner
    wanted = f"{server_url(name, server)}lab?carrel-open=ticket"
    page = site.browser().get(wait_url(server, wanted)).text
    check_page(page)
    field = unescape(page.partition('name="next" value="')[2].partition('"')[0])
    answer = site.post(f"requests/{waits.id}/keep-place", next=field)
    moved = f"{server_url(name, '')}lab?carrel-open=ticket"
    assert answer.headers["location"] == wait_url("", moved)


def test_a_held_device_is_claimed_from_the_desk(site: Site) -> None:
    first = site.somebody_else_runs()
    site.post("sessions", **FORM, how="cpu")
    held = site.session("gpu")
    RequestTermination(site.world.context).cancel(STUDENT2, first.id)
    site.world.settle(3)
    for page in (site.desk(), site.browser().get(f"{PREFIX}wait/gpu").text):
        check_page(page)
        assert f'action="{PREFIX}requests/{held.id}/claim"' in page
        assert "data-held" in page
        assert 'data-show="left"' in page
    assert '<strong class="tile-state">held</strong>' in site.desk()
    answer = site.post(f"requests/{held.id}/claim")
    assert (answer.status_code, answer.headers["location"]) == (303, f"{PREFIX}wait/gpu")
    site.world.runs(held)
    assert site.session("gpu").state == "running"
    assert "data-held" not in site.desk()


def test_a_session_is_extended_unless_another_request_waits(
    site: Site,
) -> None:
    made = site.somebody_else_runs()
    before = made.seconds
    form = {"back": "request", "seen": str(before)}
    assert f'name="seen" value="{before}"' in site.browser(STUDENT2).get(PREFIX).text
    # The response to the first one is lost, and the browser sends the form again.
    for _ in range(2):
        back = site.browser(STUDENT2).post(f"{PREFIX}requests/{made.id}/extend", data=form)
        assert back.headers["location"] == f"{PREFIX}requests/{made.id}"
        assert site.session("", STUDENT2).seconds == before + 1800
    site.post("sessions", **FORM)
    site.world.settle()
    refused = site.browser(STUDENT2).post(f"{PREFIX}requests/{made.id}/extend")
    assert refused.status_code == 409
    check_page(refused.text)
    assert "a queued request waits" in text_of(refused.text)
    assert "My sessions" in refused.text


def test_no_extension_is_offered_after_a_preemption_notice(site: Site) -> None:
    made = site.somebody_else_runs()
    now = site.world.clock()
    notice = StopNotice(
        kind=NoticeKind.GUARANTEE,
        message="cs101 has its devices back.",
        given_at=now,
        stops_at=now + 120,
        group="cs101",
    )
    site.world.context.store.apply(made.id, preemption.notify, notice, now=now)
    for path in (PREFIX, f"{PREFIX}requests/{made.id}"):
        page = site.browser(STUDENT2).get(path).text
        assert "cs101 has its devices back." in page
        assert f"requests/{made.id}/extend" not in page


def test_an_extension_is_offered_when_the_time_limit_is_near(site: Site) -> None:
    made = site.somebody_else_runs()
    site.world.clock.pass_(made.seconds - 300)
    for path in (PREFIX, f"{PREFIX}requests/{made.id}"):
        page = site.browser(STUDENT2).get(path).text
        assert "Its time limit of" in page
        assert f"requests/{made.id}/extend" in page


def test_an_early_claim_shows_an_error_on_the_desk(site: Site) -> None:
    site.somebody_else_runs()
    site.post("sessions", **FORM)
    answer = site.post(f"requests/{site.session('').id}/claim")
    assert answer.status_code == 409
    assert 'id="notice"' in answer.text


def test_a_queued_request_is_changed_from_its_page(site: Site) -> None:
    site.somebody_else_runs()
    site.post("sessions", **FORM)
    waits = site.session("")
    answer = site.post(f"requests/{waits.id}/change", seconds="1800", devices="")
    assert answer.headers["location"] == f"{PREFIX}wait/-"
    assert site.session("").seconds == 1800
    more = site.post(f"requests/{waits.id}/change", devices="2")
    assert more.status_code == 409
    assert "it can only be reduced" in text_of(more.text)
    wrong = site.post(f"requests/{waits.id}/change", devices="0")
    assert wrong.status_code == 400


@pytest.mark.parametrize("verb", ["keep-place", "claim", "extend", "change"])
def test_only_the_owner_does_it_and_only_from_our_own_pages(site: Site, verb: str) -> None:
    theirs = site.somebody_else_runs()
    site.post("sessions", **FORM)
    path = f"{PREFIX}requests/{site.session('').id}/{verb}"
    assert site.browser(forged=True).post(path).status_code == 403
    assert site.browser(STUDENT2).post(path).status_code == 404
    assert site.post(f"requests/{theirs.id}/{verb}").status_code == 404
    assert Client(site.app, {}).post(path).status_code == 401


def test_a_quote_is_for_people_who_are_signed_in(site: Site) -> None:
    assert site.browser(forged=True).post(f"{PREFIX}quote", data=FORM).status_code == 403
    assert Client(site.app, {}).post(f"{PREFIX}quote", data=FORM).status_code == 401


def test_the_quota_meter_counts_devices_in_use(site: Site) -> None:
    site.post("sessions", **FORM)
    site.world.settle()
    words = text_of(site.desk())
    assert "1 of 2 devices" in words


def test_the_quota_meter_ignores_preempted_requests_in_the_queue(site: Site) -> None:
    job, store, now = site.world.running_job(), site.world.context.store, site.world.clock()
    assert "1 of 2 devices" in text_of(site.desk())
    notice = StopNotice(
        kind=NoticeKind.GUARANTEE, message="It is.", given_at=now, stops_at=now, group="lab"
    )
    why = Cause(code=CauseCode.PREEMPTED, message="Stopped, as announced.")
    store.apply(job.id, preemption.preempt, why, notice, now=now)
    store.apply_to_lease(site.world.lease(job), lifecycle.finish, now=now, charge_until=now)
    assert site.world.see(job).state == "queued"
    assert "0 of 2 devices" in text_of(site.desk())


def test_a_second_session_is_offered_a_name_that_is_free(site: Site) -> None:
    assert 'value="gpu"' not in site.desk()
    site.post("sessions", **(FORM | {"devices": "0"}))
    assert 'value="gpu"' in site.desk()
    assert 'value="lab"' in site.browser().get(f"{PREFIX}?server_name=lab").text


# -- a link into a session that is still starting ----------------------------------------------


@pytest.mark.parametrize(
    ("server", "wanted", "leads_to"),
    [
        ("", "/user/ada/lab/tree/a%20b.ipynb", "/user/ada/lab/tree/a%20b.ipynb"),
        ("", "/hub/user/ada/lab/tree/x.ipynb", "/user/ada/lab/tree/x.ipynb"),
        ("lab", "/hub/user/ada/lab/notebooks/x.ipynb", "/user/ada/lab/notebooks/x.ipynb"),
        (
            "",
            "/user/ada/git-pull?repo=https%3A%2F%2Fgit.example%2Fc&token=stolen",
            "/user/ada/git-pull?repo=https%3A%2F%2Fgit.example%2Fc",
        ),
        ("lab", "/user/ada/tree", "/user/ada/lab/"),
        ("", "", "/user/ada/"),
        ("", "/user/ben/lab", "/user/ada/"),
        ("", "//evil.example/user/ada/", "/user/ada/"),
        ("", "https://evil.example/user/ada/", "/user/ada/"),
        ("", "/user/ada/../ben/lab", "/user/ada/"),
        ("", "/user/ada/%2e%2E/ben/lab", "/user/ada/"),
        ("", "/user/ada/..%2fben", "/user/ada/"),
        ("", "/user/ada/..%5cben", "/user/ada/"),
        ("", "/user/ada/\\evil", "/user/ada/"),
        ("", "/user/ada/a\r\nSet-Cookie: x", "/user/ada/"),
        ("", "/user/ada//evil.example", "/user/ada/"),
        ("", "/user/ada/" + "a" * 3000, "/user/ada/"),
        ("", "http://[", "/user/ada/"),
    ],
)
def test_a_link_opens_the_users_own_session_only(server: str, wanted: str, leads_to: str) -> None:
    assert page_in_session("ada", server, wanted) == leads_to


def test_the_requested_page_is_kept_from_the_form_to_the_session(site: Site) -> None:
    wanted = f"/hub/user/{STUDENT1.name}/lab/tree/x.ipynb"
    desk = site.browser().get(PREFIX, params={"next": wanted}).text
    assert f'name="next" value="{wanted}"' in desk
    answer = site.post("sessions", **FORM, next=wanted)
    page = site.browser().get(answer.headers["location"]).text
    assert "enter?next=/hub/user/student1/lab/tree/x.ipynb" in page
    entered = site.browser().get(f"{PREFIX}wait/-/enter", params={"next": wanted})
    assert entered.headers["hx-redirect"] == "/user/student1/lab/tree/x.ipynb"


# -- submitting from the home, and again -------------------------------------------------------


def home_of(site: Site, who: Identity = STUDENT1) -> Path:
    return site.world.context.files.home(who.name)


def test_a_notebook_of_ones_own_home_is_found_and_submitted(site: Site) -> None:
    week = home_of(site) / "course" / "week 1"
    week.mkdir(parents=True)
    (week / "train.ipynb").write_text(NOTEBOOK)
    (week / "secret.txt").write_text("no")
    (home_of(site) / ".vault").mkdir()
    top = site.browser().get(f"{PREFIX}submit/home").text
    assert "course/" in top
    assert "vault" not in top
    listed = site.browser().get(f"{PREFIX}submit/home", params={"path": "course/week 1"}).text
    assert "train.ipynb" in listed
    assert "secret" not in listed
    pick = {"pick": (None, "course/week 1/train.ipynb")}
    part = site.browser().post(f"{PREFIX}submit/inspect", files=pick).text
    assert "parameter-lr" in part
    assert 'name="source" value="home:course/week 1/train.ipynb"' in part
    fields = {"group": "cs101", "time": "30m", "devices": "0", "parameter-n": "7",
              "source": "home:course/week 1/train.ipynb"}  # fmt: skip  # grouped by meaning
    sent = site.browser().post(
        f"{PREFIX}submit", files={name: (None, value) for name, value in fields.items()}
    )
    assert sent.status_code == 303, sent.text
    (made,) = RequestQueries(site.world.context).requests(STUDENT1, kind="job", limit=5)
    assert (made.notebook, made.parameters) == ("train.ipynb", {"n": 7})


def test_a_script_of_ones_own_home_is_found_and_submitted_as_a_notebook(site: Site) -> None:
    (home_of(site) / "train.py").write_text("print(1)")
    assert "train.py" in site.browser().get(f"{PREFIX}submit/home").text
    fields = {"group": "cs101", "time": "30m", "devices": "0", "source": "home:train.py"}
    sent = site.browser().post(
        f"{PREFIX}submit", files={name: (None, value) for name, value in fields.items()}
    )
    assert sent.status_code == 303, sent.text
    (made,) = RequestQueries(site.world.context).requests(STUDENT1, kind="job", limit=5)
    assert made.notebook == "train.ipynb"


@pytest.mark.parametrize(
    "path", ["../student2", "/etc", "course/../../student2", "link", "away.ipynb", ".ssh", "\udc80"]
)
def test_no_path_leads_out_of_the_home(site: Site, tmp_path: Path, path: str) -> None:
    other = home_of(site, STUDENT2)
    (other / "theirs.ipynb").write_text(NOTEBOOK)
    mine = home_of(site)
    (mine / "link").symlink_to(other)
    (mine / "away.ipynb").symlink_to(other / "theirs.ipynb")
    shown = site.browser().get(f"{PREFIX}submit/home").text
    assert "link" not in shown
    assert "away" not in shown
    plain = path.encode("utf-8", "surrogatepass")
    listed = site.browser().get(f"{PREFIX}submit/home", params={"path": plain})
    assert "theirs" not in listed.text
    for pick in (path, f"{path}/theirs.ipynb"):
        if "\udc80" in pick:
            continue
        part = site.browser().post(f"{PREFIX}submit/inspect", files={"pick": (None, pick)})
        assert "parameter-lr" not in part.text, pick
        assert "notebook-problem" in part.text, pick


def test_run_again_fills_the_form_in_and_keeps_what_has_no_field(site: Site) -> None:
    body = JobIn.model_validate(
        {
            "group": "cs101",
            "devices": 1,
            "seconds": 5400,
            "memory_bytes": 8 * 2**30,
            "notebook": {"name": "train.ipynb", "content": NOTEBOOK},
            "parameters": {"lr": 0.5},
            "labels": {"sweep": "first try"},
        }
    )
    made = JobService(site.world.context).submit(STUDENT1, body)
    page = site.browser().get(f"{PREFIX}submit", params={"again": made.id}).text
    check_page(page)
    for expected in ('value="0.5"', 'value="90"', 'value="8"',
                     f'value="again:{made.id}"', "as it was submitted"):  # fmt: skip  # grouped
        assert expected in page, expected
    fields = {"group": "cs101", "time": "1h30m", "devices": "1", "memory": "8GiB",
              "labels": "'sweep=first try'", "parameter-lr": "0.7", "parameter-n": "3",
              "source": f"again:{made.id}"}  # fmt: skip  # grouped by meaning
    files = {name: (None, value) for name, value in fields.items()}
    sent = site.browser().post(f"{PREFIX}submit", files=files)
    assert sent.status_code == 303, sent.text
    second = RequestQueries(site.world.context).request(
        STUDENT1, sent.headers["location"].rpartition("/")[2]
    )
    assert second.parameters == {"lr": 0.7}
    assert second.labels == {"sweep": "first try"}
    assert second.id != made.id
    # A job of another user is not found.
    assert site.browser(STUDENT2).post(f"{PREFIX}submit", files=files).status_code == 404
    theirs = site.browser(STUDENT2).get(f"{PREFIX}submit", params={"again": made.id})
    assert theirs.status_code == 404


def test_run_again_of_a_command_keeps_its_words(site: Site) -> None:
    body = JobIn(group="cs101", seconds=600, command=["python", "-c", "print('a b')"])
    made = JobService(site.world.context).submit(STUDENT1, body)
    page = site.browser().get(f"{PREFIX}submit", params={"again": made.id}).text
    check_page(page)
    assert "print(&#39;" in page
    assert 'value="command" id="kind-command" checked' in page


# -- the list ----------------------------------------------------------------------------------


def test_jobs_are_found_by_text_and_page_by_page(site: Site) -> None:
    for number in range(120):
        body = JobIn(group="cs101", seconds=600, command=["python", f"sweep-{number}.py"])
        JobService(site.world.context).submit(STUDENT1, body)
    one = site.browser().get(f"{PREFIX}requests", params={"text": "SWEEP-77"}).text
    assert one.count('scope="row"') == 1
    first = site.browser().get(f"{PREFIX}requests?text=sweep&kind=job").text
    check_page(first)
    assert first.count('scope="row"') == 100
    href = first.partition('id="next"')[0].rpartition('href="')[2].partition('"')[0]
    assert "text=sweep" in href
    older = site.browser().get(href.replace("&amp;", "&")).text
    assert older.count('scope="row"') == 20
    assert 'id="next"' not in older


def test_an_administrator_chooses_among_all_groups_a_student_among_their_own(site: Site) -> None:
    site.world.context.store.put_group(Group(name="lab-x", max_devices=1))
    assert 'value="lab-x"' in site.browser(BOSS).get(f"{PREFIX}requests").text
    assert 'value="lab-x"' not in site.browser().get(f"{PREFIX}requests").text


# -- frames follow the theme -------------------------------------------------------------------


def test_a_framed_notebook_uses_the_dark_theme_of_the_user() -> None:
    from carrel.hub.web.html.notebook import notebook_page  # noqa: PLC0415  # slow to import

    dark = notebook_page("x.ipynb", NOTEBOOK.encode(), "dark")
    light = notebook_page("x.ipynb", NOTEBOOK.encode(), "light")
    assert "color-scheme:dark" in dark
    assert "color-scheme:light" in light


@pytest.mark.parametrize(("used", "full"), [(3, False), (4, True)])
def test_a_home_with_a_limit_shows_its_usage(
    site: Site, monkeypatch: pytest.MonkeyPatch, used: int, full: bool
) -> None:
    assert "home-use" not in site.desk()
    use = HomeUse(used=used * 2**30, size=4 * 2**30)
    monkeypatch.setattr(LocalFiles, "home_use", lambda _self, _owner: use)
    page = site.desk()
    check_page(page)
    assert f"{used}.0 GiB of 4.0 GiB" in text_of(page)
    assert ("Sessions start as recovery sessions" in text_of(page)) is full


@pytest.mark.parametrize(
    "content",
    [
        '{"nbformat": 4, "nbformat_minor": 5, "cells": [], "metadata": '
        + '{"a":' * 900 + "1" + "}" * 901,
        "[" * 100_000,
        "[]",
        '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}}',
        '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"cell_type": "code"}]}',
        '{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [5]}',
    ],
)  # fmt: skip
def test_a_notebook_that_a_job_damaged_is_refused_with_a_sentence(content: str) -> None:
    from carrel.hub.web.html.notebook import notebook_page  # noqa: PLC0415  # slow to import

    with pytest.raises(InvalidInput, match="cannot be read as a notebook"):
        notebook_page("x.ipynb", content.encode(), "light")
