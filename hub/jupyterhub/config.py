"""The JupyterHub configuration of Carrel, passed to ``jupyterhub -f``.

The environment variable CARREL_STATE names the state folder. This file is the same in every
installation: its settings come from the state folder, and a ``jupyterhub_config.py`` there can
override every option.
"""

from __future__ import annotations

import importlib
import os
import runpy
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from carrel.hub.config.backend import backend_settings
from carrel.hub.config.base_url import parse_base_url
from carrel.hub.config.secrets import Secrets

# JupyterHub executes this file by its path, outside a package, so that imports are absolute.
from carrel.hub.config.settings import EngineKind, Settings
from carrel.hub.config.state_folder import StateFolder

if TYPE_CHECKING:
    from traitlets.config import Config

    def get_config() -> Config: ...

    def load_subconfig(fname: str, path: str | None = None) -> None: ...


c = get_config()
state = StateFolder.at(os.environ["CARREL_STATE"])
settings = Settings.load(state)
secrets = Secrets.ensure(state)
HUB_DATABASE_SECONDS = 30.0

# -- addresses: the proxy runs separately, so that sessions stay reachable while the hub restarts
c.JupyterHub.bind_url = settings.url
c.JupyterHub.hub_bind_url = settings.hub_url
c.ConfigurableHTTPProxy.should_start = False
c.ConfigurableHTTPProxy.api_url = f"http://127.0.0.1:{settings.proxy_api_port}"
c.ConfigurableHTTPProxy.auth_token = secrets.proxy_token
c.ConfigurableHTTPProxy.check_running_interval = 5
# How often the hub restores the routes of a restarted proxy. The supervisor requests that at
# once; this is the fallback.
c.JupyterHub.last_activity_interval = 30

# -- state ------------------------------------------------------------------------------------
c.JupyterHub.db_url = sa.URL.create("sqlite", database=str(state.hub_database)).render_as_string(
    hide_password=False
)
c.JupyterHub.upgrade_db = True
c.JupyterHub.cookie_secret_file = str(state.hub / "cookie_secret")
c.JupyterHub.cleanup_servers = False
c.JupyterHub.cleanup_proxy = False

# -- people -----------------------------------------------------------------------------------
c.JupyterHub.authenticator_class = "carrel"
c.CarrelAuthenticator.database = str(state.accounts)
c.CarrelAuthenticator.demo = settings.demo
c.Authenticator.allow_all = True
# Tokens of users, from the page, REST or `carrel login`: a forgotten one must not open an account
# for years. A site may allow more, or with 0 any time.
c.JupyterHub.token_expires_in_max_seconds = 90 * 86400

# -- sessions: a spawn may wait in the queue for long, and its page shows at once --------------
c.JupyterHub.spawner_class = f"carrel-{settings.engine}"
c.JupyterHub.allow_named_servers = True
c.JupyterHub.named_server_limit_per_user = 10
c.JupyterHub.concurrent_spawn_limit = 0
c.JupyterHub.tornado_settings = {"slow_spawn_timeout": 0}
c.Spawner.start_timeout = 14 * 86400
c.Spawner.http_timeout = 60
# A refused request is not a failure of the hub: the hub must not shut itself down over it.
c.Spawner.consecutive_failure_limit = 0
c.LeaseMixin.service_url = settings.service_url
c.LeaseMixin.hub_token = secrets.hub_token
c.LeaseMixin.carrel_url = settings.session_service_url
c.LeaseMixin.carrel_public_url = settings.public_service_url
c.LeaseMixin.state_root = str(state.root)
c.DockerSession.site = backend_settings(state, settings, settings.simulated_devices)
c.SlurmSession.site = backend_settings(state, settings, settings.simulated_devices)
c.HostSession.homes = str(state.homes)
c.HostSession.logs = str(state.logs / "sessions")
if settings.engine is EngineKind.SLURM:
    # Adds the address at which a session on a node reports its port.
    importlib.import_module("carrel.spawners.slurm.port_report").install()

# -- the Carrel service, and its scopes -------------------------------------------------------
CUSTOM_SCOPES = ["custom:carrel:read", "custom:carrel:submit"]
c.JupyterHub.custom_scopes = {
    "custom:carrel:read": {"description": "See one's own requests, their output and the pool."},
    "custom:carrel:submit": {"description": "Submit and cancel one's own jobs and sessions."},
    # In no default role, because metrics cover all users: a site grants it in its own role.
    "custom:carrel:metrics": {"description": "Read the metrics of the Carrel service."},
}
c.JupyterHub.services = [
    {
        "name": "carrel",
        "url": f"http://{settings.internal_ip}:{settings.service_port}",
        "api_token": secrets.service_token,
        "oauth_client_allowed_scopes": CUSTOM_SCOPES,
        # The service is part of the same installation: users need not consent.
        "oauth_no_confirm": True,
        "display": False,
    }
]
c.JupyterHub.load_roles = [
    {
        "name": "carrel",
        "description": "Permissions of the Carrel service at the hub",
        "services": ["carrel"],
        "scopes": [
            "list:users",
            "read:users",
            # `carrel user` and the demo create and remove accounts.
            "admin:users",
            "admin:groups",
            # Which authenticator it uses: pages about passwords are for Carrel's own accounts.
            "read:hub",
            # Start (with options), stop and list sessions.
            "servers",
            # Restore the routes of a restarted proxy.
            "proxy",
        ],
    },
    {
        "name": "user",
        "scopes": ["self", "access:services!service=carrel", *CUSTOM_SCOPES],
    },
    {
        "name": "server",
        "scopes": [
            "users:activity!user",
            "access:servers!server",
            "access:services!service=carrel",
            *CUSTOM_SCOPES,
        ],
    },
]

# -- pages and logs ---------------------------------------------------------------------------
c.JupyterHub.default_url = settings.service_prefix
c.JupyterHub.template_paths = [str(Path(__file__).parent / "templates")]
c.JupyterHub.template_vars = {
    "carrel_desk": settings.service_prefix,
    "carrel_demo": settings.demo,
    "carrel_isolated": settings.engine is EngineKind.DOCKER,
    "carrel_contact": settings.contact,
}
c.Application.log_format = "%(asctime)s %(levelname)s %(name)s: %(message)s"

# -- the site's own settings: the same ``c``, so that they can extend a list as well as replace it
if state.jupyterhub_config.exists():
    runpy.run_path(
        str(state.jupyterhub_config),
        init_globals={
            "c": c,
            "get_config": get_config,
            "load_subconfig": partial(load_subconfig, path=str(state.root)),
        },
    )

if "base_url" in c.JupyterHub and parse_base_url(c.JupyterHub.base_url) != settings.base_url:
    sys.exit(
        f"{state.jupyterhub_config} sets base_url = {c.JupyterHub.base_url!r}, but this "
        f"installation serves at {settings.base_url}. Remove the line, and start Carrel with: "
        f"carrel up --base-url {c.JupyterHub.base_url}"
    )

# Another program may lock the database for a while. These arguments are SQLite's, and the site
# may have chosen another database.
if str(c.JupyterHub.db_url).startswith("sqlite") and "db_kwargs" not in c.JupyterHub:
    c.JupyterHub.db_kwargs = {
        "connect_args": {"check_same_thread": False, "timeout": HUB_DATABASE_SECONDS}
    }
