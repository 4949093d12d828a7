"""A slow call delays no caller, and its late result is discarded."""

from __future__ import annotations

import threading
import time

import pytest

from carrel.hub.errors import Unavailable
from carrel.spawners.docker.engine.timed_call import TimedCall

SLOW = "The engine is slow."


def test_an_answer_in_time_is_given() -> None:
    assert TimedCall(lambda: 42, SLOW).result(60) == 42


def test_errors_are_raised_in_the_caller() -> None:
    def fail() -> int:
        raise ValueError("no")

    question = TimedCall(fail, SLOW)
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            question.result(60)


def test_while_a_call_is_late_no_caller_waits_and_it_is_not_repeated() -> None:
    asked: list[int] = []
    go_on = threading.Event()

    def ask() -> int:
        asked.append(1)
        go_on.wait(60)
        return len(asked)

    question = TimedCall(ask, SLOW)
    with pytest.raises(Unavailable, match=SLOW):
        question.result(0.01)
    began = time.monotonic()
    for _ in range(50):
        with pytest.raises(Unavailable, match=SLOW):
            question.result(60)
    assert time.monotonic() - began < 5
    assert len(asked) == 1
    go_on.set()
    question.settle(60)
    # The new result, not the late one.
    assert question.result(60) == 2
