"""The answer to a call for the material of a link."""

from __future__ import annotations

from ..base import Out


class MaterialOut(Out):
    """What a link opens: a repository, or one notebook."""

    url: str
    """Of a repository, or of a notebook (``.ipynb``)."""
    branch: str = ""
    """A branch or tag of the repository; empty for its default branch, and for a notebook."""
    path: str = ""
    """The file or folder of the repository that is shown; empty for its top folder."""
