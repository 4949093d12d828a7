"""Find devices on which runs take longer than predicted, beside those of other devices.

A prediction may be wrong, and one user's runs may all become longer. A device is therefore only
doubted, which makes it due for a validation. Runs that waited for something else on their node say
nothing about their device; they are counted apart, so that a busy neighbour is named as the cause.
Neither do the runs of a user whose last runs were slow on three devices: the code is the cause.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from ...messages.units import count
from .accusation import DEVICES_OF_CODE
from .statistics import CumulativeSum, median_of

LEAST_OTHERS: Final = 5
LEAST_OWNERS: Final = 2
SLOW: Final = math.log(1.15)
"""A run is told of as slow that takes longer than this, in logarithms."""
_KEPT: Final = 50
_SHOWN: Final = 20
"""Newest runs of a device that its evidence tells of."""


@dataclass(slots=True)
class _Excess:
    """The excess of the last runs on one device, and whose they were."""

    owners: set[str] = field(default_factory=set)
    total: CumulativeSum = field(
        default_factory=lambda: CumulativeSum(slack=0.1, threshold=0.6, most=0.3)
    )


@dataclass(slots=True)
class RunPace:
    """Takes runs on one device each.

    Attributes:
        slow: what a slow run is called.
        compared: what a slow run did, beside others.
    """

    slow: str = "slow run"
    compared: str = "took longer than on other devices"
    _last: deque[tuple[str, float]] = field(default_factory=lambda: deque(maxlen=_KEPT))
    _devices: dict[str, _Excess] = field(default_factory=dict)
    _shown: dict[str, deque[tuple[float, str, str]]] = field(default_factory=dict)
    _slow_on: dict[str, set[str]] = field(default_factory=dict)

    def add(
        self, device: str, owner: str, seconds: float, expected: float, contention: str = ""
    ) -> bool:
        """Add a run; return whether the runs of several users are slow on this device.

        Args:
            seconds, expected: what it took, and what was predicted; others than positive numbers
                are left out.
            contention: what it waited for beside the device, as a clause; empty if nothing.
        """
        if not (0 < seconds < math.inf and 0 < expected < math.inf):
            return False
        ratio = math.log(seconds / expected)
        usual = median_of((r for name, r in self._last if name != device), least=LEAST_OTHERS)
        if usual is not None:
            shown = self._shown.setdefault(device, deque(maxlen=_SHOWN))
            shown.append((ratio - usual, contention, owner))
        if contention:
            return False
        self._last.append((device, ratio))
        if usual is None:
            return False
        self._note_slow(device, owner, slow=ratio - usual >= SLOW)
        if self._is_code_of(owner):
            for each in self._devices.values():
                each.owners.discard(owner)
            return False
        excess = self._devices.setdefault(device, _Excess())
        slow = excess.total.add(ratio - usual)
        excess.owners.add(owner)
        if excess.total.total == 0.0:
            excess.owners.clear()
        if not slow or len(excess.owners) < LEAST_OWNERS:
            return False
        del self._devices[device]
        return True

    def _note_slow(self, device: str, owner: str, *, slow: bool) -> None:
        """Note the devices on which the last runs of an owner were slow, one after the other."""
        if slow:
            self._slow_on.setdefault(owner, set()).add(device)
        else:
            self._slow_on.pop(owner, None)

    def _is_code_of(self, owner: str) -> bool:
        return len(self._slow_on.get(owner, ())) >= DEVICES_OF_CODE

    def forget(self, device: str) -> None:
        """Forget the runs on a device."""
        kept = [each for each in self._last if each[0] != device]
        self._last = deque(kept, maxlen=_KEPT)
        self._devices.pop(device, None)
        self._shown.pop(device, None)
        for devices in self._slow_on.values():
            devices.discard(device)

    def evidence(self, device: str) -> str:
        """Return what the last runs on a device say about it, as sentences; empty if nothing."""
        runs = [
            (excess, contention)
            for excess, contention, owner in self._shown.get(device, ())
            if not self._is_code_of(owner)
        ]
        slow = [excess for excess, contention in runs if excess >= SLOW and not contention]
        contended = [why for excess, why in runs if excess >= SLOW and why]
        found = []
        if slow:
            found.append(
                f"Of the last {count(len(runs), 'run')} on it, {len(slow)} {self.compared}: "
                f"{math.exp(median(slow)):.1f} times, at the median."
            )
        if contended:
            found.append(
                f"{count(len(contended), self.slow)} on it waited for something else than the "
                f"device; in the last one {contended[-1]}."
            )
        return " ".join(found)
