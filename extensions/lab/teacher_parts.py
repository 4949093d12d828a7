"""Hide nbgrader's parts for teachers from users who grade no course.

A session of an installation has the same JupyterLab extensions for every user. JupyterLab asks the
server at each load which of their plugins are disabled.
"""

from __future__ import annotations

import os
from collections.abc import Callable, MutableMapping
from typing import Any

from ..nbgrader import GRADES_NO_COURSE

HIDDEN = (
    "@jupyter/nbgrader:create-assignment",
    "@jupyter/nbgrader:formgrader",
    "@jupyter/nbgrader:course-list",
)
_HOOK = "page_config_hook"
_DISABLED = "disabledExtensions"

PageConfig = dict[str, Any]


def hide_from_students(settings: MutableMapping[str, Any]) -> None:
    """Disable these plugins in the pages of this server, if its user grades no course.

    Call it when all server extensions are loaded: that of JupyterHub sets a hook, too.
    """
    if not os.environ.get(GRADES_NO_COURSE):
        return
    before: Callable[[object, PageConfig], PageConfig] = settings.get(
        _HOOK, lambda _handler, config: config
    )

    def hide(handler: object, config: PageConfig) -> PageConfig:
        found = before(handler, config)
        disabled = dict.fromkeys([*found.get(_DISABLED, ()), *HIDDEN])
        return {**found, _DISABLED: list(disabled)}

    settings[_HOOK] = hide
