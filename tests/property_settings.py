"""How many examples Hypothesis tries of each property.

`make test` runs every property with the profile QUICK, `make test-slow` runs the same properties
with THOROUGH (``--hypothesis-profile``). A property sets its own number, with ``examples``, only
where one example costs far more than a millisecond or two.
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings

QUICK, THOROUGH = "quick", "thorough"
EXAMPLES = {QUICK: 50, THOROUGH: 3000}

# No deadline: the time of one example is meaningless on a busy machine.
settings.register_profile(
    QUICK,
    max_examples=EXAMPLES[QUICK],
    deadline=None,
    suppress_health_check=(HealthCheck.too_slow, HealthCheck.filter_too_much),
)
settings.register_profile(
    THOROUGH, settings.get_profile(QUICK), max_examples=EXAMPLES[THOROUGH], derandomize=False
)


def examples(quick: int, thorough: int, **more: Any) -> settings:
    """Return settings of a costly property: its examples in `make test` and in `make test-slow`.

    Call it when a test module is imported or later: the profile is loaded by then.
    """
    number = thorough if settings.get_current_profile_name() == THOROUGH else quick
    return settings(max_examples=number, **more)
