"""Stock JupyterLab in Chromium: a notebook becomes a job, waits, and is opened; and a schedule."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from .browser import SESSION_MS, Person
from .scheduler_server import session_environment
from .support import Installation, brought_up, eventually, free_port
from .widget_pages import submit, write_notebook

pytestmark = [pytest.mark.browser, pytest.mark.slow]

USER, OTHER = "student1", "student2"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An installation whose sessions have jupyter-scheduler, with one simulated device."""
    state = tmp_path_factory.mktemp("notebook-jobs") / "state"
    state.mkdir()
    (state / "jupyterhub_config.py").write_text(
        f"c.Spawner.environment = {session_environment()!r}\n"
    )
    words = ("--demo", "--simulated-devices", "1")
    with brought_up(Installation(state=state, port=free_port(), arguments=words)) as made:
        yield made


@pytest.fixture
def session(site: Installation) -> Iterator[str]:
    """The id of a running session, which is stopped at the end."""
    made = str(site.start_session(USER, devices=0)["id"])
    site.wait_for(made, "running", user=USER)
    yield made
    stop(site, made)


def stop(site: Installation, session: str) -> None:
    site.api("DELETE", "/sessions/-", user=USER)
    eventually(lambda: site.request(session, user=USER)["ended"], "the session ends")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobsTab:
    """The tab "Jobs" of JupyterLab, and the form that opens in it."""

    page: Page

    @classmethod
    def of(cls, person: Person) -> JobsTab:
        person.page.goto(f"{person.site.url}/user/{person.name}/lab?reset")
        person.page.locator(".jp-DirListing-content").wait_for(timeout=SESSION_MS)
        return cls(page=person.page)

    def create(self, notebook: str, **parameters: str) -> None:
        """Open the form from the notebook's context menu, and fill in the parameters."""
        listed = self.page.locator(".jp-DirListing-item", has_text=notebook)
        listed.click(button="right")
        self.page.get_by_role("menuitem", name="Create Job").click()
        # The form discards what is typed before it knows the environments.
        self.page.locator("#jp-create-job-computeType").wait_for()
        for number, (name, value) in enumerate(parameters.items()):
            self.page.get_by_title("Add new parameter").click()
            self.page.locator(f"[name=parameter-{number}-name]").fill(name.replace("__", "."))
            typed = self.page.locator(f"[name=parameter-{number}-value]")
            typed.fill(value)
            typed.blur()  # the form checks it, and the button below moves

    def choose(self, field: str, value: str) -> None:
        self.page.locator(f"#jp-create-job-{field}").click()
        self.page.get_by_role("option", name=value, exact=True).click()

    def send(self) -> None:
        self.page.get_by_role("button", name="Create", exact=True).click()

    def open(self, job: str) -> None:
        self.page.get_by_title(f'Open detail view for "{job}"').first.click()

    def reload_until(self, status: str) -> None:
        """Reload the details as a student does, until they show the status."""

        def shown() -> bool:
            self.page.get_by_role("button", name="Reload Job").click()
            return self.page.get_by_text(status, exact=True).is_visible()

        eventually(shown, f"the page shows {status}")


def jobs(site: Installation) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = site.api("GET", "/requests?kind=job", user=USER).json()[
        "requests"
    ]
    return found


@pytest.mark.usefixtures("session")
def test_a_notebook_is_run_as_a_job_and_its_result_is_opened(
    site: Installation, person: Person
) -> None:
    home = site.state / "homes" / USER
    write_notebook(home / "train.ipynb", "print('rate', lr)", parameters="lr = 0.1")
    slow = site.state / "slow.ipynb"
    write_notebook(slow, "import time\ntime.sleep(600)")
    busy = submit(site, slow, user=OTHER, devices=1)
    tab = JobsTab.of(person)
    page = tab.page

    tab.create("train.ipynb", lr="0.05", carrel__time="soon")
    tab.choose("computeType", "1 device")
    tab.send()
    expect(page.get_by_role("alert")).to_contain_text("Invalid duration: 'soon'.")
    person.picture("notebook-jobs-refused")
    page.locator("[name=parameter-1-value]").fill("5m")
    person.picture("notebook-jobs-form")
    tab.send()
    expect(page.get_by_text('Your job "train" has been created.')).to_be_visible()
    expect(page.get_by_role("cell", name="Queued")).to_be_visible()
    person.picture("notebook-jobs-list")
    job = jobs(site)[0]
    assert (job["devices"], job["seconds"], job["parameters"]) == (1, 300, {"lr": 0.05})

    # A request has no wait before its first cycle.
    wait = eventually(lambda: jobs(site)[0]["wait"], "why it waits")
    tab.open("train")
    expect(page.get_by_role("alert")).to_have_text(wait["sentence"])
    person.picture("notebook-jobs-waits")
    site.api("DELETE", f"/requests/{busy}", user=OTHER)
    tab.reload_until("Completed")
    page.get_by_role("button", name="Download Job Files").click()
    page.get_by_title("Open output file").first.wait_for()
    person.picture("notebook-jobs-done")
    page.get_by_role("link", name="Notebook").click()
    expect(page.locator(".jp-OutputArea-output", has_text="rate 0.05")).to_be_visible(
        timeout=SESSION_MS
    )
    person.picture("notebook-jobs-output")


def test_a_schedule_submits_its_job_while_the_session_is_stopped(
    site: Installation, session: str, person: Person
) -> None:
    write_notebook(site.state / "homes" / USER / "report.ipynb", "print('every minute')")
    tab = JobsTab.of(person)
    page = tab.page
    tab.create("report.ipynb")
    page.get_by_label("Run on a schedule").check()
    page.locator("#jp-create-job-createType-definition-interval").click()
    page.get_by_role("option", name="Minute", exact=True).click()
    person.picture("notebook-jobs-schedule-form")
    tab.send()
    expect(page.get_by_text('Your job definition "report" has been created.')).to_be_visible()
    expect(page.get_by_role("cell", name="report", exact=True)).to_be_visible()
    person.picture("notebook-jobs-schedules")
    (schedule,) = site.api("GET", "/schedules", user=USER).json()["schedules"]
    assert schedule["cron"] == "* * * * *"

    stop(site, session)

    def submitted() -> list[dict[str, Any]]:
        labels = {"schedule": schedule["id"]}
        return [each for each in jobs(site) if labels.items() <= each["labels"].items()]

    first = eventually(submitted, "the service submits the job", within=150)[0]
    site.wait_for(first["id"], "succeeded", user=USER)
    assert site.api("DELETE", f"/schedules/{schedule['id']}", user=USER).status_code == 204
