"""Explain why a request waits and which changes would start it sooner."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from ..errors import NotFound, Unavailable
from ..groups.membership import Membership, viewer_of
from ..messages import requests as request_messages
from ..messages.explanation import MayNameGroup, ahead_sentences, suggestion_sentence, why_sentences
from ..records.identity import Identity
from ..records.requests import RequestRecord
from ..runtime.context import Context
from ..runtime.snapshots import SnapshotReader
from ..scheduling.explanation.explanation import Explanation, explain
from ..scheduling.model.states import State
from ..schemas.explanation import AheadOut, QuotaStateOut, SuggestionOut, WhyOut
from .access import RequestAccess
from .serializers import wait_out


@dataclass(frozen=True, slots=True)
class WaitExplanations:
    """Explanations by the scheduler, with the queue positions of the last plan."""

    context: Context

    def why(self, who: Identity | None, request_id: str) -> WhyOut:
        """Explain the wait of a request.

        Names of groups are omitted unless the owner is a member or the viewer teaches there.

        Raises:
            NotFound: there is no such request that the caller may see.
        """
        c = self.context
        record, viewer = RequestAccess(c.store).visible(who, request_id), viewer_of(c.store, who)
        if record.state is not State.QUEUED:
            return _not_queued(record)
        now, own = c.clock(), self._groups(record)
        known = frozenset(own) | viewer.teaches
        found = explain(
            SnapshotReader.of(c).snapshot(now),
            record.id,
            now,
            waits=tuple(c.plan_cache.waits.values()),
            groups=own,
        )
        if found is None:
            return WhyOut(
                request_id=record.id, sentences=["Its position in the queue is being computed."]
            )
        yours = viewer.speaks_to(record.owner)
        return why_out(found, lambda group: viewer.sees_all or group in known, yours=yours)

    def _groups(self, record: RequestRecord) -> tuple[str, ...]:
        """Return the owner's groups; none while JupyterHub does not answer."""
        try:
            membership = Membership.of(self.context)
            return tuple(g.name for g in membership.groups_of(record.owner, for_page=True))
        except (Unavailable, NotFound):
            return ()


def why_out(found: Explanation, named: MayNameGroup, *, yours: bool) -> WhyOut:
    """Return the response body of an explanation."""
    return WhyOut(
        request_id=found.request.id,
        wait=wait_out(found.wait, yours=yours),
        sentences=why_sentences(found, yours=yours),
        free=found.free,
        lendable=found.schedulable,
        quota=None
        if found.quota is None
        else QuotaStateOut(**asdict(found.quota) | {"reason": found.quota.reason.value}),
        reserved_from=found.reserved.starts_at if found.reserved else None,
        reserved_until=found.reserved.ends_at if found.reserved else None,
        refills_at=found.budget.refills_at if found.budget else None,
        ahead=[
            AheadOut(
                rule=rule.rule.value,
                count=rule.count,
                group=rule.group if rule.group and named(rule.group) else "",
            )
            for rule in found.ahead
        ],
        ahead_sentences=ahead_sentences(found.ahead, named),
        suggestions=list(_suggestions(found)),
    )


def _suggestions(found: Explanation) -> Iterable[SuggestionOut]:
    for suggestion in found.suggestions:
        yield SuggestionOut(
            change=suggestion.change.value,
            sentence=suggestion_sentence(found, suggestion),
            devices=suggestion.devices,
            seconds=suggestion.seconds,
            group=suggestion.group,
            expected_at=suggestion.expected.at if suggestion.expected else None,
            latest_at=suggestion.expected.latest if suggestion.expected else None,
        )


def _not_queued(record: RequestRecord) -> WhyOut:
    meaning = request_messages.state_meaning(record.state.value)
    return WhyOut(request_id=record.id, sentences=[f"It is not queued: {meaning}."])
