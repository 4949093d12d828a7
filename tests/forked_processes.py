"""Execute a function in several processes at once, that are forked from the test."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any


def in_processes(work: Callable[[int], Any], count: int = 2, *, seconds: float = 60.0) -> list[Any]:
    """Return what the function returns for each rank: an error if it raised one, None if the
    process ended otherwise.

    Raises:
        TimeoutError: a process does not end.
    """
    context = multiprocessing.get_context("fork")
    started = []
    for rank in range(count):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(work, rank, theirs), daemon=True)
        process.start()
        theirs.close()
        started.append((process, ours))
    try:
        return [_result(ours, rank, seconds) for rank, (_, ours) in enumerate(started)]
    finally:
        for process, ours in started:
            process.kill()
            process.join()
            ours.close()


def _run(work: Callable[[int], Any], rank: int, results: Connection) -> None:
    try:
        found = work(rank)
    except Exception as error:  # it is the result
        found = error
    results.send(found)


def _result(results: Connection, rank: int, seconds: float) -> Any:
    if not results.poll(seconds):
        raise TimeoutError(f"process {rank} has not ended")
    try:
        return results.recv()
    except EOFError:
        return None
