"""Installations: one for the tests that leave its processes alone, others for those that do not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ..e2e.support import Installation, installation
from .support import healthy, patient_installation, release_everything


@pytest.fixture(scope="package")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Started, as case 6 wants it, from an environment that opens every device."""
    state = tmp_path_factory.mktemp("faults") / "state"
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("NVIDIA_VISIBLE_DEVICES", "all")
        environment.setenv("CUDA_VISIBLE_DEVICES", "0")
        with installation(state, "--simulated-devices", "2") as made:
            yield made


@pytest.fixture
def desk(shared: Installation) -> Iterator[Installation]:
    """Two simulated devices, both free; what a test leaves is taken down, and audited."""
    parts = {part: shared.pid_of(part) for part in ("proxy", "hub", "service")}
    yield shared
    release_everything(shared)
    assert {part: shared.pid_of(part) for part in parts} == parts, "a part has died"


@pytest.fixture(scope="package")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """One whose parts tests may kill and restart."""
    with installation(tmp_path_factory.mktemp("own") / "state", "--simulated-devices", "2") as made:
        yield made


@pytest.fixture
def site(installed: Installation) -> Iterator[Installation]:
    """That one with all parts well, before and after; unless the test takes it down."""
    if installed.process is None:
        installed.up()
    healthy(installed)
    yield installed
    if installed.process is not None:
        healthy(installed)
        release_everything(installed)


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[Installation]:
    """One for a single test that kills very often."""
    with patient_installation(tmp_path / "state") as made:
        yield made
