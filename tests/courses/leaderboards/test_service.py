"""Leaderboards: the rule, batches, the limit of a day, verdicts, and what students see."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from carrel.courses.leaderboards.evaluation import MOST_SECONDS, WeightsEvaluation
from carrel.courses.leaderboards.service import LeaderboardPage
from carrel.courses.leaderboards.weights_file import stored_tensors
from carrel.courses.model.leaderboards import LeaderboardEntry
from carrel.courses.roster.access import CourseAccess
from carrel.courses.store.leaderboards import SqlLeaderboardStore
from carrel.hub.errors import Conflict, Forbidden, InvalidInput
from carrel.hub.records.identity import Identity
from carrel.hub.records.leases import LeaseRecord
from carrel.hub.records.requests import Cause, CauseCode
from carrel.hub.scheduling.model.snapshot import PriorityClass
from carrel.hub.scheduling.model.states import State
from carrel.hub.schemas.courses import ExtensionIn, FileIn
from carrel.hub.schemas.coursework.leaderboards import (
    LEADERBOARD_RESULT,
    MOST_REFUSED_PER_DAY,
    EntryScoreOut,
    LeaderboardEntryOut,
    LeaderboardIn,
    LeaderboardOrderOut,
    LeaderboardOut,
    LeaderboardResultOut,
    WeightsIn,
)
from carrel.hub.transitions import lifecycle

from ...hub.doubles import STUDENT1, STUDENT2, TEACHER
from .. import course_site
from ..checks import came_out, started
from ..course_site import CourseSite, files
from .weights_samples import PERFECT, TEACHERS, a_pickle, linear


@pytest.fixture
def site(tmp_path: Path) -> CourseSite:
    made = course_site.build_site(tmp_path)
    made.create(students="student\nstudent1\nstudent2\n")
    made.release()
    opened(made)
    return made


def opened(site: CourseSite, per_day: int = 2, name: str = "ps1", **more: object) -> None:
    given = {"per_day": per_day, "files": files({"leaderboard.py": TEACHERS})} | more
    body = LeaderboardIn.model_validate(given)
    site.services.leaderboard_rules.open(TEACHER, "cs101", name, body)


def send(site: CourseSite, content: bytes = b"", who: Identity = STUDENT1) -> LeaderboardEntryOut:
    site.clock.now += 1
    text = base64.b64encode(content or linear(*PERFECT)).decode()
    body = WeightsIn(file=FileIn(name="weights.safetensors", content=text))
    return site.services.leaderboard_submissions.submit(who, "cs101", "ps1", body)


def shown(site: CourseSite, who: Identity = STUDENT1) -> LeaderboardOut:
    return site.services.leaderboards.show(who, "cs101", "ps1")


def requests(site: CourseSite) -> list[str]:
    entries = site.services.access.store.leaderboards.entries("cs101", "ps1")
    return list(dict.fromkeys(each.request for each in reversed(entries) if each.request))


def order(site: CourseSite, request: str) -> LeaderboardOrderOut:
    content = site.services.access.context.files.input_path(request).read_bytes()
    return LeaderboardOrderOut.model_validate_json(content)


def begin(site: CourseSite) -> LeaseRecord:
    """Start the newest request."""
    return started(site.services.access.context, requests(site)[-1])


def end(
    site: CourseSite,
    *scores: EntryScoreOut,
    state: State = State.SUCCEEDED,
    failure: str = "",
    lease: LeaseRecord | None = None,
) -> None:
    """End the newest request with these scores; ``lease``: where it has started."""
    result = LeaderboardResultOut(scores=list(scores), failure=failure) if scores else None
    request, context = requests(site)[-1], site.services.access.context
    came_out(context, request, result, state, name=LEADERBOARD_RESULT, lease=lease)


def logged(site: CourseSite) -> list[LeaderboardEntryOut]:
    return site.services.leaderboards.log(TEACHER, "cs101", "ps1").entries


def scored(entry: LeaderboardEntryOut, public: float = 0.5, private: float = 0.25) -> EntryScoreOut:
    return EntryScoreOut(entry=entry.id, public=public, private=private)


def test_waiting_submissions_are_one_opportunistic_request_of_the_teacher(
    site: CourseSite,
) -> None:
    first, second = send(site), send(site, linear(1, 2, 3, 4), STUDENT2)
    (request,) = requests(site)
    record = site.services.access.context.store.request(request)
    assert (record.owner, record.priority) == ("teacher", PriorityClass.OPPORTUNISTIC)
    assert [each.entry for each in order(site, request).entries] == [first.id, second.id]
    assert (first.outcome, first.sentence) == ("", "Waiting in the queue.")
    end(site, scored(first), scored(second, 0.75))
    third = send(site, linear(4, 3, 2, 1))
    assert len(requests(site)) == 2  # what comes later is a request of its own
    assert [each.entry for each in order(site, requests(site)[1]).entries] == [third.id]


def test_students_see_pseudonyms_public_scores_and_their_own_row(site: CourseSite) -> None:
    first, second = send(site), send(site, linear(1, 2, 3, 4), STUDENT2)
    end(site, scored(first, 0.5, 0.25), scored(second, 0.75, 0.125))
    found = shown(site)
    assert [(row.rank, row.public, row.own) for row in found.rows] == [
        (1, 0.75, False),
        (2, 0.5, True),
    ]
    text = found.model_dump_json()
    assert "student2" not in text
    assert "0.25" not in text
    assert "0.125" not in text
    assert [each.sentence for each in found.mine] == ["Scored: 0.5 on the public part."]
    log = site.services.leaderboards.log(TEACHER, "cs101", "ps1")
    assert [(row.person, row.private) for row in log.rows] == [
        ("student2", 0.125),
        ("student1", 0.25),
    ]
    assert {row.pseudonym for row in log.rows} == {row.pseudonym for row in found.rows}
    with pytest.raises(Forbidden):
        site.services.leaderboards.log(STUDENT1, "cs101", "ps1")


def test_a_pickle_is_refused_at_once_and_never_stored(site: CourseSite) -> None:
    refused = send(site, a_pickle())
    assert refused.outcome == "refused"
    assert refused.sentence.startswith("The file is a pickle")
    assert requests(site) == []
    assert shown(site).left == 2
    with pytest.raises(InvalidInput):
        stored_tensors(a_pickle())
    for number in range(1, MOST_REFUSED_PER_DAY):
        send(site, a_pickle() + bytes(number))
    with pytest.raises(Conflict, match="20 files of yours were not scored today"):
        send(site, b"another")
    assert shown(site).left == 0


def test_a_refusal_by_files_that_were_corrected_since_does_not_hold(site: CourseSite) -> None:
    first = send(site)
    end(site, EntryScoreOut(entry=first.id, problem="The weights lack bias."))
    assert send(site).id == first.id
    site.clock.now += 1
    opened(site, files=files({"leaderboard.py": TEACHERS + b"\n# corrected"}))
    again = send(site)
    assert again.id != first.id
    end(site, scored(again))
    assert shown(site).mine[0].outcome == "scored"


def test_an_earlier_file_sent_again_is_the_last_one_where_that_counts(site: CourseSite) -> None:
    opened(site, per_day=9, counts="last")
    first, second = send(site), send(site, linear(1, 2, 3, 4))
    assert send(site, linear(1, 2, 3, 4)).id == second.id
    third = send(site)
    assert third.id not in (first.id, second.id)


def test_the_service_counts_the_submissions_of_a_day(site: CourseSite) -> None:
    with ThreadPoolExecutor(4) as pool:
        assert len({each.id for each in pool.map(lambda _: send(site), range(4))}) == 1
    assert shown(site).left == 1
    second = send(site, linear(1, 2, 3, 4))
    with pytest.raises(Conflict, match="You have used your 2 submissions of today") as refused:
        send(site, linear(2, 2, 2, 2))
    assert refused.value.accepted == "The next is possible from 2027-01-16 00:00 Europe/Berlin."
    wrong = "The weights lack bias."
    first = shown(site).mine[1]
    end(site, scored(first), EntryScoreOut(entry=second.id, problem=wrong))
    assert (shown(site).mine[0].outcome, shown(site).mine[0].sentence) == ("refused", wrong)
    assert shown(site).left == 1  # a refused one costs nothing
    send(site, linear(2, 2, 2, 2))
    site.clock.now += 86400
    assert shown(site).left == 2


def test_what_comes_while_a_request_runs_is_evaluated_by_one_next_request(
    site: CourseSite,
) -> None:
    first = send(site)
    lease = begin(site)
    second, third = send(site, linear(1, 2, 3, 4), STUDENT2), send(site, linear(4, 3, 2, 1))
    site.services.leaderboards.evaluation.reconcile()
    assert len(requests(site)) == 1
    assert third.sentence == "Waiting: one evaluation of a leaderboard runs at a time."
    end(site, scored(first), lease=lease)
    # As a service that was started again does.
    evaluation = WeightsEvaluation(site.services.access)
    evaluation.reconcile()
    evaluation.reconcile()
    assert len(requests(site)) == 2
    assert [each.entry for each in order(site, requests(site)[1]).entries] == [second.id, third.id]
    end(site, scored(second, 0.75), scored(third, 1.0))
    assert [(row.public, row.submissions) for row in shown(site).rows] == [(1.0, 2), (0.75, 1)]


@pytest.mark.parametrize("queued", [False, True])
def test_a_submission_whose_request_was_never_created_gets_another(
    site: CourseSite, queued: bool
) -> None:
    sent = [send(site), send(site, linear(1, 2, 3, 4), STUDENT2)]
    store = site.services.access.store.leaderboards
    entries = store.entries("cs101", "ps1")
    # The service ended before it submitted the request of one, or of both.
    store.change_waiting([replace(each, request="g-none") for each in entries[: 2 - queued]])
    site.services.leaderboards.evaluation.reconcile()
    (request,) = requests(site)
    assert [each.entry for each in order(site, request).entries] == [each.id for each in sent]
    end(site, *map(scored, sent))
    assert {each.outcome for each in logged(site)} == {"scored"}


def test_a_fault_is_evaluated_once_more_and_then_costs_nothing(site: CourseSite) -> None:
    first = send(site)
    why = "It used too much memory."
    end(site, EntryScoreOut(entry=first.id, problem=why, fault=True))
    (entry,) = shown(site).mine
    assert entry.outcome == ""
    assert entry.sentence.startswith(f"{why} It is evaluated once more. Waiting")
    site.services.leaderboards.evaluation.reconcile()
    assert [each.alone for each in order(site, requests(site)[-1]).entries] == [True]
    end(site, EntryScoreOut(entry=first.id, problem=why, fault=True, stopped=True))
    (entry,) = shown(site).mine
    assert (entry.id, entry.outcome) == (first.id, "stopped")
    assert f"{why} Its second evaluation has failed too. It costs no sub" in entry.sentence
    site.services.leaderboards.evaluation.reconcile()
    assert send(site).id != first.id
    assert shown(site).left == 1


def test_files_of_a_teacher_that_fail_cost_no_strike_and_are_scored_again(
    site: CourseSite,
) -> None:
    why = "The files of the leaderboard failed, which your teacher has to correct."
    failure, boards = "leaderboard.py: OSError: hidden.pt", site.services.leaderboards
    for _ in range(MOST_REFUSED_PER_DAY + 1):
        sent = [send(site), send(site, linear(1, 2, 3, 4), STUDENT2)]
        faults = [EntryScoreOut(entry=each.id, problem=why, fault=True) for each in sent]
        end(site, *faults, failure=failure)
    assert [shown(site, who).left for who in (STUDENT1, STUDENT2)] == [2, 2]
    log = boards.log(TEACHER, "cs101", "ps1")
    assert (log.unscored, log.failure) == (2, f"{failure}.")
    assert [each.repeated for each in shown(site).mine] == [False] + [True] * MOST_REFUSED_PER_DAY
    opened(site, files=files({"leaderboard.py": TEACHERS + b"\n# corrected"}))
    with pytest.raises(Forbidden):
        boards.score_again(STUDENT1, "cs101", "ps1")
    for _ in "12":
        assert boards.score_again(TEACHER, "cs101", "ps1").unscored == 0
    again = {each.person: each for each in logged(site) if not each.outcome}
    times = {name: each.sent_at for name, each in again.items()}
    first, second = (each.sent_at for each in sent)
    assert times == pytest.approx({"student1": first, "student2": second}, abs=1e-5, rel=0)
    mine = [(each.outcome, each.repeated) for each in shown(site).mine[:2]]
    assert mine == [("", False), ("fault", True)]
    waiting = site.services.access.store.leaderboards.waiting_in("cs101", "ps1")
    (request,) = {each.request for each in waiting}
    ordered = {each.entry for each in order(site, request).entries}
    assert ordered == {each.id for each in again.values()}
    result = LeaderboardResultOut(scores=[*map(scored, again.values())])
    came_out(site.services.access.context, request, result, name=LEADERBOARD_RESULT)
    before = logged(site)
    assert len(boards.score_again(TEACHER, "cs101", "ps1").entries) == len(before)
    assert [row.submissions for row in shown(site).rows] == [1, 1]


def test_many_files_left_by_faults_have_to_be_scored_before_there_are_more(
    site: CourseSite,
) -> None:
    for number in range(MOST_REFUSED_PER_DAY):
        entry = send(site, linear(1, 2, 3, number))
        end(site, EntryScoreOut(entry=entry.id, problem="No data.", fault=True), failure="No data.")
    with pytest.raises(Conflict, match="20 files of yours could not be scored"):
        send(site, linear(4, 4, 4, 4))
    assert shown(site).left == 0


def test_files_whose_evaluation_is_stopped_are_strikes(site: CourseSite) -> None:
    for number in range(MOST_REFUSED_PER_DAY):
        entry = send(site, linear(1, 2, 3, number))
        for _ in "12":
            stop = EntryScoreOut(
                entry=entry.id, problem="It used too much memory.", fault=True, stopped=True
            )
            end(site, stop)
            site.services.leaderboards.evaluation.reconcile()
    with pytest.raises(Conflict, match="20 files of yours were not scored today"):
        send(site, linear(4, 4, 4, 4))


def test_the_time_limit_fits_the_number_of_submissions(site: CourseSite) -> None:
    first = send(site)
    lease = begin(site)
    store, context = site.services.access.store.leaderboards, site.services.access.context
    record = context.store.request(requests(site)[-1])
    seconds = site.services.access.store.assignment("cs101", "ps1").seconds
    assert record.seconds == 120 + 5 * seconds
    (entry,) = store.entries("cs101", "ps1")
    for number in range(200):
        later = entry.sent_at + 1 + number
        store.add(replace(entry, id=f"w-{number}", person="student2", request="", sent_at=later))
    end(site, scored(first), lease=lease)
    site.services.leaderboards.evaluation.reconcile()
    record = context.store.request(requests(site)[-1])
    assert record.seconds == min(120 + 211 * seconds, MOST_SECONDS)
    assert record.seconds <= site.services.access.max_seconds("cs101")


def test_what_a_request_has_evaluated_before_it_ended_early_counts(site: CourseSite) -> None:
    sent = [send(site), send(site, linear(1, 2, 3, 4), STUDENT2)]
    end(site, scored(sent[0]), state=State.TIMED_OUT)
    outcomes = {each.id: (each.outcome, each.sentence) for each in logged(site)}
    assert outcomes[sent[0].id][0] == "scored"
    assert outcomes[sent[1].id][0] == ""
    site.services.leaderboards.evaluation.reconcile()
    assert [each.entry for each in order(site, requests(site)[-1]).entries] == [sent[1].id]


@pytest.mark.parametrize("tried", [False, True])
def test_a_submission_that_no_request_came_to_waits_for_further_ones_within_bounds(
    site: CourseSite, tried: bool
) -> None:
    entry, why = send(site), "It used too much memory."
    if tried:
        end(site, EntryScoreOut(entry=entry.id, problem=why, fault=True))
        site.services.leaderboards.evaluation.reconcile()
    for count in range(1, 5):
        end(site, state=State.FAILED if count % 2 else State.TIMED_OUT)
        site.services.leaderboards.evaluation.reconcile()
        (found,) = logged(site)
        assert found.outcome == ""
        assert f"before they came to it: {count} of at most 5. Waiting" in found.sentence
        assert found.sentence.startswith(why) == tried
        assert [each.alone for each in order(site, requests(site)[-1]).entries] == [tried]
    end(site, state=State.TIMED_OUT)
    (found,) = logged(site)
    assert found.outcome == "fault"
    assert found.sentence.startswith("5 evaluations ended before they came to it, by a fault")
    assert "second" not in found.sentence


def test_submissions_that_have_failed_come_after_all_others(site: CourseSite) -> None:
    slow, fast = send(site), send(site, linear(1, 2, 3, 4), STUDENT2)
    end(site, EntryScoreOut(entry=slow.id, problem="Its time was over.", fault=True))
    site.services.leaderboards.evaluation.reconcile()
    found = order(site, requests(site)[-1]).entries
    assert [(each.entry, each.alone) for each in found] == [(fast.id, False), (slow.id, True)]


def test_results_of_all_attempts_at_a_request_are_collected(site: CourseSite) -> None:
    sent = [send(site), send(site, linear(1, 2, 3, 4), STUDENT2)]
    lease, context = begin(site), site.services.access.context
    result = LeaderboardResultOut(scores=[scored(sent[0])])
    folder = context.files.attempt_folder(requests(site)[-1], lease.epoch)
    (folder / LEADERBOARD_RESULT).write_text(result.model_dump_json())
    why, now = Cause(code=CauseCode.LOST, message="The node is gone."), context.clock()
    context.store.apply_to_lease(
        lease.id, lifecycle.lose, why, now=now, charge_until=now, requeue=True
    )
    assert {each.outcome for each in logged(site)} == {""}
    end(site, scored(sent[1]), state=State.TIMED_OUT)
    assert len(requests(site)) == 1
    assert logged(site)[0].outcome == "scored"


def test_what_would_fail_again_is_not_evaluated_once_more(
    site: CourseSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = send(site)
    why = "The files of the leaderboard failed, which your teacher has to correct."
    fault = EntryScoreOut(entry=entry.id, problem=why, fault=True)
    end(site, fault, failure="leaderboard.py: OSError: hidden.pt")
    assert shown(site).mine[0].sentence.startswith(f"{why} It costs no submission")
    send(site)
    end(site, state=State.CANCELLED)
    assert shown(site).mine[0].sentence.startswith("It was not evaluated, by a fault")
    first = send(site)
    lease = begin(site)
    send(site, linear(1, 2, 3, 4))

    def no_owner(*_: object) -> str:
        raise Conflict("cs101 has no teacher.", accepted="A teacher.")

    monkeypatch.setattr(CourseAccess, "request_owner", no_owner)
    end(site, scored(first), lease=lease)
    site.services.leaderboards.evaluation.reconcile()
    assert [(each.outcome, each.sentence[:21]) for each in shown(site).mine[:2]] == [
        ("fault", "cs101 has no teacher."),
        ("scored", "Scored: 0.5 on the pu"),
    ]
    assert shown(site).left == 1


def test_private_scores_are_shown_after_the_last_due_date(site: CourseSite) -> None:
    opened(site, private_after_due=True)
    sent = [send(site), send(site, linear(1, 2, 3, 4), STUDENT2)]
    end(site, scored(sent[0], 0.5, 0.25), scored(sent[1], 0.25, 0.5))
    later = ExtensionIn(person="student2", seconds=86400)
    site.services.deadlines.extend(TEACHER, "cs101", "ps1", later)
    site.clock.now = course_site.DUE_AT + 86400 + 1  # late submissions count for a day
    with pytest.raises(Conflict, match="was due"):
        send(site, linear(2, 2, 2, 2))
    boards = site.services.leaderboards
    assert (shown(site).private_shown, shown(site).rows[0].private) == (False, None)
    before = boards.page(TEACHER, "cs101", "ps1")
    assert [row.person for row in before.shown.rows] == ["student1", "student2"]
    site.clock.now += 86400
    found = shown(site)
    assert (found.private_shown, found.mine[0].private) == (True, 0.25)
    assert [(row.rank, row.private, row.own) for row in found.rows] == [
        (1, 0.5, False),
        (2, 0.25, True),
    ]
    # The table of the teacher has the order that students see.
    after = boards.changed_page(TEACHER, "cs101", "ps1", before.state)
    assert after is not None
    assert [row.person for row in after.shown.rows] == ["student2", "student1"]


def test_without_due_date_students_are_not_promised_private_scores(site: CourseSite) -> None:
    opened(site, private_after_due=True)
    assert shown(site).rule.private_after_due
    site.release("ps2", due=None, late="")
    opened(site, name="ps2", private_after_due=True)
    found = site.services.leaderboards.show(STUDENT1, "cs101", "ps2")
    assert not found.rule.private_after_due


def test_open_pages_read_the_table_once_for_each_verdict(
    site: CourseSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str | None] = []
    entries = SqlLeaderboardStore.entries

    def counted(
        self: SqlLeaderboardStore, course: str, assignment: str, person: str | None = None
    ) -> Sequence[LeaderboardEntry]:
        read.append(person)
        return entries(self, course, assignment, person)

    monkeypatch.setattr(SqlLeaderboardStore, "entries", counted)
    boards, readers = site.services.leaderboards, (STUDENT1, STUDENT2, TEACHER)
    sent = [send(site), send(site, linear(1, 2, 3, 4), STUDENT2)]
    lease = begin(site)

    def pages(states: Iterable[str]) -> list[LeaderboardPage | None]:
        return [
            boards.changed_page(who, "cs101", "ps1", state)
            for who, state in zip(readers, states, strict=True)
        ]

    before = [boards.page(who, "cs101", "ps1").state for who in readers]
    read.clear()
    for _ in "12":
        assert pages(before) == [None, None, None]
    assert read == ["student1", "student2"] * 2, "only own submissions are read"
    end(site, *map(scored, sent), lease=lease)
    read.clear()
    after = pages(before)
    assert [len(page.shown.rows) for page in after if page] == [2, 2, 2]
    # The teacher's page has all submissions.
    assert read == ["student1", None, "student2", None]
    for _ in range(3):
        assert [len(shown(site, who).rows) for who in (STUDENT1, STUDENT2)] == [2, 2]
    assert read.count(None) == 2


@pytest.mark.parametrize(("who", "entries"), [(STUDENT1, "student1"), (TEACHER, None)])
def test_a_page_reads_counts_and_submissions_once(
    site: CourseSite, monkeypatch: pytest.MonkeyPatch, who: Identity, entries: str | None
) -> None:
    end(site, scored(send(site)))
    shown(site)  # so that the table is known
    calls: list[tuple[object, ...]] = []
    for name in ("rule", "counts", "entries"):
        method = getattr(SqlLeaderboardStore, name)

        def counted(
            self: SqlLeaderboardStore,
            *args: str,
            _name: str = name,
            _method: Callable[..., object] = method,
        ) -> object:
            calls.append((_name, *args[2:]))
            return _method(self, *args)

        monkeypatch.setattr(SqlLeaderboardStore, name, counted)
    assert len(site.services.leaderboards.page(who, "cs101", "ps1").shown.rows) == 1
    assert calls == [("rule",), ("counts",), ("entries", *([entries] if entries else []))]


def test_the_state_of_a_leaderboard_differs_with_what_its_reader_sees(site: CourseSite) -> None:
    def state(who: Identity = STUDENT1) -> str:
        return site.services.leaderboards.page(who, "cs101", "ps1").state

    seen = [state()]
    opened(site, counts="last")
    seen.append(state())
    first = send(site)
    seen.append(state())
    end(site, scored(first))
    seen.append(state())
    site.clock.now += 86400  # another day
    seen.append(state())
    site.clock.now = course_site.DUE_AT + 86400 + 1
    seen.append(state())
    assert shown(site).past_due
    assert len(set(seen)) == len(seen)
    assert state() == seen[-1]
    assert state(STUDENT2) != state()


def test_a_rule_that_would_make_scores_incomparable_is_refused(site: CourseSite) -> None:
    opened(site, metric="rmse")
    opened(site)
    entry = send(site)
    end(site, scored(entry))
    opened(site, per_day=5, counts="last", files=[])  # the files are kept
    for change in (
        {"metric": "rmse"},
        {"public_percent": 30},
        {"files": files({"leaderboard.py": b""})},
    ):
        with pytest.raises(Conflict, match="1 submission of ps1 would not be comparable"):
            opened(site, **change)
    with pytest.raises(InvalidInput, match=r"have no leaderboard\.py"):
        opened(site, files=files({"other.py": b""}))
    site.services.leaderboard_rules.close(TEACHER, "cs101", "ps1")
    with pytest.raises(Forbidden, match="no open leaderboard"):
        send(site, linear(2, 2, 2, 2))
    assert len(shown(site).rows) == 1
    with pytest.raises(Forbidden):
        send(site, who=TEACHER)
    with pytest.raises(Forbidden):
        site.services.leaderboard_rules.close(STUDENT1, "cs101", "ps1")
    assert ("teacher", "leaderboard set", "cs101/ps1") in site.lines()
