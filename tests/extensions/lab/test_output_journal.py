"""What a journal keeps of the outputs of cells, and how it is bounded."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from carrel.extensions.lab import output_journal
from carrel.extensions.lab.bounded_outputs import BoundedOutputs
from carrel.extensions.lab.kernel_journals import LEFT_SECONDS, KernelJournals
from carrel.extensions.lab.output_fold import LEFT_OUT, fold, write_over
from carrel.extensions.lab.output_journal import CellRequest, ExecutionOut, OutputJournal
from carrel.extensions.lab.output_segment import JournalEntry, OutputSegment, encode

SMALL = 4_000
"""Bytes of a segment."""


def asked(request: str, cell: str = "", client: str = "page") -> CellRequest:
    return CellRequest(request=request, cell=cell or request, client=client, in_notebook=True)


@pytest.fixture
def journal(tmp_path: Path) -> OutputJournal:
    return OutputJournal(
        tmp_path / "kernel", segment_bytes=SMALL, kernel_bytes=6 * SMALL, clock=lambda: 5e8
    )


def prints(journal: OutputJournal, request: str, *texts: str) -> None:
    for text in texts:
        journal.hear(request, "stream", {"name": "stdout", "text": text})


def runs(journal: OutputJournal, request: str, *texts: str, cell: str = "") -> None:
    """A whole execution."""
    journal.begin(asked(request, cell))
    journal.hear(request, "status", {"execution_state": "busy"})
    journal.hear(request, "execute_input", {"code": f"# {request}", "execution_count": 7})
    prints(journal, request, *texts)
    journal.hear(request, "status", {"execution_state": "idle"})


def read(journal: OutputJournal, after: int = -1) -> dict[str, ExecutionOut]:
    changes = journal.changes(after, lambda client: client == "page")
    return {execution["request"]: execution for execution in changes["executions"]}


def text(entries: list[JournalEntry]) -> str:
    return "".join(str(it["content"]["text"]) for it in entries if it["type"] == "stream")


def entry(seq: int, kind: str, **content: Any) -> JournalEntry:
    return {"seq": seq, "type": kind, "content": content}


def stream(seq: int, said: str, name: str = "stdout") -> JournalEntry:
    return entry(seq, "stream", name=name, text=said)


def shown(seq: int, data: str, name: str = "") -> JournalEntry:
    transient = {"display_id": name} if name else {}
    return entry(seq, "display_data", data={"text/plain": data}, transient=transient)


def test_outputs_are_kept_in_order_by_execution_and_cell(journal: OutputJournal) -> None:
    journal.begin(asked("a", "cell 1"))
    journal.begin(asked("b", "cell 2"))
    journal.hear("a", "execute_input", {"code": "print()", "execution_count": 3})
    prints(journal, "a", "1\n", "2\n")
    journal.hear("a", "comm_msg", {"data": {}})
    found = read(journal)
    assert (found["a"]["cell"], found["a"]["state"], found["a"]["count"]) == (
        "cell 1",
        "running",
        3,
    )
    assert text(found["a"]["entries"]) == "1\n2\n"
    assert (found["b"]["state"], found["b"]["entries"]) == ("queued", [])
    assert found["a"]["ended_at"] is None
    journal.hear("a", "status", {"execution_state": "idle"})
    ended = read(journal)["a"]
    assert (ended["state"], ended["ended_at"]) == ("ended", 5e8)


def test_a_reader_gets_what_is_new_once(journal: OutputJournal) -> None:
    journal.begin(asked("a"))
    prints(journal, "a", "1\n")
    first = journal.changes(-1, lambda _: False)
    prints(journal, "a", "2\n")
    second = journal.changes(first["seq"], lambda _: False)
    assert [text(it["entries"]) for it in second["executions"]] == ["2\n"]
    assert not second["executions"][0]["whole"]
    assert journal.changes(second["seq"], lambda _: False)["executions"] == []


@pytest.mark.parametrize("said", ["a\u2028b\u2029c\u0085d\x1ce\n", "\ud800 half", "ä€😀\x00"])
def test_separators_and_odd_characters_stay_within_their_line(
    journal: OutputJournal, said: str
) -> None:
    runs(journal, "a", said, "next")
    journal.close()
    again = OutputJournal.load(journal.folder)
    assert text(read(again)["a"]["entries"]) == f"{said}next"


def test_a_torn_last_line_is_cut_off_and_the_rest_stays(journal: OutputJournal) -> None:
    journal.begin(asked("a"))
    prints(journal, "a", "1\n", "2\n")
    journal.close()
    (path,) = journal.folder.glob("*.jsonl")
    os.truncate(path, path.stat().st_size - 5)
    again = OutputJournal.load(journal.folder)
    assert text(read(again)["a"]["entries"]) == "1\n"
    prints(again, "a", "3\n")
    again.close()
    assert text(read(OutputJournal.load(journal.folder))["a"]["entries"]) == "1\n3\n"


def test_only_its_user_can_read_it(journal: OutputJournal) -> None:
    runs(journal, "a", "secret")
    journal.name_notebook("work.ipynb")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in journal.folder.iterdir()}
    assert (modes, stat.S_IMODE(journal.folder.stat().st_mode)) == ({0o600}, 0o700)


def test_a_long_output_keeps_its_beginning_and_its_end_and_says_what_is_left_out(
    journal: OutputJournal,
) -> None:
    lines = [f"line {number}\n" for number in range(1000)]
    runs(journal, "a", *lines)
    found = read(journal)["a"]["entries"]
    (mark,) = [it for it in found if it["type"] == LEFT_OUT]
    at = found.index(mark)
    first, last = (text(part).splitlines(keepends=True) for part in (found[:at], found[at:]))
    assert first == lines[: len(first)]
    assert last == lines[-len(last) :]
    assert mark["content"]["messages"] == len(lines) - len(first) - len(last)
    assert mark["content"]["bytes"] > 10_000
    assert sum(path.stat().st_size for path in journal.folder.iterdir()) <= 3 * SMALL
    journal.close()
    assert read(OutputJournal.load(journal.folder))["a"]["entries"] == found


def test_a_reader_that_follows_loses_nothing_of_a_long_output(journal: OutputJournal) -> None:
    journal.begin(asked("a"))
    seen, after, texts = "", -1, [f"line {number}\n" for number in range(500)]
    for said in texts:
        prints(journal, "a", said)
        changes = journal.changes(after, lambda _: False)
        (execution,) = changes["executions"]
        seen = (
            text(execution["entries"]) if execution["whole"] else seen + text(execution["entries"])
        )
        after = changes["seq"]
    assert seen == "".join(texts)


def test_a_progress_bar_leaves_nothing_out(journal: OutputJournal) -> None:
    runs(journal, "a", "start\n", *[f"\r{number:4} of 999" for number in range(1000)], "\ndone\n")
    found = read(journal)["a"]["entries"]
    assert [it for it in found if it["type"] == LEFT_OUT] == []
    assert text(fold(found)[:]).startswith("start\n")
    assert write_over(text(found)) == "start\n 999 of 999\ndone\n"


def test_a_live_plot_keeps_its_newest_picture_only(journal: OutputJournal) -> None:
    journal.begin(asked("a"))
    for number in range(50):
        journal.hear("a", "clear_output", {"wait": True})
        journal.hear("a", "display_data", {"data": {"image/png": f"{number}" + "x" * 1000}})
    found = fold(read(journal)["a"]["entries"])
    assert [it["content"]["data"]["image/png"][:2] for it in found] == ["49"]


def test_output_that_is_cleared_after_a_flood_is_gone(journal: OutputJournal) -> None:
    journal.begin(asked("a"))
    prints(journal, "a", *[f"line {number}\n" for number in range(1000)])
    journal.hear("a", "clear_output", {"wait": False})
    prints(journal, "a", *[f"new {number}\n" for number in range(100)])
    found = fold(read(journal)["a"]["entries"])
    assert LEFT_OUT not in {it["type"] for it in found} or text(found).startswith("new 0\n")
    assert text(found).startswith("new 0\n")


@pytest.mark.parametrize(
    "content",
    [
        pytest.param({"data": {"image/png": "x" * 3 * SMALL}}, id="large"),
        pytest.param({"data": {"application/json": float("nan")}}, id="NaN"),
    ],
)
def test_a_picture_that_is_too_large_or_no_json_leaves_a_mark(
    journal: OutputJournal, content: dict[str, Any]
) -> None:
    journal.begin(asked("a"))
    prints(journal, "a", "before\n")
    journal.hear("a", "display_data", content)
    prints(journal, "a", "after\n")
    found = read(journal)["a"]["entries"]
    assert [it["type"] for it in found] == ["stream", LEFT_OUT, "stream"]
    assert found[1]["content"]["messages"] == 1


def test_the_oldest_finished_cells_give_way_when_the_kernel_has_too_much(
    journal: OutputJournal,
) -> None:
    for number in range(12):
        runs(journal, f"r{number}", "x" * 1500, "y" * 1500)
    found = read(journal)
    size = sum(path.stat().st_size for path in journal.folder.iterdir())
    assert size <= 6 * SMALL + 12 * 300
    assert [it["type"] for it in found["r0"]["entries"]] == [LEFT_OUT]
    assert found["r0"]["entries"][0]["content"]["messages"] == 2
    assert text(found["r11"]["entries"]) == "x" * 1500 + "y" * 1500


def test_the_number_of_executions_is_bounded(
    journal: OutputJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_journal, "MOST_EXECUTIONS", 3)
    for number in range(5):
        runs(journal, f"r{number}")
    assert list(read(journal)) == ["r2", "r3", "r4"]


def test_a_cell_that_runs_again_replaces_its_earlier_execution(journal: OutputJournal) -> None:
    runs(journal, "a", "old", cell="cell 1")
    runs(journal, "b", "new", cell="cell 1")
    assert list(read(journal)) == ["b"]
    assert not journal.hears("a")


def test_what_a_saved_notebook_has_is_removed_and_what_still_runs_is_not(
    journal: OutputJournal,
) -> None:
    runs(journal, "a", "1")
    journal.begin(asked("b"))
    journal.settle(["a", "b", "unknown"])
    assert list(read(journal)) == ["b"]
    journal.hear("b", "status", {"execution_state": "idle"})
    journal.settle(["b"])
    assert not journal.folder.exists()


def test_a_restart_by_the_user_clears_and_a_crash_ends(journal: OutputJournal) -> None:
    journal.begin(asked("a"))
    prints(journal, "a", "kept\n")
    journal.die()
    assert (read(journal)["a"]["state"], text(read(journal)["a"]["entries"])) == ("ended", "kept\n")
    journal.clear()
    assert journal.changes(-1, lambda _: False)["requests"] == []
    assert not journal.hears("a")


def test_a_disk_that_is_full_costs_the_outputs_and_nothing_else(
    journal: OutputJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal.begin(asked("a"))
    prints(journal, "a", "1\n")
    write = os.write

    def full(descriptor: int, data: bytes) -> int:
        if len(data) < 20:
            raise OSError("disk full")
        return write(descriptor, data[: len(data) // 2])

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="disk full"):
        prints(journal, "a", "2\n")
    monkeypatch.undo()
    prints(journal, "a", "3\n")
    found = read(journal)["a"]
    assert (text(found["entries"]), found["lost"]) == ("1\n3\n", 1)


def test_a_picture_may_be_larger_than_a_segment(journal: OutputJournal) -> None:
    journal.begin(asked("a"))
    for number in range(3):
        journal.hear("a", "display_data", {"data": {"image/png": f"{number}" + "x" * SMALL}})
    found = read(journal)["a"]["entries"]
    kinds = [it["type"] for it in found]
    assert kinds in (["display_data"] * 3, [LEFT_OUT, "display_data", "display_data"])
    assert found[-1]["content"]["data"]["image/png"].startswith("2")


def test_what_an_output_widget_takes_is_kept_only_while_its_page_is_away(
    journal: OutputJournal,
) -> None:
    def takes(request: str) -> None:
        state = {"msg_id": request}
        journal.hear(
            "a", "comm_msg", {"comm_id": "w", "data": {"method": "update", "state": state}}
        )

    def says(said: str, *, is_live: bool) -> None:
        journal.hear("a", "stream", {"name": "stdout", "text": said}, is_live=is_live)

    journal.begin(asked("a"))
    says("1", is_live=True)
    takes("a")
    says("2", is_live=True)
    says("3", is_live=False)
    takes("")
    says("4", is_live=True)
    found = read(journal)["a"]
    assert (text(found["entries"]), found["heard"]) == ("134", 4)


@pytest.mark.parametrize("content", [None, "no journal"])
def test_files_that_their_user_removed_or_changed_leave_a_mark(
    journal: OutputJournal, content: str | None
) -> None:
    runs(journal, "a", "1\n", "2\n")
    (path,) = journal.folder.glob("*.jsonl")
    path.unlink()
    if content is not None:
        path.write_text(content)
    (mark,) = read(journal)["a"]["entries"]
    assert (mark["type"], mark["content"]["messages"]) == (LEFT_OUT, 5)
    runs(journal, "b", "3\n")
    assert text(read(journal)["b"]["entries"]) == "3\n"


# -- folding --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("plain\n", "plain\n"),
        ("10 %\r20 %\r30 %", "20 %\r30 %"),
        ("long line\rshort\n", "shortline\n"),
        ("a\rb\nc\r", "b\nc\r"),
        ("ab\b\rc\n", "ab\b\rc\n"),
    ],
)
def test_lines_are_written_over_as_a_terminal_does(said: str, kept: str) -> None:
    assert write_over(said) == kept


def test_updates_replace_the_data_of_their_display() -> None:
    entries = [
        shown(1, "first", "d"),
        stream(2, "text"),
        entry(3, "update_display_data", data={"text/plain": "2"}, transient={"display_id": "d"}),
        entry(4, "update_display_data", data={"text/plain": "x"}, transient={"display_id": "e"}),
        entry(5, "update_display_data", data={"text/plain": "y"}, transient={"display_id": "e"}),
    ]
    folded = fold(entries)
    assert [(it["seq"], it["type"]) for it in folded] == [
        (1, "display_data"),
        (2, "stream"),
        (5, "update_display_data"),
    ]
    assert folded[0]["content"]["data"] == {"text/plain": "2"}


def test_streams_are_joined_by_name_and_a_clear_that_waits_stays() -> None:
    entries = [stream(1, "a"), stream(2, "b"), stream(3, "c", "stderr"), stream(4, "d")]
    entries.append(entry(5, "clear_output", wait=True))
    assert [(it["type"], it["content"].get("text")) for it in fold(entries)] == [
        ("stream", "ab"),
        ("stream", "c"),
        ("stream", "d"),
        ("clear_output", None),
    ]
    assert fold([*entries, stream(6, "new")]) == [stream(6, "new")]


# -- files ----------------------------------------------------------------------------------


def test_a_segment_reads_from_a_number_and_replaces_its_entries(tmp_path: Path) -> None:
    segment = OutputSegment(tmp_path / "s.jsonl")
    for seq in (1, 3, 7):
        segment.append(seq, encode(stream(seq, str(seq))))
    assert [it["seq"] for it in segment.read(after=2)] == [3, 7]
    segment.replace([stream(7, "137")])
    segment.append(8, encode(stream(8, "8")))
    assert [it["content"]["text"] for it in segment.read()] == ["137", "8"]
    assert len(OutputSegment.load(segment.path)) == 2


def test_outputs_move_to_another_journal(tmp_path: Path) -> None:
    outputs = BoundedOutputs(tmp_path, "3", segment_bytes=SMALL)
    outputs.append(1, "stream", {"name": "stdout", "text": "1"})
    target = tmp_path / "other"
    target.mkdir()
    outputs.move(target, "9", 40)
    assert [path.name for path in target.iterdir()] == ["9.head.jsonl"]
    assert (text(outputs.read()), outputs.last) == ("1", 40)


# -- kernels --------------------------------------------------------------------------------


@pytest.fixture
def journals(tmp_path: Path) -> KernelJournals:
    return KernelJournals(root=tmp_path / "outputs", log=logging.getLogger("test"))


def told(journals: KernelJournals, kernel: str, notebook: str = "work.ipynb") -> dict[str, str]:
    changes = journals.changes(kernel, -1, notebook=notebook, running=[kernel])
    return {it["request"]: text(it["entries"]) for it in changes["executions"]}


def said(journals: KernelJournals, kernel: str, request: str, output: str, cell: str = "") -> None:
    journals.begin(kernel, asked(request, cell))
    journals.hear(kernel, request, "stream", {"name": "stdout", "text": output})


def test_a_notebook_finds_what_a_kernel_that_is_gone_has_left(journals: KernelJournals) -> None:
    assert told(journals, "one") == {}
    said(journals, "one", "a", "of the old kernel", "cell 1")
    said(journals, "one", "b", "also old", "cell 2")
    journals.gone("one")
    said(journals, "two", "c", "of the new kernel", "cell 2")
    assert told(journals, "two", "other.ipynb") == {"c": "of the new kernel"}
    again = KernelJournals(root=journals.root, log=journals.log)
    assert told(again, "two") == {"a": "of the old kernel", "c": "of the new kernel"}
    states = {
        it["request"]: it["state"]
        for it in again.changes("two", -1, notebook="", running=["two"])["executions"]
    }
    assert states["a"] == "ended"
    assert sorted(path.name for path in journals.root.iterdir()) == ["two"]


def test_the_journal_of_a_running_kernel_is_not_taken_over(journals: KernelJournals) -> None:
    journals.changes("one", -1, notebook="work.ipynb", running=["one"])
    said(journals, "one", "a", "here")
    found = journals.changes("two", -1, notebook="work.ipynb", running=["one", "two"])
    assert found["executions"] == []
    assert told(journals, "one") == {"a": "here"}


def test_the_page_that_asked_is_live_while_it_is_connected(journals: KernelJournals) -> None:
    journals.connected("one", "page")
    journals.connected("one", "page")  # it reconnects before the old connection has ended
    journals.disconnected("one", "page")
    said(journals, "one", "a", "1")

    def live() -> bool:
        return journals.changes("one", -1, notebook="", running=["one"])["executions"][0]["live"]

    assert live()
    journals.disconnected("one", "page")
    assert not live()


def test_what_waits_for_too_long_is_removed(journals: KernelJournals) -> None:
    said(journals, "old", "a", "1")
    journals.close()
    journals.prune(now=(journals.root / "old").stat().st_mtime + LEFT_SECONDS - 1)
    assert (journals.root / "old").is_dir()
    journals.prune(now=(journals.root / "old").stat().st_mtime + LEFT_SECONDS + 1)
    assert not (journals.root / "old").exists()


def test_an_error_of_the_disk_is_logged_once_and_disturbs_nothing(
    journals: KernelJournals, caplog: pytest.LogCaptureFixture
) -> None:
    journals.root.write_text("a file in its place")
    for number in range(3):
        journals.begin("one", asked(f"r{number}"))
    assert not journals.hears("one", "r0")
    assert len(caplog.records) == 1
    assert journals.changes("one", -1, notebook="w", running=["one"])["requests"] == []
