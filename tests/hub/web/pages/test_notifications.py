"""The page of notifications, the links in messages, and the REST routes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.hub.config.notification_table import NotificationTable

from ....mail_server import MailServer, mail_server
from ...doubles import ADMIN, STUDENT1, TEACHER
from ..fakes import API, PREFIX
from ..page_checks import check_page
from ..site import Site, made_site, site

__all__ = ["site"]

PAGE = f"{PREFIX}notifications"
REST = f"{API}/notifications"


@pytest.fixture
def mail() -> Iterator[MailServer]:
    with mail_server() as made:
        yield made


@pytest.fixture
def mailing(tmp_path: Path, mail: MailServer) -> Iterator[Site]:
    table = NotificationTable(
        smtp="127.0.0.1",
        smtp_port=mail.port,
        smtp_security="none",
        sender="carrel@example.edu",
        own_address="{user}@example.edu",
        domains=("lab.example.edu",),
    )
    with made_site(tmp_path, table=table) as made:
        yield made


def test_a_user_adds_a_channel_chooses_tests_and_removes_it(
    mailing: Site, mail: MailServer
) -> None:
    student = mailing.page(STUDENT1)
    assert 'value="student1@example.edu"' in student.get(PAGE).text
    added = student.post(PAGE, data={"do": "add", "address": "student1@example.edu"})
    assert (added.status_code, added.headers["location"]) == (303, PAGE)
    page = student.get(PAGE).text
    check_page(page)
    assert 'value="student1@' not in page
    (channel,) = mailing.api(STUDENT1).get(REST).json()["channels"]
    assert channel["events"] == ["session-ready", "job-attention"]

    chosen = {"do": "choose", "on": f"{channel['id']}~feedback"}
    assert student.post(PAGE, data=chosen).status_code == 303
    (channel,) = mailing.api(STUDENT1).get(REST).json()["channels"]
    assert channel["events"] == ["feedback"]

    tested = student.post(PAGE, data={"do": f"test:{channel['id']}"}).text
    assert "Test message to st…@example.edu: accepted." in tested
    mail.refusals["student1@example.edu"] = "550 no such user"
    tested = student.post(PAGE, data={"do": f"test:{channel['id']}"}).text
    assert "The mail server refused the message: 550 no such user" in tested
    assert len(mail.messages) == 1

    assert mailing.page(TEACHER).post(PAGE, data={"do": f"remove:{channel['id']}"}).is_error
    assert student.post(PAGE, data={"do": f"remove:{channel['id']}"}).status_code == 303
    assert mailing.api(STUDENT1).get(REST).json()["channels"] == []


def test_a_wrong_address_is_said_at_its_field(mailing: Site) -> None:
    answer = mailing.page(STUDENT1).post(PAGE, data={"do": "add", "address": "x@elsewhere.org"})
    assert answer.status_code == 400
    assert "E-mail to elsewhere.org is not allowed." in answer.text
    assert 'aria-invalid="true"' in answer.text
    check_page(answer.text)


def test_links_of_messages_work_without_a_sign_in_and_ask_before_they_act(
    mailing: Site, mail: MailServer
) -> None:
    student, visitor = mailing.page(STUDENT1), mailing.world.client()
    student.post(PAGE, data={"do": "add", "address": "ada@lab.example.edu"})
    link = mail.link("/confirm/").partition("/services/")[2]
    path = f"/services/{link}"
    asked = visitor.get(path).text
    check_page(asked)
    assert 'id="confirm"' in asked
    assert "Your address is confirmed" in visitor.post(path).text

    (channel,) = mailing.api(STUDENT1).get(REST).json()["channels"]
    links = mailing.world.app.state.web.notifications.links
    code = links.stop(channel["id"], None).rpartition("/")[2]
    path = f"{PAGE}/stop/{code}"
    for _ in range(2):
        asked = visitor.get(path).text
        check_page(asked)
        assert "Stop messages?" in asked
    # A mail program posts without a form token and without an origin (RFC 8058).
    stopped = visitor.post(path, data={"List-Unsubscribe": "One-Click"}).text
    assert "Messages are stopped" in stopped
    (channel,) = mailing.api(STUDENT1).get(REST).json()["channels"]
    assert channel["events"] == []
    assert visitor.get(f"{path}x").status_code == 404


def test_the_routes_refuse_what_belongs_to_others(mailing: Site) -> None:
    student = mailing.api(STUDENT1)
    made = student.post(f"{REST}/channels", json={"events": ["job-ended"]})
    assert made.status_code == 201
    channel = f"{REST}/channels/{made.json()['id']}"
    assert mailing.api(TEACHER).put(channel, json={"events": []}).status_code == 404
    assert mailing.api(TEACHER).delete(channel).status_code == 404
    other = {"user": "student1"}
    assert mailing.api(TEACHER).post(f"{REST}/test", json=other).status_code == 403
    (result,) = mailing.api(ADMIN).post(f"{REST}/test", json=other).json()["results"]
    assert (result["delivered"], result["address"]) == (True, "st…@example.edu")
    assert student.put(channel, json={"events": ["no-such"]}).status_code == 400
    assert student.put(channel, json={"events": []}).json()["events"] == []
    assert student.delete(channel).status_code == 204


def test_a_site_that_sends_nothing_says_so(site: Site) -> None:
    page = site.page(STUDENT1).get(PAGE).text
    check_page(page)
    assert re.search("This site sends no notifications", page)
    answer = site.api(STUDENT1).post(f"{REST}/channels", json={"address": "a@example.edu"})
    assert answer.json()["accepted"] == "Accepted: This site sends no notifications."
