"""Reported values of a job over the API, over its attempts, for those who may see the job."""

from __future__ import annotations

import json

from carrel.hub.attempts.compile_cache_side import REPORT
from carrel.hub.attempts.spec import COMPILATIONS, REPORTS
from carrel.hub.requests.jobs import JobService
from carrel.hub.scheduling.model.plan import Start

from ...doubles import STRANGER, STUDENT1, TEACHER
from ...requests.samples import job
from ..fakes import API
from ..site import Site, site

__all__ = ["site"]


def test_reported_values_are_thinned_and_only_for_those_who_may_see_the_job(site: Site) -> None:
    made = JobService(site.context).submit(STUDENT1, job())
    address = f"{API}/requests/{made.id}/reports"
    assert site.api(STUDENT1).get(address).json() == {
        "reports": [],
        "compilations": [],
        "compile_cache": [],
    }
    now, store = site.clock.now, site.context.store
    (lease,) = store.grant(
        [Start(request_id=made.id, devices=("SIM-0",))], now=now, lease_seconds=30
    )
    store.launch(lease.id, now=now)
    lines = [
        {"name": "loss", "value": "NaN" if step == 3 else 100 - step, "step": step, "at": now}
        for step in range(50)
    ]
    folder = site.context.files.attempt_folder(made.id, 1)
    (folder / REPORTS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    function = {"function": "step", "place": "a.py, line 1", "outcome": "Compiled.",
                "obstacles": []}  # fmt: skip
    (folder / COMPILATIONS).write_text(json.dumps(function) + "\n")
    used = {"loaded": [{"graphs": 12, "used": 11, "request": "j-<b>", "course": False}],
            "saved": {"graphs": 1, "bytes": 9}, "problems": []}  # fmt: skip
    (folder / REPORT).write_text(json.dumps(used))
    found = site.api(STUDENT1).get(f"{address}?points=4").json()
    assert found == {
        "reports": [
            {"name": "loss", "steps": [0, 49], "values": [100.0, 51.0], "last": 51.0,
             "least": 51.0, "most": 100.0}
        ],
        "compilations": [function],
        "compile_cache": [
            "Loaded 12 compiled graphs of your job j-<b>, of which 11 were used.",
            "Kept 1 compiled graph for your next job.",
        ],
    }  # fmt: skip  # grouped by meaning
    (whole,) = site.api(STUDENT1).get(address).json()["reports"]
    assert (len(whole["steps"]), whole["values"][3]) == (50, None)
    assert site.api(TEACHER).get(address).status_code == 200
    assert site.api(STRANGER).get(address).status_code == 404
    assert site.api(STUDENT1).get(f"{address}?points=3").status_code == 400
