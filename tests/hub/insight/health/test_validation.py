"""A validation is judged against the past of the device and its siblings."""

from __future__ import annotations

import math

import pytest

from carrel.hub.insight.health.validation import Rates, validation_failures
from carrel.hub.interfaces.devices import ValidationReading

PAST: list[Rates] = [{"compute": 100.0, "memory": 50.0}] * 3


@pytest.mark.parametrize(
    ("rates", "past", "siblings", "failures"),
    [
        ({"compute": 95.0, "memory": 49.0}, PAST, [], ()),
        (
            {"compute": 90.0, "memory": 50.0},
            PAST,
            [],
            ("Validation: compute is 10 % slower than its own before.",),
        ),
        ({"compute": 90.0}, PAST[:2], [], ()),
        (
            {"compute": 80.0},
            [],
            [{"compute": 100.0}, {"compute": 99.0}, {"compute": 40.0}],
            ("Validation: compute is 19 % slower than that of its siblings.",),
        ),
        ({"compute": 80.0}, [], [{"compute": 100.0}], ()),
        ({"compute": 80.0}, [{"compute": math.nan}] * 3, [], ()),
        ({"compute": math.nan}, [], [], ("The test compute has measured nan.",)),
        ({"collective": 1.0}, [{"collective": 100.0}] * 3, [{"collective": 100.0}] * 3, ()),
        ({"copies": 60.0}, [], [{"copies": 100.0}] * 3, ()),
        (
            {"copies": 60.0},
            [{"copies": 100.0}] * 3,
            [],
            ("Validation: copies is 40 % slower than its own before.",),
        ),
    ],
)
def test_slower_devices_do_not_pass(
    rates: Rates, past: list[Rates], siblings: list[Rates], failures: tuple[str, ...]
) -> None:
    assert validation_failures(ValidationReading(rates=rates), past, siblings) == failures


def test_an_error_of_the_device_is_the_reason() -> None:
    reading = ValidationReading(rates={"compute": 100.0}, problem="CUDA error.")
    assert validation_failures(reading, PAST, []) == ("CUDA error.",)
