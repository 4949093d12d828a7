"""The dashboard's route: Voila's handler with the notebook of this package."""

from __future__ import annotations

from jupyter_server.serverapp import ServerApp
from jupyter_server.services.contents.filemanager import AsyncFileContentsManager
from jupyter_server.services.contents.manager import ContentsManager
from jupyter_server.utils import url_path_join
from tornado.web import authenticated
from voila.configuration import VoilaConfiguration
from voila.paths import collect_template_paths
from voila.tornado.handler import TornadoVoilaHandler

from ..environment import DASHBOARD_NOTEBOOK, DASHBOARD_PATH, DASHBOARDS

TEMPLATE = "carrel"
_LAB_EXTENSIONS = [
    "@jupyter-widgets/jupyterlab-manager",
    "@voila-dashboards/widgets-manager8",
    "anywidget",
]
"""What the widgets need; others expect all of JupyterLab, and fail with errors in the console."""
_THEMES = ("light", "dark")
_CHOOSE_THEME = """\
<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Carrel</title><link rel="icon" href="data:;base64,="></head>
<body><script>
  let theme = null;
  try { theme = localStorage.getItem("jupyterhub-bs-theme"); } catch { /* no storage */ }
  if (theme !== "light" && theme !== "dark") {
    theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  }
  const at = new URL(location.href);
  at.searchParams.set("theme", theme);
  location.replace(at);
</script><noscript>The dashboard needs JavaScript.</noscript></body>
</html>
"""
"""Opens the dashboard in the theme of the desk: the stored choice, else that of the system."""


class DashboardHandler(TornadoVoilaHandler):  # type: ignore[misc]  # voila has no types
    """Serves one notebook that is not in the user's home."""

    @authenticated
    async def get(self, path: str | None = None) -> None:
        # Voila renders one theme, and a page that is loaded twice starts two kernels.
        if self.get_argument("theme", "") not in _THEMES:
            await self.finish(_CHOOSE_THEME)
            return
        await super().get(path)

    @property
    def contents_manager(self) -> ContentsManager:
        return AsyncFileContentsManager(root_dir=str(DASHBOARDS), parent=self.serverapp)


def _offline(page_config: dict[str, object], **_more: object) -> dict[str, object]:
    """Keep Voila from fetching MathJax from another host; the dashboard has no formulas."""
    return {**page_config, "fullMathjaxUrl": "data:text/javascript,"}


def install(server_app: ServerApp) -> None:
    configuration = VoilaConfiguration(parent=server_app)
    configuration.template = TEMPLATE
    configuration.allow_template_override = "NO"
    configuration.strip_sources = True
    configuration.page_config_hook = _offline
    configuration.extension_allowlist = _LAB_EXTENSIONS
    # The kernel's working folder is that of the notebook's path: the home, as usual.
    route = (
        url_path_join(server_app.web_app.settings["base_url"], DASHBOARD_PATH),
        DashboardHandler,
        {
            "notebook_path": DASHBOARD_NOTEBOOK,
            "template_paths": collect_template_paths(["voila", "nbconvert"], TEMPLATE),
            "config": server_app.config,
            "voila_configuration": configuration,
        },
    )
    server_app.web_app.add_handlers(".*$", [route])  # type: ignore[no-untyped-call]  # tornado
