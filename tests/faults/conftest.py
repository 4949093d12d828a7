"""One installation for the tests that leave its three processes alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..e2e.support import Installation, installation
from .support import release_everything


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
