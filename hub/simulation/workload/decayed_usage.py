"""Decayed use while a simulation goes on, as the ledger of the live service would have it."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log

from ...scheduling.model.snapshot import DecayedUsage, PendingRequest
from ...scheduling.quota.accounting import HALF_LIFE


@dataclass(slots=True)
class _Account:
    """Of one owner in one group: what counts at a moment, and what is held from there on."""

    at: float
    use: float = 0.0
    held: float = 0.0


class SimulatedUsage:
    """Each device-second counts half after one half-life, also those of what still runs.

    While as much is held, use grows by the integral of ``scheduling.accounting.decayed``.
    """

    def __init__(self, half_life: float = HALF_LIFE) -> None:
        self._per_second = log(2) / half_life
        self._accounts: dict[tuple[str, str], _Account] = {}

    def change(self, request: PendingRequest, devices: float, now: float) -> None:
        """So many devices are held from now on, or fewer with a negative number."""
        key = (request.group, request.owner)
        account = self._accounts.setdefault(key, _Account(at=now))
        self._settle(account, now)
        account.held += devices

    def uses(self, now: float) -> tuple[DecayedUsage, ...]:
        for account in self._accounts.values():
            self._settle(account, now)
        return tuple(
            DecayedUsage(group=group, owner=owner, device_seconds=account.use)
            for (group, owner), account in self._accounts.items()
        )

    def _settle(self, account: _Account, now: float) -> None:
        fading = exp((account.at - now) * self._per_second)
        account.use = account.use * fading + account.held * (1 - fading) / self._per_second
        account.at = now
