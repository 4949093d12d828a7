"""Report what a job has loaded from its compile cache and compiled, when its processes have ended.

A job uses the cache if the service has made the compiler's folder in that of the attempt; the code
that runs in the job is ``hub.attempts.compile_cache_side``.
"""

from __future__ import annotations

from ....hub.attempts.compile_cache_report import read_compile_cache_report
from ....hub.attempts.compile_cache_side import COMPILED
from ....hub.attempts.compile_caches import withdraw_offers
from .attempt import Attempt
from .reporter import Report


def conclude_compile_cache(attempt: Attempt, report: Report) -> None:
    """Write to the log what the cache did, and tell the service of what it may keep."""
    used = (attempt.folder / COMPILED).is_dir()
    withdraw_offers(attempt.folder)
    if not used:
        return
    found = read_compile_cache_report(attempt.folder)
    for sentence in found.sentences:
        attempt.log.write(f"carrel: {sentence}\n")
    if found.saved:
        report("compile_cache", {})
