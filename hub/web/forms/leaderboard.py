"""The form of a teacher that opens or changes a leaderboard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, get_args

from pydantic import ValidationError

from ...errors import InvalidInput
from ...schemas.courses import FileIn
from ...schemas.coursework.leaderboards import (
    MOST_SCORED_PER_DAY,
    Counts,
    LeaderboardIn,
    LeaderboardRuleOut,
    Metric,
)

METRICS = get_args(Metric)
COUNTS = get_args(Counts)
_LONGEST = 20
_ACCEPTED = {
    "per_day": f"1 to {MOST_SCORED_PER_DAY} submissions a day.",
    "public_percent": "1 to 99 percent.",
    "metric": f"One of: {', '.join(METRICS)}.",
    "counts": f"One of: {', '.join(COUNTS)}.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderboardForm:
    """The fields as text."""

    metric: str = "accuracy"
    per_day: str = "5"
    public_percent: str = "50"
    counts: str = "best"
    private_after_due: bool = False

    @classmethod
    def of(cls, rule: LeaderboardRuleOut) -> Self:
        if not rule.opened:
            return cls()
        return cls(
            metric=rule.metric,
            per_day=str(rule.per_day or cls().per_day),
            public_percent=str(rule.public_percent),
            counts=rule.counts,
            private_after_due=rule.private_after_due,
        )

    @classmethod
    def filled(cls, fields: Mapping[str, str]) -> Self:
        names = ("metric", "per_day", "public_percent", "counts")
        texts: dict[str, Any] = {name: fields.get(name, "").strip()[:_LONGEST] for name in names}
        return cls(**texts, private_after_due=fields.get("private_after_due") == "yes")

    def body(self, files: list[FileIn]) -> LeaderboardIn:
        """Return the body of the call. Raises InvalidInput with the field."""
        try:
            body = LeaderboardIn.model_validate(
                {
                    "metric": self.metric,
                    "per_day": _number(self.per_day),
                    "public_percent": _number(self.public_percent),
                    "counts": self.counts,
                    "private_after_due": self.private_after_due,
                    "files": files,
                }
            )
        except ValidationError as error:
            raise _refused(self, str(error.errors()[0]["loc"][0])) from None
        if not body.per_day:
            raise _refused(self, "per_day")
        return body


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() else None


def _refused(form: LeaderboardForm, field: str) -> InvalidInput:
    given = getattr(form, field, "") or "Nothing"
    return InvalidInput(f"{given} is not accepted.", accepted=_ACCEPTED.get(field, ""), field=field)
