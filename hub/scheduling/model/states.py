"""Lifecycle of a request as one table: (state, move) → state.

An illegal move raises and changes nothing. The diagram in the documentation is generated from
this table (``python -m tests.diagram``).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType

from ...errors import IllegalMove


class State(StrEnum):
    """State of a request."""

    QUEUED = "queued"
    GRANTED = "granted"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    PREEMPTED = "preempted"
    HALTED = "halted"
    LOST = "lost"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"


class Move(StrEnum):
    """Event that moves a request to another state."""

    GRANT = "grant"
    """A lease is written."""
    LAUNCH = "launch"
    """The intent to start is written; from here on a process may exist."""
    START = "start"
    """A process was seen."""
    RETURN = "return"
    """Nothing ran: the request returns to the queue (claim window over, start refused)."""
    STOP = "stop"
    """It is being stopped, or ended by itself; its devices are not free yet."""
    LOSE = "lose"
    """Its processes are gone without a result, and that is confirmed."""
    PREEMPT = "preempt"
    HALT = "halt"
    REQUEUE = "requeue"
    SUCCEED = "succeed"
    FAIL = "fail"
    CANCEL = "cancel"
    TIME_OUT = "time out"


TERMINAL = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED, State.TIMED_OUT})
LIVE = frozenset(State) - TERMINAL
HOLDS_DEVICES = frozenset({State.GRANTED, State.STARTING, State.RUNNING, State.STOPPING})
"""States with a live lease."""
MAY_RUN = frozenset({State.STARTING, State.RUNNING, State.STOPPING})
"""States in which processes may exist."""

ENDINGS: Mapping[Move, State] = MappingProxyType(
    {
        Move.FAIL: State.FAILED,
        Move.CANCEL: State.CANCELLED,
        Move.TIME_OUT: State.TIMED_OUT,
    }
)

TABLE: Mapping[tuple[State, Move], State] = MappingProxyType(
    {
        (State.QUEUED, Move.GRANT): State.GRANTED,
        (State.GRANTED, Move.LAUNCH): State.STARTING,
        (State.STARTING, Move.START): State.RUNNING,
        (State.STARTING, Move.STOP): State.STOPPING,
        (State.RUNNING, Move.STOP): State.STOPPING,
        (State.STOPPING, Move.SUCCEED): State.SUCCEEDED,
        (State.STOPPING, Move.PREEMPT): State.PREEMPTED,
        (State.STOPPING, Move.HALT): State.HALTED,
        (State.GRANTED, Move.RETURN): State.QUEUED,
        (State.STARTING, Move.RETURN): State.QUEUED,
        (State.STARTING, Move.LOSE): State.LOST,
        (State.RUNNING, Move.LOSE): State.LOST,
        (State.PREEMPTED, Move.REQUEUE): State.QUEUED,
        (State.HALTED, Move.REQUEUE): State.QUEUED,
        (State.LOST, Move.REQUEUE): State.QUEUED,
        **{
            (state, move): ending
            for state in (
                State.QUEUED,
                State.GRANTED,
                State.STOPPING,
                State.PREEMPTED,
                State.HALTED,
                State.LOST,
            )
            for move, ending in ENDINGS.items()
        },
    }
)


def after(state: State, move: Move) -> State:
    """Return the state after a move.

    Raises:
        IllegalMove: the table has no such transition.
    """
    try:
        return TABLE[state, move]
    except KeyError:
        legal = ", ".join(str(m) for s, m in TABLE if s is state) or "none: it has ended"
        raise IllegalMove(
            f"A request that is {state} cannot {move}.", accepted=f"From here: {legal}."
        ) from None
