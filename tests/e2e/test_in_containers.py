"""Containers in a real browser: two students and one device, an image, and a home that is full."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from ..docker.lab import HOME_MIB, LIMITED
from ..docker_engine import DockerEngine, site_file
from ..requirements import need
from .browser import SESSION_MS, Person, chromium
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


@pytest.fixture(scope="module")
def site(
    docker_engine: DockerEngine, base_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    state = tmp_path_factory.mktemp("containers") / "state"
    site_file(state, docker_engine, f'home_size = "{HOME_MIB}MiB"\n' if LIMITED else "")
    # As patient as whoever waits for it here: this machine may be busy.
    (state / "jupyterhub_config.py").write_text("c.LeaseMixin.launch_timeout = 140.0\n")
    with installation(state, "--simulated-devices", "1", "--engine", "docker") as made:
        yield made


def test_two_students_and_one_device_in_containers(site: Installation) -> None:
    home = site.state / "homes" / "student1"
    write_notebook(home / "pi.ipynb", *CELLS, parameters="points = 10")
    work = Work(submit="pi.ipynb -p points 4000", says=r"pi is about (\d\.\d+)", between=(3.0, 3.3))
    two_students_and_one_device(site, isolated=True, work=work, chapter="containers-")


def test_a_full_home_is_said_on_the_desk_and_in_the_recovery_session(site: Installation) -> None:
    need("loop", LIMITED, "homes with a size need root and loop devices")
    name = "student3"
    with pytest.raises(OSError, match="No space"):
        (site.state / "homes" / name / "big").write_bytes(bytes(HOME_MIB << 20))
    with chromium() as browser:
        person = Person.sits_down(browser, site, name)
        person.sign_in()
        page = person.page
        expect(page.locator("#home-full")).to_contain_text("Your home is full.")
        page.locator("#home-full").scroll_into_view_if_needed()
        bar = page.get_by_role("meter", name="Space in my home")
        assert bar.evaluate("bar => bar.optimum < bar.high && bar.high < bar.value"), "it is red"
        person.picture("containers-7-desk-with-a-full-home")

        # An image is chosen by what is said of it.
        offered = page.locator("#image option").all_inner_texts()
        base = next(text for text in offered if text.startswith("base"))
        page.select_option("#image", label=base)
        person.picture("containers-8-image-chosen")
        person.start(0)
        page.wait_for_url(f"**/user/{name}/lab**", timeout=SESSION_MS)
        page.wait_for_selector(".jp-Launcher", timeout=SESSION_MS)
        told = page.locator(".Toastify__toast", has_text="Your home is full")
        expect(told).to_be_visible()
        person.picture("containers-9-recovery-session")
        assert person.complaints == []
    (session,) = site.api("GET", "/requests?kind=session", user=name).json()["requests"]
    assert session["image"].startswith("base@sha256:")
