"""Shadow runs, and the decisions in which a learned order would have started other requests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowRun:
    """A span of time in which a learned order was compared with the live decisions.

    Attributes:
        name: of the learned order.
        since, until: seconds since the epoch; None while it goes on.
        compared: number of decisions that were compared.
        differing: number of them in which other requests would have started.
        problem: why its file could not be used at the last comparison; empty if it could.
    """

    number: int
    name: str
    since: float
    until: float | None = None
    compared: int = 0
    differing: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowDecision:
    """A decision in which a learned order would have started other requests.

    Attributes:
        at: time of the decision, in seconds since the epoch.
        queued: number of queued requests.
        started: ids of the requests that start only without it.
        would_start: ids of those that start only with it.
        sooner: by how many seconds the requests whose start both expect are expected to start
            sooner with it, on average; negative for later.
    """

    at: float
    queued: int
    started: tuple[str, ...]
    would_start: tuple[str, ...]
    sooner: float
