"""How Sphinx builds the documentation: ``make docs``, which calls ``build.py``.

The pages are Markdown that reads well without Sphinx too. Nothing in the built pages asks another
host for anything: the theme brings its files along, and pictures are SVG drawn from the code.
Carrel serves the built pages at ``/help`` under the Content-Security-Policy of its other pages,
so that ``_templates`` replaces the inline styles and scripts of the theme by files.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

_PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))

project = "Carrel"
author = "The Carrel developers"
project_copyright = author
release = _PROJECT["project"]["version"]
language = "en"

extensions = ["myst_parser"]
templates_path = ["_templates"]
# The table of contents for readers of the repository; index.md takes it in.
exclude_patterns = ["README.md", "_build"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
# An indented block is a command or what it prints: nothing to be coloured by guessing.
highlight_language = "none"

html_theme = "furo"
html_title = f"{project} {release}"
html_show_sourcelink = False
html_copy_source = False
html_use_index = False  # the pages define no terms for one
html_favicon = "../hub/web/static/icon.svg"
html_static_path = ["_static"]
html_css_files = ["carrel-docs.css"]
