"""The kept log of a session."""

from __future__ import annotations

from pathlib import Path

from carrel.spawners.docker.containers import session_log


def test_the_log_is_replaced_by_the_log_of_the_next_session(tmp_path: Path) -> None:
    log = session_log.path_of(tmp_path, "ada", "gpu")
    session_log.keep(log, "first")
    session_log.keep(log, "")
    assert log.read_text() == ""


def test_a_container_that_is_removed_already_leaves_the_kept_log_alone(tmp_path: Path) -> None:
    log = session_log.path_of(tmp_path, "ada", "gpu")
    session_log.keep(log, "last words")
    session_log.keep(log, None)
    assert log.read_text() == "last words"
    assert session_log.tail(None) == ""


def test_the_tail_is_the_last_lines() -> None:
    lines = [str(number) for number in range(100)]
    assert session_log.tail("\n".join(lines) + "\n").split("\n") == lines[-session_log.TAIL_LINES :]
