"""Characters of names: every script is taken, hidden characters are not."""

from __future__ import annotations

import pytest

from carrel.courses.files.bundle import FileBundle
from carrel.courses.roster.csv_import import read_roster
from carrel.hub.admission.notebook import check_name
from carrel.hub.errors import InvalidInput
from carrel.hub.schemas.names import described, hidden_in

WRITTEN = {
    "Hindi, with a joiner": "प्रश्न क्\u200dष",
    "Thai": "การบ้าน",
    "Persian, with a non-joiner": "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    "Arabic": "واجب",
    "Hebrew": "שיעור",
    "decomposed accents": "e\u0301tude",
    "a no-break space": "Übung\u00a01",
    "a narrow no-break space": "Devoir\u202f1",
    "an ideographic space": "宿題\u3000一",
    "an emoji of several": "👩\u200d🔬",
    "an em dash and an apostrophe": "a — l\u2019ete",
}
HIDDEN = {
    "right-to-left override": ("gpj\u202eexe", "U+202E (right-to-left override)"),
    "left-to-right mark": ("a\u200eb", "U+200E (left-to-right mark)"),
    "isolate": ("a\u2066b", "U+2066 (left-to-right isolate)"),
    "line separator": ("a\u2028b", "U+2028 (line separator)"),
    "paragraph separator": ("a\u2029b", "U+2029 (paragraph separator)"),
    "next line": ("a\u0085b", "U+0085"),
    "line break": ("a\nb", "U+000A"),
    "escape": ("a\x1bb", "U+001B"),
    "byte-order mark": ("\ufeffa", "U+FEFF (zero width no-break space)"),
    "zero width space": ("a\u200bb", "U+200B (zero width space)"),
    "a joiner that joins nothing": ("a\u200db", "U+200D (zero width joiner)"),
    "a joiner at the beginning": ("\u200c\u0628", "U+200C (zero width non-joiner)"),
    "two joiners": ("\u0628\u200c\u200c\u0628", "U+200C (zero width non-joiner)"),
}


@pytest.mark.parametrize("name", WRITTEN.values(), ids=WRITTEN)
def test_files_and_people_are_named_in_any_script(name: str) -> None:
    """Notebooks, course files, and the columns of a roster."""
    assert hidden_in(name) == ""
    assert check_name(f"{name}.ipynb", "notebook name") == f"{name}.ipynb"
    assert len(FileBundle.of([(f"{name}/{name}.csv", b"")]).files) == 1
    (row,) = read_roster(f"student,name,section\nada,{name},{name}\n")
    assert (row.full_name, row.section) == (name, name)


@pytest.mark.parametrize(("name", "said"), HIDDEN.values(), ids=HIDDEN)
def test_hidden_characters_are_refused_by_name(name: str, said: str) -> None:
    assert described(hidden_in(name)) == said
    with pytest.raises(InvalidInput) as refused:
        check_name(f"{name}.ipynb", "notebook name")
    assert f"has the hidden character {said}." in refused.value.message
    with pytest.raises(InvalidInput) as refused:
        FileBundle.of([(f"{name}.csv", b"")])
    assert f"has the hidden character {said}." in refused.value.message
    with pytest.raises(InvalidInput):
        read_roster(f'student,name\nada,"x{name}"\n')


@pytest.mark.parametrize(
    "name",
    [
        *("", ".ipynb", "a.txt", "a/b.ipynb", "..\\a.ipynb", "{a}.ipynb", "-a.ipynb", ".a.ipynb"),
        *("\u0301a.ipynb", "\u00a0a.ipynb", "a:b.ipynb", "\ud800.ipynb", f"{'प्र' * 30}.ipynb"),
    ],
)
def test_paths_formats_and_long_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput):
        check_name(name, "notebook name")


@pytest.mark.parametrize("stem", ["x" * 249, "ü" * 124, "प्र" * 27])
def test_a_name_may_have_255_bytes(stem: str) -> None:
    assert check_name(f"{stem}.ipynb", "output name") == f"{stem}.ipynb"
