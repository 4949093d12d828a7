"""A backup beside running work, and the restored site."""

from __future__ import annotations

import json
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ..faults.audit import audit
from ..faults.support import (
    UNTIL_TOLD,
    browser,
    leader,
    leased,
    release_everything,
    running_session,
    submit,
    tell,
)
from ..ports import free_port
from .support import Installation, brought_up, eventually, installation

SAYS = "print('kept across the restore')"


@pytest.mark.timeout(900)
def test_a_lost_site_is_restored_from_its_backup(tmp_path: Path) -> None:
    with installation(tmp_path / "site", "--simulated-devices", "2") as site:
        done = submit(site, "student1", SAYS)
        site.wait_for(done, "succeeded", user="student1")
        charged = ledger_of(site, done)
        session = running_session(site, "student1")
        ends_later = submit(site, "student2", UNTIL_TOLD, SAYS, devices=0, retries=0)
        site.wait_for(ends_later, "running", user="student2")
        repeated = submit(site, "student3", UNTIL_TOLD, devices=1, retries=1)
        site.wait_for(repeated, "running", user="student3")
        waiting = submit(site, "student3", SAYS, devices=1)
        server = leader(site, session, user="student1")

        backup = backup_while_submissions_go_on(site, tmp_path / "backup")

        # A copy beside the site that is still running: it sees none of its processes.
        copy = restored(site, backup, tmp_path / "copy", "--drained")
        with a_copy(site, copy) as beside:
            beside.wait_for(session, "failed", user="student1")
            beside.wait_for(repeated, "queued", user="student3")
            assert beside.request(waiting, user="student3")["state"] == "queued"
            assert leased(beside) == []
            audit(copy)
        assert server.is_running()
        assert site.request(session, user="student1")["state"] == "running"
        assert site.request(repeated, user="student3")["state"] == "running"

        tell(site, "student2")
        site.wait_for(ends_later, "succeeded", user="student2")
        later = submit(site, "student2", SAYS, devices=0)
        refused = site.cli("restore", str(backup), "--state", str(site.state), check=False)
        assert refused.returncode == 1
        assert "carrel down" in refused.stderr
        site.down()

    again = tmp_path / "again"
    restored(site, backup, again)
    assert stat.S_IMODE((again / "secrets.json").stat().st_mode) == 0o600
    with a_copy(site, again) as back:
        # Ended requests are unchanged: states, ledger, outputs.
        assert back.request(done, user="student1")["state"] == "succeeded"
        assert ledger_of(back, done) == charged
        output = back.api("GET", f"/requests/{done}/output", user="student1")
        assert "kept across the restore" in output.text
        assert back.api("GET", f"/requests/{later}", user="student2").status_code == 404
        # Running work has no process any more, and its cause says so; it is retried if allowed.
        ended = back.wait_for(session, "failed", user="student1")
        assert ended["lease"]["state"] == "released"
        lost = back.wait_for(ends_later, "failed", user="student2")
        assert lost["cause"]["code"] == "lost"
        tell(back, "student3")
        again_done = back.wait_for(repeated, "succeeded", user="student3", within=180)
        assert again_done["lease"]["epoch"] == 2
        back.wait_for(waiting, "succeeded", user="student3", within=180)
        people_go_on(back, done)
    audit(again)


def people_go_on(back: Installation, done: str) -> None:
    """Users sign in with their old passwords, find their data, and start new work."""
    with browser(back, "student1") as client:
        assert done in client.get("/services/carrel/requests?state=ended").text
    release_everything(back)
    new = submit(back, "student1", SAYS)
    back.wait_for(new, "succeeded", user="student1", within=180)


def backup_while_submissions_go_on(site: Installation, target: Path) -> Path:
    """Every request of the backup has its input in it."""
    site.token("student1")
    enough, sent = threading.Event(), []

    def submissions() -> None:
        while not enough.is_set():
            sent.append(submit(site, "student1", SAYS, devices=2))

    sending = threading.Thread(target=submissions)
    sending.start()
    try:
        eventually(lambda: sent, "the first one is submitted")
        made = json.loads(
            site.cli("backup", str(target), "--state", str(site.state), "--json").stdout
        )
    finally:
        enough.set()
        sending.join()
    assert made["backup"] == str(target)
    assert sent
    for request in audit(target / "state").requests:
        if request.id.startswith("j-"):
            assert (target / "state/outputs" / request.id / "input.ipynb").exists()
    for request_id in sent:
        site.api("DELETE", f"/requests/{request_id}", user="student1")
    return target


def restored(site: Installation, backup: Path, state: Path, *flags: str) -> Path:
    site.cli("restore", str(backup), "--state", str(state), *flags)
    return state


@contextmanager
def a_copy(original: Installation, state: Path) -> Iterator[Installation]:
    """A site on a restored folder, with the passwords of the original."""
    made = Installation(state=state, port=free_port(), arguments=("--demo",))
    with brought_up(made):
        assert not made.passwords, "the accounts have come back"
        made.passwords = dict(original.passwords)
        yield made


def ledger_of(site: Installation, request_id: str) -> list[object]:
    return [line for line in site.ledger("student1") if line["request_id"] == request_id]
