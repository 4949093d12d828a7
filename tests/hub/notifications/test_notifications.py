"""From an event in the store to a message: digests, retries, refusals, limits and links."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from carrel.courses.model.records import (
    Assignment,
    Course,
    Feedback,
    Folder,
    NewSubmission,
)
from carrel.courses.store import SqlCourseStore
from carrel.hub.errors import CarrelError, Forbidden, InvalidInput, NotFound, OverMaximum
from carrel.hub.notifications import sender
from carrel.hub.notifications.background import EVERY_SECONDS
from carrel.hub.notifications.collector import DIGEST_SECONDS, GIVEN_UP_SECONDS, ROWS_EVERY
from carrel.hub.notifications.delivery import PAUSE_SECONDS, attempted
from carrel.hub.notifications.outbox_store import OutboxStore
from carrel.hub.notifications.records import MOST_REFUSALS, Channel
from carrel.hub.notifications.sender import SendResult
from carrel.hub.records.notices import NoticeKind, StopNotice
from carrel.hub.records.requests import Cause, CauseCode, NewRequest
from carrel.hub.records.usage import DAY
from carrel.hub.scheduling.model.idleness import IdleWarning
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.scheduling.model.states import State
from carrel.hub.schemas.notifications.bodies import ChannelIn, ChannelOut, DeliveryTestIn
from carrel.hub.schemas.notifications.events import NotificationEvent
from carrel.hub.transitions import idle_warnings, lifecycle, preemption
from carrel.hub.usage.rollup import monday

from ...contracts.store_kit import job, running, schedule, session
from ...mail_server import text_of
from ..doubles import ADMIN, STUDENT1, STUDENT2
from .office import SECRET, Office, assemble, open_office

READY, STOP = NotificationEvent.SESSION_READY, NotificationEvent.SESSION_STOP
STARTED, ENDED = NotificationEvent.JOB_STARTED, NotificationEvent.JOB_ENDED
ATTENTION, BUDGET = NotificationEvent.JOB_ATTENTION, NotificationEvent.BUDGET_LOW
FAILED = Cause(code=CauseCode.CELL_ERROR, message="ValueError: the password is hunter2")


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    with open_office(tmp_path) as made:
        yield made


def own(new: NewRequest) -> NewRequest:
    return replace(new, owner="student1")


def mail_channel(office: Office) -> ChannelOut:
    return next(each for each in office.service.all(STUDENT1).channels if each.kind == "mail")


def end(office: Office, name: str, cause: Cause = FAILED, state: State = State.FAILED) -> None:
    """Submit a job and cancel or fail it while it is queued."""
    now = office.clock()
    office.store.submit(own(job(name, devices=0)), now)
    office.store.apply(f"j-{name}", lifecycle.stop, state, cause, now=now)


def test_nothing_is_sent_unless_it_was_chosen(office: Office) -> None:
    office.add(address=office.hook_address)
    end(office, "a")
    office.step(2 * PAUSE_SECONDS)
    office.add(ATTENTION)  # earlier events are not told of
    office.step(2 * PAUSE_SECONDS)
    assert (office.mail.messages, office.hook.bodies) == ([], [])


def test_a_hundred_jobs_that_end_together_are_one_message(office: Office) -> None:
    office.add(ATTENTION, ENDED)
    for number in range(100):
        end(office, f"n{number}")
    office.step()
    assert office.only_channel().waiting == 100
    office.step(DIGEST_SECONDS)
    office.step(PAUSE_SECONDS)
    (message,) = office.mail.messages
    assert message["Subject"] == "Carrel: 100 notifications (a job needs attention: 100)"
    assert (message["X-Recipient"], message["To"]) == ("student1@example.edu",) * 2
    assert message["From"] == "Carrel <carrel@example.edu>"
    assert message["Auto-Submitted"] == "auto-generated"
    text = text_of(message)
    assert "failed (cell error)." in text
    assert "/services/carrel/requests/j-n0\n" in text
    assert "… and 80 more notifications: a job needs attention: 80." in text
    assert "hunter2" not in text


def test_a_session_that_is_held_is_told_of_at_once_even_after_another_message(
    office: Office,
) -> None:
    office.add(READY, ATTENTION)
    end(office, "a")
    office.step()
    office.step(DIGEST_SECONDS)
    now = office.clock()
    held = replace(own(session("b", server="gpu")), claim=True)
    office.store.submit(held, now)
    office.store.grant([Start(request_id=held.id, devices=("D0",))], now=now, lease_seconds=30)
    office.step()
    assert len(office.mail.messages) == 2
    assert "The session gpu (s-b) has its device. Claim it until" in office.mail.bodies[-1]


def test_an_expired_claim_is_not_told_of(office: Office) -> None:
    office.mail.away = True
    office.add(READY)
    held = replace(own(session("a")), claim=True)
    office.store.submit(held, office.clock())
    office.store.grant(
        [Start(request_id=held.id, devices=("D0",))], now=office.clock(), lease_seconds=30
    )
    office.step()
    office.mail.away = False
    office.step(601.0)
    assert office.mail.messages == []
    (dropped,) = office.service.all(STUDENT1).dropped
    assert dropped.why == "It was not delivered in time."


def test_starts_notices_and_idle_sessions(office: Office) -> None:
    office.add(STARTED, STOP, ATTENTION)
    now = office.clock()
    running(office.store, own(job("a")), "D0", at=now)
    running(office.store, own(session("b")), "D1", at=now)
    notice = StopNotice(
        kind=NoticeKind.URGENT, message="…", given_at=now, stops_at=now + 120, group="lab"
    )
    office.store.apply("j-a", preemption.notify, notice, now=now)
    warning = IdleWarning(idle_since=now - 900, warned_at=now, stops_at=now + 600, seen=())
    office.store.apply("s-b", idle_warnings.warn, warning, now=now)
    office.step()
    (text,) = office.mail.bodies
    assert text.startswith(("The job j-a will be stopped", "The session default session (s-b)"))
    assert "The job j-a has started, after 0 s in the queue." in text
    assert "The job j-a will be stopped at" in text
    assert "It is queued again afterwards." in text
    assert "is idle and will be stopped at" in text


def test_a_low_budget_is_told_of_once_a_day(office: Office) -> None:
    office.add(BUDGET)
    for name, device in (("a", "D0"), ("b", "D1")):
        running(office.store, own(job(name)), device, at=office.clock())
        data = {"group": "lab", "used": 90.0, "of": 100.0}
        office.store.apply(
            f"j-{name}", lifecycle.record_event, "budget_low", data, now=office.clock()
        )
    office.step()
    office.step(DIGEST_SECONDS)
    (text,) = office.mail.bodies
    assert text.count("lab has used 90% of its budget for this period.") == 1


def test_a_sign_of_a_job_is_told_of_without_its_values(office: Office) -> None:
    office.add(NotificationEvent.JOB_SIGN)
    running(office.store, own(job("a")), "D0", at=office.clock())
    data = {"sign": "loss-not-finite", "figures": {"name": "hunter2", "value": "NaN", "step": 3}}
    office.store.apply("j-a", lifecycle.record_event, "job_sign", data, now=office.clock())
    over = {"sign": "loss-not-finite"}
    office.store.apply("j-a", lifecycle.record_event, "job_sign_over", over, now=office.clock())
    office.step()
    office.step(DIGEST_SECONDS)
    (text,) = office.mail.bodies
    assert text.count("may need you: loss not finite. The job goes on.") == 1
    assert "hunter2" not in text


def test_teachers_are_told_once_when_a_week_of_their_group_has_ended(office: Office) -> None:
    store = office.store
    store.set_teachers("lab", ["student1"])
    office.add(NotificationEvent.UNUSED_DEVICES)
    running(store, own(job("a")), "D0", at=office.clock())
    office.step()
    office.step(monday(office.clock() + 7 * DAY) - office.clock() + 1.0)
    office.step(DIGEST_SECONDS)
    office.restart()
    office.step()
    office.step(PAUSE_SECONDS)
    (text,) = office.mail.bodies
    assert text.startswith("The report of what lab held and did not use in the week from ")
    assert "/services/carrel/efficiency?group=lab\n" in text


def test_released_feedback_is_told_of_once_also_after_a_restart(office: Office) -> None:
    office.add(NotificationEvent.FEEDBACK)
    courses, now = SqlCourseStore(office.store.transactions), office.clock()
    office.store.put_group(Group(name="cs101"))
    courses.put_course(Course(name="cs101", title="Nets", created_at=now, created_by="teacher"))
    courses.put_assignment(Assignment(course="cs101", name="ps1"))
    files = Folder(sha256="a" * 64, files=())
    new = NewSubmission(
        course="cs101", assignment="ps1", person="student1", at=now, files=files, version=1
    )
    submission = courses.submit(new).id
    courses.put_feedback(
        Feedback(submission=submission, files=files, released_at=now, released_by="teacher")
    )
    office.step(ROWS_EVERY)
    office.step(DIGEST_SECONDS)
    office.restart()
    office.step()
    office.step(PAUSE_SECONDS)
    (text,) = office.mail.bodies
    assert text.startswith("Feedback on ps1 of cs101 is released.")
    assert "/services/carrel/course/cs101/assignment/ps1\n" in text


def test_a_schedule_that_the_service_pauses_is_told_of_once(office: Office) -> None:
    office.add(ATTENTION)
    made = schedule("a", owner="student1")
    office.store.add_schedule(made, "{}", most=5)
    office.step(ROWS_EVERY)
    office.store.update_schedule(made.id, lambda one: replace(one, paused_at=office.clock()))
    for _ in range(3):
        office.step(ROWS_EVERY)
    office.restart()
    office.step(PAUSE_SECONDS)
    (text,) = office.mail.bodies
    assert text.startswith("The schedule of train.ipynb (c-a) is paused: its job was refused.")
    assert "/services/carrel/schedules\n" in text


def test_a_crash_after_the_server_accepted_a_message_sends_it_again(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.add(ATTENTION)
    end(office, "a")
    office.step()
    with monkeypatch.context() as patch:
        patch.setattr(OutboxStore, "finish", crash)
        office.step(DIGEST_SECONDS)
        for _ in range(3):
            office.step(EVERY_SECONDS)
        assert len(office.mail.messages) == 1  # it is not repeated at once
    office.restart()
    office.step(PAUSE_SECONDS)
    office.step(PAUSE_SECONDS)
    assert len(office.mail.messages) == 2
    assert office.only_channel().waiting == 0


def crash(*_: object, **__: object) -> None:
    raise RuntimeError("The process ends here.")


def test_a_server_that_is_slow_keeps_neither_the_collector_nor_the_store(tmp_path: Path) -> None:
    sending, answer = threading.Event(), threading.Event()

    class SlowSender:
        def send(self, *_: object) -> SendResult:
            sending.set()
            answer.wait(60.0)
            return SendResult()

    with open_office(tmp_path) as office:
        office.add(ATTENTION)
        _, background = assemble(
            office.store, office.clock, office.table, office.seal, SlowSender()
        )
        end(office, "a")
        background.step()
        office.clock.pass_(DIGEST_SECONDS)
        background.step()
        assert sending.wait(60.0)
        end(office, "b")
        background.step()
        assert office.only_channel().waiting == 2
        answer.set()
        assert background.wait_for_sending(60.0)
        assert office.only_channel().waiting == 1


def test_what_its_owner_cancelled_is_not_told_of(office: Office) -> None:
    office.add(ENDED, ATTENTION)
    by = "Cancelled by {}."
    for name, who in (("a", "its owner"), ("b", "teacher")):
        cause = Cause(code=CauseCode.CANCELLED, message=by.format(who))
        end(office, name, cause, State.CANCELLED)
    office.step()
    office.step(DIGEST_SECONDS)
    (text,) = office.mail.bodies
    assert "j-b" in text
    assert "j-a" not in text


def test_a_mail_server_that_is_away_delays_and_each_event_arrives_once(office: Office) -> None:
    office.mail.away = True
    office.add(ATTENTION)
    office.add(ATTENTION, address=office.hook_address)
    end(office, "a")
    office.step()
    office.step(DIGEST_SECONDS)
    assert len(office.hook.bodies) == 1  # the other channel does not wait for it
    mail = mail_channel(office)
    assert (mail.problem, mail.waiting) == ("The mail server does not answer.", 1)
    office.mail.away = False
    office.step(DIGEST_SECONDS - 1)
    assert office.mail.messages == []
    office.restart()
    office.step(1)
    office.step(PAUSE_SECONDS)
    assert len(office.mail.messages) == 1
    mail = mail_channel(office)
    assert (mail.problem, mail.waiting) == ("", 0)
    assert len(office.hook.bodies) == 1


def test_it_is_given_up_after_a_day_and_its_owner_can_see_that(office: Office) -> None:
    office.mail.away = True
    office.add(ATTENTION)
    end(office, "a")
    office.step()
    office.step(DIGEST_SECONDS)
    office.step(GIVEN_UP_SECONDS)
    office.mail.away = False
    office.step(3600.0)
    assert office.mail.messages == []
    (dropped,) = office.service.all(STUDENT1).dropped
    assert (dropped.event, dropped.why) == (ATTENTION, "It was not delivered in time.")


def test_an_address_that_bounces_is_not_used_for_ever(office: Office) -> None:
    office.mail.refusals["student1@example.edu"] = "550 5.1.1 no such user"
    office.add(ATTENTION)
    for number in range(MOST_REFUSALS + 1):
        end(office, f"n{number}")
        office.step()
        office.step(PAUSE_SECONDS)
    channel = office.only_channel()
    assert channel.stopped
    assert channel.problem == "The mail server refused the message: 550 5.1.1 no such user"
    assert len(office.service.all(STUDENT1).dropped) == MOST_REFUSALS
    office.mail.refusals.clear()
    (result,) = office.service.test(STUDENT1, DeliveryTestIn()).results
    assert result.delivered
    end(office, "later")
    office.step()
    office.step(DIGEST_SECONDS)
    assert [m["Subject"] for m in office.mail.messages] == [
        "Carrel: test message",
        "Carrel: The job j-later failed (cell error)",
    ]


def test_a_temporary_refusal_is_repeated(office: Office) -> None:
    office.mail.refusals["student1@example.edu"] = "451 4.7.1 greylisted"
    office.add(ATTENTION)
    end(office, "a")
    office.step()
    office.step(DIGEST_SECONDS)
    channel = office.only_channel()
    assert channel.problem == "The mail server did not take the message: 451 4.7.1 greylisted"
    office.mail.refusals.clear()
    office.step(60.0)
    assert len(office.mail.messages) == 1


def test_a_user_gets_a_limited_number_of_messages_a_day(tmp_path: Path) -> None:
    with open_office(tmp_path, per_day=2) as office:
        office.add(ATTENTION)
        for number in range(3):
            end(office, f"n{number}")
            office.step()
            office.step(PAUSE_SECONDS)
        assert len(office.mail.messages) == 2
        (dropped,) = office.service.all(STUDENT1).dropped
        assert dropped.why == "The limit of 2 messages in 24 hours was reached."
        with pytest.raises(OverMaximum, match="limit of 2 messages"):
            office.service.test(STUDENT1, DeliveryTestIn())


def test_a_webhook_that_is_away_does_not_use_up_the_limit_of_the_day(tmp_path: Path) -> None:
    with open_office(tmp_path, per_day=3) as office:
        office.hook.status = 503
        office.add(ATTENTION)
        office.add(ATTENTION, address=office.hook_address)
        for number in range(2):
            end(office, f"n{number}")
            office.step()
            for _ in range(3):
                office.step(PAUSE_SECONDS)
        assert len(office.hook.bodies) > 2
        assert len(office.mail.messages) == 2
        found = office.service.all(STUDENT1)
        waiting = {each.kind: each.waiting for each in found.channels}
        assert (waiting, found.dropped) == ({"mail": 0, "json": 2}, [])


def test_a_webhook_that_is_away_for_months_is_tried_once_an_hour() -> None:
    channel = Channel(id="n-1", owner="student1", kind="json", sealed="", shown="", created_at=0.0)
    assert attempted(replace(channel, failures=5000), 0.0).next_at == 3600.0


def test_a_link_for_confirmation_counts_even_if_it_is_not_delivered(tmp_path: Path) -> None:
    with open_office(tmp_path, per_day=2) as office:
        office.mail.away = True
        for name in ("a", "b"):
            office.add(ATTENTION, address=f"{name}@lab.example.edu")
        with pytest.raises(OverMaximum, match="limit of 2 messages"):
            office.add(ATTENTION, address="c@lab.example.edu")
        assert len(office.service.all(STUDENT1).channels) == 2


@pytest.mark.parametrize(
    ("status", "refused"), [(410, True), (404, True), (302, True), (503, False), (429, False)]
)
def test_the_status_of_a_webhook_decides_whether_it_is_repeated(
    office: Office, status: int, refused: bool
) -> None:
    office.hook.status = status
    office.hook.location = f"http://127.0.0.1:{office.mail.port}/inside"
    office.add(ATTENTION, address=office.hook_address)
    end(office, "a")
    office.step()
    office.step(DIGEST_SECONDS)
    channel = office.only_channel()
    assert str(status) in channel.problem
    assert (channel.waiting, len(office.hook.bodies)) == (0 if refused else 1, 1)


def test_addresses_are_secrets(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    office.hook.status = 500
    channel = office.add(ATTENTION, address=office.hook_address)
    office.service.test(STUDENT1, DeliveryTestIn())
    end(office, "a")
    office.step()
    office.step(DIGEST_SECONDS)
    assert channel.address == "json://127.0.0.1/…"
    assert "was not delivered" in caplog.text
    stored = office.background.delivery.channels.channels("student1")
    shown = office.service.all(STUDENT1).model_dump_json()
    assert office.seal.open(stored[0]) == office.hook_address
    assert SECRET not in caplog.text + shown + stored[0].sealed


def test_channels_whose_keys_are_lost_are_replaced_when_they_are_added_again(
    office: Office,
) -> None:
    office.add(ATTENTION)
    office.add(STARTED, address=office.hook_address)
    office.seal.cipher.key_file.unlink()
    for address in ("ada@lab.example.edu", "", office.hook_address):
        office.add(ENDED, address=address)
    found = {each.address: each.events for each in office.service.all(STUDENT1).channels}
    assert found == {
        "ad…@lab.example.edu": [ENDED],
        "st…@example.edu": [ENDED, ATTENTION],
        "json://127.0.0.1/…": [STARTED, ENDED],
    }
    results = office.service.test(STUDENT1, DeliveryTestIn()).results
    assert [each.delivered for each in results] == [True] * 3


def test_a_link_stops_one_event_and_mail_programs_get_one_too(office: Office) -> None:
    office.add(ATTENTION, STARTED)
    end(office, "a")
    office.step()
    office.step(DIGEST_SECONDS)
    link = office.mail.link("/notifications/stop/")
    (message,) = office.mail.messages
    assert message["List-Unsubscribe"] == f"<{link}>"
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    code = link.rpartition("/")[2]
    asked = office.service.stop_link(code)
    assert (asked.event, asked.done) == (ATTENTION, False)
    for _ in range(2):
        office.service.stop(code)
    assert office.service.stop_link(code).done
    assert office.only_channel().events == [STARTED]
    for forged in ("", "x", code[:-1], code.replace("job-attention", "job-ended")):
        with pytest.raises(NotFound, match="not valid"):
            office.service.stop(forged)
    office.service.remove(STUDENT1, office.only_channel().id)
    assert office.service.stop_link(code).channel is None


def test_an_address_that_was_chosen_is_confirmed_first(office: Office) -> None:
    channel = office.add(ATTENTION, address="ada@lab.example.edu")
    assert (channel.confirmed, channel.address) == (False, "ad…@lab.example.edu")
    end(office, "a")
    office.step()
    office.step(DIGEST_SECONDS)
    (message,) = office.mail.messages
    assert message["Subject"] == "Carrel: confirm your e-mail address"
    code = office.mail.link("/confirm/").rpartition("/")[2]
    assert not office.service.confirm(code, act=False).confirmed
    assert office.service.confirm(code, act=True).confirmed
    end(office, "b")
    office.step()
    office.step(DIGEST_SECONDS)
    assert "j-b" in office.mail.bodies[-1]
    assert "j-a" not in office.mail.bodies[-1]


def test_the_channels_of_a_removed_user_are_gone(office: Office) -> None:
    office.add(ATTENTION)
    end(office, "a")
    office.step()
    assert office.store.remove_notification_channels_of("student2") == 0
    assert office.store.remove_notification_channels_of("student1") == 1
    office.step(DIGEST_SECONDS)
    assert (office.service.all(STUDENT1).channels, office.mail.messages) == ([], [])


def test_channels_belong_to_their_owner(office: Office) -> None:
    channel = office.add(ATTENTION)
    with pytest.raises(NotFound):
        office.service.choose(STUDENT2, channel.id, [])
    with pytest.raises(NotFound):
        office.service.remove(STUDENT2, channel.id)
    body = DeliveryTestIn(user="student1")
    with pytest.raises(Forbidden):
        office.service.test(STUDENT2, body)
    (result,) = office.service.test(ADMIN, body).results
    assert (result.delivered, result.address) == (True, "st…@example.edu")
    with pytest.raises(NotFound, match="student2 has no channel"):
        office.service.test(ADMIN, DeliveryTestIn(user="student2"))


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("student1", "is not an e-mail address"),
        ("a@b@example.edu", "is not an e-mail address"),
        ("other@example.edu", "E-mail to example.edu is not allowed"),
        ("x@elsewhere.org", "E-mail to elsewhere.org is not allowed"),
        ("a@lab.example.edu,b@lab.example.edu", "is not an e-mail address"),
        ("a@lab.example.edu\r\nBcc: b@elsewhere.org", "contains the character U+000D"),
        ("mailto://u:p@smtp.example.org?to=x@y.z", "mailto:// is not allowed"),
        ("file:///etc/passwd", "file:// is not allowed"),
        ("syslog://", "syslog:// is not allowed"),
        ("jsons://127.0.0.1/x", "jsons:// is not allowed"),
        ("json://169.254.169.254/latest", "host '169.254.169.254' are not allowed"),
        ("json://127.0.0.1:1/x", "host '127.0.0.1' are not allowed"),
        ("json://127.0.0.1@evil.example.org/x", "host 'evil.example.org' are not allowed"),
        ("json://evil.example.org#127.0.0.1", "no options"),
        ("json://127.0.0.1%2eevil.example.org/x", "are not allowed"),
        ("json://[::1", "is not a URL"),
        ("json://{hook}/x?redirect=yes", "no options"),
        ("json://{hook}/x?rto=100000", "no options"),
        ("json://{hook}/a,json://evil.example.org/b", "is one URL"),
        ("json://{hook}/a;json://evil.example.org/b", "is one URL"),
        ("json://{hook}/a, json://evil.example.org/b", "is one URL"),
        ("json://{hook}/json://evil.example.org/b", "is one URL"),
        ("j" * 501, "has 501 characters"),
    ],
)
def test_an_address_that_the_site_does_not_allow_is_refused(
    office: Office, address: str, says: str
) -> None:
    given = address.replace("{hook}", f"127.0.0.1:{office.hook.port}")
    body = ChannelIn.model_construct(address=given, events=[])
    with pytest.raises(InvalidInput) as caught:
        office.service.add(STUDENT1, body)
    assert says in caught.value.message
    assert caught.value.accepted.startswith("Accepted: Your e-mail address, student1@example.edu.")
    assert office.service.all(STUDENT1).channels == []


def test_an_address_is_one_service_even_if_it_was_not_checked(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Apprise would read two URLs with a comma between them as two services.
    office.add(address=office.hook_address)
    (channel,) = office.background.delivery.channels.channels("student1")
    two = office.seal.close(channel.id, f"{office.hook_address},{office.hook_address}")
    office.background.delivery.channels.change(channel.id, lambda c: replace(c, sealed=two))
    monkeypatch.setattr(sender, "check_address", lambda *_: None)
    office.service.test(STUDENT1, DeliveryTestIn())
    assert len(office.hook.bodies) == 1


def test_a_site_without_the_table_sends_nothing(tmp_path: Path) -> None:
    with open_office(
        tmp_path, smtp="", sender="", own_address="", domains=[], services=[], hosts=[]
    ) as office:
        found = office.service.all(STUDENT1)
        assert (found.available, found.sentence) == (False, "This site sends no notifications.")
        with pytest.raises(CarrelError, match="An address is missing"):
            office.add(ATTENTION)


def test_what_a_channel_no_longer_may_do_is_refused_when_it_is_sent(office: Office) -> None:
    office.add(ATTENTION, address=office.hook_address)
    office.table = office.table.model_copy(update={"hosts": ("hooks.example.edu",)})
    office.restart()
    (result,) = office.service.test(STUDENT1, DeliveryTestIn()).results
    assert "host '127.0.0.1' are not allowed" in result.sentence
    assert office.hook.bodies == []
