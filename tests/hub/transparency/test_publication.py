"""Heads at a place outside: each once and the newest first; what lacks there is found."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from carrel.courses.model.records import NewSubmission
from carrel.courses.store import SqlCourseStore
from carrel.hub.config.settings import Settings
from carrel.hub.config.signing_key import site_signing_key
from carrel.hub.config.state_folder import StateFolder
from carrel.hub.errors import InvalidInput, TooManyCalls, Unavailable
from carrel.hub.proofs.document import SignedHead
from carrel.hub.records.identity import Identity
from carrel.hub.store import SqlStore, open_store
from carrel.hub.transparency import service
from carrel.hub.transparency.background import LogPublisher
from carrel.hub.transparency.check import LogReport, check_log
from carrel.hub.transparency.publication import PublicationPlace
from carrel.hub.transparency.service import TransparencyLog

from .log_kit import NOW, fill, findings, folder, log_of


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    state = StateFolder.at(tmp_path / "state")
    state.root.mkdir(exist_ok=True)
    replace(Settings(), log_heads_file=str(tmp_path / "heads.jsonl")).save(state)
    return state


@pytest.fixture
def store(state: StateFolder) -> Iterator[SqlStore]:
    with closing(open_store(state.database)) as store:
        fill(store)
        yield store


@pytest.fixture
def log(state: StateFolder, store: SqlStore) -> TransparencyLog:
    return log_of(store, site_signing_key(state))


def submit(store: SqlStore, person: str) -> None:
    new = NewSubmission(course="lab", assignment="ps1", person=person, at=NOW, files=folder("b"))
    SqlCourseStore(store.transactions).submit(new)


def grow(log: TransparencyLog, store: SqlStore, heads: int) -> None:
    for number in range(heads):
        submit(store, f"n{number}")
        while log.enter_lines():
            pass
        assert log.make_head()


def sizes(path: Path) -> list[int]:
    heads = [SignedHead.model_validate_json(line) for line in path.read_text().splitlines()]
    return [json.loads(head.text)["size"] for head in heads]


def verified(state: StateFolder, heads: Path | None = None) -> LogReport:
    return check_log(state, heads_file=heads, who="cli:op", started=lambda _: lambda _: None)


def test_the_newest_head_is_published_first_and_all_of_them(
    log: TransparencyLog, store: SqlStore, tmp_path: Path
) -> None:
    grow(log, store, 60)
    path = tmp_path / "heads.jsonl"
    assert LogPublisher(log, PublicationPlace(file=str(path)), 60).publish()
    assert sizes(path) == list(range(60, 0, -1))
    assert log.store.state().unpublished == 0


def test_a_file_gets_a_head_once_while_the_command_fails(
    log: TransparencyLog, store: SqlStore, tmp_path: Path
) -> None:
    grow(log, store, 1)
    path = tmp_path / "heads.jsonl"
    failing = LogPublisher(log, PublicationPlace(file=str(path), command="false"), 60)
    assert [failing.publish(), failing.publish()] == [False, False]
    assert LogPublisher(log, PublicationPlace(file=str(path), command="true"), 60).publish()
    assert sizes(path) == [1]


def test_a_partial_line_damages_neither_the_next_nor_the_verification(
    log: TransparencyLog, store: SqlStore, state: StateFolder, tmp_path: Path
) -> None:
    path = tmp_path / "heads.jsonl"
    path.write_text('{"text": "half')
    grow(log, store, 1)
    LogPublisher(log, PublicationPlace(file=str(path)), 60).publish()
    report = verified(state)
    assert (report.heads, report.count) == (1, 1)
    assert "Line 1 of the published heads is not a head." in report.findings[0].problem


def test_a_missing_file_of_heads_is_not_taken_for_an_empty_one(
    log: TransparencyLog, store: SqlStore, state: StateFolder, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput, match="log_heads_file, cannot be read"):
        verified(state)
    path = tmp_path / "heads.jsonl"
    grow(log, store, 2)
    LogPublisher(log, PublicationPlace(file=str(path)), 60).publish()
    assert verified(state).count == 0
    path.write_text(path.read_text().splitlines()[0] + "\n")
    report = verified(state)
    assert [each.row for each in report.findings] == ["1"]
    assert "The head of size 1 was published, but" in report.findings[0].problem
    assert verified(state, path).count == 0, "a chosen file may be an older copy"


def test_the_file_of_a_proof_is_a_published_head(
    log: TransparencyLog, store: SqlStore, state: StateFolder, tmp_path: Path
) -> None:
    path = tmp_path / "s0.proof.json"
    proof = log.prove_coursework(Identity(name="s0"), "lab", "ps1")
    path.write_text(proof.model_dump_json(indent=1))
    report = verified(state, path)
    assert (report.heads, report.count) == (1, 0)


def test_proofs_sign_one_head_a_minute(log: TransparencyLog, store: SqlStore) -> None:
    now = [NOW]
    log.clock = lambda: now[0]
    log.prove_coursework(Identity(name="s0"), "lab", "ps1")
    submit(store, "late")
    with pytest.raises(Unavailable, match="Try again in 60 seconds"):
        log.prove_coursework(Identity(name="late"), "lab", "ps1")
    log.prove_coursework(Identity(name="s0"), "lab", "ps1")
    now[0] += 60
    assert log.prove_coursework(Identity(name="late"), "lab", "ps1").logs
    assert log.store.state().anchors == 2


def test_a_user_has_one_proof_at_a_time(
    log: TransparencyLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof, refused = log.store.proof, []

    def during(lines: list[tuple[str, str]]) -> object:
        with pytest.raises(TooManyCalls, match="Another proof of yours is being made"):
            log.prove_usage(Identity(name="ada"))
        refused.append(True)
        return proof(lines)

    monkeypatch.setattr(log.store, "proof", during)
    log.prove_usage(Identity(name="ada"))
    log.prove_usage(Identity(name="ada"))
    assert refused == [True, True]


def test_a_proof_has_a_limited_number_of_lines(
    log: TransparencyLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MOST_PROVED", 2)
    with pytest.raises(InvalidInput, match="more than 2 ledger entries"):
        log.prove_usage(Identity(name="ada"))


def test_a_changed_row_is_not_exported_as_a_proof(log: TransparencyLog, store: SqlStore) -> None:
    log.prove_coursework(Identity(name="s0"), "lab", "ps1")
    store.transactions.write(
        lambda c: c.exec_driver_sql("UPDATE submissions SET at = at - 3600 WHERE id = 1")
    )
    with pytest.raises(Unavailable, match="row 1 of the table submissions differs from line 0"):
        log.prove_coursework(Identity(name="s0"), "lab", "ps1")


def test_the_last_round_enters_all_lines_and_publishes_their_head(
    log: TransparencyLog, store: SqlStore, tmp_path: Path
) -> None:
    path = tmp_path / "heads.jsonl"
    publisher = LogPublisher(log, PublicationPlace(file=str(path)), 3600)
    publisher.work()
    publisher.work()
    submit(store, "late")
    stopping = threading.Event()
    stopping.set()
    publisher.run(stopping)
    state = log.store.state()
    assert (state.queued, state.anchors) == (0, 2)
    assert sizes(path) == [2]
    assert findings(log) == []
