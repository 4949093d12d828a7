"""JupyterHub's configuration: Carrel's, then the site's own file."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
import sqlalchemy as sa
from jupyterhub.orm import new_session_factory
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from carrel.hub.config.base_url import SERVICE_PREFIX
from carrel.hub.config.settings import Settings
from carrel.hub.config.state_folder import StateFolder
from carrel.hub.supervisor.components import HUB_CONFIG


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StateFolder:
    found = StateFolder.at(tmp_path / "state")
    found.create()
    Settings(hub_port=8081, service_port=8082, proxy_api_port=8083).save(found)
    monkeypatch.setenv("CARREL_STATE", str(found.root))
    return found


def read() -> Config:
    """Return the configuration as ``jupyterhub -f`` reads it."""
    return PyFileConfigLoader(HUB_CONFIG.name, str(HUB_CONFIG.parent)).load_config()


def test_without_a_site_file_the_configuration_is_carrels(state: StateFolder) -> None:
    config = read()
    assert config.JupyterHub.spawner_class == "carrel-local"
    assert config.JupyterHub.default_url == SERVICE_PREFIX


def test_tokens_end_after_90_days_at_the_latest_unless_the_site_allows_more(
    state: StateFolder,
) -> None:
    assert read().JupyterHub.token_expires_in_max_seconds == 90 * 86400
    state.jupyterhub_config.write_text("c.JupyterHub.token_expires_in_max_seconds = 0\n")
    assert read().JupyterHub.token_expires_in_max_seconds == 0


def test_the_sign_in_page_has_the_contact(state: StateFolder) -> None:
    assert read().JupyterHub.template_vars["carrel_contact"].startswith("No account, or")
    Settings.load(state).changed(contact="Ask <desk@cs.example>.").save(state)
    assert read().JupyterHub.template_vars["carrel_contact"] == "Ask <desk@cs.example>."


def test_the_site_file_overrides_carrels_configuration(state: StateFolder) -> None:
    state.jupyterhub_config.write_text(
        "from dataclasses import dataclass\n"
        "@dataclass\n"
        "class Limits:\n"
        "    servers: int = 3\n"
        "c.JupyterHub.named_server_limit_per_user = Limits().servers\n"
        "c.Spawner.environment = {'FOLDER': __file__}\n"
        "get_config().Spawner.http_timeout += 1\n"
    )
    config = read()
    assert config.JupyterHub.named_server_limit_per_user == 3
    assert config.Spawner.environment == {"FOLDER": str(state.jupyterhub_config)}
    assert config.Spawner.http_timeout == 61
    assert config.JupyterHub.spawner_class == "carrel-local"  # other options stay


def test_a_locked_database_of_the_hub_is_waited_for(state: StateFolder) -> None:
    """A sign-in got a 500 after five seconds, the driver's own limit."""
    config = read()
    sessions = new_session_factory(config.JupyterHub.db_url, **config.JupyterHub.db_kwargs)
    with sessions() as session:
        (milliseconds,) = session.execute(sa.text("PRAGMA busy_timeout")).one()
    assert milliseconds == 30_000


def test_another_database_of_the_hub_gets_no_arguments_of_sqlite(state: StateFolder) -> None:
    state.jupyterhub_config.write_text("c.JupyterHub.db_url = 'postgresql://db/hub'\n")
    assert "db_kwargs" not in read().JupyterHub


def test_the_site_file_adds_to_carrels_services_and_roles(state: StateFolder) -> None:
    alone = read()
    state.jupyterhub_config.write_text(
        "c.JupyterHub.services.append({'name': 'announcements', 'url': 'http://127.0.0.1:9000'})\n"
        "c.JupyterHub.load_roles.append({'name': 'tutors', 'scopes': ['list:users']})\n"
    )
    both = read()
    assert both.JupyterHub.services[:-1] == alone.JupyterHub.services
    assert both.JupyterHub.services[-1]["name"] == "announcements"
    assert both.JupyterHub.load_roles[:-1] == alone.JupyterHub.load_roles
    assert both.JupyterHub.load_roles[-1]["name"] == "tutors"


def test_the_site_file_may_load_other_files(state: StateFolder) -> None:
    (state.root / "more.py").write_text("c.JupyterHub.active_server_limit = 40\n")
    state.jupyterhub_config.write_text("load_subconfig('more.py')\n")
    assert read().JupyterHub.active_server_limit == 40


def test_a_hook_of_the_site_file_sees_its_globals_when_called(state: StateFolder) -> None:
    state.jupyterhub_config.write_text(
        "import getpass\n"
        "def before(spawner):\n"
        "    return getpass.__name__\n"
        "c.Spawner.pre_spawn_hook = before\n"
    )
    config = read()
    gc.collect()
    assert config.Spawner.pre_spawn_hook(None) == "getpass"


def test_an_error_in_the_site_file_names_the_file(state: StateFolder) -> None:
    state.jupyterhub_config.write_text("c.JupyterHub.active_server_limit = \n")
    with pytest.raises(SyntaxError) as raised:
        read()
    assert raised.value.filename == str(state.jupyterhub_config)
