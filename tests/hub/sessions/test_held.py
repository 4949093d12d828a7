"""Kept queue places, held devices and claims, also after crashes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.hub.controller.loop import HUB_WINDOW
from carrel.hub.controller.reconciler import LEASE_SECONDS
from carrel.hub.errors import Conflict, Forbidden, InvalidInput, NotFound, Refused
from carrel.hub.interfaces.jupyterhub import HubServer
from carrel.hub.requests.attempt_reports import AttemptReports
from carrel.hub.requests.queries import RequestQueries
from carrel.hub.requests.termination import RequestTermination
from carrel.hub.schemas import (
    HeldOut,
    KernelsIn,
    OpenSessionIn,
    RequestOut,
    SessionIn,
    StopIn,
    WatchOut,
)
from carrel.hub.sessions.activity import SessionActivity
from carrel.hub.sessions.held import HeldSessions
from carrel.hub.sessions.lifecycle import SessionLifecycle
from carrel.hub.transitions import lifecycle, owner_changes

from ..doubles import ADMIN, STUDENT1, STUDENT2, TEACHER
from ..world import World, charged

WINDOW = 600.0
GPU = SessionIn(devices=1, hours=1.0)
NO_CELL = KernelsIn(count=0, running=0)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """One device."""
    made = World.over(tmp_path, devices=1)
    yield made
    made.loop.close()


@pytest.fixture
def claims(world: World) -> HeldSessions:
    return HeldSessions(world.context)


def spawner_opens(world: World, owner: str, server: str) -> RequestOut:
    """Open a session, as the hub's spawner for a server does."""
    return SessionLifecycle(world.context).open(OpenSessionIn(owner=owner, server_name=server))


def live(world: World, owner: str, server: str) -> RequestOut:
    found = world.context.store.live_session(owner, server)
    assert found is not None
    return RequestQueries(world.context).request(None, found.id)


class TestStarting:
    def test_a_held_session_waits_without_a_spawner(
        self, world: World, claims: HeldSessions
    ) -> None:
        made = claims.start(STUDENT1, "", GPU)
        assert (made.server_name, made.claim, made.claim_by) == ("gpu", True, None)
        for _ in range(3):
            world.settle()
            world.clock.pass_(5)
        assert world.hub.asked == []
        held = world.see(made)
        assert held.lease is not None
        assert (held.state, held.claim_by) == ("granted", held.lease.granted_at + WINDOW)

    def test_a_held_session_gets_an_unused_name(self, world: World, claims: HeldSessions) -> None:
        world.hub.servers["student1"] = {
            "gpu": HubServer(user="student1", name="gpu", ready=True, pending=None, url="")
        }
        assert claims.start(STUDENT1, "", GPU).server_name == "gpu-2"
        assert claims.start(STUDENT1, "", GPU).server_name == "gpu-3"
        assert claims.start(STUDENT1, "lab", GPU).server_name == "lab"
        with pytest.raises(Conflict, match="session lab is queued already"):
            claims.start(STUDENT1, "lab", GPU)

    def test_a_session_on_cpu_has_nothing_to_hold(self, claims: HeldSessions) -> None:
        with pytest.raises(InvalidInput, match="no devices to hold"):
            claims.start(STUDENT1, "", SessionIn(devices=0))

    def test_the_hub_does_not_start_an_unclaimed_session(self, world: World) -> None:
        asked = OpenSessionIn(
            owner="student1", server_name="x", options={"devices": 1, "claim": True}
        )
        with pytest.raises(InvalidInput, match="cannot wait to be claimed"):
            SessionLifecycle(world.context).open(asked)


class TestClaiming:
    def test_a_claimed_session_starts(self, world: World, claims: HeldSessions) -> None:
        made = claims.start(STUDENT1, "lab", GPU)
        world.settle()
        claimed = claims.claim(STUDENT1, made.id)
        assert (claimed.state, claimed.claim, claimed.claim_by) == ("granted", False, None)
        assert world.hub.asked == [("start", "student1", "lab")]
        assert spawner_opens(world, "student1", "lab").id == made.id
        world.runs(made)
        assert world.see(made).state == "running"
        again = claims.claim(STUDENT1, made.id)
        assert (again.id, again.state) == (made.id, "running")

    def test_a_queued_session_cannot_be_claimed(self, world: World, claims: HeldSessions) -> None:
        world.running_session("a")
        made = claims.start(STUDENT2, "", GPU)
        world.settle()
        with pytest.raises(Conflict, match="is still queued") as refused:
            claims.claim(STUDENT2, made.id)
        assert "Claim it once its device is granted" in refused.value.accepted

    def test_only_the_owner_can_claim(self, world: World, claims: HeldSessions) -> None:
        made = claims.start(STUDENT1, "", GPU)
        world.settle()
        for who in (TEACHER, ADMIN):
            with pytest.raises(Forbidden, match="only its owner"):
                claims.claim(who, made.id)
        with pytest.raises(NotFound):
            claims.claim(STUDENT2, made.id)

    def test_starting_the_server_at_the_hub_claims_the_session(
        self, world: World, claims: HeldSessions
    ) -> None:
        made = claims.start(STUDENT1, "lab", GPU)
        world.settle()
        assert not spawner_opens(world, "student1", "lab").claim
        world.runs(made)
        assert world.see(made).state == "running"

    def test_killed_between_the_claim_and_the_question_to_the_hub(
        self, world: World, claims: HeldSessions
    ) -> None:
        made = claims.start(STUDENT1, "lab", GPU)
        world.settle()
        world.context.store.apply(
            made.id, owner_changes.claim, now=world.clock.now
        )  # the service is killed right after this
        world.restart()
        world.settle()
        world.clock.pass_(4)
        world.settle()
        assert world.hub.asked == [("start", "student1", "lab")]

    def test_a_claim_in_the_last_second_leaves_the_hub_its_full_time(
        self, world: World, claims: HeldSessions
    ) -> None:
        made = claims.start(STUDENT1, "lab", GPU)
        world.settle()
        world.hub.away = True
        world.clock.pass_(WINDOW - 1)
        claims.claim(STUDENT1, made.id)
        world.clock.pass_(HUB_WINDOW - 10)
        world.settle(2)
        assert world.see(made).state == "granted"
        world.hub.away = False
        world.clock.pass_(4)
        world.settle()
        assert world.hub.asked == [("start", "student1", "lab")]

    def test_a_second_grant_leaves_the_hub_its_full_time(
        self, world: World, claims: HeldSessions
    ) -> None:
        made = claims.start(STUDENT1, "lab", GPU)
        world.settle()
        claims.claim(STUDENT1, made.id)
        world.hub.away = True
        lease, store = world.lease(made), world.context.store
        store.launch(lease, now=world.clock.now)
        world.clock.pass_(HUB_WINDOW + 1)
        store.apply_to_lease(
            lease, lifecycle.give_back, now=world.clock.now, charge_until=world.clock.now
        )
        world.settle()
        world.clock.pass_(4)
        world.settle()
        assert world.see(made).state == "granted"

    def test_a_refusal_of_the_hub_ends_the_session_with_its_message(
        self, world: World, claims: HeldSessions, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(user: str, server: str, options: object) -> None:
            raise Refused("JupyterHub refused: 10 servers are the limit.")

        made = claims.start(STUDENT1, "lab", GPU)
        world.settle()
        monkeypatch.setattr(world.hub, "start_server", refuse)
        with pytest.raises(Refused, match="10 servers"):
            claims.claim(STUDENT1, made.id)
        ended = world.see(made)
        assert (ended.state, ended.cause and ended.cause.code) == ("failed", "start_failed")


class TestUnclaimedLease:
    def test_the_device_goes_to_the_next_in_the_same_cycle(
        self, world: World, claims: HeldSessions
    ) -> None:
        made = claims.start(STUDENT1, "", GPU)
        world.settle()
        second = claims.start(STUDENT2, "", GPU)
        world.clock.pass_(WINDOW - 1)
        world.settle()
        assert world.see(made).state == "granted"
        world.clock.pass_(1)
        world.settle()
        ended = world.see(made)
        assert ended.cause is not None
        assert (ended.state, ended.cause.code) == ("cancelled", "unclaimed")
        assert (
            ended.cause.message
            == "The session was not claimed within 10 minutes; its device was released."
        )
        assert world.see(second).state == "granted"
        assert charged(world, made) == pytest.approx(WINDOW)

    def test_the_lease_is_kept_alive_and_charged_while_it_is_held(
        self, world: World, claims: HeldSessions
    ) -> None:
        made = claims.start(STUDENT1, "", GPU)
        for _ in range(12):
            world.settle()
            world.clock.pass_(LEASE_SECONDS)
        seen = world.see(made)
        assert seen.lease is not None
        assert (seen.state, seen.lease.state) == ("granted", "live")
        assert seen.device_seconds == pytest.approx(12 * LEASE_SECONDS)

    def test_a_service_that_was_down_charges_at_most_the_claim_window(
        self, world: World, claims: HeldSessions
    ) -> None:
        made = claims.start(STUDENT1, "", GPU)
        world.settle()
        world.clock.pass_(3600 * 5)
        world.restart()
        world.settle()
        assert world.see(made).state == "cancelled"
        assert charged(world, made) == pytest.approx(WINDOW)


class TestKeepingThePlace:
    @pytest.fixture
    def waiting(self, world: World) -> RequestOut:
        """A queued session of student2 on the default server, with a listening spawner."""
        world.running_session("a")
        made = SessionLifecycle(world.context).start(STUDENT2, "", GPU)
        world.context.spawner_listeners.attach(made.id)
        world.settle()
        world.hub.asked.clear()
        return made

    def test_the_session_gets_another_name_and_a_cpu_desk_opens(
        self, world: World, claims: HeldSessions, waiting: RequestOut
    ) -> None:
        world.clock.pass_(30)
        kept = claims.keep_place(STUDENT2, waiting.id)
        assert (kept.id, kept.server_name, kept.claim) == (waiting.id, "gpu", True)
        assert kept.submitted_at == waiting.submitted_at
        desk = live(world, "student2", "")
        assert (desk.devices, desk.group, desk.seconds) == (0, "cs101", 3600)
        assert world.hub.asked == [("stop", "student2", ""), ("start", "student2", "")]
        # The cancelled spawner reports its end; the place is kept.
        SessionLifecycle(world.context).end(kept.id, StopIn(cause="cancelled"))
        world.context.spawner_listeners.detach(kept.id)
        assert spawner_opens(world, "student2", "").id == desk.id
        world.clock.pass_(30)
        world.settle()
        waits = world.see(kept).wait
        assert waits is not None
        assert waits.place == 1

    def test_the_cpu_desk_stays_when_the_device_is_claimed(
        self, world: World, claims: HeldSessions, waiting: RequestOut
    ) -> None:
        kept = claims.keep_place(STUDENT2, waiting.id)
        world.context.spawner_listeners.detach(kept.id)
        world.settle()
        desk = live(world, "student2", "")
        world.runs(desk)
        SessionLifecycle(world.context).stop(STUDENT1, "a")
        world.settle(3)
        assert world.see(kept).claim_by is not None
        claims.claim(STUDENT2, kept.id)
        world.runs(kept)
        assert (world.see(kept).state, world.see(desk).state) == ("running", "running")

    def test_the_sessions_of_the_owner_are_told_of_the_held_device(
        self, world: World, claims: HeldSessions, waiting: RequestOut
    ) -> None:
        kept = claims.keep_place(STUDENT2, waiting.id)
        world.context.spawner_listeners.detach(kept.id)
        world.settle()
        desk = live(world, "student2", "")
        world.runs(desk)

        def told() -> WatchOut:
            return SessionActivity(world.context, WINDOW).report(STUDENT2, desk.id, NO_CELL)

        assert (told().held, told().shown, told().follow) == (None, "", [kept.id])
        SessionLifecycle(world.context).stop(STUDENT1, "a")
        world.settle(3)
        held = HeldOut(
            request_id=kept.id,
            server_name="gpu",
            claim_by=world.clock.now + WINDOW,
            message="Your device is ready and held for the session gpu. "
            "Claim it before the time runs out.",
        )
        assert (told().held, told().shown, told().follow) == (held, "held", [kept.id])
        claims.claim(STUDENT2, kept.id)
        assert (told().held, told().shown, told().follow) == (None, "", [])

    def test_the_end_of_a_session_is_told_before_a_device_that_is_lost_later(
        self, world: World, claims: HeldSessions
    ) -> None:
        world.running_session("a")
        desk = SessionLifecycle(world.context).start(STUDENT2, "", SessionIn(devices=0, hours=1.0))
        world.settle()
        world.runs(desk)
        claims.start(STUDENT2, "gpu", GPU)
        world.settle()
        world.clock.pass_(3600 - 300)
        SessionLifecycle(world.context).stop(STUDENT1, "a")
        world.settle(3)
        told = SessionActivity(world.context, WINDOW).report(STUDENT2, desk.id, NO_CELL)
        assert told.warning is not None
        assert told.held is not None
        assert (told.warning.kind, told.shown) == ("time_limit", "warning")

    def test_keeping_a_place_may_be_repeated(
        self, world: World, claims: HeldSessions, waiting: RequestOut
    ) -> None:
        first = claims.keep_place(STUDENT2, waiting.id)
        desk = live(world, "student2", "")
        assert claims.keep_place(STUDENT2, waiting.id) == first
        assert live(world, "student2", "").id == desk.id
        assert world.hub.asked.count(("stop", "student2", "")) == 1

    def test_killed_right_after_the_transaction(
        self,
        world: World,
        claims: HeldSessions,
        waiting: RequestOut,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        def killed(*_: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(world.hub, "stop_server", killed)
            with pytest.raises(KeyboardInterrupt):
                claims.keep_place(STUDENT2, waiting.id)
        world.restart()
        world.settle()
        world.clock.pass_(4)
        world.settle()
        assert world.hub.asked == [("start", "student2", "")]
        assert live(world, "student2", "gpu").id == waiting.id
        assert live(world, "student2", "").devices == 0

    def test_a_late_spawner_opens_the_cpu_desk(
        self, world: World, claims: HeldSessions, waiting: RequestOut
    ) -> None:
        """It was about to launch when the place was kept; its lease is held now."""
        SessionLifecycle(world.context).stop(STUDENT1, "a")
        world.settle(3)
        assert world.see(waiting).state == "granted"
        claims.keep_place(STUDENT2, waiting.id)
        with pytest.raises(Conflict, match="is held for its owner"):
            AttemptReports(world.context).launch(world.lease(waiting))
        assert spawner_opens(world, "student2", "").devices == 0

    def test_a_named_session_keeps_its_name_and_a_running_desk_stays(
        self, world: World, claims: HeldSessions
    ) -> None:
        world.running_session("a")
        desk = SessionLifecycle(world.context).start(STUDENT2, "", SessionIn(devices=0))
        waiting = SessionLifecycle(world.context).start(STUDENT2, "thesis", GPU)
        world.settle()
        world.runs(desk)
        world.hub.asked.clear()
        kept = claims.keep_place(STUDENT2, waiting.id)
        assert (kept.server_name, live(world, "student2", "").id) == ("thesis", desk.id)
        assert world.hub.asked == [("stop", "student2", "thesis")]

    def test_a_spawner_that_waits_for_a_kept_place_is_refused(
        self, world: World, claims: HeldSessions, waiting: RequestOut
    ) -> None:
        claims.keep_place(STUDENT2, waiting.id)
        assert RequestQueries(world.context).request(None, waiting.id).claim

    def test_a_kept_place_can_be_given_up(
        self, world: World, claims: HeldSessions, waiting: RequestOut
    ) -> None:
        claims.keep_place(STUDENT2, waiting.id)
        assert RequestTermination(world.context).cancel(STUDENT2, waiting.id).state == "cancelled"
        with pytest.raises(Conflict, match="is no longer queued"):
            claims.keep_place(STUDENT2, waiting.id)

    def test_a_running_session_has_no_place_to_keep(
        self, world: World, claims: HeldSessions, waiting: RequestOut
    ) -> None:
        running = live(world, "student1", "a")
        with pytest.raises(Conflict, match="it is running"):
            claims.keep_place(STUDENT1, running.id)
        with pytest.raises(NotFound):
            claims.keep_place(STUDENT1, waiting.id)
