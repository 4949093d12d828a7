"""What waits, asked for in a form that starts sooner: it keeps its age in the queue."""

from __future__ import annotations

from dataclasses import dataclass

from ..admission.policy import Ask
from ..errors import Conflict
from ..interfaces.files import Identity
from ..records.requests import RequestRecord, Wanted
from ..runtime.context import Commands
from ..scheduling.model.snapshot import PriorityClass
from ..schemas import ChangeIn, RequestOut


@dataclass(frozen=True, slots=True)
class Changing:
    """The rules by which a request that waits may become another one."""

    commands: Commands

    def change(self, who: Identity, request_id: str, body: ChangeIn) -> RequestOut:
        """Fewer devices, a shorter limit, another model or another group, asked for by its owner.

        It is what ``explain`` tries when it says what would help. Safe to repeat.

        Raises:
            Conflict: it does not wait any more, or more was asked for.
            Refused: the group does not let it in.
        """
        c = self.commands
        record = c.own(who, request_id)
        wanted = Wanted(
            devices=body.devices,
            seconds=body.seconds,
            group=body.group,
            model=(body.model or "") if "model" in body.model_fields_set else None,
        )
        if wanted.group is not None and wanted.group != record.group:
            self._move_to(record, wanted.group, wanted)
        elif wanted.model and wanted.model != record.model:
            self._let_in(record, record.group, wanted)
        c.store.change(record.id, wanted, now=c.clock())
        c.pulse.beat()
        return c.request(who, request_id)

    def _move_to(self, record: RequestRecord, group: str, wanted: Wanted) -> None:
        if record.priority is PriorityClass.URGENT:
            raise Conflict(
                f"{record.id} is urgent for {record.group}: it stays there.",
                accepted="Fewer devices or a shorter time limit.",
            )
        self.commands.admission.choose_group(record.owner, group)
        self._let_in(record, group, wanted)

    def _let_in(self, record: RequestRecord, group: str, wanted: Wanted) -> None:
        """As if it were submitted there now."""
        self.commands.admission.admit(
            Ask(
                owner=record.owner,
                group=group,
                devices=wanted.devices or record.devices,
                seconds=wanted.seconds or record.seconds,
                model=record.model if wanted.model is None else wanted.model or None,
                kind=record.kind,
                preemptible=record.preemptible,
            )
        )
