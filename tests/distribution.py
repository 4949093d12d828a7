"""Distribute tests to the workers of `make test WORKERS=n`, and order them.

Tests of one file share fixtures, so that a file stays with one worker; so do files that share an
installation. Long tests start first, so that no worker runs one alone at the end. Tests that need
images start later, because the images are built meanwhile. Unit tests are last.
"""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parents[1]
SHARED: Mapping[str, tuple[str, ...]] = {
    "the installation of fault tests that leave its parts alone": (
        "tests/faults/test_bad_input.py",
        "tests/faults/test_ends.py",
        "tests/faults/test_isolation.py",
        "tests/faults/test_queue.py",
    ),
    "the installation of fault tests that kill and restart its parts": (
        "tests/faults/test_kills.py",
        "tests/faults/test_restarts.py",
    ),
    "the installation with containers": (
        "tests/docker/test_sessions.py",
        "tests/docker/test_session_escapes.py",
    ),
}
"""Files by what they share: a fixture of their package."""
LATER = (
    "tests/faults/test_container_stress.py",
    "tests/docker/test_sessions.py",
    "tests/e2e/test_in_containers.py",
    "tests/docker/test_images.py",
    "tests/docker/test_warm.py",
    "tests/docker/",
    "tests/contracts/test_sandbox.py",
    "tests/contracts/test_backend.py",
    "tests/courses/sandbox/test_attacks.py",
    "tests/courses/grading/test_in_containers.py",
)
"""Tests in containers, the longest first."""
LONGEST = (
    "tests/e2e/test_idle.py",
    "tests/e2e/test_every_page.py",
    "tests/faults/test_bad_input.py",
    "tests/faults/test_kills.py",
    "tests/e2e/test_widgets.py",
    "tests/e2e/test_held_devices.py",
    "tests/e2e/test_reclaim.py",
    "tests/e2e/test_a_course.py",
    "tests/e2e/test_desk.py",
    "tests/e2e/test_backup.py",
    "tests/courses/sample/test_large_units.py",
    "tests/spawners/sessions/test_local.py",
    "tests/e2e/",
    "tests/faults/",
)
"""Tests of a whole installation and of large packages, the longest first."""
NEEDS_IMAGES = "tests/docker/"

_GROUPS = {path: name for name, paths in SHARED.items() for path in paths}
_RANKS = (*LONGEST, *LATER)


class GroupScheduling(LoadScopeScheduling):
    """Assign groups of tests to workers, in the order of the collection."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


def group_of(nodeid: str) -> str:
    """Return the name of the fixture that the test's file shares with others, or the file."""
    path = nodeid.partition("::")[0]
    return _GROUPS.get(path, path)


def in_order(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Sort long groups first and unit tests last, the largest file first; keep groups together."""
    groups: dict[str, list[pytest.Item]] = {}
    for item in items:
        groups.setdefault(group_of(item.nodeid), []).append(item)

    def rank(group: Iterable[pytest.Item]) -> tuple[int, int]:
        tests = list(group)
        paths = [test.nodeid.partition("::")[0] for test in tests]
        return min(map(_rank, paths)), -len(tests)

    return [item for group in sorted(groups.values(), key=rank) for item in group]


def _rank(path: str) -> int:
    return next((n for n, start in enumerate(_RANKS) if path.startswith(start)), len(_RANKS))


class BackgroundImageBuild:
    """Builds the images of the container tests in another process while the first tests run."""

    def __init__(self) -> None:
        self.run = uuid.uuid4().hex
        self._process: subprocess.Popen[bytes] | None = None

    def wanted_by(self, nodeids: Iterable[str]) -> None:
        """Start the build if one of these tests needs the images."""
        if self._process is None and any(each.startswith(NEEDS_IMAGES) for each in nodeids):
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.docker_engine"],
                cwd=ROOT,
                env={**os.environ, "PYTEST_XDIST_TESTRUNUID": self.run},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

    def close(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
