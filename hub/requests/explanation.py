"""Why a request waits, told to whoever may see it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from ..admission.policy import Admission
from ..errors import NotFound, Unavailable
from ..interfaces.clock import Clock
from ..messages import requests as request_messages
from ..messages.wait_reasons import (
    MayNameGroup,
    ahead_sentences,
    suggestion_sentence,
    why_sentences,
)
from ..records.identity import Viewer
from ..records.requests import RequestRecord
from ..runtime.plan_cache import PlanCache
from ..runtime.snapshots import SnapshotReader
from ..scheduling.explanation.explanation import Explanation, explain
from ..scheduling.model.states import State
from ..schemas.explanation import AheadOut, QuotaStateOut, SuggestionOut, WhyOut
from .serializers import wait_out


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitExplanations:
    """Asks the core about one request, with the places of the last plan."""

    placing: SnapshotReader
    plan_cache: PlanCache
    admission: Admission
    clock: Clock

    def why(self, record: RequestRecord, viewer: Viewer) -> WhyOut:
        """The names of groups that are neither the owner's nor the reader's are left out."""
        if record.state is not State.QUEUED:
            return _elsewhere(record)
        now, own = self.clock(), self._groups(record)
        known = frozenset(own) | viewer.teaches
        found = explain(
            self.placing.snapshot(now),
            record.id,
            now,
            waits=tuple(self.plan_cache.waits.values()),
            groups=own,
        )
        if found is None:
            return WhyOut(
                request_id=record.id, sentences=["Its position in the queue is being computed."]
            )
        yours = viewer.speaks_to(record.owner)
        return why_out(found, lambda group: viewer.sees_all or group in known, yours=yours)

    def _groups(self, record: RequestRecord) -> tuple[str, ...]:
        """Those of its owner; none while the hub does not say."""
        try:
            return tuple(group.name for group in self.admission.groups_of(record.owner))
        except (Unavailable, NotFound):
            return ()


def why_out(found: Explanation, named: MayNameGroup, *, yours: bool) -> WhyOut:
    return WhyOut(
        request_id=found.request.id,
        wait=wait_out(found.wait, yours=yours),
        sentences=why_sentences(found, yours=yours),
        free=found.free,
        lendable=found.lendable,
        quota=None
        if found.quota is None
        else QuotaStateOut(**asdict(found.quota) | {"reason": found.quota.reason.value}),
        reserved_from=found.reserved.starts_at if found.reserved else None,
        reserved_until=found.reserved.ends_at if found.reserved else None,
        refills_at=found.budget.refills_at if found.budget else None,
        ahead=[
            AheadOut(
                rule=each.rule.value,
                count=each.count,
                group=each.group if each.group and named(each.group) else "",
            )
            for each in found.ahead
        ],
        ahead_sentences=ahead_sentences(found.ahead, named),
        suggestions=list(_suggestions(found)),
    )


def _suggestions(found: Explanation) -> Iterable[SuggestionOut]:
    for each in found.suggestions:
        yield SuggestionOut(
            change=each.change.value,
            sentence=suggestion_sentence(found, each),
            devices=each.devices,
            seconds=each.seconds,
            group=each.group,
            expected_at=each.expected.at if each.expected else None,
            latest_at=each.expected.latest if each.expected else None,
        )


def _elsewhere(record: RequestRecord) -> WhyOut:
    meaning = request_messages.state_meaning(record.state.value)
    return WhyOut(request_id=record.id, sentences=[f"It is not queued: {meaning}."])
