"""The story of two students and one device with containers, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ..docker_engine import DockerEngine, site_file
from .support import Installation, installation
from .two_students import Work, two_students_and_one_device
from .widget_pages import write_notebook

# The base image is Python and Jupyter alone.
CELLS = (
    "import random\nrandom.seed(7)\n"
    "inside = sum(random.random() ** 2 + random.random() ** 2 < 1 for _ in range(points))\n"
    "print(f'pi is about {4 * inside / points:.3f}')",
)

pytestmark = [pytest.mark.browser, pytest.mark.docker]


@pytest.fixture
def site(docker_engine: DockerEngine, base_image: str, tmp_path: Path) -> Iterator[Installation]:
    state = tmp_path / "state"
    site_file(state, docker_engine)
    with installation(state, "--simulated-devices", "1", "--engine", "docker") as made:
        yield made


def test_two_students_and_one_device_in_containers(site: Installation) -> None:
    home = site.state / "homes" / "student1"
    write_notebook(home / "pi.ipynb", *CELLS, parameters="points = 10")
    work = Work(submit="pi.ipynb -p points 4000", says=r"pi is about (\d\.\d+)", between=(3.0, 3.3))
    two_students_and_one_device(site, isolated=True, work=work, chapter="containers-")
