"""The service writes the receipt of each job when it has ended."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from carrel.hub.errors import NotFound, Unavailable
from carrel.hub.provenance.verification import verify
from carrel.hub.receipts import background
from carrel.hub.receipts.background import ReceiptWriter
from carrel.hub.receipts.ended_jobs import EndedJobs
from carrel.hub.receipts.facts import JobFacts
from carrel.hub.requests.jobs import JobService
from carrel.hub.requests.termination import RequestTermination
from carrel.hub.scheduling.model.states import State
from carrel.hub.store import SqlStore

from ...fake_service import eventually
from ..doubles import STUDENT1
from ..notebooks import notebook
from ..requests.samples import command, job
from ..web.fakes import API
from ..web.site import Site, site
from .ended_jobs import ended

__all__ = ["site"]


@pytest.fixture
def writer(site: Site) -> ReceiptWriter:
    """The writer of a service that has just started."""
    made = again(site)
    assert made.work() == 0
    return made


def again(site: Site) -> ReceiptWriter:
    store = cast(SqlStore, site.context.store)
    return ReceiptWriter(EndedJobs(store.transactions), site.world.web.receipts)


def written(site: Site, name: str) -> Path:
    return site.context.files.input_path(name).parent / "receipt.json"


def test_jobs_that_have_run_have_a_receipt_before_anybody_asks(
    site: Site, writer: ReceiptWriter
) -> None:
    never_ran = JobService(site.context).submit(STUDENT1, job()).id
    RequestTermination(site.context).cancel(STUDENT1, never_ran)
    names = [
        ended(site, job(), output_ipynb=notebook("print(1)")),
        ended(site, command(), state=State.FAILED),
    ]
    at = site.clock.now
    assert writer.work() == len(names)
    site.clock.pass_(3600)
    for name in names:
        receipt = verify(written(site, name).read_bytes(), site.context.signing_key.public).receipt
        assert (receipt.job, receipt.written_at) == (name, at)
        answer = site.api(STUDENT1).get(f"{API}/requests/{name}/receipt")
        assert verify(answer.content).receipt == receipt
    assert not written(site, never_ran).exists()


def test_a_service_that_starts_again_writes_what_is_missing_and_nothing_twice(site: Site) -> None:
    older = ended(site, command())
    first = again(site)
    first.work()
    assert not written(site, older).exists(), "it is written at its first request"
    name = ended(site, command())
    assert first.receipts.crate(None, name)  # and then the service ends
    content = written(site, name).read_bytes()
    missed = ended(site, command())
    site.clock.pass_(60)
    second = again(site)
    assert (second.work(), second.work()) == (2, 0)
    assert written(site, name).read_bytes() == content
    assert written(site, missed).exists()
    assert again(site).work() == 0


def test_a_receipt_that_cannot_be_written_does_not_stop_the_others(
    site: Site, writer: ReceiptWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, good = ended(site, command()), ended(site, command())
    facts = JobFacts.receipt

    def receipt(self: JobFacts, site: str, key: str) -> object:
        if self.record.id == broken:
            raise NotFound("It has just been removed.")
        return facts(self, site, key)

    monkeypatch.setattr(JobFacts, "receipt", receipt)
    assert writer.work() == 2
    assert (written(site, broken).exists(), written(site, good).exists()) == (False, True)


def test_receipts_are_written_once_key_and_space_are_back(
    site: Site, writer: ReceiptWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [ended(site, command()) for _ in range(2)]
    with monkeypatch.context() as patch:
        patch.setattr(type(site.context.files), "is_full", lambda _: True)
        with pytest.raises(Unavailable, match="The disk is full"):
            writer.work()
    with monkeypatch.context() as patch:
        patch.setattr(JobFacts, "receipt", _no_key)
        with pytest.raises(Unavailable, match="damaged"):
            writer.work()
    assert writer.work() == 2
    assert all(written(site, name).exists() for name in names)


def _no_key(*_: object) -> None:
    raise Unavailable("The signing key of this site is damaged.")


def test_many_jobs_that_end_together_are_written_in_batches(
    site: Site, writer: ReceiptWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "BATCH", 2)
    names = [ended(site, command()) for _ in range(5)]
    assert [writer.work() for _ in range(4)] == [2, 2, 1, 0]
    assert all(written(site, name).exists() for name in names)


def test_the_thread_writes_and_ends_with_the_service(site: Site, writer: ReceiptWriter) -> None:
    first = ended(site, command())
    writer.start()
    eventually(written(site, first).exists)
    writer.stop()
    later = ended(site, command())
    again(site).work()
    assert written(site, later).exists()
