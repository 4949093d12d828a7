"""Formulas in LaTeX as MathML, which browsers draw without a script or a font.

The formula is untrusted. latex2mathml returns a tree; only elements and attributes of presentation
are taken from it, and every text is escaped.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

Display = Literal["inline", "block"]

_LONGEST, _MOST_GROUPS = 4000, 200
_DELIMITERS = (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"), ("$", "$"))
_MACROS = re.compile(r"\\(?:re|provide)?newcommand|\\[egx]?def\b|\\let\b|\\DeclareMathOperator")
"""A macro may expand without end."""
_ELEMENTS = (
    "math mrow mi mn mo mtext mspace ms mfrac msqrt mroot mstyle merror mpadded mphantom "
    "mfenced menclose msub msup msubsup munder mover munderover mmultiscripts mprescripts "
    "none mtable mtr mtd mlabeledtr"
)
_ATTRIBUTES = (
    "display displaystyle scriptlevel mathvariant mathsize stretchy fence separator form "
    "lspace rspace minsize maxsize largeop movablelimits symmetric accent accentunder "
    "linethickness width height depth columnalign rowalign columnspacing rowspacing "
    "columnlines rowlines notation open close separators"
)
_MAY_STAY = (frozenset(_ELEMENTS.split()), frozenset(_ATTRIBUTES.split()))
_VALUE = re.compile(r"[\w .+%()\[\]{}|,#-]*")


def math_html(source: str, display: Display = "inline") -> Markup:
    """Return a formula as MathML, or its source if it cannot be converted."""
    return _converted(source.strip(), display)


def output_html(source: str) -> Markup:
    """Return a LaTeX output of a cell, with or without its delimiters, as MathML."""
    text = source.strip()
    for begin, end in _DELIMITERS:
        if text.startswith(begin) and text.endswith(end) and len(text) > len(begin) + len(end):
            return math_html(text[len(begin) : -len(end)], "block")
    return math_html(text, "block")


@lru_cache(maxsize=2000)
def _converted(source: str, display: Display) -> Markup:
    # It takes 50 ms to import; most pages have no formula.
    from latex2mathml.converter import Converter  # noqa: PLC0415

    unchanged = Markup('<code class="latex">{}</code>').format(source)
    too_large = len(source) > _LONGEST or source.count("{") > _MOST_GROUPS
    if not source or too_large or _MACROS.search(source):
        return unchanged
    try:
        tree = Converter(display=display).convert_to_element(source)
        return Markup("").join(_safe(tree))
    except Exception:  # its errors have no common base, and some are its bugs
        return unchanged


def _safe(element: Element) -> Iterator[Markup]:
    elements, attributes = _MAY_STAY
    if element.tag in elements:
        yield Markup("<") + element.tag
        for name, value in element.attrib.items():
            if name in attributes and _VALUE.fullmatch(value):
                yield Markup(' {}="{}"').format(name, value)
        yield Markup(">")
    # The tree has character references in its texts.
    yield escape(html.unescape(element.text or ""))
    for child in element:
        yield from _safe(child)
        yield escape(html.unescape(child.tail or ""))
    if element.tag in elements:
        yield Markup("</{}>").format(element.tag)
