"""The times of a schedule as fields are a cron expression, and back."""

from __future__ import annotations

import pytest

from carrel.hub.errors import InvalidInput
from carrel.hub.web.forms.cron import CronForm, Repeat
from carrel.hub.workflows.cron import CronTimes


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("0 6 * * *", "every day at 06:00"),
        ("5 * * * *", "every hour at minute 5"),
        ("30 18 * * 1,3", "every week on Mon, Wed at 18:30"),
        ("0 0 * * 0", "every week on Sun at 00:00"),
        ("15 4 31 * *", "every month on day 31 at 04:15"),
    ],
)
def test_simple_times_are_fields_and_the_same_expression_again(
    expression: str, sentence: str
) -> None:
    form = CronForm.of(expression)
    assert form.sentence == sentence
    assert form.expression() == expression
    CronTimes.parse(expression, "UTC")


@pytest.mark.parametrize("expression", ["0 6 * * 1-5", "0 6 * * 1-3,4,5"])
def test_a_range_of_days_is_their_list(expression: str) -> None:
    form = CronForm.of(expression)
    assert form.days == ("Mon", "Tue", "Wed", "Thu", "Fri")
    assert form.expression() == "0 6 * * 1,2,3,4,5"


@pytest.mark.parametrize(
    "expression",
    [
        "*/30 * * * *",
        "0 6 1 * 1",
        "0 6 * 5 *",
        "5 * * * 1",
        "0 6 * * 5-",
        "60 6 * * *",
        "0 25 * * *",
    ],
)
def test_other_times_stay_an_expression(expression: str) -> None:
    form = CronForm.of(expression)
    assert (form.every, form.expression()) == (Repeat.CRON, expression)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"every": "week", "cron_at": "06:00"}, "cron_days"),
        ({"every": "day", "cron_at": "soon"}, "cron_at"),
        ({"every": "month", "cron_at": "06:00", "cron_month_day": "32"}, "cron_month_day"),
        ({"every": "cron", "cron": " "}, "every"),
        ({"every": "year"}, "every"),
    ],
)
def test_a_missing_or_wrong_field_is_named(fields: dict[str, str], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        CronForm.filled(fields).expression()
    assert refused.value.field == field
