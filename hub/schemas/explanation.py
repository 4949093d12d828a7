"""Bodies that explain why a request waits."""

from __future__ import annotations

from .base import Out
from .requests import WaitOut


class QuotaStateOut(Out):
    """The quota that holds the request back; ``reason`` is the limit that is reached."""

    reason: str
    group: str
    held: float
    most: float
    guaranteed: int


class AheadOut(Out):
    """The number of requests that are ahead by one rule of the queue order.

    ``group`` is empty if the rule does not concern groups, or if the caller may not see its name.
    """

    rule: str
    count: int
    group: str = ""


class SuggestionOut(Out):
    """A change that would start the request sooner; fields that are null stay the same.

    Without ``expected_at``, the changed request would start now.
    """

    change: str
    sentence: str
    devices: int | None = None
    seconds: float | None = None
    group: str | None = None
    expected_at: float | None = None
    latest_at: float | None = None


class WhyOut(Out):
    """Why a request waits, which requests are ahead, and which changes would help.

    ``wait`` is null unless the request is queued; ``sentences`` then describe its state. ``free``
    and ``lendable`` count devices of the requested model. ``refills_at`` is when the exhausted
    budget is renewed, if known.
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
