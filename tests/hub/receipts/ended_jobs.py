"""Jobs that have ended, with what their runner has left."""

from __future__ import annotations

import json
from typing import Any

from carrel.hub.attempts.spec import PROVENANCE
from carrel.hub.records.leases import Handle
from carrel.hub.records.requests import Cause, CauseCode
from carrel.hub.requests.jobs import JobService
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.states import State
from carrel.hub.transitions import lifecycle

from ..doubles import STUDENT1
from ..web.site import Site


def ended(
    site: Site, body: Any, *, report: object = None, state: State = State.SUCCEEDED, **files: str
) -> str:
    """Return a job that has ended, with files in the folder of its attempt."""
    made = JobService(site.context).submit(STUDENT1, body)
    store, now = site.context.store, site.clock.now
    devices = ("SIM-0",)[: made.devices]
    (lease,) = store.grant([Start(request_id=made.id, devices=devices)], now=now, lease_seconds=30)
    store.launch(lease.id, now=now)
    handle = Handle(pid=4_000_000, started_at=now)
    store.apply_to_lease(lease.id, lifecycle.start, handle, now=now)
    folder = site.context.files.attempt_folder(made.id, 1)
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_text(content)
    if report is not None:
        (folder / PROVENANCE).write_text(json.dumps(report))
    code = CauseCode.SUCCEEDED if state is State.SUCCEEDED else CauseCode.CELL_ERROR
    cause = Cause(code=code, message="It ended.")
    store.apply(made.id, lifecycle.stop, state, cause, now=now + 5)
    store.apply_to_lease(lease.id, lifecycle.finish, now=now + 5, charge_until=now + 5)
    return made.id
