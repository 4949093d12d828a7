"""What-if replays for administrators: reads the ledger, and replays it in a process with limits."""

from __future__ import annotations

import json
import logging
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import Final

from ...errors import CarrelError, InvalidInput, TooLarge
from ...interfaces.clock import Clock
from ...interfaces.store import Store
from ...records.identity import Identity, require_admin
from ...records.usage import DAY
from ...runtime.limited_process import LimitedProcess, module_command
from ...scheduling.model.learned_order import LearnedOrder
from ...scheduling.model.snapshot import Group
from ...schemas.usage import WhatIfOut
from ...simulation.workload.reader import Selection
from .order import WhatIfOrder, nodes_of, parse_max_quotas
from .site_history import read_history, site_devices
from .worker import REFUSED

SECONDS: Final = 120.0
DEFAULT_DAYS: Final = 90
MOST_DAYS: Final = 3660
MOST_REQUESTS: Final = 20_000
MOST_NEW_DEVICES: Final = 20_000
_FEWER_DAYS: Final = "Replay fewer days."
_log = logging.getLogger(__name__)


def replay_process() -> LimitedProcess:
    """Return the process of a replay, of which a few run at once."""
    return LimitedProcess(
        module_command("usage.what_if.worker"), SECONDS, "Other replays are running."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteChange:
    """A change of the site that is tried on its history.

    Attributes:
        devices: ``+4`` (one node of four more), ``+2x4`` or ``6x8``; empty: the same.
        quotas: ``group=8``, the max quota of a group in devices.
        days: how far back the replayed requests were submitted.
    """

    devices: str = ""
    quotas: tuple[str, ...] = ()
    days: float = DEFAULT_DAYS


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIfReplays:
    """Replays of the site's own ledger on a changed site.

    Attributes:
        learned_order: that of the site; None without one.
    """

    store: Store
    clock: Clock
    learned_order: LearnedOrder | None = None
    process: LimitedProcess = field(default_factory=replay_process)

    def replay(self, who: Identity, query: SiteChange) -> WhatIfOut:
        """Replay the history with and without a change; blocks the calling thread.

        Raises:
            Forbidden: the caller is not an administrator.
            InvalidInput: the change is not accepted.
            NothingToReplay: no request of the period can be replayed.
            TooLarge: the replay takes too long or too much memory.
            Unavailable: too many replays are running.
        """
        require_admin(who)
        ended = self._run(query)
        if ended.returncode == 0:
            return WhatIfOut.model_validate_json(ended.stdout)
        if ended.returncode == REFUSED:
            found = json.loads(ended.stdout)
            raise InvalidInput(found["message"], accepted=found["accepted"])
        _log.warning("what-if replay failed: %s", ended.stderr[-2000:].decode(errors="replace"))
        if ended.returncode < 0 or b"MemoryError" in ended.stderr[-500:]:
            raise TooLarge("The replay needs too much time or memory.", accepted=_FEWER_DAYS)
        raise CarrelError(
            "The replay failed by an error in Carrel. The log of the service has the details.",
            accepted="Replay on the command line with carrel simulate --from-ledger.",
        )

    def _run(self, query: SiteChange) -> subprocess.CompletedProcess[bytes]:
        try:
            return self.process.run_made(lambda: self.order(query).written())
        except subprocess.TimeoutExpired:
            raise TooLarge(
                f"The replay took longer than {self.process.seconds:.0f} s.", accepted=_FEWER_DAYS
            ) from None

    def order(self, query: SiteChange) -> WhatIfOrder:
        """Read what a replay needs. Raises InvalidInput."""
        now = self.clock()
        nodes, quotas = nodes_of(query.devices), parse_max_quotas(query.quotas)
        if nodes is None and not quotas:
            raise InvalidInput(
                "Nothing would change.", accepted="Give devices such as +4, or a quota of a group."
            )
        if not isfinite(query.days) or not 1 <= query.days <= MOST_DAYS:
            raise InvalidInput(
                "The number of days is not accepted.",
                accepted=f"1 to {MOST_DAYS} days are accepted.",
                field="days",
            )
        selection = Selection(since=now - query.days * DAY)
        found = read_history(self.store, selection, now=now, most=MOST_REQUESTS)
        return WhatIfOrder(
            jobs=found.trace.jobs,
            calendar=found.calendar,
            devices=found.devices,
            groups=found.groups,
            changed_devices=site_devices(found.devices, nodes, most=MOST_NEW_DEVICES),
            changed_groups=tuple(_with_max_quotas(found.groups, quotas)),
            learned_order=self.learned_order,
            notes=tuple(
                f"{count:,} left out: {why}." for why, count in found.trace.left_out.items()
            ),
        )


def _with_max_quotas(groups: Iterable[Group], quotas: Mapping[str, int]) -> Iterator[Group]:
    """Yield the groups with other max quotas. Raises InvalidInput for the name of no group."""
    known = tuple(groups)
    unknown = quotas.keys() - {group.name for group in known}
    if unknown:
        raise InvalidInput(
            f"There is no group {min(unknown)}.",
            accepted=f"There are {', '.join(group.name for group in known) or 'no groups'}.",
            field="quota",
        )
    for group in known:
        yield replace(group, max_devices=quotas.get(group.name, group.max_devices))
