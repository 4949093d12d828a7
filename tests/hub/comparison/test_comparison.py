"""Properties of comparisons: a run equals itself, tolerated numbers never differ, counts agree."""

from __future__ import annotations

import base64
from decimal import Decimal
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.hub.comparison.facts import RunFacts
from carrel.hub.comparison.images import UnreadableImage, compare_images, stable_svg
from carrel.hub.comparison.outputs import compare_outputs
from carrel.hub.comparison.runs import Comparison
from carrel.hub.comparison.schemas import ComparedRunOut, ComparisonOut
from carrel.hub.comparison.tables import (
    compare_tables,
    html_table,
    printed_table,
    table_differs,
)
from carrel.hub.comparison.text import compare_text, differs
from carrel.hub.comparison.tolerance import EXACT, Tolerance, same_text

WIDE = Tolerance(relative=0.01, absolute=1e-9)

_words = st.text(st.sampled_from("ab \n\t1.5-e%[],\r\x1b"), max_size=40)
_numbers = st.floats(allow_nan=True, allow_infinity=True)
_outputs = st.one_of(
    st.builds(
        lambda name, text: {"output_type": "stream", "name": name, "text": text},
        st.sampled_from(["stdout", "stderr"]),
        _words,
    ),
    st.builds(
        lambda mime, text: {"output_type": "display_data", "data": {mime: text}},
        st.sampled_from(["text/plain", "text/html", "image/png", "image/svg+xml", "text/latex"]),
        _words,
    ),
    st.builds(
        lambda name, text: {"output_type": "error", "ename": name, "evalue": text},
        _words,
        _words,
    ),
)
_cells = st.builds(
    lambda kind, source, outputs: {
        "cell_type": kind,
        "id": "x",
        "source": source,
        **({"outputs": outputs} if kind == "code" else {}),
    },
    st.sampled_from(["code", "markdown"]),
    _words,
    st.lists(_outputs, max_size=3),
)
_notebooks = st.lists(_cells, max_size=6)


def _facts(name: str, **parameters: object) -> RunFacts:
    return RunFacts(about=ComparedRunOut(name=name), parameters=parameters)


def _compared(
    a: list[dict[str, object]], b: list[dict[str, object]], tolerance: Tolerance = EXACT
) -> ComparisonOut:
    return Comparison(_facts("a"), _facts("b"), tolerance).of_notebooks(a, b)


def _code(source: str, *outputs: dict[str, object]) -> dict[str, object]:
    return {"cell_type": "code", "id": source, "source": source, "outputs": list(outputs)}


def _printed(text: str) -> dict[str, object]:
    return {"output_type": "stream", "name": "stdout", "text": text}


def _shown(mime: str, data: object) -> dict[str, object]:
    return {"output_type": "display_data", "data": {mime: data}}


def _png(colour: tuple[int, int, int], size: tuple[int, int] = (10, 8), dot: int = 0) -> str:
    from PIL import Image  # noqa: PLC0415  # takes long to import

    image = Image.new("RGB", size, colour)
    if dot:
        image.putpixel((3, 3), (colour[0] + dot, colour[1], colour[2]))
    file = BytesIO()
    image.save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


@given(_notebooks)
def test_a_notebook_equals_itself(cells: list[dict[str, object]]) -> None:
    found = _compared(cells, cells)
    assert found.equal
    assert found.summary.cells == found.summary.equal == len(cells)


@given(_notebooks, _notebooks)
def test_the_counts_of_a_summary_agree(
    a: list[dict[str, object]], b: list[dict[str, object]]
) -> None:
    found = _compared(a, b)
    counts = found.summary
    assert counts.cells == counts.equal + counts.changed + counts.removed + counts.added
    assert sorted(cell.a for cell in found.cells if cell.a) == list(range(1, len(a) + 1))
    assert sorted(cell.b for cell in found.cells if cell.b) == list(range(1, len(b) + 1))
    assert found.equal == (not counts.sources and not counts.outputs)
    assert found.equal == (counts.equal == counts.cells)
    back = _compared(b, a)
    assert back.equal == found.equal


@given(st.lists(st.tuples(_numbers, st.floats(-0.009, 0.009)), min_size=1, max_size=8))
def test_numbers_within_the_tolerance_never_differ(pairs: list[tuple[float, float]]) -> None:
    a = "".join(f"loss  {number!r} after\n" for number, _ in pairs)
    b = "".join(f"loss {number * (1 + part)!r}  after\n" for number, part in pairs)
    found = compare_text(a, b, WIDE)
    overflow = any(
        abs(n) != float("inf") and abs(n * (1 + part)) == float("inf") for n, part in pairs
    )
    assert overflow or not differs(found)


@given(_numbers, _numbers)
def test_the_tolerance_is_symmetric(a: float, b: float) -> None:
    one, other = Decimal(repr(a)), Decimal(repr(b))
    assert WIDE.accepts(one, other) == WIDE.accepts(other, one)
    assert WIDE.accepts(one, one)


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("[ 1.   2.5]", "[1.00 2.5 ]", True),
        ("nan", "nan", True),
        ("NaN", "1.0", False),
        ("inf", "-inf", False),
        ("9007199254740993", "9007199254740992", False),
        ("version 1.2.3", "version 1.2.4", False),
        ("<Model at 0x7f3a12ff>", "<Model at 0x7f3a99ee>", True),
        ("a1", "a 1", False),
        ("1" * 100, "1" * 99 + "2", False),
        ("0.5s", "0.50s", True),
        ("1e999999", "1e999999", True),
    ],
)
def test_lines_are_the_same_but_for_the_form_of_numbers(a: str, b: str, *, same: bool) -> None:
    assert same_text(a, b, EXACT) is same


def test_the_largest_difference_of_a_text_is_named() -> None:
    found = compare_text("x 1.0\nsame\ny 10\n", "x 1.5\nsame\ny 10.000001\n", WIDE)
    assert (found.changed, found.close, found.largest.numbers) == (1, 1, 1)
    assert found.largest.absolute == 0.5
    assert [row.kind for row in found.rows] == ["changed", "same", "close"]


def test_progress_bars_and_colours_do_not_count() -> None:
    assert not differs(compare_text("10%\r100%\n\x1b[31mred\x1b[0m", "50%\r100%\nred", EXACT))


def test_inserted_and_moved_cells_do_not_change_the_others() -> None:
    a = [_code("import os"), _code("load()"), _code("train(1)"), _code("plot()")]
    b = [_code("import os"), _code("check()"), _code("train(1)"), _code("plot()"), _code("load()")]
    found = _compared(a, b)
    assert [(cell.a, cell.b, cell.state, cell.moved) for cell in found.cells] == [
        (1, 1, "equal", False),
        (None, 2, "added", False),
        (3, 3, "equal", False),
        (4, 4, "equal", False),
        (2, 5, "changed", True),
    ]
    assert found.summary.sources == 2


def test_a_rewritten_line_of_a_source_is_shown_beside_the_old_one() -> None:
    found = _compared([_code("x = 1\ny = 2")], [{**_code("x = 1\ny = 3"), "id": "x = 1\ny = 2"}])
    rows = found.cells[0].source_rows
    assert rows is not None
    assert [(row.kind, row.a, row.b) for row in rows.rows] == [
        ("same", "x = 1", "x = 1"),
        ("changed", "y = 2", "y = 3"),
    ]


def test_many_different_cells_are_compared_by_position() -> None:
    found = _compared([_code(f"a{i}") for i in range(301)], [_code(f"b{i}") for i in range(301)])
    assert found.summary.changed == 301
    assert "compared by their position" in found.notes[0]


def test_parts_of_a_stream_are_joined() -> None:
    (found,) = compare_outputs(
        [_printed("a\n"), _shown("text/plain", "1"), _printed("b")][::2],
        [_printed("a\nb")],
        EXACT,
    )
    assert found.state == "equal"


def test_an_output_that_only_one_run_has_does_not_shift_the_others() -> None:
    warning = {"output_type": "stream", "name": "stderr", "text": "warning"}
    found = compare_outputs(
        [_printed("1"), _shown("text/plain", "2")],
        [_printed("1"), warning, _shown("text/plain", "2")],
        EXACT,
    )
    assert [(each.state, each.name) for each in found] == [
        ("equal", "stdout"),
        ("added", "stderr"),
        ("equal", "text/plain"),
    ]


def test_images_are_compared_by_pixels() -> None:
    a, b = _png((10, 10, 10)), _png((10, 10, 10), dot=40)
    found = compare_images(a, b, EXACT)
    assert (found.size_a, found.changed, found.largest) == ([10, 8], 1, 40)
    assert not compare_images(a, b, Tolerance(pixel=40)).changed
    (output,) = compare_outputs([_shown("image/png", a)], [_shown("image/png", b)], EXACT)
    assert output.message == (
        "1 of 80 pixels differ (1.25%), by at most 40 of 255, 0.125 on average."
    )
    sizes = compare_images(a, _png((1, 1, 1), size=(4, 4)), EXACT)
    assert (sizes.size_a, sizes.size_b) == ([10, 8], [4, 4])


@pytest.mark.parametrize("data", ["", "!!!", "aGVsbG8=", _png((0, 0, 0))[:60]])
def test_a_broken_image_differs_from_any_other(data: str) -> None:
    whole = _png((1, 2, 3))
    with pytest.raises(UnreadableImage):
        compare_images(whole, data, EXACT)
    (found,) = compare_outputs([_shown("image/png", whole)], [_shown("image/png", data)], EXACT)
    assert (found.state, "broken" in found.message) == ("changed", True)
    (same,) = compare_outputs([_shown("image/png", data)], [_shown("image/png", data)], EXACT)
    assert same.state == "equal"


def test_an_svg_does_not_differ_by_its_date_and_ids() -> None:
    text = '<svg><metadata>{}</metadata><path id="{}"/><use href="#{}" x="1"/></svg>'
    assert stable_svg(text.format("now", "p1", "p1")) == stable_svg(text.format("then", "q2", "q2"))


_HTML = (
    "<div><style>td {{}}</style><table><thead><tr><th></th><th>loss</th><th>{}</th></tr></thead>"
    "<tbody><tr><th>0</th><td>{}</td><td>2</td></tr>{}</tbody></table><p>1 rows</p></div>"
)


def test_tables_are_compared_by_cell() -> None:
    a = html_table(_HTML.format("n", "0.5", ""))
    b = html_table(_HTML.format("n", "0.75", "<tr><th>1</th><td>3</td><td>4</td></tr>"))
    assert a is not None
    assert b is not None
    found = compare_tables(a, b, WIDE)
    assert (found.changed, found.rows_added, found.rows_removed) == (1, 1, 0)
    (change,) = found.changes
    assert (change.row, change.column, change.a, change.b) == ("0", "loss", "0.5", "0.75")
    assert not table_differs(compare_tables(a, a, EXACT))


def test_a_column_that_only_one_table_has_is_named() -> None:
    a = [("", "x", "y"), ("0", "1", "2")]
    b = [("", "x", "z", "y"), ("0", "1", "9", "2")]
    found = compare_tables(a, b, EXACT)
    assert (found.columns_added, found.changed) == (["z"], 0)


def test_a_printed_data_frame_is_a_table() -> None:
    text = "   loss  step\n0   0.5     1\n1   0.2    20\n\n[2 rows x 2 columns]"
    assert printed_table(text) == [("", "loss", "step"), ("0", "0.5", "1"), ("1", "0.2", "20")]
    assert printed_table("two words\nthree more words") is None


@given(_words, _words)
def test_any_html_is_compared(a: str, b: str) -> None:
    left, right = html_table(f"<table><tr><td>{a}"), html_table(f"<table><tr><td>{b}</table>{a}")
    assert left is not None
    assert right is not None
    compare_tables(left, right, EXACT)


def test_parameters_are_compared_under_the_tolerance() -> None:
    a, b = _facts("a", lr=0.5, data="x", only=1), _facts("b", lr=0.501, data="y")
    found = Comparison(a, b, WIDE).of_notebooks([], [])
    assert [(fact.name, fact.equal) for fact in found.facts] == [
        ("lr", True),
        ("data", False),
        ("only", False),
    ]
    assert not found.equal
    assert Comparison(a, b, WIDE, ignored=["parameters"]).of_notebooks([], []).equal


@given(_words, _words)
def test_logs_are_equal_exactly_if_no_line_differs(a: str, b: str) -> None:
    found = Comparison(_facts("a"), _facts("b"), EXACT).of_logs(a, b)
    assert found.log is not None
    assert found.equal == (not differs(found.log))
    assert found.equal or a != b
