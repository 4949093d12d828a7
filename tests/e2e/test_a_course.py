"""A course in the browser, from its creation to the feedback, graded on this machine."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from .course_walk import from_the_roster_to_the_feedback
from .support import Installation

pytestmark = pytest.mark.browser


def test_from_the_roster_to_the_feedback(site: Installation, browser: Browser) -> None:
    from_the_roster_to_the_feedback(site, browser)
