"""Files of a job over the API, whatever their names."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from carrel.hub.requests.jobs import JobService
from carrel.hub.scheduling.model.plan import Start

from ...doubles import STUDENT1
from ...requests.samples import job
from ..fakes import API
from ..site import Site, site

__all__ = ["site"]


@pytest.mark.parametrize("name", ["a\nb", "end\n", "a\\b.txt", "plots/ü \u2028.png", "a%2Fb", " "])
def test_a_file_of_any_name_is_listed_and_read(site: Site, name: str) -> None:
    made = JobService(site.context).submit(STUDENT1, job())
    now, store = site.clock.now, site.context.store
    (lease,) = store.grant(
        [Start(request_id=made.id, devices=("SIM-0",))], now=now, lease_seconds=30
    )
    store.launch(lease.id, now=now)
    path = site.context.files.attempt_folder(made.id, 1) / "files" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(b"content")
    files = f"{API}/requests/{made.id}/files"
    listed = site.api(STUDENT1).get(files).json()["files"]
    assert [each["name"] for each in listed] == [name]
    found = site.api(STUDENT1).get(f"{files}/{quote(name)}")
    assert (found.status_code, found.content) == (200, b"content")
    assert "\n" not in found.headers["content-disposition"]
