"""Markdown of notebooks as HTML that is safe within a page: nbconvert's parser and its sanitiser.

The source is untrusted. Only elements of text are kept, without styles, classes and ids; links lead
to other sites; images are those in the notebook itself. Formulas are added after the sanitiser
(``latex.py``): until then a mark takes their place, which no source can contain.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from typing import Final

from bleach.sanitizer import Cleaner
from markupsafe import Markup, escape

from .latex import Display, math_html

NO_HTML: Final = Markup("")

_LONGEST = 200_000
_MOST_FORMULAS = 500
_MARKS = re.compile("[\ue000\ue001]")
_FORMULA = re.compile("\ue000([0-9]+)\ue001")
_TEXT = (
    "a abbr b blockquote br caption center code dd del details div dl dt em h1 h2 h3 h4 h5 h6 "
    "hr i img ins kbd li mark ol p pre s small span strong sub summary sup table tbody td "
    "tfoot th thead tr tt u ul var"
)
_LINK = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)
_IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]*")
IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_ALT = re.compile(r""" alt=(?:"([^"]*)"|'([^']*)')""")
_IMG = re.compile(r"""<img((?: [a-z]+=(?:"[^"]*"|'[^']*'))*)>""")
_ATTACHMENT = "attachment:"

Attachments = Mapping[str, Mapping[str, str]]
"""Images of a cell: data in base64 by MIME type, by name."""


def markdown_html(
    source: str, attachments: Attachments | None = None, *, headings_from: int = 1
) -> Markup:
    """Return Markdown as HTML.

    Args:
        headings_from: the level of the first heading, below the headings of the page.
    """
    if len(source) > _LONGEST:
        return Markup("<pre>{}</pre>").format(source)
    # nbconvert takes half a second to import; many pages have no Markdown.
    from nbconvert.filters.markdown_mistune import (  # noqa: PLC0415
        IPythonRenderer,
        MarkdownWithMath,
    )

    formulas: list[Markup] = []

    def mark(formula: str, display: Display) -> str:
        if len(formulas) >= _MOST_FORMULAS:
            return str(escape(formula))
        formulas.append(math_html(formula, display))
        return f"\ue000{len(formulas) - 1}\ue001"

    class Renderer(IPythonRenderer):
        """Puts a mark in the place of each formula."""

        def block_math(self, body: str) -> str:
            return f"<div>{mark(body, 'block')}</div>"

        def inline_math(self, body: str) -> str:
            return mark(body, "inline")

        def multiline_math(self, text: str) -> str:
            return mark(text.strip("$"), "block")

        def latex_environment(self, name: str, body: str) -> str:
            return mark(f"\\begin{{{name}}}{body}\\end{{{name}}}", "block")

        def heading(self, text: str, level: int, **_: object) -> str:
            shown = min(6, level + headings_from - 1)
            return f"<h{shown}>{text}</h{shown}>\n"

        def block_code(self, code: str, info: str | None = None) -> str:
            return f"<pre><code>{escape(code)}</code></pre>\n"

        def image(self, text: str, url: str, title: str | None = None) -> str:
            shown = _attached(url, attachments or {})
            alternative = unescape(text)
            return str(Markup('<img src="{}" alt="{}">').format(shown, alternative))

    renderer = Renderer(escape=False)
    html = MarkdownWithMath(renderer=renderer).render(_MARKS.sub("", source))
    clean = _IMG.sub(_without_other_hosts, _cleaner().clean(html))
    parts = _FORMULA.split(clean)
    for place in range(1, len(parts), 2):
        parts[place] = formulas[int(parts[place])] if int(parts[place]) < len(formulas) else ""
    return Markup("".join(parts))  # noqa: S704  # the sanitiser and ``math_html`` return safe HTML


def _without_other_hosts(image: re.Match[str]) -> str:
    """Replace an image that is not in the notebook by its text, and give others a text."""
    alternative = _ALT.search(image[1])
    if " src=" in image[1]:
        return image[0] if alternative else f'<img{image[1]} alt="">'
    text = unescape(alternative[1] or alternative[2] or "") if alternative else ""
    return str(escape(f"[image: {text}]" if text else "[image]"))


def _attached(url: str, attachments: Attachments) -> str:
    if not url.startswith(_ATTACHMENT):
        return url
    found = attachments.get(url.removeprefix(_ATTACHMENT), {})
    return next((f"data:{mime};base64,{found[mime]}" for mime in IMAGES if mime in found), "")


def _cleaner() -> Cleaner:
    return Cleaner(
        tags=frozenset(_TEXT.split()),
        attributes=_may_stay,
        protocols=frozenset({"http", "https", "mailto", "data"}),
        strip=True,
    )


def _may_stay(element: str, name: str, value: str) -> bool:
    if _MARKS.search(value):
        return False  # a formula within an attribute
    match element, name:
        case "a", "href":
            return _LINK.match(value) is not None
        case "img", "src":
            return _IMAGE.fullmatch(value) is not None
        case ("img", "alt") | ("a" | "abbr", "title"):
            return True
        case ("td" | "th", "colspan" | "rowspan") | ("ol", "start"):
            return value.isdecimal()
        case "td" | "th", "align":
            return value in ("left", "right", "center")
    return False
