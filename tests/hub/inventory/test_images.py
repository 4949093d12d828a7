"""Choice of images for requests, pins, and images that must be kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from carrel.hub.errors import Forbidden, InvalidInput, NotFound, Unavailable
from carrel.hub.groups.membership import Membership
from carrel.hub.inventory.images import ImageCatalogue
from carrel.hub.records.audit import ChangeFilter
from carrel.hub.records.requests import RequestFilter
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.termination import RequestTermination
from carrel.hub.runtime.context import Context
from carrel.hub.scheduling.model.snapshot import Group
from carrel.hub.schemas import SessionIn
from carrel.hub.schemas.images import PinIn
from carrel.hub.sessions.lifecycle import SessionLifecycle
from carrel.spawners.fake import FakeBackend

from ...stores import new_store
from ..doubles import ADMIN, STUDENT1, STUDENT2, TEACHER, Clock, FakeHub, build
from ..images import BASE, CATALOGUE, GONE, NEW, OLD
from ..requests.samples import job


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend(built=CATALOGUE)


@pytest.fixture
def context(tmp_path: Path, backend: FakeBackend, clock: Clock) -> Context:
    return build(new_store(), backend, FakeHub(), clock, tmp_path)


def chosen(context: Context, wanted: str = "", *, group: str = "cs101") -> str:
    found = ImageCatalogue.of(context).choose(group, wanted)
    assert found is not None
    return found.reference


class TestChoosing:
    def test_a_name_selects_its_newest_build_and_no_name_the_default(
        self, context: Context
    ) -> None:
        assert chosen(context, "torch") == f"torch@{NEW}"
        assert chosen(context) == f"base@{BASE}"

    def test_a_build_on_all_machines_is_preferred(
        self, context: Context, backend: FakeBackend
    ) -> None:
        both = ("local", "far")
        base, new, old = (replace(image, nodes=both) for image in CATALOGUE)
        backend.built = (base, replace(new, nodes=("local",)), old)
        assert chosen(context, "torch") == f"torch@{OLD}"
        assert chosen(context, f"torch@{NEW}") == f"torch@{NEW}"
        backend.built = (base, new, old)
        assert chosen(context, "torch") == f"torch@{NEW}"

    def test_the_default_that_all_machines_have_is_preferred(
        self, context: Context, backend: FakeBackend
    ) -> None:
        torch = replace(CATALOGUE[1], default=True)
        backend.built = (torch, replace(CATALOGUE[0], nodes=("local", "far")))
        assert chosen(context) == f"base@{BASE}"
        backend.built = (torch, CATALOGUE[0])
        assert chosen(context) == f"torch@{NEW}"

    def test_a_rerun_uses_the_build_of_the_first_run(self, context: Context) -> None:
        made = JobService(context).submit(STUDENT1, job(image=f"torch@{OLD}"))
        assert made.image == f"torch@{OLD}"
        again = JobService(context).same_job(STUDENT1, made.id)
        assert again.image == f"torch@{OLD}"

    def test_a_build_may_be_named_as_lists_show_it(
        self, context: Context, backend: FakeBackend
    ) -> None:
        assert chosen(context, "torch@aaaaaaaaaaaa") == f"torch@{OLD}"
        assert chosen(context, "torch@sha256:aaaaaaaaaaaa") == f"torch@{OLD}"
        like_it = replace(CATALOGUE[1], digest=f"sha256:{'a' * 40}{'b' * 24}")
        backend.built = (*CATALOGUE, like_it)
        with pytest.raises(InvalidInput, match="No engine has torch@aaaaaaaaaaaa"):
            chosen(context, "torch@aaaaaaaaaaaa")
        assert chosen(context, f"torch@{like_it.digest}") == f"torch@{like_it.digest}"

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
                "'../torch' is not the name of an image. "
                "The name of an image, such as 'torch', alone or "
                "with its digest: torch@sha256:….",
            ),
            ("torch@sha256:12", "'torch@sha256:12' is not the name of an image."),
            ("Torch", "'Torch' is not the name of an image."),
            ("torch@", "'torch@' is not the name of an image."),
            ("localhost:5000/torch", "'localhost:5000/torch' is not the name of an image."),
            ("torch\n", "'torch\\n' is not the name of an image."),
        ],
    )
    def test_an_unknown_image_is_refused_at_admission(
        self, context: Context, wanted: str, sentence: str
    ) -> None:
        with pytest.raises(InvalidInput) as refused:
            JobService(context).submit(STUDENT1, job(image=wanted))
        assert str(refused.value).startswith(sentence)
        assert refused.value.field == "image"
        with pytest.raises(InvalidInput):
            SessionLifecycle(context).start(STUDENT1, "", SessionIn(image=wanted))
        assert context.store.requests(RequestFilter()) == ()

    def test_without_any_build_the_refusal_says_who_builds_one(
        self, context: Context, backend: FakeBackend
    ) -> None:
        backend.built = ()
        for wanted in ("", "torch"):
            with pytest.raises(InvalidInput, match="carrel images build base"):
                JobService(context).submit(STUDENT1, job(image=wanted))

    def test_an_engine_that_never_answered_causes_no_refusal(
        self, context: Context, backend: FakeBackend
    ) -> None:
        backend.silent = True
        with pytest.raises(Unavailable):
            JobService(context).submit(STUDENT1, job())

    def test_without_images_there_is_no_choice(
        self, context: Context, backend: FakeBackend
    ) -> None:
        backend.built = None
        assert JobService(context).submit(STUDENT1, job()).image == ""
        with pytest.raises(InvalidInput, match="not in images"):
            JobService(context).submit(STUDENT1, job(image="torch"))
        assert (
            not ImageCatalogue.of(context)
            .shown(STUDENT1, Membership.of(context).names(STUDENT1))
            .choice
        )

    def test_a_session_keeps_its_image(self, context: Context) -> None:
        made = SessionLifecycle(context).start(STUDENT1, "", SessionIn(image="torch"))
        assert made.image == f"torch@{NEW}"

    def test_a_kernel_is_looked_for_in_the_image(
        self, context: Context, backend: FakeBackend
    ) -> None:
        julia = replace(CATALOGUE[0], kernels=("julia-1.11",))
        backend.built = (julia, *CATALOGUE[1:])
        assert JobService(context).submit(STUDENT1, job(image="base", kernel="julia-1.11"))
        with pytest.raises(InvalidInput, match="julia"):
            JobService(context).submit(STUDENT1, job(image="torch", kernel="julia-1.11"))


class TestPins:
    def test_a_pin_holds_until_the_end_of_its_last_day(
        self, context: Context, clock: Clock
    ) -> None:
        clock.now = 1_769_000_000.0  # 2026-01-21
        made = ImageCatalogue.of(context).pin(
            TEACHER, "cs101", "torch", PinIn(digest=OLD, until="2026-02-15")
        )
        assert made.sentence == "pinned for cs101 until 15 February 2026"
        assert chosen(context, "torch") == f"torch@{OLD}"
        assert chosen(context, f"torch@{NEW}") == f"torch@{NEW}"
        clock.pass_(60 * 86400.0)
        assert chosen(context, "torch") == f"torch@{NEW}"
        (over,) = (
            ImageCatalogue.of(context).shown(TEACHER, Membership.of(context).names(TEACHER)).pins
        )
        assert not over.holds

    def test_groups_below_inherit_and_the_nearest_pin_wins(self, context: Context) -> None:
        lab = Group(name="lab", parent="cs101", max_devices=1, max_devices_per_user=1)
        context.store.put_group(lab)
        ImageCatalogue.of(context).pin(TEACHER, "cs101", "torch", PinIn(digest=OLD))
        assert chosen(context, "torch", group="lab") == f"torch@{OLD}"
        ImageCatalogue.of(context).pin(ADMIN, "lab", "torch", PinIn(digest=NEW))
        assert chosen(context, "torch", group="lab") == f"torch@{NEW}"
        assert chosen(context, "torch") == f"torch@{OLD}"

    def test_a_missing_pinned_build_is_refused_at_admission(
        self, context: Context, backend: FakeBackend
    ) -> None:
        ImageCatalogue.of(context).pin(TEACHER, "cs101", "torch", PinIn(digest=OLD))
        backend.built = CATALOGUE[:2]
        with pytest.raises(InvalidInput) as refused:
            JobService(context).submit(STUDENT1, job(image="torch"))
        assert str(refused.value).startswith(
            "cs101 has pinned torch@aaaaaaaaaaaa, but no engine has that build any more."
        )
        (pin,) = (
            ImageCatalogue.of(context).shown(STUDENT1, Membership.of(context).names(STUDENT1)).pins
        )
        assert pin.sentence == "pinned for cs101; no engine has it"

    def test_pins_of_teachers_and_administrators_are_audited(self, context: Context) -> None:
        for who in (STUDENT1, STUDENT2):
            with pytest.raises(Forbidden, match="Only teachers of cs101"):
                ImageCatalogue.of(context).pin(who, "cs101", "torch", PinIn())
            with pytest.raises(Forbidden):
                ImageCatalogue.of(context).unpin(who, "cs101", "torch")
        ImageCatalogue.of(context).pin(TEACHER, "cs101", "torch", PinIn())
        ImageCatalogue.of(context).pin(
            ADMIN, "cs101", "torch", PinIn(digest=OLD, until="2030-01-01")
        )
        ImageCatalogue.of(context).unpin(TEACHER, "cs101", "torch")
        first = {"image": "torch", "digest": NEW, "until": None}
        second = {"image": "torch", "digest": OLD, "until": "2030-01-01"}
        lines = [
            (line.who, str(line.action), dict(line.before), dict(line.after))
            for line in context.store.changes(ChangeFilter(target="cs101"))
        ]
        assert lines == [
            ("teacher", "unpin", second, {}),
            ("admin", "pin", first, second),
            ("teacher", "pin", {}, first),
        ]
        with pytest.raises(NotFound, match="Pinned: none yet"):
            ImageCatalogue.of(context).unpin(TEACHER, "cs101", "torch")

    @pytest.mark.parametrize(
        ("name", "body", "sentence"),
        [
            ("julia", PinIn(), "There is no image 'julia'"),
            ("torch", PinIn(digest=GONE), "No engine has torch@dddddddddddd"),
            ("torch", PinIn(until="1970-01-01"), "is over"),
            ("torch", PinIn(until="soon"), "is not a date"),
        ],
    )
    def test_an_invalid_pin_is_refused(
        self, context: Context, name: str, body: PinIn, sentence: str
    ) -> None:
        with pytest.raises(InvalidInput, match=sentence):
            ImageCatalogue.of(context).pin(TEACHER, "cs101", name, body)
        assert context.store.pins() == ()

    def test_others_do_not_see_the_pins_of_a_group(self, context: Context) -> None:
        context.store.put_group(Group(name="lab", max_devices=1, max_devices_per_user=1))
        ImageCatalogue.of(context).pin(ADMIN, "lab", "torch", PinIn())
        assert (
            ImageCatalogue.of(context).shown(STUDENT1, Membership.of(context).names(STUDENT1)).pins
            == []
        )
        assert [
            pin.group
            for pin in ImageCatalogue.of(context)
            .shown(ADMIN, Membership.of(context).names(ADMIN))
            .pins
        ] == ["lab"]
        assert ImageCatalogue.of(context).shown(
            TEACHER, Membership.of(context).names(TEACHER)
        ).may_pin == ["cs101"]


class TestNeeded:
    def test_a_build_is_kept_for_pins_unfinished_requests_and_outputs(
        self, context: Context, clock: Clock
    ) -> None:
        needed = ImageCatalogue.of(context).needed
        assert needed(context.files).needed == []
        ImageCatalogue.of(context).pin(
            TEACHER, "cs101", "torch", PinIn(digest=NEW, until="1970-02-01")
        )
        done = JobService(context).submit(STUDENT1, job(image=f"torch@{OLD}"))
        RequestTermination(context).cancel(STUDENT1, done.id)
        desk = SessionLifecycle(context).start(STUDENT1, "", SessionIn(image="base"))
        assert {each.image: each.why for each in needed(context.files).needed} == {
            f"torch@{NEW}": "Pinned for cs101 until 1 February 1970.",
            f"torch@{OLD}": f"The output of {done.id} is kept, and names it.",
            f"base@{BASE}": f"{desk.id} is queued or running in it.",
        }
        context.files.discard(done.id)
        RequestTermination(context).cancel(STUDENT1, desk.id)
        clock.pass_(60 * 86400.0)
        assert needed(context.files).needed == []
