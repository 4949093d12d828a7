"""Work on what users send runs in processes with limits, a few at a time."""

from __future__ import annotations

import math
import sys
from threading import BoundedSemaphore

import pytest

from carrel.hub.errors import Unavailable
from carrel.hub.runtime import limited_process
from carrel.hub.runtime.limited_process import LimitedProcess


def process(program: str, slots: int = 1, *, waits: bool = True) -> LimitedProcess:
    command = (sys.executable, "-c", program)
    return LimitedProcess(command, 20.0, "Others run.", slots=BoundedSemaphore(slots), waits=waits)


def test_it_gets_no_variable_of_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARREL_TOKEN", "secret")
    ended = process("import os, sys; print(sys.stdin.read(), 'CARREL_TOKEN' in os.environ)")
    for given in (b"one", b"two"):
        assert ended.run(given).stdout.split() == [given, b"False"], "its place is free again"


def test_a_caller_is_told_while_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited_process, "WAIT_SECONDS", 0.01)
    with pytest.raises(Unavailable, match="Others run"):
        process("", slots=0).run(b"")


def test_a_caller_that_does_not_wait_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited_process, "WAIT_SECONDS", math.inf)
    with pytest.raises(Unavailable, match="Others run"):
        process("", slots=0, waits=False).run(b"")
