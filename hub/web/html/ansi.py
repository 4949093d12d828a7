"""Show the ANSI colours of printed text as HTML.

The page chooses the colours, readable in light and in dark: the 256 colours and the true colours
of terminals become the nearest of the six that have a class. Backgrounds become one highlight.
"""

from __future__ import annotations

import colorsys
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from markupsafe import Markup, escape

_SGR = re.compile(r"\x1b\[([0-9;:]*)m")
"""The escape sequence that selects colours; all others are removed before."""
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]|\x1b(?!\[[0-9;:]*m)")
_NAMES = ("", "red", "green", "yellow", "blue", "magenta", "cyan", "")
"""Black and white are the colours of the page."""
_HUES = ("red", "yellow", "green", "cyan", "blue", "magenta")
_GREY = 0.25
"""Saturation below which a colour is grey."""
_FIRST_CUBE, _FIRST_GREY, _MOST = 16, 232, 255
_TRUE, _INDEXED = 2, 5
_LEVELS = (0, 95, 135, 175, 215, 255)
_FOREGROUND, _BACKGROUND = 38, 48
"""Codes that a colour follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Style:
    colour: str = ""
    marked: bool = False
    bold: bool = False
    underlined: bool = False
    inverse: bool = False

    @property
    def classes(self) -> str:
        found = [f"ansi-{self.colour}"] if self.colour else []
        found += ["ansi-mark"] if self.marked or self.inverse else []
        found += ["ansi-bold"] if self.bold else []
        found += ["ansi-underline"] if self.underlined else []
        return " ".join(found)


_CODES: Mapping[int, Callable[[_Style], _Style]] = {
    0: lambda _: _Style(),
    1: lambda style: replace(style, bold=True),
    4: lambda style: replace(style, underlined=True),
    7: lambda style: replace(style, inverse=True),
    21: lambda style: replace(style, bold=False),
    22: lambda style: replace(style, bold=False),
    24: lambda style: replace(style, underlined=False),
    27: lambda style: replace(style, inverse=False),
    39: lambda style: replace(style, colour=""),
    49: lambda style: replace(style, marked=False),
}


def plain(text: str) -> str:
    """Remove colours and control characters; keep line breaks, tabs and carriage returns."""
    return _SGR.sub("", coloured(text))


def coloured(text: str) -> str:
    """Remove all escape sequences and control characters but those of colours."""
    kept = _ESCAPES.sub(lambda found: found[0] if _SGR.fullmatch(found[0]) else "", text)
    return _CONTROLS.sub("", kept)


def is_blank(text: str) -> bool:
    """Return whether a text consists of colours only."""
    return not _SGR.sub("", text)


def ansi_html(text: str) -> Markup:
    """Return the text as HTML, with a class for each colour."""
    if "\x1b" not in text:
        return escape(text)
    parts, style = list[Markup](), _Style()
    pieces = _SGR.split(text)
    for printed, codes in zip(pieces[::2], [*pieces[1::2], ""], strict=True):
        if printed and style.classes:
            parts.append(Markup('<span class="{}">{}</span>').format(style.classes, printed))
        elif printed:
            parts.append(escape(printed))
        style = _changed(style, codes)
    return Markup("").join(parts)


def _changed(style: _Style, codes: str) -> _Style:
    numbers = [int(code) if code else 0 for code in re.split("[;:]", codes)]
    while numbers:
        number = numbers.pop(0)
        if number in (_FOREGROUND, _BACKGROUND):
            colour = _extended(numbers)
            style = (
                replace(style, colour=colour)
                if number == _FOREGROUND
                else replace(style, marked=True)
            )
        else:
            change = _CODES.get(number)
            style = change(style) if change is not None else _basic(style, number)
    return style


def _basic(style: _Style, number: int) -> _Style:
    """Apply one of the sixteen colours; other codes are ignored."""
    tens, colour = divmod(number, 10)
    if colour >= len(_NAMES):
        return style
    if tens in (3, 9):
        # Bright black is the grey of comments.
        return replace(style, colour="grey" if number == 90 else _NAMES[colour])  # noqa: PLR2004
    return replace(style, marked=True) if tens in (4, 10) else style


def _extended(numbers: list[int]) -> str:
    """Remove an extended colour from the codes; return the nearest name."""
    kind = numbers.pop(0) if numbers else None
    if kind == _TRUE:
        red, green, blue = [*numbers[:3], 0, 0, 0][:3]
        del numbers[:3]
        return _nearest(red, green, blue)
    if kind != _INDEXED or not numbers:
        numbers.clear()
        return ""
    number = min(numbers.pop(0), _MOST)
    if number < _FIRST_CUBE:
        return "grey" if number == 8 else _NAMES[number % 8]  # noqa: PLR2004  # bright black
    if number >= _FIRST_GREY:
        return "grey"
    number -= _FIRST_CUBE
    return _nearest(_LEVELS[number // 36], _LEVELS[number // 6 % 6], _LEVELS[number % 6])


def _nearest(red: int, green: int, blue: int) -> str:
    hue, saturation, _ = colorsys.rgb_to_hsv(red / 255, green / 255, blue / 255)
    return "grey" if saturation < _GREY else _HUES[round(hue * 6) % 6]
