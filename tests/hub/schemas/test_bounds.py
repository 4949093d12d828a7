"""Numbers and times of every body are finite, and times have one upper bound."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from importlib import import_module
from math import inf
from pkgutil import iter_modules
from typing import Any

import pytest

from carrel.hub import schemas
from carrel.hub.errors import InvalidInput
from carrel.hub.schemas import LATEST, LONGEST, JobIn, parsers
from carrel.hub.schemas.base import In
from carrel.hub.web.dependencies.bodies import parse

TIMES = ("at", "until", "due", "deadline", "starts_at", "ends_at", "started_at")
SPANS = ("seconds", "max_seconds", "idle_seconds", "cell_seconds_ago")


def bodies() -> Iterator[type[In]]:
    for module in iter_modules(schemas.__path__, f"{schemas.__name__}."):
        import_module(module.name)
    yield from In.__subclasses__()


def numbers() -> Iterator[tuple[type[In], str, dict[str, Any]]]:
    for body in bodies():
        for name, field in body.model_json_schema().get("properties", {}).items():
            for choice in field.get("anyOf", [field]):
                if choice.get("type") in {"number", "integer"}:
                    yield body, name, choice


NUMBERS = {f"{body.__name__}.{name}": (body, name, kind) for body, name, kind in numbers()}


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize("case", NUMBERS)
def test_no_number_of_a_body_is_infinite_or_not_a_number(case: str, value: str) -> None:
    body, name, _ = NUMBERS[case]
    with pytest.raises(InvalidInput) as refused:
        parse(body, f'{{"{name}": {value}}}'.encode())
    assert refused.value.field == name or "missing" in str(refused.value)


def test_every_time_and_every_span_of_a_body_has_an_upper_bound() -> None:
    unbounded = {
        case
        for case, (_, name, kind) in NUMBERS.items()
        if (name in TIMES and kind.get("maximum") != LATEST)
        or (name in SPANS and not kind.get("maximum", inf) <= LONGEST)
    }
    # Admission compares the time limit of a job with that of its group.
    assert unbounded == {"JobIn.seconds", "ResumeIn.seconds"}


def test_the_latest_time_and_the_longest_span_stay_within_calendars_of_all_zones() -> None:
    moment = datetime.fromtimestamp(LATEST, UTC)
    assert (moment + timedelta(seconds=2 * LONGEST)).astimezone().year < 9999


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e999", "[1, [1e999]]", '{"a": -Infinity}'])
def test_parameters_that_json_cannot_hold_are_refused_with_their_name(value: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse(JobIn, f'{{"group": "g", "parameters": {{"n": 1, "lr": {value}}}}}'.encode())
    assert refused.value.field == "parameters.lr"
    assert "no NaN and no Infinity" in str(refused.value)


@pytest.mark.parametrize("text", ["1e400", "-1e999", "9" * 400, "9" * 5000])
def test_a_typed_parameter_that_is_too_large_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="too large"):
        parsers.parameter(text)


@pytest.mark.parametrize("text", ["36501d", "9" * 30 + "d", "9" * 5000, "1" * 5000 + "h"])
def test_a_duration_of_more_than_100_years_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"longer than 100 years|Invalid duration"):
        parsers.seconds(text)


def test_an_amount_of_memory_beyond_floats_is_refused() -> None:
    with pytest.raises(InvalidInput, match="Invalid amount of memory"):
        parsers.memory_bytes("9" * 400 + "GiB")


@pytest.mark.parametrize("text", ["3000-01-01 00:00", "9999-12-31T23:59-10:00", "1969-01-01 00:00"])
def test_a_typed_time_outside_the_bounds_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="between the years 1970 and 2999"):
        parsers.moment(text, 1e9, UTC)


def test_a_day_after_the_upper_bound_of_times_is_refused() -> None:
    with pytest.raises(InvalidInput, match="Invalid date: '3000-01-01'"):
        parsers.day("3000-01-01")
