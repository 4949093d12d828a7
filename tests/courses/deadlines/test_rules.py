"""Due dates, extensions, outages and late rules."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.courses.deadlines import rules as deadline_rules
from carrel.courses.deadlines.rules import LatenessState
from carrel.courses.model.records import (
    Assignment,
    Extension,
    Folder,
    LateRule,
    LateStep,
    Member,
    Outage,
    Submission,
)
from carrel.hub.errors import InvalidInput
from carrel.hub.schemas import LATEST

HOUR = 3600
DAY = 24 * HOUR
ADA = Member(course="cs101", person="ada", section="blue")
PS1 = Assignment(course="cs101", name="ps1", due=100.0 * DAY)
TENTH = LateRule(steps=(LateStep(seconds=DAY, penalty=0.1),))
SPANS = st.tuples(st.integers(0, 300), st.integers(1, 50))


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def extension(hours: int, **whom: str) -> Extension:
    return Extension(
        course="cs101",
        assignment=whom.pop("assignment", "ps1"),
        seconds=hours * HOUR,
        given_at=0.0,
        given_by="teacher",
        **whom,
    )


def outage(starts_at: float, ends_at: float, course: str = "") -> Outage:
    return Outage(
        starts_at=starts_at, ends_at=ends_at, course=course, recorded_at=0.0, recorded_by="admin"
    )


def submission(number: int, when: float) -> Submission:
    nothing = Folder(sha256="", files=())
    return Submission(
        id=number,
        number=number,
        course="cs101",
        assignment="ps1",
        person="ada",
        at=when,
        files=nothing,
    )


class TestReading:
    @pytest.mark.parametrize(
        ("text", "moment"),
        [
            ("2027-02-01 18:00 Europe/Berlin", "2027-02-01 17:00"),
            ("2027-07-01 18:00 Europe/Berlin", "2027-07-01 16:00"),
            ("2027-02-01T18:00:30 UTC", "2027-02-01 18:00:30"),
            ("  2027-02-01  9:05   Asia/Kolkata ", "2027-02-01 03:35"),
        ],
    )
    def test_a_due_date_is_a_moment(self, text: str, moment: str) -> None:
        found, zone = deadline_rules.read_due(text)
        assert found == at(moment)
        assert zone == text.rsplit(maxsplit=1)[-1]

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("tomorrow", "'tomorrow' is not a due date."),
            ("2027-02-01 18:00", "is not a due date."),
            ("2027-02-30 18:00 UTC", "is not in the calendar."),
            ("2027-02-01 25:00 UTC", "is not in the calendar."),
            ("2027-02-01 18:00 Mars/Olympus", "There is no zone Mars/Olympus."),
            ("9999-12-31 23:59 Etc/GMT-14", "9999-12-31 is not between the years 1970 and 2999."),
            ("3000-01-01 00:00 UTC", "is not between the years 1970 and 2999."),
            ("0001-01-01 00:00 UTC", "is not between the years 1970 and 2999."),
            ("2027-02-01 18:00 ../../etc/passwd", "is not a due date."),
            ("2027-02-01 18:00 /etc/passwd", "There is no zone /etc/passwd."),
            ("2027-03-28 02:30 Europe/Berlin", "Europe/Berlin shows 02:30 never."),
            ("2026-10-25 02:30 Europe/Berlin", "Europe/Berlin shows 02:30 twice."),
        ],
    )
    def test_a_malformed_due_date_is_refused_with_an_example(self, text: str, said: str) -> None:
        with pytest.raises(InvalidInput) as refused:
            deadline_rules.read_due(text)
        assert refused.value.message.endswith(said)
        assert deadline_rules.DUE_HELP in refused.value.accepted

    @pytest.mark.parametrize(
        ("text", "rule"),
        [
            ("24h:-10%", TENTH),
            (" 1d : -10 % ", TENTH),
            ("none", LateRule()),
            ("", LateRule()),
            (
                "30m:-0%,2d:-12.5%",
                LateRule(
                    steps=(
                        LateStep(seconds=1800, penalty=0),
                        LateStep(seconds=2 * DAY, penalty=0.125),
                    )
                ),
            ),
        ],
    )
    def test_a_late_rule_is_read(self, text: str, rule: LateRule) -> None:
        assert deadline_rules.read_late(text) == rule
        assert deadline_rules.read_late(deadline_rules.late_text(rule)) == rule

    @pytest.mark.parametrize(
        "text",
        [
            "10%",
            "24h:10%",
            "0h:-10%",
            "24h:-101%",
            "24h:-10%,12h:-20%",
            "1h:-20%,2h:-10%",
            "x" * 99,
        ],
    )
    def test_a_malformed_late_rule_is_refused(self, text: str) -> None:
        with pytest.raises(InvalidInput) as refused:
            deadline_rules.read_late(text)
        assert refused.value.field == "late"

    def test_late_rules_become_sentences(self) -> None:
        assert deadline_rules.late_sentence(LateRule()) == "What comes late does not count."
        assert deadline_rules.late_sentence(deadline_rules.read_late("1h:-5%,2d:-20%")) == (
            "Up to 1h late costs 5 %, up to 2d late costs 20 % of the points; later does not count."
        )


class TestDue:
    def test_extensions_of_a_person_and_their_section_add_up(self) -> None:
        extensions = [
            extension(48, person="ada"),
            extension(1, section="blue"),
            extension(500, person="ben"),
            extension(500, section="red"),
            extension(500, person="ada", assignment="ps2"),
        ]
        assert deadline_rules.due_for(PS1, ADA, extensions, []) == 100 * DAY + 49 * HOUR

    def test_an_extension_never_reaches_beyond_the_upper_bound_of_times(self) -> None:
        last = Assignment(course="cs101", name="ps1", due=LATEST - HOUR)
        assert deadline_rules.due_for(last, ADA, [extension(48, person="ada")], []) == LATEST

    def test_an_extension_of_no_section_reaches_no_student(self) -> None:
        alone = Member(course="cs101", person="ben")
        assert deadline_rules.due_for(PS1, alone, [extension(1, person="ada")], []) == 100 * DAY

    def test_an_assignment_without_due_date_is_not_extended(self) -> None:
        never = Assignment(course="cs101", name="ps1")
        assert (
            deadline_rules.due_for(never, ADA, [extension(1, person="ada")], [outage(0, DAY)])
            is None
        )

    @pytest.mark.parametrize(
        ("starts", "ends", "course", "more"),
        [
            (-2, 1, "", 3),
            (-30, -23, "", 7),
            (-30, -25, "", 0),
            (0, 5, "", 0),
            (-2, 1, "cs101", 3),
            (-2, 1, "cs102", 0),
        ],
        ids=["over it", "the day before", "long before", "after it", "its own", "another's"],
    )
    def test_an_outage_moves_what_was_due_then(
        self, starts: int, ends: int, course: str, more: int
    ) -> None:
        base = 100.0 * DAY
        was = outage(base + starts * HOUR, base + ends * HOUR, course)
        assert deadline_rules.due_for(PS1, ADA, [], [was]) == base + more * HOUR

    def test_an_outage_after_an_extension_moves_only_the_extended_due_date(self) -> None:
        later = 101.5 * DAY
        was = [outage(later, later + HOUR)]
        assert deadline_rules.due_for(PS1, ADA, [], was) == 100 * DAY
        assert (
            deadline_rules.due_for(PS1, ADA, [extension(48, person="ada")], was) == 102 * DAY + HOUR
        )

    @given(st.integers(0, 400), st.lists(SPANS, max_size=5))
    def test_outages_never_shorten_time_and_overlapping_ones_count_once(
        self, base: int, spans: list[tuple[int, int]]
    ) -> None:
        was = [outage(start * HOUR, (start + length) * HOUR) for start, length in spans]
        after = deadline_rules.after_outages(base * HOUR, "cs101", was)
        hours = {hour for start, length in spans for hour in range(start, start + length)}
        assert base * HOUR <= after <= (base + len(hours)) * HOUR
        assert after == deadline_rules.after_outages(base * HOUR, "cs101", [*reversed(was), *was])


class TestLateness:
    @pytest.mark.parametrize(
        ("after", "standing", "penalty"),
        [
            (-1, LatenessState.ON_TIME, 0.0),
            (0, LatenessState.ON_TIME, 0.0),
            (1, LatenessState.LATE, 0.1),
            (DAY, LatenessState.LATE, 0.1),
            (DAY + 1, LatenessState.TOO_LATE, 1.0),
        ],
    )
    def test_the_due_moment_is_on_time_and_the_last_moment_of_a_step_counts(
        self, after: int, standing: LatenessState, penalty: float
    ) -> None:
        found = deadline_rules.lateness(1000.0 + after, 1000.0, TENTH)
        assert (found.standing, found.penalty, found.seconds) == (standing, penalty, max(0, after))

    def test_without_due_date_no_submission_is_late(self) -> None:
        assert deadline_rules.lateness(1e12, None, LateRule()).counts

    @pytest.mark.parametrize(
        ("times", "chosen", "counts"),
        [
            ([], None, None),
            ([900, 950, 1100], None, 2),
            ([1100, 1200], None, 2),
            ([1000 + 2 * DAY], None, None),
            ([900, 1100, 1000 + 2 * DAY], None, 1),
            ([900, 1100], 2, 2),
            ([1000 + 2 * DAY], 1, 1),
        ],
    )
    def test_the_last_submission_on_time_counts_unless_the_teacher_chose(
        self, times: list[int], chosen: int | None, counts: int | None
    ) -> None:
        sent = [submission(number, when) for number, when in enumerate(times, 1)]
        found = deadline_rules.counting_submission(sent[::-1], 1000.0, TENTH, chosen)
        assert (found.number if found else None) == counts


@pytest.mark.parametrize(
    ("rule", "hours", "sentence"),
    [
        (TENTH, -3, "it is on time; in 3 h it costs 10 % of the points."),
        (LateRule(), -3, "it is on time; in 3 h it does not count any more."),
        (TENTH, 2, "it is 2 h late and costs 10 % of the points; in 22 h it does not count any "
                   "more."),
        (deadline_rules.read_late("1h:-5%,24h:-20%"), 0.5,
         "it is 30 min late and costs 5 % of the points; in 30 min it costs 20 % of the points."),
        (TENTH, 25, "it is too late to count; your teacher may still accept it."),
    ],
)  # fmt: skip  # a case each
def test_a_sentence_says_what_submitting_now_costs(
    rule: LateRule, hours: float, sentence: str
) -> None:
    assert deadline_rules.now_sentence(at("2027-02-01") + hours * HOUR, at("2027-02-01"), rule) == (
        f"Submitted now, {sentence}"
    )
    assert deadline_rules.now_sentence(0.0, None, rule) == "It is never due."
