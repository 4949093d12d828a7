"""Two students and one device, in a real browser against ``make up``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .support import Installation, installation
from .two_students import Work, two_students_and_one_device

pytestmark = pytest.mark.browser


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Installation]:
    with installation(tmp_path / "state", "--simulated-devices", "1", via_make=True) as made:
        yield made


@pytest.mark.slow  # test_in_containers.py goes the same way
def test_two_students_and_one_device(site: Installation) -> None:
    two_students_and_one_device(site, isolated=False, work=Work())
