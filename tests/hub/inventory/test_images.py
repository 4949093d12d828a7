"""Which image a request gets, what is pinned, and what may never be removed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from carrel.hub.errors import Forbidden, InvalidInput, NotFound, Unavailable
from carrel.hub.records.audit import ChangeFilter
from carrel.hub.records.requests import RequestFilter
from carrel.hub.runtime.context import Context
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.schemas import SessionIn
from carrel.hub.schemas.images import PinIn
from carrel.hub.store.memory import MemoryStore
from carrel.spawners.fake import FakeBackend

from ..doubles import ADMIN, STUDENT1, STUDENT2, TEACHER, Clock, FakeHub, build
from ..images import BASE, CATALOGUE, GONE, NEW, OLD
from ..requests.test_life_of_requests import job


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend(built=CATALOGUE)


@pytest.fixture
def commands(tmp_path: Path, backend: FakeBackend, clock: Clock) -> Context:
    return build(MemoryStore(), backend, FakeHub(), clock, tmp_path)


def chosen(commands: Context, wanted: str = "", *, group: str = "cs101") -> str:
    found = commands.catalogue.choose(group, wanted)
    assert found is not None
    return found.reference


class TestChoosing:
    def test_a_name_is_its_newest_build_and_nothing_is_the_default(self, commands: Context) -> None:
        assert chosen(commands, "torch") == f"torch@{NEW}"
        assert chosen(commands) == f"base@{BASE}"

    def test_a_build_that_only_some_machines_have_comes_after_one_that_all_have(
        self, commands: Context, backend: FakeBackend
    ) -> None:
        both = ("local", "far")
        base, new, old = (replace(image, nodes=both) for image in CATALOGUE)
        backend.built = (base, replace(new, nodes=("local",)), old)
        assert chosen(commands, "torch") == f"torch@{OLD}"
        assert chosen(commands, f"torch@{NEW}") == f"torch@{NEW}"
        backend.built = (base, new, old)
        assert chosen(commands, "torch") == f"torch@{NEW}"

    def test_of_two_defaults_the_one_that_all_machines_have_is_taken(
        self, commands: Context, backend: FakeBackend
    ) -> None:
        torch = replace(CATALOGUE[1], default=True)
        backend.built = (torch, replace(CATALOGUE[0], nodes=("local", "far")))
        assert chosen(commands) == f"base@{BASE}"
        backend.built = (torch, CATALOGUE[0])
        assert chosen(commands) == f"torch@{NEW}"

    def test_old_work_runs_again_in_its_own_build(self, commands: Context) -> None:
        made = commands.submit_job(STUDENT1, job(image=f"torch@{OLD}"))
        assert made.image == f"torch@{OLD}"
        again = commands.same_job(STUDENT1, made.id)
        assert again.image == f"torch@{OLD}"

    def test_a_build_may_be_named_as_lists_show_it(
        self, commands: Context, backend: FakeBackend
    ) -> None:
        assert chosen(commands, "torch@aaaaaaaaaaaa") == f"torch@{OLD}"
        assert chosen(commands, "torch@sha256:aaaaaaaaaaaa") == f"torch@{OLD}"
        like_it = replace(CATALOGUE[1], digest=f"sha256:{'a' * 40}{'b' * 24}")
        backend.built = (*CATALOGUE, like_it)
        with pytest.raises(InvalidInput, match="No engine has torch@aaaaaaaaaaaa"):
            chosen(commands, "torch@aaaaaaaaaaaa")
        assert chosen(commands, f"torch@{like_it.digest}") == f"torch@{like_it.digest}"

    @pytest.mark.parametrize(
        ("wanted", "sentence"),
        [
            ("julia", "There is no image 'julia'. One of: base, torch."),
            (
                f"torch@{GONE}",
                f"No engine has torch@dddddddddddd. torch@{NEW}, built 1 January 1970; "
                f"torch@{OLD}, built 1 January 1970.",
            ),
            (f"base@{OLD}", f"No engine has base@aaaaaaaaaaaa. base@{BASE}, built 1 January 1970."),
            (
                "../torch",
                "'../torch' names no image. The name of an image, such as 'torch', alone or "
                "with its digest: torch@sha256:….",
            ),
            ("torch@sha256:12", "'torch@sha256:12' names no image."),
            ("Torch", "'Torch' names no image."),
            ("torch@", "'torch@' names no image."),
            ("localhost:5000/torch", "'localhost:5000/torch' names no image."),
            ("torch\n", "'torch\\n' names no image."),
        ],
    )
    def test_what_no_engine_has_is_refused_before_the_queue(
        self, commands: Context, wanted: str, sentence: str
    ) -> None:
        with pytest.raises(InvalidInput) as refused:
            commands.submit_job(STUDENT1, job(image=wanted))
        assert str(refused.value).startswith(sentence)
        assert refused.value.field == "image"
        with pytest.raises(InvalidInput):
            commands.start_session(STUDENT1, "", SessionIn(image=wanted))
        assert commands.store.requests(RequestFilter()) == ()

    def test_before_the_first_build_the_refusal_says_who_makes_one(
        self, commands: Context, backend: FakeBackend
    ) -> None:
        backend.built = ()
        for wanted in ("", "torch"):
            with pytest.raises(InvalidInput, match="carrel images build base"):
                commands.submit_job(STUDENT1, job(image=wanted))

    def test_an_engine_that_never_answered_is_no_refusal(
        self, commands: Context, backend: FakeBackend
    ) -> None:
        backend.silent = True
        with pytest.raises(Unavailable):
            commands.submit_job(STUDENT1, job())

    def test_without_images_there_is_no_choice(
        self, commands: Context, backend: FakeBackend
    ) -> None:
        backend.built = None
        assert commands.submit_job(STUDENT1, job()).image == ""
        with pytest.raises(InvalidInput, match="not in images"):
            commands.submit_job(STUDENT1, job(image="torch"))
        assert not commands.images(STUDENT1).choice

    def test_a_session_keeps_its_image(self, commands: Context) -> None:
        made = commands.start_session(STUDENT1, "", SessionIn(image="torch"))
        assert made.image == f"torch@{NEW}"

    def test_a_kernel_is_looked_for_in_the_image(
        self, commands: Context, backend: FakeBackend
    ) -> None:
        julia = replace(CATALOGUE[0], kernels=("julia-1.11",))
        backend.built = (julia, *CATALOGUE[1:])
        assert commands.submit_job(STUDENT1, job(image="base", kernel="julia-1.11"))
        with pytest.raises(InvalidInput, match="julia"):
            commands.submit_job(STUDENT1, job(image="torch", kernel="julia-1.11"))


class TestPins:
    def test_a_pinned_course_gets_its_build_until_the_day_is_over(
        self, commands: Context, clock: Clock
    ) -> None:
        clock.now = 1_769_000_000.0  # 2026-01-21
        made = commands.catalogue.pin(
            TEACHER, "cs101", "torch", PinIn(digest=OLD, until="2026-02-15")
        )
        assert made.sentence == "pinned for cs101 until 15 February 2026"
        assert chosen(commands, "torch") == f"torch@{OLD}"
        assert chosen(commands, f"torch@{NEW}") == f"torch@{NEW}"
        clock.pass_(60 * 86400.0)
        assert chosen(commands, "torch") == f"torch@{NEW}"
        (over,) = commands.images(TEACHER).pins
        assert not over.holds

    def test_groups_below_inherit_and_the_nearest_pin_wins(self, commands: Context) -> None:
        lab = Group(name="lab", parent="cs101", max_devices=1, max_devices_per_user=1)
        commands.store.put_group(lab)
        commands.catalogue.pin(TEACHER, "cs101", "torch", PinIn(digest=OLD))
        assert chosen(commands, "torch", group="lab") == f"torch@{OLD}"
        commands.catalogue.pin(ADMIN, "lab", "torch", PinIn(digest=NEW))
        assert chosen(commands, "torch", group="lab") == f"torch@{NEW}"
        assert chosen(commands, "torch") == f"torch@{OLD}"

    def test_a_pinned_build_that_is_gone_is_said_before_the_queue(
        self, commands: Context, backend: FakeBackend
    ) -> None:
        commands.catalogue.pin(TEACHER, "cs101", "torch", PinIn(digest=OLD))
        backend.built = CATALOGUE[:2]
        with pytest.raises(InvalidInput) as refused:
            commands.submit_job(STUDENT1, job(image="torch"))
        assert str(refused.value).startswith(
            "cs101 has pinned torch@aaaaaaaaaaaa, and no engine has that build any more."
        )
        (pin,) = commands.images(STUDENT1).pins
        assert pin.sentence == "pinned for cs101; no engine has it"

    def test_teachers_and_administrators_pin_and_it_is_written_down(
        self, commands: Context
    ) -> None:
        for who in (STUDENT1, STUDENT2):
            with pytest.raises(Forbidden, match="for its teachers"):
                commands.catalogue.pin(who, "cs101", "torch", PinIn())
            with pytest.raises(Forbidden):
                commands.catalogue.unpin(who, "cs101", "torch")
        commands.catalogue.pin(TEACHER, "cs101", "torch", PinIn())
        commands.catalogue.pin(ADMIN, "cs101", "torch", PinIn(digest=OLD, until="2030-01-01"))
        commands.catalogue.unpin(TEACHER, "cs101", "torch")
        first = {"image": "torch", "digest": NEW, "until": None}
        second = {"image": "torch", "digest": OLD, "until": "2030-01-01"}
        lines = [
            (line.who, str(line.action), dict(line.before), dict(line.after))
            for line in commands.store.changes(ChangeFilter(target="cs101"))
        ]
        assert lines == [
            ("teacher", "unpin", second, {}),
            ("admin", "pin", first, second),
            ("teacher", "pin", {}, first),
        ]
        with pytest.raises(NotFound, match="Pinned: none yet"):
            commands.catalogue.unpin(TEACHER, "cs101", "torch")

    @pytest.mark.parametrize(
        ("name", "body", "sentence"),
        [
            ("julia", PinIn(), "There is no image 'julia'"),
            ("torch", PinIn(digest=GONE), "No engine has torch@dddddddddddd"),
            ("torch", PinIn(until="1970-01-01"), "is over"),
            ("torch", PinIn(until="soon"), "is no day"),
        ],
    )
    def test_a_pin_that_could_not_hold_is_refused(
        self, commands: Context, name: str, body: PinIn, sentence: str
    ) -> None:
        with pytest.raises(InvalidInput, match=sentence):
            commands.catalogue.pin(TEACHER, "cs101", name, body)
        assert commands.store.pins() == ()

    def test_others_do_not_see_the_pins_of_a_group(self, commands: Context) -> None:
        commands.store.put_group(Group(name="lab", max_devices=1, max_devices_per_user=1))
        commands.catalogue.pin(ADMIN, "lab", "torch", PinIn())
        assert commands.images(STUDENT1).pins == []
        assert [pin.group for pin in commands.images(ADMIN).pins] == ["lab"]
        assert commands.images(TEACHER).may_pin == ["cs101"]


class TestNeeded:
    def test_pins_what_lives_and_kept_outputs_hold_a_build(
        self, commands: Context, clock: Clock
    ) -> None:
        needed = commands.catalogue.needed
        assert needed(commands.files).needed == []
        commands.catalogue.pin(TEACHER, "cs101", "torch", PinIn(digest=NEW, until="1970-02-01"))
        done = commands.submit_job(STUDENT1, job(image=f"torch@{OLD}"))
        commands.cancel(STUDENT1, done.id)
        desk = commands.start_session(STUDENT1, "", SessionIn(image="base"))
        assert {each.image: each.why for each in needed(commands.files).needed} == {
            f"torch@{NEW}": "Pinned for cs101 until 1 February 1970.",
            f"torch@{OLD}": f"The output of {done.id} is kept, and names it.",
            f"base@{BASE}": f"{desk.id} waits or runs in it.",
        }
        commands.files.discard(done.id)
        commands.cancel(STUDENT1, desk.id)
        clock.pass_(60 * 86400.0)
        assert needed(commands.files).needed == []
