"""The style of framed content: the service chooses light or dark for frames without scripts.

A script of the page stores the user's choice in a cookie.
"""

from __future__ import annotations

from typing import Literal

from starlette.requests import Request

Theme = Literal["light", "dark"]
_COOKIE = "carrel-theme"
_COLOURS = {
    "light": {"ink": "#1b2733", "ground": "#ffffff", "code": "#f5f6f8", "line": "#d9dee4",
              "soft": "#586572", "red": "#9b2226", "green": "#1c6b3f", "yellow": "#7a5200",
              "blue": "#17567c", "magenta": "#7a2a7a", "cyan": "#0b5a64", "mark": "#dcedf8"},
    "dark": {"ink": "#e6eaee", "ground": "#1d232a", "code": "#14181d", "line": "#363f49",
             "soft": "#a3aeb9", "red": "#ffa8a8", "green": "#8fdcab", "yellow": "#f3cc7b",
             "blue": "#9ad2f5", "magenta": "#e8b3f0", "cyan": "#86dfe6", "mark": "#12344a"},
}  # fmt: skip  # short rows of colours

_ANSI = ("red", "green", "yellow", "blue", "magenta", "cyan")


def theme_of(request: Request) -> Theme:
    return "dark" if request.cookies.get(_COOKIE) == "dark" else "light"


def output_style(theme: Theme) -> str:
    """Return the style of a table or other HTML output of a cell."""
    return _base(theme) + (
        "body{margin:6px;font-size:14px}"
        "td,th{text-align:right}"
    )  # fmt: skip  # one style rule a line


def notebook_style(theme: Theme) -> str:
    """Return the style of a whole notebook."""
    c = _COLOURS[theme]
    return _base(theme) + (
        "body{margin:1rem;font-size:15px;line-height:1.5}"
        "pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.3rem 0}"
        f".highlight,.input_area{{background:{c['code']};border-radius:.3rem;padding:.4rem .6rem}}"
        + "".join(f".ansi-{name}{{color:{c[name]}}}" for name in _ANSI)
        + f".ansi-grey{{color:{c['soft']}}}.ansi-mark{{background:{c['mark']};color:{c['ink']}}}"
        f".highlight [class^=k]{{color:{c['blue']};font-weight:600}}"
        f".highlight [class^=s]{{color:{c['green']}}}.highlight [class^=m]{{color:{c['magenta']}}}"
        f".highlight [class^=c]{{color:{c['soft']};font-style:italic}}"
        f".highlight [class^=nb]{{color:{c['cyan']}}}"
        ".ansi-bold{font-weight:700}.ansi-underline{text-decoration:underline}"
        f":target{{outline:2px solid {c['soft']};outline-offset:4px;scroll-margin:1rem}}"
        f".prompt,.jp-InputPrompt,.jp-OutputPrompt{{color:{c['soft']};font:12px monospace}}"
    )


def _base(theme: Theme) -> str:
    c = _COLOURS[theme]
    return (
        f":root{{color-scheme:{theme}}}"
        f"body{{font-family:system-ui,sans-serif;color:{c['ink']};background:{c['ground']}}}"
        "table{border-collapse:collapse}"
        f"td,th{{padding:3px 8px;border-bottom:1px solid {c['line']}}}"
        # Images are drawn for white paper: transparent ones would be unreadable on dark.
        "img,svg{max-width:100%;background:#fff}"
    )
