from __future__ import annotations

import pytest

from carrel.hub.errors import IllegalMove
from carrel.hub.scheduling.model.states import (
    HOLDS_DEVICES,
    MAY_RUN,
    TABLE,
    TERMINAL,
    Move,
    State,
    after,
)

from ....diagram import PAGE, page

LEGAL = sorted(TABLE)
ILLEGAL = sorted({(state, move) for state in State for move in Move} - set(TABLE))
UNFINISHED = [state for state in State if state not in TERMINAL]


def reachable(begin: State, *, without: frozenset[State] = frozenset()) -> set[State]:
    """Return the states that can be reached without passing one of ``without``."""
    found: set[State] = set()
    edge = {begin}
    while edge:
        found |= edge
        edge = {to for (state, _), to in TABLE.items() if state in edge} - found - without
    return found


@pytest.mark.parametrize(("state", "move"), LEGAL)
def test_a_legal_transition_leads_to_the_state_in_the_table(state: State, move: Move) -> None:
    assert after(state, move) is TABLE[state, move]


@pytest.mark.parametrize(("state", "move"), ILLEGAL)
def test_an_illegal_transition_raises_with_the_legal_ones(state: State, move: Move) -> None:
    with pytest.raises(IllegalMove, match=f"A request that is {state} cannot {move}") as caught:
        after(state, move)

    legal = [str(each) for begin, each in TABLE if begin is state] or ["none: it has ended"]
    assert caught.value.accepted == f"From here: {', '.join(legal)}."


def test_every_state_can_be_reached_from_the_queue() -> None:
    assert reachable(State.QUEUED) == set(State)


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_a_terminal_state_is_never_left(state: State) -> None:
    assert reachable(state) == {state}


@pytest.mark.parametrize("end", [State.FAILED, State.CANCELLED, State.TIMED_OUT])
@pytest.mark.parametrize("state", UNFINISHED)
def test_every_unfinished_state_can_fail_without_a_new_attempt(state: State, end: State) -> None:
    assert end in reachable(state, without=frozenset({State.QUEUED}))


def test_running_states_end_through_stopping_or_confirmed_loss() -> None:
    between = frozenset({State.STOPPING, State.LOST, State.QUEUED})

    for state in MAY_RUN - {State.STOPPING}:
        assert not reachable(state, without=between) & TERMINAL


def test_success_comes_only_after_running_and_stopping() -> None:
    for forbidden in (State.STARTING, State.STOPPING):
        assert State.SUCCEEDED not in reachable(State.QUEUED, without=frozenset({forbidden}))
    assert [state for (state, _), to in TABLE.items() if to is State.SUCCEEDED] == [State.STOPPING]


def test_running_states_hold_devices_and_terminal_ones_none() -> None:
    assert MAY_RUN < HOLDS_DEVICES
    assert not HOLDS_DEVICES & TERMINAL
    assert State.QUEUED not in HOLDS_DEVICES


def test_only_a_grant_leads_to_states_that_hold_devices() -> None:
    """A grant is the only transition from a state without devices to one with devices."""
    gains = {
        (state, move)
        for (state, move), to in TABLE.items()
        if to in HOLDS_DEVICES and state not in HOLDS_DEVICES
    }
    assert gains == {(State.QUEUED, Move.GRANT)}


def test_the_documentation_page_matches_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.diagram"
