"""The log: every change is found, and named; nothing is lost or entered twice."""

# ruff: noqa: S608  # the SQL of these tests is made of names that they list

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pymerkle import InmemoryTree
from sqlalchemy import Connection, insert

from carrel.courses.store import SqlCourseStore
from carrel.hub.errors import NotFound
from carrel.hub.proofs.texts import leaf_hash
from carrel.hub.proofs.verification import UnprovenLine, read_proof, verify_proof
from carrel.hub.provenance.signature import SigningKey
from carrel.hub.records.identity import Identity
from carrel.hub.store import SqlStore, open_store
from carrel.hub.store.sql.merkle_log.growth import enter_lines, make_head
from carrel.hub.store.sql.merkle_log.line_proofs import leaves_of
from carrel.hub.store.sql.merkle_log.sources import SOURCES
from carrel.hub.store.sql.merkle_log.tree import SqlMerkleTree, SqlMerkleTreeReader
from carrel.hub.store.sql.merkle_log.verification import verify_log
from carrel.hub.store.sql.tables.merkle_log import log_leaves
from carrel.hub.transparency.background import LogPublisher
from carrel.hub.transparency.log_store import SqlLogStore
from carrel.hub.transparency.publication import PublicationPlace
from carrel.hub.transparency.service import published_heads

from .log_kit import KEY, NOW, fill, findings, folder, found_after, log_of, upgrade


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlStore]:
    """Return a store whose log has two heads, with feedback that was released again."""
    path = tmp_path_factory.mktemp("log") / "carrel.db"
    with closing(open_store(path)) as store:
        fill(store)
        log = log_of(store)
        assert log.enter_lines() == 12
        assert log.make_head()
        courses = SqlCourseStore(store.transactions)
        old = courses.feedback("lab")[1]
        courses.put_feedback(replace(old, files=folder("g")))
        assert log.enter_lines() == 1
        assert log.make_head()
        assert findings(log) == []
        yield store


ROWS = {
    "ledger": ("id", "device_seconds", "device_seconds + 1"),
    "submissions": ("id", "at", "at - 3600"),
    "verdicts": ("submission", "seconds", "seconds * 2"),
    "feedback": ("submission", "released_by", "'mallory'"),
}


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    table=st.sampled_from(sorted(ROWS)),
    what=st.sampled_from(["change", "remove", "remove line", "change line", "swap", "swap lines"]),
    numbers=st.permutations([1, 2, 3]),
)
def test_any_change_removal_and_swap_is_found_and_named(
    filled: SqlStore, table: str, what: str, numbers: list[int]
) -> None:
    key, column, value = ROWS[table]
    one, other = numbers[:2]
    prefix = "j-g/" if table == "verdicts" else ""
    row = f"source = '{table}' AND row_key = '{prefix}{one}'"
    places = [
        filled.transactions.read(
            lambda c, key=key: max(leaf.position for leaf in leaves_of(c, table, [key]))
        )
        for key in (f"{prefix}{one}", f"{prefix}{other}")
    ]
    changes = {
        "change": [f"UPDATE {table} SET {column} = {value} WHERE {key} = {one}"],
        "remove": [f"DELETE FROM {table} WHERE {key} = {one}"],
        "remove line": [f"DELETE FROM log_leaves WHERE {row}"],
        "change line": [f"UPDATE log_leaves SET hash = zeroblob(32) WHERE {row}"],
        "swap": [
            f"UPDATE {table} SET {column} = {value} WHERE {key} = {one}",
            f"UPDATE {table} SET {key} = -1 WHERE {key} = {one}",
            f"UPDATE {table} SET {key} = {one} WHERE {key} = {other}",
            f"UPDATE {table} SET {key} = {other} WHERE {key} = -1",
        ],
        "swap lines": [
            f"UPDATE log_leaves SET position = 99 WHERE position = {places[0]}",
            f"UPDATE log_leaves SET position = {places[0]} WHERE position = {places[1]}",
            f"UPDATE log_leaves SET position = {places[1]} WHERE position = 99",
        ],
    }[what]
    named = {(each.table, each.row) for each in found_after(filled, *changes)}
    moved = other if what == "swap" else one
    assert (table, f"{prefix}{moved}") in named


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE log_anchors SET root = zeroblob(32) WHERE position = 0",
        "UPDATE log_anchors SET at = at + 1 WHERE position = 1",
        "DELETE FROM log_anchors WHERE position = 0",
        "DELETE FROM log_anchors WHERE position = 1",
        "UPDATE log_heads SET text = replace(text, '\"size\":1', '\"size\":7') WHERE size = 1",
        "UPDATE logs SET size = size + 1",
        "DELETE FROM logs",
    ],
)
def test_changed_anchors_and_heads_are_found(filled: SqlStore, change: str) -> None:
    assert found_after(filled, change)


def test_a_swap_of_two_lines_names_both(filled: SqlStore) -> None:
    ledger = "log_leaves WHERE source = 'ledger' AND row_key ="
    places = f"(SELECT position FROM {ledger} '1')", f"(SELECT position FROM {ledger} '2')"
    found = found_after(
        filled,
        f"UPDATE log_leaves SET position = 99 WHERE position = {places[0]}",
        f"UPDATE log_leaves SET position = position - 1 WHERE position = {places[1]}",
        "UPDATE log_leaves SET position = (SELECT max(position) + 2 FROM log_leaves WHERE"
        " source = 'ledger' AND row_key = '2') - 1 WHERE position = 99",
    )
    assert {("ledger", "1"), ("ledger", "2")} <= {(each.table, each.row) for each in found}


def test_a_log_that_was_rewritten_with_its_hashes_is_found_by_an_old_published_head(
    filled: SqlStore, tmp_path: Path
) -> None:
    log = log_of(filled)
    place = tmp_path / "heads.jsonl"
    LogPublisher(log, PublicationPlace(file=str(place)), 60).publish()
    published = published_heads(place.read_text(), log, pytest.fail)
    assert [head.size for head in published] == [2, 1]
    assert findings(log, published) == []

    def rewrite(connection: Connection) -> None:
        # An editor of the database who has the key makes everything consistent again.
        connection.exec_driver_sql("UPDATE submissions SET at = at - 3600 WHERE id = 1")
        for table in ("log_leaves", "log_nodes", "logs", "log_anchors", "log_heads"):
            connection.exec_driver_sql(f"DELETE FROM {table}")
        connection.exec_driver_sql(
            "INSERT INTO log_queue (source, row_key, queued_at)"
            " SELECT 'submissions', id, 0 FROM submissions"
            " UNION ALL SELECT 'verdicts', request || '/' || submission, 0 FROM verdicts"
            " UNION ALL SELECT 'feedback', submission, 0 FROM feedback"
            " UNION ALL SELECT 'ledger', id, 0 FROM ledger"
        )
        enter_lines(connection, now=NOW, limit=100)
        make_head(connection, site=log.site, now=NOW, sign=log.sign)
        found = list(verify_log(connection, (), log.read_head, lambda _: None))
        assert found == []
        found = list(verify_log(connection, published, log.read_head, lambda _: None))
        assert "The published head of size 1 differs" in found[0].problem
        raise LookupError

    with pytest.raises(LookupError):
        filled.transactions.write(rewrite)


def test_a_head_of_another_site_is_refused(filled: SqlStore) -> None:
    other = log_of(filled, SigningKey.generate())
    line = filled_head(filled)
    unread: list[str] = []
    assert published_heads(f"{line}\n\n{{}}", other, lambda e: unread.append(e.message)) == ()
    assert unread[0] == "Line 3 of the published heads is not a head."
    assert unread[1].startswith("Line 1: The head is not signed by this key")


def filled_head(store: SqlStore) -> str:
    head = SqlLogStore(store.transactions).state().head
    assert head is not None
    return head.model_dump_json()


def test_a_crash_between_row_and_log_loses_and_repeats_nothing(tmp_path: Path) -> None:
    path = tmp_path / "carrel.db"
    with closing(open_store(path)) as store:
        fill(store)
        log = log_of(store)

        def interrupted(connection: Connection) -> None:
            enter_lines(connection, now=NOW, limit=5)
            raise LookupError

        with pytest.raises(LookupError):
            store.transactions.write(interrupted)
        assert (log.store.state().queued, log.store.lines()) == (12, 0)
    with closing(open_store(path)) as store:
        log = log_of(store)
        assert [log.enter_lines(), log.enter_lines()] == [12, 0]
        assert (log.store.state().queued, log.store.lines()) == (0, 12)
        assert findings(log) == []


def test_an_old_database_enters_the_log_as_of_the_upgrade(tmp_path: Path) -> None:
    path = tmp_path / "carrel.db"
    with closing(open_store(path)) as store:
        fill(store)
    with closing(sqlite3.connect(path)) as db, db:
        for (table,) in db.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'log%'"
        ).fetchall():
            db.execute(f"DROP TABLE {table}")
    with closing(open_store(path)) as store:
        upgrade(store, "r0043_merkle_log")
        log = log_of(store)
        assert log.enter_lines() == 12
        assert findings(log) == []
        proof = log.prove_coursework(Identity(name="s1"), "lab", "ps1")
        proved = verify_proof(proof, KEY.public).lines
        assert [(line.table, line.entered_at) for line in proved] == [
            ("submissions", NOW),
            ("feedback", NOW),
        ]


class TestProofs:
    def test_a_student_proves_the_own_submissions_and_feedback(self, filled: SqlStore) -> None:
        log = log_of(filled)
        text = log.prove_coursework(Identity(name="s0"), "lab", "ps1").model_dump_json()
        proved = verify_proof(read_proof(text), KEY.public)
        assert proved.head.site == "https://carrel.example"
        assert [line.table for line in proved.lines] == ["submissions", "feedback"]
        line = proved.lines[0].line
        assert line is not None
        assert (line["person"], line["at"], line["files"]["sha256"]) == ("s0", NOW, "a" * 64)
        assert '"s1' not in text.replace("\\", "")
        with pytest.raises(NotFound, match="You have not submitted"):
            log.prove_coursework(Identity(name="eve"), "lab", "ps1")

    def test_a_user_proves_the_own_usage(self, filled: SqlStore) -> None:
        log = log_of(filled)
        proved = verify_proof(log.prove_usage(Identity(name="ada")), KEY.public)
        seconds = [line.line["device_seconds"] for line in proved.lines if line.line]
        assert seconds == [60.0] * 3
        with pytest.raises(NotFound):
            log.prove_usage(Identity(name="ada"), since=NOW)

    @pytest.mark.parametrize(
        ("old", "new", "sentence"),
        [
            ('\\"person\\":\\"s0\\"', '\\"person\\":\\"s9\\"', "line 0 of the log lab was changed"),
            ('\\"index\\":0', '\\"index\\":1', "line 1 of the log lab is from another place"),
            ('\\"site\\":', '\\"sites\\":', "not signed by this key"),
            ('\\"log\\":\\"lab\\",\\"root', '\\"log\\":\\"lob\\",\\"root', "anchor 0 was changed"),
            ('"rule":[', '"rule":[1,', "was changed"),
            ('"kind":"carrel proof"', '"kind":"other"', "not a proof"),
        ],
    )
    def test_an_edited_proof_is_refused_with_its_reason(
        self, filled: SqlStore, old: str, new: str, sentence: str
    ) -> None:
        text = log_of(filled).prove_coursework(Identity(name="s0"), "lab", "ps1").model_dump_json()
        assert old in text
        with pytest.raises(UnprovenLine, match=sentence):
            verify_proof(read_proof(text.replace(old, new, 1)), KEY.public)

    def test_a_proof_is_verified_without_code_of_the_service(
        self, filled: SqlStore, tmp_path: Path
    ) -> None:
        proof = log_of(filled).prove_coursework(Identity(name="s0"), "lab", "ps1")
        (tmp_path / "p.json").write_text(proof.model_dump_json())
        (tmp_path / "k.pem").write_text(KEY.public.pem)
        script = (
            "import sys, pathlib\n"
            "from carrel.hub.proofs.verification import read_proof, verify_proof\n"
            "from carrel.hub.provenance.signature import PublicKey\n"
            "key = PublicKey.from_pem(pathlib.Path('k.pem').read_text())\n"
            "print(len(verify_proof(read_proof(pathlib.Path('p.json').read_text()), key).lines))\n"
            "print([n for n in sys.modules if n.partition('.')[0] in"
            " ('sqlalchemy', 'fastapi', 'jupyterhub') or n.startswith('carrel.hub.store')])\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert done.stdout.split("\n")[:2] == ["2", "[]"]


def test_a_failed_publication_is_told_and_tried_again(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "carrel.db")) as store:
        fill(store)
        log = log_of(store)
        failing = LogPublisher(log, PublicationPlace(command="false"), 0)
        assert [failing.work(), failing.work(), failing.publish()] == [12, 0, False]
        state = log.store.state()
        assert (state.unpublished, state.published_at) == (1, None)
        assert "'false' ended with exit status 1" in state.error
        target = tmp_path / "head.json"
        copying = PublicationPlace(command=f"tee {target}")
        LogPublisher(log, copying, 0).publish()
        state = log.store.state()
        assert (state.unpublished, state.published_at, state.error) == (0, NOW, "")
        assert json.loads(json.loads(target.read_text())["text"])["size"] == 1


def test_all_columns_of_the_tables_are_in_the_log() -> None:
    tables = {source.table for source in SOURCES.values()}
    for table in tables:
        logged = {
            name for source in SOURCES.values() if source.table is table for name in source.columns
        }
        assert logged == {column.name for column in table.columns}


def test_many_proofs_of_a_tree_read_and_hash_each_part_once(filled: SqlStore) -> None:
    counted: list[str] = []

    class Counted(SqlMerkleTreeReader):
        def hash_pair(self, left: bytes, right: bytes) -> bytes:
            counted.append("hash")
            return bytes(super().hash_pair(left, right))

    def work(connection: Connection) -> None:
        size, reference, rows = 700, InmemoryTree(algorithm="sha256"), []
        for number in range(size):
            reference.append_entry(str(number).encode())
            rows.append(
                {"log": "many", "position": number, "source": "", "row_key": str(number)}
                | {"entered_at": NOW, "salt": b"", "hash": leaf_hash(str(number))}
            )
        connection.execute(insert(log_leaves), rows)
        SqlMerkleTree(connection, "many").store_nodes(0, size)
        tree = Counted(connection, "many")
        for index in range(size):
            proof = tree.inclusion(index, size)
            assert proof.serialize() == reference.prove_inclusion(index + 1).serialize()
        assert len(counted) < 2 * size
        raise LookupError

    with pytest.raises(LookupError):
        filled.transactions.write(work)


def test_trees_are_those_of_the_library(filled: SqlStore) -> None:
    def work(connection: Connection) -> None:
        for size in (1, 2, 3, 255, 256, 257, 700):
            reference, rows = InmemoryTree(algorithm="sha256"), []
            for number in range(size):
                reference.append_entry(str(number).encode())
                rows.append(
                    {"log": f"g{size}", "position": number, "source": "", "row_key": str(number)}
                    | {"entered_at": NOW, "salt": b"", "hash": leaf_hash(str(number))}
                )
            connection.execute(insert(log_leaves), rows)
            tree = SqlMerkleTree(connection, f"g{size}")
            tree.store_nodes(0, size)
            assert tree.root(size) == reference.get_root()
            for index in {0, size // 2, size - 1}:
                proof = tree.inclusion(index, size)
                assert proof.serialize() == reference.prove_inclusion(index + 1).serialize()
        raise LookupError

    with pytest.raises(LookupError):
        filled.transactions.write(work)
