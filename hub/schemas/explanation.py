"""What is answered to somebody who asks why a request waits."""

from __future__ import annotations

from .base import Out
from .requests import WaitOut


class QuotaStateOut(Out):
    """The quota that holds it: ``reason`` says which of a group's limits it is."""

    reason: str
    group: str
    held: float
    most: float
    guaranteed: int


class AheadOut(Out):
    """How many are ahead by one rule of the order.

    ``group`` is empty where it makes no difference, and where the reader may not be told.
    """

    rule: str
    count: int
    group: str = ""


class SuggestionOut(Out):
    """What would start it sooner: it was tried. What is not named stays as it is.

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
    """Why a request waits, behind whom, and what would help.

    Of a request that does not wait ``wait`` is empty, and ``sentences`` say how it stands.
    ``free`` and ``lendable`` count devices of the model that it asks for. ``refills_at`` is when
    there is a whole budget again, of what waits for that and where it is known.
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
