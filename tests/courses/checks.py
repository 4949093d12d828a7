"""Results of checks and rehearsals, without a worker and without the loop."""

from __future__ import annotations

from pydantic import BaseModel

from carrel.hub.records.leases import LeaseRecord
from carrel.hub.records.requests import Cause, CauseCode
from carrel.hub.runtime.context import Context
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.states import State
from carrel.hub.schemas.checks import RESULT
from carrel.hub.transitions import lifecycle


def started(context: Context, request: str) -> LeaseRecord:
    store, now = context.store, context.clock()
    (lease,) = store.grant([Start(request_id=request, devices=())], now=now, lease_seconds=60.0)
    store.launch(lease.id, now=now)
    return lease


def came_out(
    context: Context,
    request: str,
    result: BaseModel | None,
    state: State = State.SUCCEEDED,
    *,
    name: str = RESULT,
    lease: LeaseRecord | None = None,
) -> None:
    store, now = context.store, context.clock()
    lease = lease or started(context, request)
    folder = context.files.attempt_folder(request, lease.epoch)
    if result is not None:
        (folder / name).write_text(result.model_dump_json())
    cause = Cause(code=CauseCode.SUCCEEDED, message="The engine is away.")
    store.apply(request, lifecycle.stop, state, cause, now=now)
    store.apply_to_lease(lease.id, lifecycle.finish, now=now, charge_until=now)
