"""Fixtures of browser tests: an installation for each module, Chromium, and a signed-in student.

The report of a failed test includes the log of its browser.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest
from playwright.sync_api import Browser

from .browser import PATIENCE_MS, Person, chromium, what_was_seen
from .support import Installation, installation


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """An installation for the module, with one simulated device."""
    state = tmp_path_factory.mktemp("site") / "state"
    with installation(state, "--simulated-devices", "1") as made:
        yield made


@pytest.fixture
def browser(request: pytest.FixtureRequest) -> Iterator[Browser]:
    """The time-out is ``PATIENCE_MS`` of the module."""
    with chromium(patience_ms=getattr(request.module, "PATIENCE_MS", PATIENCE_MS)) as made:
        yield made


@pytest.fixture
def person(browser: Browser, site: Installation) -> Iterator[Person]:
    """student1 at the desk."""
    made = Person.sits_down(browser, site, "student1")
    made.sign_in()
    yield made
    assert made.complaints == []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report while the browser of a fixture is still running."""
    report = yield
    if report.failed and call.excinfo is not None:
        seen = what_was_seen(ask=isinstance(call.excinfo.value, Exception))
        if seen:
            report.sections.append(("what the browser saw", seen))
    return report
