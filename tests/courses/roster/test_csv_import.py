"""Rosters: tables of all sorts, mistakes by line, and the changes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.courses.model.records import CourseRole, Member
from carrel.courses.roster.csv_import import MAX_ROWS, RosterRow, read_roster, roster_change
from carrel.hub.errors import InvalidInput, TooLarge

ADA = RosterRow(person="ada", full_name="Ada L.", section="blue")
BEN = RosterRow(person="ben")
PEOPLE = st.dictionaries(
    st.sampled_from("abcdef"),
    st.tuples(
        st.sampled_from(["", "blue"]), st.sampled_from([CourseRole.STUDENT, CourseRole.GRADER])
    ),
)


def member(person: str, **more: str) -> Member:
    return Member(course="cs101", person=person, **more)  # type: ignore[arg-type]  # texts only


class TestReading:
    @pytest.mark.parametrize(
        "text",
        [
            "student,name,section\nada,Ada L.,blue\nben,,\n",
            "student;name;section\nada;Ada L.;blue\nben;;\n",
            "\ufeffStudent\tName\tSection\r\nADA\tAda L.\tblue\r\nben\r\n",
            'section,name,student\n\nblue,"Ada L.", ada\n ,, ben \n\n',
            "student,name,section\rada,Ada L.,blue\rben,,\r",
            "\ufeffsep=;\r\nstudent;name;section;\r\nada;Ada L.;blue;\r\nben;;;\r\n;;;\r\n",
            '"sep=,",,\nstudent,name,section,,\nada,Ada L.,blue,,\nben,,,,\n,,,,\n',
        ],
        ids=[
            *("commas", "semicolons", "tabs from Windows", "another order", "old Macs"),
            *("Excel with sep=", "LibreOffice with sep="),
        ],
    )
    def test_tables_with_all_delimiters_read_the_same(self, text: str) -> None:
        assert read_roster(text) == (ADA, BEN)

    def test_a_table_without_student_names_accounts_in_its_column_name(self) -> None:
        found = read_roster("\ufeffsep=;\r\nname;section;\r\nada;A;\r\nben;B;\r\n")
        assert [(row.person, row.section) for row in found] == [("ada", "A"), ("ben", "B")]
        assert found[0].full_name == ""

    def test_names_alone_are_enough(self) -> None:
        assert read_roster("student\nben\n") == (BEN,)

    def test_a_roster_may_be_empty(self) -> None:
        assert read_roster("student\n") == ()

    def test_a_name_may_hold_the_delimiter_in_quotes(self) -> None:
        (row,) = read_roster('student,name\nada,"Lovelace, Ada"\n')
        assert row.full_name == "Lovelace, Ada"

    def test_all_mistakes_are_reported_with_their_lines(self) -> None:
        text = "student,role\nada,\nben,boss\nada,student\nthe/dean,\ncy,student,x\n"
        with pytest.raises(InvalidInput) as refused:
            read_roster(text)
        assert refused.value.message == (
            "The roster has mistakes: line 3: 'boss' is not a role: student, grader or teacher; "
            "line 4: ada is there twice; line 5: 'the/dean' is not a valid user name; "
            "line 6: it has 3 cells, and there are 2 columns."
        )
        assert "whose first line names its columns" in refused.value.accepted

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("", "is empty"),
            ("\n \n", "is empty"),
            ("ada\nben\n", "no column 'student'"),
            ("student,email\nada,a@b\n", "a column 'email'"),
            ("student,name,name\nada,a,b\n", "a column twice"),
            ('student,name\nada,"Ada\n', "cannot be read"),
            ("student,name\nada,A\0da\n", "mistakes: line 2"),
        ],
    )
    def test_an_invalid_roster_is_refused(self, text: str, said: str) -> None:
        with pytest.raises(InvalidInput) as refused:
            read_roster(text)
        assert said in refused.value.message

    def test_the_number_of_reported_lines_is_limited(self) -> None:
        with pytest.raises(InvalidInput, match="and 95 more"):
            read_roster("student\n" + "!\n" * 100)

    def test_a_roster_that_is_too_large_is_refused(self) -> None:
        many = "".join(f"s{n}\n" for n in range(MAX_ROWS + 1))
        with pytest.raises(TooLarge):
            read_roster("student\n" + many)


class TestPlan:
    def test_every_kind_of_change_has_a_sentence(self) -> None:
        known = [
            member("cy"),
            member("dan", section="red"),
            replace(member("eve"), left_at=5.0),
            member("flo"),
        ]
        rows = [
            ADA,
            RosterRow(person="dan", section="blue"),
            RosterRow(person="eve", role=CourseRole.GRADER),
        ]
        rows += [RosterRow(person="grace", role=CourseRole.TEACHER), RosterRow(person="flo")]
        rows += [RosterRow(person="hal", section="red")]
        inside = [member("hal"), member("ida")]
        plan = roster_change("cs101", rows, known, unlisted=inside, teachers=["tom"])
        assert list(plan.sentences()) == [
            "cy leaves; the submissions are kept.",
            "ida leaves; the submissions are kept.",
            "tom is no longer a teacher of cs101.",
            "grace becomes a teacher.",
            "ada (Ada L.) is new, section blue.",
            "hal was in the group already, section red.",
            "eve returns, as grader.",
            "dan: section red → blue.",
        ]

    def test_teachers_are_kept_if_the_roster_names_none(self) -> None:
        assert roster_change("cs101", [BEN], [], teachers=["tom"]).former_teachers == ()

    @given(PEOPLE, PEOPLE)
    def test_applying_a_roster_twice_changes_nothing(
        self,
        before: dict[str, tuple[str, CourseRole]],
        after: dict[str, tuple[str, CourseRole]],
    ) -> None:
        known = {
            name: replace(member(name, section=section), role=role)
            for name, (section, role) in before.items()
        }
        rows = [RosterRow(person=n, section=s, role=r) for n, (s, r) in after.items()]
        plan = roster_change("cs101", rows, known.values())
        applied = known | {each.person: each for each in plan.staying}
        applied |= {each.person: replace(each, left_at=1.0) for each in plan.leaving}
        assert roster_change("cs101", rows, applied.values()).empty
        here = {name for name, each in applied.items() if each.left_at is None}
        assert here == set(after)
        assert set(known) <= set(applied)
