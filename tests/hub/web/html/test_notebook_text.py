"""Text of notebooks within pages: ANSI colours, formulas, Markdown and sources of cells."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest

from carrel.hub.errors import NotFound
from carrel.hub.web.html.ansi import ansi_html, coloured, plain
from carrel.hub.web.html.latex import math_html, output_html
from carrel.hub.web.html.markdown import markdown_html
from carrel.hub.web.html.notebook_cells import NotebookCellCache, notebook_cells

PNG = "aGVsbG8="


class Elements(HTMLParser):
    """The elements and attributes of an HTML text."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[tuple[str, str | None]] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes.update(attrs)


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("plain <b>", "plain &lt;b&gt;"),
        ("\x1b[31mred\x1b[0m end", '<span class="ansi-red">red</span> end'),
        ("\x1b[1;34m<b>\x1b[m", '<span class="ansi-blue ansi-bold">&lt;b&gt;</span>'),
        ("\x1b[38;5;28mcube\x1b[39m.", '<span class="ansi-green">cube</span>.'),
        ("\x1b[38;2;250;10;20mtrue\x1b[0m", '<span class="ansi-red">true</span>'),
        ("\x1b[90mdim\x1b[0m", '<span class="ansi-grey">dim</span>'),
        ("\x1b[38;5;244mdim\x1b[0m", '<span class="ansi-grey">dim</span>'),
        ("\x1b[43mmark\x1b[49m", '<span class="ansi-mark">mark</span>'),
        ("\x1b[7mturned\x1b[27m", '<span class="ansi-mark">turned</span>'),
        ("\x1b[4mline\x1b[24m", '<span class="ansi-underline">line</span>'),
        ("\x1b[2K\x1b]0;title\x07left", "left"),
        ("\x1b[38mbroken\x1b[", "broken["),
    ],
)
def test_colours_become_classes_and_other_sequences_are_removed(printed: str, shown: str) -> None:
    assert ansi_html(coloured(printed)) == shown


def test_plain_text_has_no_colours() -> None:
    assert plain("\x1b[31mred\x1b[0m\x00\r\n\ttab") == "red\r\n\ttab"


@pytest.mark.parametrize(
    ("formula", "contains"),
    [
        (r"\frac{a}{b}", "<mfrac>"),
        (r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", "<mtable>"),
        (r"\text{<script>}", "<mtext>&lt;script&gt;</mtext>"),
        (r"\frac", '<code class="latex">\\frac</code>'),
        (r"\newcommand{\a}{\a\a}\a", '<code class="latex">\\newcommand'),
        ("{" * 300, '<code class="latex">{{{'),
    ],
)
def test_a_formula_becomes_mathml_or_stays_as_it_is_written(formula: str, contains: str) -> None:
    assert contains in math_html(formula)


def test_a_formula_has_no_links_styles_and_classes() -> None:
    html = math_html(r"\href{javascript:alert(1)}{x} \class{y}{z} \style{color:red}{w}")
    assert "<mi>x</mi>" in html
    for refused in ("href", "javascript", "style=", "class="):
        assert refused not in html


def test_a_latex_output_has_no_delimiters() -> None:
    for written in ("$x^2$", "$$x^2$$", r"\(x^2\)", r"\[x^2\]", "x^2"):
        assert output_html(written) == math_html("x^2", "block")


def test_markdown_keeps_text_tables_and_formulas() -> None:
    html = markdown_html(
        "# A *title*\n\nIs $a<b$?\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
        "\\begin{align}a&=b\\end{align}\n",
        headings_from=4,
    )
    assert "<h4>A <em>title</em></h4>" in html
    assert "<mo>&lt;</mo>" in html
    assert "<td>1</td>" in html
    assert "<mtable" in html


@pytest.mark.parametrize(
    "source",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[a](javascript:alert(1))",
        "[a](/hub/logout)",
        "<a href='data:text/html,x'>a</a>",
        "<style>body{display:none}</style>",
        "<form action=x><button>go</button></form>",
        "<iframe src=x></iframe><object data=x></object>",
        "<p style='position:fixed' class=x id=y onclick=z>text</p>",
        "![x](https://elsewhere.example/x.png)",
        "![$x$](x.png) [a](https://a.example '$x onmouseover=y$')",
        "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 "
        "onerror=alert(1)&gt;'>",
        "\ue0000\ue001",
    ],
)
def test_markdown_has_no_scripts_styles_and_other_hosts(source: str) -> None:
    html = markdown_html(source)
    found = Elements()
    found.feed(html)
    assert found.names <= {"p", "a", "table"}, html
    assert found.attributes <= {("title", "$x onmouseover=y$"), ("href", "https://a.example")}
    assert "\ue000" not in html


def test_images_of_a_notebook_are_shown_and_have_an_alternative_text() -> None:
    html = markdown_html("![of a cell](attachment:a.png)", {"a.png": {"image/png": PNG}})
    assert f'<img src="data:image/png;base64,{PNG}" alt="of a cell">' in html
    assert 'alt=""' in markdown_html(f'<img src="data:image/png;base64,{PNG}">')
    missing = markdown_html("![a <chart>](https://elsewhere.example/x.png)")
    assert "[image: a &lt;chart&gt;]" in missing


def notebook(*cells: dict[str, object], language: str = "python") -> bytes:
    kernel = {"name": "k", "display_name": "K", "language": language}
    return json.dumps(
        {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    ).encode()


def code(source: object, *tags: str) -> dict[str, object]:
    return {"cell_type": "code", "source": source, "metadata": {"tags": list(tags)}, "outputs": []}


def markdown(source: str) -> dict[str, object]:
    return {"cell_type": "markdown", "source": source, "metadata": {}}


def test_code_is_highlighted_and_follows_its_markdown() -> None:
    found = notebook_cells(
        notebook(
            markdown("# First"),
            code("x = 1", "parameters"),
            code("x = 2", "injected-parameters"),
            markdown("*Then*"),
            code(["print('<b>')\n", "%time y"]),
            markdown("The end"),
        )
    )
    assert sorted(found.code) == [1, 2]
    assert found.code[1].before == "<h4>First</h4>\n"
    assert '<span class="hl-mi">1</span>' in found.code[1].html
    assert found.code[2].before == "<p><em>Then</em></p>\n"
    assert "&lt;b&gt;" in found.code[2].html
    assert found.after == "<p>The end</p>\n"
    assert found.note == ""


@pytest.mark.parametrize("hidden", [True, False, "yes", None])
def test_a_source_that_the_notebook_hides_is_marked(hidden: object) -> None:
    cell = code("x = 1") | {"metadata": {"jupyter": {"source_hidden": hidden}}}
    found = notebook_cells(notebook(markdown("Data"), cell))
    assert found.code[1].html
    assert found.code[1].hidden is (hidden is True)
    assert found.code[1].before == "<p>Data</p>\n"


def test_code_in_an_unknown_language_is_shown_as_text() -> None:
    found = notebook_cells(notebook(code("a <- b"), language="no such language"))
    assert found.code[1].html == "a &lt;- b"


def test_a_page_shows_a_limited_amount_of_sources() -> None:
    long = notebook(code("x = 1\n" * 50_000), code("y = 2\n" * 50_000), code("z = 3"))
    found = notebook_cells(long)
    assert sorted(found.code) == [1]
    assert "hl-" not in found.code[1].html
    assert found.note == "The sources of later cells are in the notebook."
    large = notebook_cells(notebook(code("x" * (17 << 20))))
    assert large.code == {}
    assert large.note.startswith("The submitted notebook has 17")


def test_the_cells_of_a_job_are_read_once_and_a_failure_is_not_kept() -> None:
    cache, reads = NotebookCellCache(), []

    def missing() -> bytes:
        raise NotFound("The files of j-1 were deleted.")

    def read() -> bytes:
        reads.append(1)
        return notebook(code("x = 1"))

    assert cache.of("j-1", missing).note == "The files of j-1 were deleted."
    assert [sorted(cache.of("j-1", read).code) for _ in range(2)] == [[1], [1]]
    assert len(reads) == 1
