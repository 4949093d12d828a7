"""Bodies that explain why a request waits."""

from __future__ import annotations

from .base import Out
from .requests import WaitOut


class QuotaStateOut(Out):
    """The quota that holds the request: ``reason`` says which limit of the group."""

    reason: str
    group: str
    held: float
    most: float
    guaranteed: int


class AheadOut(Out):
    """How many requests are ahead by one rule of the order.

    ``group`` is empty if the rule is not about groups, and if the reader may not see its name.
    """

    rule: str
    count: int
    group: str = ""


class SuggestionOut(Out):
    """A change that would start the request sooner. Fields that are not named stay the same.

    Without ``expected_at`` it would start now.
    """

    change: str
    sentence: str
    devices: int | None = None
    seconds: float | None = None
    group: str | None = None
    expected_at: float | None = None
    latest_at: float | None = None


class WhyOut(Out):
    """Why a request waits, which requests are ahead, and what would help.

    ``wait`` is empty unless the request is queued; ``sentences`` then describe its state. ``free``
    and ``lendable`` count devices of the requested model. ``refills_at`` is when the budget that
    holds it is renewed, if known.
    """

    request_id: str
    wait: WaitOut | None = None
    sentences: list[str]
    free: int = 0
    lendable: int = 0
    quota: QuotaStateOut | None = None
    reserved_from: float | None = None
    reserved_until: float | None = None
    refills_at: float | None = None
    ahead: list[AheadOut] = []
    ahead_sentences: list[str] = []
    suggestions: list[SuggestionOut] = []
