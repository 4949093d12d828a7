"""Many spawns and many refusals at once on the whole system."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx

from ..e2e.support import Installation, eventually
from .audit import read
from .support import STUDENTS, free, hub, nothing_left, progress, running_session, servers

SPAWNS = 20
TERMINAL = {"cancelled", "succeeded"}
PATIENCE = 240.0
"""Twenty starts at once are work for minutes where other work has the machine too."""


def test_case_19_twenty_spawns_at_once_have_places_in_the_queue(desk: Installation) -> None:
    people = [STUDENTS[number % len(STUDENTS)] for number in range(SPAWNS)]
    for student in STUDENTS:
        desk.token(student)
    with ThreadPoolExecutor(SPAWNS) as crowd:
        answers = list(crowd.map(lambda n: _start(desk, people[n], f"desk-{n}"), range(SPAWNS)))
    assert {answer.status_code for answer in answers} == {202}
    requests = {answer.json()["id"]: who for answer, who in zip(answers, people, strict=True)}
    assert len(requests) == SPAWNS

    def places() -> list[dict[str, Any]] | None:
        known = [r for r in _all(desk) if r["id"] in requests]
        waiting = [r for r in known if r["state"] == "queued"]
        if len(known) - len(waiting) != 2 or not all(r["wait"] for r in waiting):
            return None
        found = [(r["owner"], r["wait"]["place"]) for r in waiting]
        # A place counts those who stand in one's way: one's own others do, always.
        apart = len(set(found)) == len(found) and min(place for _, place in found) == 1
        return [r["wait"] for r in waiting] if apart else None

    waits = eventually(places, "two have devices, all others have a place each", within=PATIENCE)
    assert all(wait["sentence"] for wait in waits)

    with ThreadPoolExecutor(SPAWNS) as crowd:
        ended = list(crowd.map(lambda item: _cancel(desk, *item), requests.items()))
    assert {answer.status_code for answer in ended} == {200}
    eventually(
        lambda: {r["state"] for r in _all(desk) if r["id"] in requests} <= TERMINAL,
        "all ended",
        within=PATIENCE,
    )
    for student in STUDENTS:
        none_left = f"no server of {student} is left"
        eventually(lambda who=student: servers(desk, who) == {}, none_left, within=PATIENCE)
    nothing_left(desk)
    # No request comes back: the hub has given up exactly the cancelled ones.
    assert sum(r.id in requests for r in read(desk.state).requests) == SPAWNS
    assert {r.id for r in read(desk.state).requests if not r.ended} == set()


def test_case_20_ten_refusals_in_a_row_leave_the_hub_up(desk: Installation) -> None:
    before = len(read(desk.state).requests)
    for _ in range(10):
        said = _refused(desk, {"devices": 99, "hours": 1.0, "group": "cs101"})
        assert "you asked for 99" in said
        assert "Ask for 0 to 2" in said
    assert len(read(desk.state).requests) == before
    assert free(desk) == 2
    running_session(desk, "student1")


def _refused(site: Installation, options: dict[str, Any]) -> str:
    """Start a server at the hub itself, as a program would; the sentence of the refusal."""
    answer = hub(site, "POST", "users/student1/server", json={"user_options": options})
    if answer.is_client_error:
        return str(answer.json()["message"])
    assert answer.is_success, answer.text
    told = eventually(
        lambda: [step for step in progress(site, "student1") if step.get("failed")],
        "the hub says that the start has failed",
        within=PATIENCE,
    )
    eventually(lambda: servers(site, "student1") == {}, "the start is over", within=PATIENCE)
    return str(told[-1]["message"])


def _start(site: Installation, user: str, name: str) -> httpx.Response:
    body = {"devices": 1, "hours": 1.0, "group": "cs101"}
    return site.api("POST", f"/sessions/{name}", user=user, json=body)


def _cancel(site: Installation, request: str, user: str) -> httpx.Response:
    return site.api("DELETE", f"/requests/{request}", user=user)


def _all(site: Installation) -> list[dict[str, Any]]:
    """As the teacher sees them: in one look, so that no place moves between two of them."""
    path = "/requests?mine=false&kind=session"
    return list(site.api("GET", path, user="teacher").json()["requests"])
