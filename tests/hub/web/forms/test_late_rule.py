"""The rows of a late rule are the text that the command line accepts."""

from __future__ import annotations

import pytest

from carrel.hub.errors import InvalidInput
from carrel.hub.web.forms.late_rule import LateForm


def rows(*steps: tuple[str, str, str]) -> LateForm:
    fields = {}
    for number, (span, unit, part) in enumerate(steps, 1):
        fields |= {
            f"late_span_{number}": span,
            f"late_unit_{number}": unit,
            f"late_part_{number}": part,
        }
    return LateForm.filled(fields)


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (rows(), "none"),
        (rows(("", "h", ""), ("", "d", "")), "none"),
        (rows(("24", "h", "10")), "24h:-10%"),
        (rows(("30", "m", "2,5"), ("", "h", ""), ("2", "d", "20")), "30m:-2.5%,2d:-20%"),
    ],
)
def test_rows_become_a_rule_and_a_rule_becomes_rows(form: LateForm, text: str) -> None:
    assert form.text() == text
    assert LateForm.of(text).text() == text
    assert len(form.shown) == 3
    assert form.shown[: len(form.rows)] == form.rows


def test_a_long_rule_has_a_row_for_one_more_step() -> None:
    nine = LateForm.of(",".join(f"{hours}h:-{hours}%" for hours in range(1, 10)))
    assert len(nine.shown) == 10
    ten = LateForm.of(",".join(f"{hours}h:-{hours}%" for hours in range(1, 11)))
    assert ten.shown == ten.rows


@pytest.mark.parametrize(
    ("form", "said"),
    [
        (rows(("soon", "h", "10")), "Step 1 of the late rule has the time 'soon'"),
        (rows(("1", "h", "5"), ("24", "h", "")), "Step 2 of the late rule has .* deduction ''"),
        (rows(("0", "h", "5")), "do not follow"),
        (rows(("24", "h", "101")), "do not follow"),
        (rows(("24", "h", "20"), ("1", "h", "30")), "do not follow"),
        (rows(("24", "h", "20"), ("2", "d", "10")), "do not follow"),
    ],
)
def test_an_impossible_rule_says_which_step(form: LateForm, said: str) -> None:
    with pytest.raises(InvalidInput, match=said) as refused:
        form.text()
    assert refused.value.field == "late"
