"""Jobs that leave compiled code for their owner's next jobs."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from carrel.hub.attempts.compile_cache_side import NEW, OWN
from carrel.hub.records.identity import Identity
from carrel.hub.records.leases import LeaseRecord
from carrel.hub.records.requests import RequestRecord
from carrel.hub.requests.jobs import JobService
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.schemas import JobIn

from ..requests.samples import job
from .site import Site


def leave(site: Site, who: Identity, name: str, content: bytes = b"code") -> str:
    """Let a job of a user leave what it has compiled; return its id."""
    request, lease, folder = attempt(site, who, name)
    header = {
        "machine": "m",
        "graphs": 2,
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "request": "",
    }
    (folder / NEW).write_bytes(json.dumps(header).encode() + b"\n" + content)
    site.context.compile_caches.keep(request, lease, folder)
    return request.id


def offered(site: Site, who: Identity, name: str) -> bool:
    """Whether the next job of a user gets what an earlier one has compiled."""
    request, lease, folder = attempt(site, who, name)
    site.context.compile_caches.offer(request, lease, folder)
    return (folder / OWN).exists()


def attempt(site: Site, who: Identity, name: str) -> tuple[RequestRecord, LeaseRecord, Path]:
    given = job(devices=0, workdir="").model_dump(exclude_unset=True)
    given["notebook"]["name"] = name
    made = JobService(site.context).submit(who, JobIn.model_validate(given))
    starts = [Start(request_id=made.id, devices=())]
    store = site.context.store
    (lease,) = store.grant(starts, now=site.clock(), lease_seconds=60.0)
    folder = site.context.files.attempt_folder(made.id, lease.epoch)
    return store.request(made.id), lease, folder
