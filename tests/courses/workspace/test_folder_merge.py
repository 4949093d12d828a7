"""Merging a new version into a student's folder loses nothing and is idempotent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from carrel.courses.files.bundle import FileBundle
from carrel.courses.notebooks import document
from carrel.courses.notebooks.document import NotebookCell, NotebookDocument
from carrel.courses.notebooks.merge import merge_notebook
from carrel.courses.workspace.folder_merge import merge

NAME = "ps1.ipynb"
STUB = "def f(x):\n    raise NotImplementedError()"
ANSWER = "def f(x):\n    return 2 * x"


def cell(id_: str, source: str, kind: str = "code", **marks: object) -> NotebookCell:
    graded = {"nbgrader": {"grade_id": id_, **marks}} if marks else {}
    return NotebookCell(id=id_, kind=kind, source=source, metadata=graded)


def book(*cells: NotebookCell) -> NotebookDocument:
    return NotebookDocument(cells=cells)


def sources(merged: NotebookDocument) -> list[str]:
    return [each.source for each in merged.cells]


TITLE, TASK = cell("title", "# One", "markdown"), cell("task", STUB, solution=True)
TEST = cell("test", "assert f(1) == 2", grade=True, points=1)
OLD = book(TITLE, TASK, TEST)
DONE = replace(TASK, source=ANSWER, rest={"outputs": [], "execution_count": 3})


def test_changes_of_one_side_are_kept() -> None:
    better = replace(TEST, source="assert f(1) == 2\nassert f(0) == 0")
    merged = merge_notebook(OLD, book(TITLE, TASK, better), book(TITLE, DONE, TEST))
    assert merged.notebook.cells == (TITLE, DONE, better)
    assert (merged.kept, merged.returned) == (0, 0)


def test_a_cell_that_both_changed_is_kept_twice_and_the_copy_is_not_graded() -> None:
    clearer = replace(TASK, source='def f(x):\n    """Twice x."""\n    raise NotImplementedError()')
    merged = merge_notebook(OLD, book(TITLE, clearer, TEST), book(TITLE, DONE, TEST))
    title, task, copy, test = merged.notebook.cells
    assert (title, task, test) == (TITLE, clearer, TEST)
    assert copy.source == f"# Your version, kept when the notebook was updated.\n{ANSWER}"
    assert copy.grade_id == ""
    assert copy.id not in {"title", "task", "test"}
    assert merged.kept == 1


def test_new_cells_are_inserted_and_own_cells_stay_behind_their_predecessors() -> None:
    mine = book(cell("m0", "import os"), TITLE, cell("m1", "notes"), DONE, TEST, cell("m2", "end"))
    new = book(TITLE, cell("hint", "A hint"), TASK, TEST, cell("more", "More"))
    merged = merge_notebook(OLD, new, mine).notebook
    assert [each.id for each in merged.cells] == [
        *("m0", "title", "m1", "hint", "task", "test", "m2", "more"),
    ]


def test_a_removed_cell_is_removed_unless_the_student_changed_it() -> None:
    written = replace(TASK, source=ANSWER)
    assert merge_notebook(OLD, book(TITLE), OLD).notebook == book(TITLE)
    merged = merge_notebook(OLD, book(TITLE), book(TITLE, written, TEST)).notebook
    assert sources(merged) == ["# One", ANSWER]
    assert merged.cells[1].grade_id == "", "nbgrader would look for it in the gradebook"


def test_a_locked_cell_is_that_of_the_new_version_and_a_deleted_one_comes_back() -> None:
    new = book(replace(TITLE, source="# One, again"), TASK, TEST)
    weaker = replace(TEST, source="assert True")
    merged = merge_notebook(OLD, new, book(TITLE, DONE, weaker)).notebook
    assert merged.cells[2] == TEST
    assert merged.cells[3].source.endswith("assert True")
    back = merge_notebook(OLD, new, book(TITLE, cell("mine", "x")))
    assert [each.id for each in back.notebook.cells] == ["title", "mine", "task", "test"]
    assert back.returned == 2


def test_deleted_text_stays_deleted_until_it_changes() -> None:
    mine = book(DONE, TEST)
    more = cell("more", "More", "markdown")
    assert [
        each.id for each in merge_notebook(OLD, book(TITLE, TASK, TEST, more), mine).notebook.cells
    ] == [
        *("task", "test", "more"),
    ]
    changed = merge_notebook(OLD, book(replace(TITLE, source="# 1"), TASK, TEST), mine)
    assert [each.id for each in changed.notebook.cells] == ["title", "task", "test"]


def test_an_open_notebook_that_was_only_run_takes_the_new_text_and_loses_no_output_beside() -> None:
    ran = book(TITLE, replace(TASK, rest={"outputs": [{"text": "hi"}]}), TEST)
    new = book(replace(TITLE, source="# One!"), TASK, TEST)
    merged = merge_notebook(OLD, new, ran).notebook
    assert merged.cells == (new.cells[0], ran.cells[1], TEST)


def test_metadata_changes_key_by_key() -> None:
    old = NotebookDocument(cells=(), metadata={"kernelspec": "a", "title": "x"})
    new = replace(old, metadata={"kernelspec": "b", "title": "x"})
    mine = replace(old, metadata={"kernelspec": "a", "title": "x", "toc": 1})
    assert merge_notebook(old, new, mine).notebook.metadata == {
        "kernelspec": "b",
        "title": "x",
        "toc": 1,
    }


def test_notebooks_without_ids_are_matched_by_text() -> None:
    def bare(*cells: NotebookCell) -> NotebookDocument:
        return NotebookDocument(
            cells=tuple(replace(each, id="", metadata={}) for each in cells), minor=4
        )

    better = replace(TEST, source="assert f(1) == 2\nassert f(0) == 0")
    new = bare(TITLE, cell("", "A hint", "markdown"), TASK, better)
    merged = merge_notebook(bare(OLD.cells[0], TASK, TEST), new, bare(TITLE, DONE, TEST)).notebook
    assert sources(merged) == ["# One", "A hint", ANSWER, better.source]
    assert len({each.id for each in merged.cells}) == 4
    assert merge_notebook(bare(*OLD.cells), new, merged).notebook == merged


def test_dropped_ids_lose_nothing() -> None:
    mine = book(*(replace(each, id="") for each in (TITLE, DONE, TEST)))
    new = book(replace(TITLE, source="# One!"), TASK, TEST)
    merged = merge_notebook(OLD, new, mine).notebook
    assert [(each.id, each.source) for each in merged.cells] == [
        ("title", "# One!"),
        ("task", ANSWER),
        ("test", TEST.source),
    ]


# -- files ----------------------------------------------------------------------------------


def test_other_files() -> None:
    old = {
        "same": b"1",
        "news": b"1",
        "both.csv": b"1",
        "gone": b"1",
        "gone but": b"1",
        "lost": b"1",
    }
    new = {"same": b"1", "news": b"2", "both.csv": b"2", "lost": b"1", "added/x": b"1"}
    mine = {
        "same": b"3",
        "news": b"1",
        "both.csv": b"3",
        "gone": b"1",
        "gone but": b"3",
        "own": b"1",
    }
    merged = merge(old, new, mine)
    assert merged.files == {
        "same": b"3",
        "news": b"2",
        "both.csv": b"2",
        "both.student-copy.csv": b"3",
        "gone but": b"3",
        "lost": b"1",
        "own": b"1",
        "added/x": b"1",
    }
    assert merged.notes == (
        "both.csv was changed in the new version and by you: yours is both.student-copy.csv.",
        "lost was missing and was restored.",
    )


def test_names_that_a_file_system_confuses() -> None:
    merged = merge({}, {"data": b"1", "notes.md": b"1"}, {"data/x.csv": b"2", "Notes.md": b"3"})
    assert merged.files == {
        "data": b"1",
        "data.student-copy/x.csv": b"2",
        "notes.md": b"1",
        "Notes.student-copy.md": b"3",
    }


def test_a_copy_never_takes_the_place_of_another_file() -> None:
    mine = {"a.txt": b"mine", "a.student-copy.txt": b"an older one"}
    merged = merge({"a.txt": b"old"}, {"a.txt": b"new"}, mine)
    assert merged.files == {**mine, "a.txt": b"new", "a.student-copy-2.txt": b"mine"}


def test_an_unreadable_notebook_is_merged_as_a_file() -> None:
    broken = b"{ half a notebook"
    merged = merge({NAME: b"{}"}, {NAME: document.write(OLD)}, {NAME: broken})
    assert merged.files == {NAME: document.write(OLD), "ps1.student-copy.ipynb": broken}


def test_a_merged_notebook_says_what_was_kept() -> None:
    new = book(replace(TITLE, source="# 1"), replace(TASK, source="def f(x): ..."), TEST)
    mine = book(TITLE, DONE)
    files = [{NAME: document.write(each)} for each in (OLD, new, mine)]
    assert merge(*files).notes == (
        "ps1.ipynb: 1 cell was changed in the new version and by you; yours is below the new one, "
        "with a mark.",
        "ps1.ipynb: 1 cell was missing and restored.",
    )


# -- what always holds ----------------------------------------------------------------------

TEXTS = st.sampled_from(["", "a", "b", "x = 1", "x = 1\ny = 2", STUB, ANSWER, "# Title"])
MARKS = st.sampled_from(
    [{}, {}, {"solution": True}, {"grade": True, "points": 1}, {"locked": True}]
)
OUTPUTS = st.sampled_from([{}, {"outputs": []}, {"outputs": [{"text": "1"}]}])


@st.composite
def fresh_cells(draw: st.DrawFn, whose: str) -> NotebookCell:
    """``whose`` keeps ids apart, as random ids are; now and then two people have the same."""
    id_ = draw(st.sampled_from([f"{whose}{number}" for number in range(8)] + ["same"]))
    kind = draw(st.sampled_from(["code", "markdown"]))
    made = cell(id_, draw(TEXTS), kind, **draw(MARKS))
    return replace(made, rest=draw(OUTPUTS) if kind == "code" else {})


def unique(cells: Sequence[NotebookCell]) -> NotebookDocument:
    return NotebookDocument(cells=tuple({each.id: each for each in cells}.values()))


@st.composite
def edited(draw: st.DrawFn, of: NotebookDocument, whose: str) -> NotebookDocument:
    """Draw a version with some cells changed, deleted, moved and added."""
    cells = []
    for each in of.cells:
        done = draw(st.sampled_from(["leave", "leave", "leave", "write", "run", "mark", "delete"]))
        change: dict[str, object] = {}
        if done == "write":
            change = {"source": draw(TEXTS) + f" # {whose}"}
        elif done == "run":
            change = {"rest": draw(OUTPUTS)}
        elif done == "mark":
            change = {"metadata": {**each.metadata, "tags": [whose]}}
        if done != "delete":
            cells.append(replace(each, **change))
    for _ in range(draw(st.integers(0, 3))):
        cells.insert(draw(st.integers(0, len(cells))), draw(fresh_cells(whose)))
    if draw(st.sampled_from([False, False, True])):
        cells = draw(st.permutations(cells))
    return replace(unique(cells), metadata=draw(st.sampled_from([of.metadata, {"k": whose}])))


@st.composite
def three(draw: st.DrawFn) -> tuple[NotebookDocument, NotebookDocument, NotebookDocument]:
    old = unique(draw(st.lists(fresh_cells("old"), max_size=6)))
    return old, draw(edited(old, "new")), draw(edited(old, "mine"))


@st.composite
def three_without_ids(
    draw: st.DrawFn,
) -> tuple[NotebookDocument, NotebookDocument, NotebookDocument]:
    """Some of them lack ids; no notebook says the same twice, so that one can tell what is what."""
    found = draw(three())
    bare = draw(st.lists(st.booleans(), min_size=3, max_size=3))
    old, new, mine = (
        replace(each, cells=tuple(_told_apart(one, keep_id=not no) for one in each.cells))
        for each, no in zip(found, bare, strict=True)
    )
    return old, new, mine


def _told_apart(one: NotebookCell, *, keep_id: bool) -> NotebookCell:
    return replace(one, source=f"{one.source} # {one.id}", id=one.id if keep_id else "")


def lost(old: NotebookDocument, mine: NotebookDocument, merged: NotebookDocument) -> list[str]:
    """Return the student's text that is missing after a merge."""
    before = {each.source for each in old.cells}
    after = sources(merged)
    return [
        each.source
        for each in mine.cells
        if each.source not in before and not any(one.endswith(each.source) for one in after)
    ]


@given(three())
def test_nothing_is_lost_and_merging_again_changes_nothing(
    found: tuple[NotebookDocument, NotebookDocument, NotebookDocument],
) -> None:
    old, new, mine = found
    merged = merge_notebook(old, new, mine).notebook
    assert lost(old, mine, merged) == []
    assert merge_notebook(old, new, merged).notebook == merged
    assert merge_notebook(new, new, merged).notebook == merged
    ids = [each.id for each in merged.cells]
    assert len(set(ids)) == len(ids)
    assert all(ids)


@given(three())
def test_an_unchanged_side_gets_the_changes_of_the_other(
    found: tuple[NotebookDocument, NotebookDocument, NotebookDocument],
) -> None:
    old, new, mine = found
    assert merge_notebook(old, new, old).notebook == new
    assert merge_notebook(old, old, mine).notebook == mine


@given(three())
def test_the_new_version_is_complete_and_in_its_order(
    found: tuple[NotebookDocument, NotebookDocument, NotebookDocument],
) -> None:
    old, new, mine = found
    merged = merge_notebook(old, new, mine).notebook
    if new == old:
        return
    places = {each.id: place for place, each in enumerate(merged.cells)}
    there = [each for each in new.cells if each.id in places]
    if mine != old:
        assert [places[each.id] for each in there] == sorted(places[each.id] for each in there)
    for each in new.cells:
        if each.is_locked:
            assert merged.cells[places[each.id]].source == each.source
    away = {each.id for each in new.cells} - set(places)
    assert away <= {each.id for each in old.cells} - {each.id for each in mine.cells}


@given(three_without_ids())
def test_without_ids_nothing_is_lost_either(
    found: tuple[NotebookDocument, NotebookDocument, NotebookDocument],
) -> None:
    old, new, mine = found
    merged = merge_notebook(old, new, mine).notebook
    assert lost(old, mine, merged) == []
    again = merge_notebook(old, new, merged).notebook
    assert [replace(each, id="") for each in again.cells] == [
        replace(each, id="") for each in merged.cells
    ]


@given(three(), st.booleans())
def test_files_merged_again_are_the_same_bytes(
    found: tuple[NotebookDocument, NotebookDocument, NotebookDocument], unknown: bool
) -> None:
    old, new, mine = ({NAME: document.write(each)} for each in found)
    old = {} if unknown else old
    merged = merge(old, new, mine)
    again = merge(old, new, merged.files)
    assert again.files == merged.files
    assert again.notes == ()


def test_a_copy_of_a_file_with_a_long_name_can_be_submitted() -> None:
    names = [f"{'x' * 192}{end}.csv" for end in "ab"]
    mine = dict.fromkeys(names, b"mine")
    merged = merge(dict.fromkeys(names, b"old"), dict.fromkeys(names, b"new"), mine)
    copies = [name for name in merged.files if name not in names]
    assert [merged.files[name] for name in copies] == [b"mine", b"mine"]
    assert all(name.endswith(".student-copy.csv") for name in copies)
    FileBundle.of(merged.files.items())
