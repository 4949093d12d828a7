"""What a session on a node may tell JupyterHub: its port."""

from __future__ import annotations

from jupyterhub.apihandlers import default_handlers

from carrel.spawners.slurm.port_report import PATH, PortHandler, install


def test_the_handler_that_sets_any_attribute_is_replaced() -> None:
    install()
    install()
    assert [handler for path, handler in default_handlers if path == PATH] == [PortHandler]
