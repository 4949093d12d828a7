"""STATE/carrel.toml: defaults, options, and messages about mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.hub.config.backend import docker_options
from carrel.hub.config.settings import EngineKind, Settings
from carrel.hub.config.site import SiteFile
from carrel.hub.config.state_folder import StateFolder
from carrel.hub.errors import Conflict, InvalidInput, Unavailable
from carrel.hub.interfaces.host import Addresses
from carrel.hub.supervisor import host as supervisor_host
from carrel.hub.supervisor.up import UpOptions, choose


@pytest.fixture
def state(tmp_path: Path) -> StateFolder:
    found = StateFolder.at(tmp_path / "state")
    found.create()
    return found


def test_a_site_file_is_optional(state: StateFolder) -> None:
    assert SiteFile.load(state) == SiteFile()
    assert SiteFile().engine is None


def test_all_options_of_the_file_reach_the_engine(
    state: StateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///run/elsewhere.sock")
    state.site_file.write_text(
        'engine = "docker"\n'
        "[docker]\n"
        'memory = "8GiB"\nhome_size = "5GiB"\nblocked = ["10.0.0.0/8"]\n'
        'address = "10.1.2.3"\n'
        '[[nodes]]\nname = "gpu1"\ndocker_host = "ssh://carrel@gpu1"\naddress = "10.1.2.4"\n'
    )
    site = SiteFile.load(state)
    settings = Settings(engine=EngineKind.DOCKER, docker_subnets="10.200.0.0/20", hub_port=1)

    options = docker_options(settings, site)

    assert site.engine is EngineKind.DOCKER
    assert (options.memory, options.home_size) == (8 * 2**30, 5 * 2**30)
    assert options.blocked == ("10.0.0.0/8",)
    assert options.address == "10.1.2.3"
    assert [(host.node, host.url, host.address) for host in options.hosts] == [
        ("local", "unix:///run/elsewhere.sock", ""),
        ("gpu1", "ssh://carrel@gpu1", "10.1.2.4"),
    ]
    assert options.subnets == "10.200.0.0/20"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('engine = "kubernetes"', "engine"),
        ("[docker]\nprivileged = true", "docker.privileged: unknown key."),
        ('[docker]\nmemory = "lots"', "docker.memory"),
        ('[docker]\nblocked = ["10.0.0.1/8"]', "has host bits set"),
        ('[docker]\nhost = "http://x"', "must begin with one of unix://, tcp://, ssh://"),
        ('[[nodes]]\nname = "a b"\ndocker_host = "ssh://x"', "nodes.0.name"),
        (
            '[[nodes]]\nname = "local"\ndocker_host = "ssh://x"',
            "several nodes have the name local",
        ),
        ('[[nodes]]\nname = "a"\ndocker_host = "tcp://x:2375"', "without TLS"),
        ('[[nodes]]\nname = "a"\ndocker_host = "tcp://x"\ntls_ca = "ca.pem"', "set together"),
        ('[docker]\naddress = "gpu1.example.org"', "docker.address"),
        ('[[nodes]]\nname = "a"\ndocker_host = "ssh://a"', "set its address"),
        (
            '[[nodes]]\nname = "a"\ndocker_host = "ssh://a"\naddress = "10.1.2.4"',
            "set address below [docker]",
        ),
        ("engine = ", "cannot be read"),
    ],
)
def test_a_mistake_is_reported_with_its_position(state: StateFolder, text: str, said: str) -> None:
    state.site_file.write_text(text)
    with pytest.raises(InvalidInput) as raised:
        SiteFile.load(state)
    assert str(state.site_file) in raised.value.message
    assert said in raised.value.message


def test_two_installations_have_two_names(tmp_path: Path) -> None:
    one, two = StateFolder.at(tmp_path / "a"), StateFolder.at(tmp_path / "b")
    assert one.installation != two.installation
    assert one.installation == StateFolder.at(tmp_path / "a").installation
    assert len(one.installation) == 6


class TestTheChoiceOfTheEngine:
    def test_the_engine_of_the_last_start_is_kept(self, state: StateFolder) -> None:
        choose(UpOptions(state=state, engine=EngineKind.DOCKER)).save(state)
        assert choose(UpOptions(state=state)).engine is EngineKind.DOCKER

    def test_the_file_overrides_the_command_line(self, state: StateFolder) -> None:
        state.site_file.write_text('engine = "docker"')
        assert choose(UpOptions(state=state)).engine is EngineKind.DOCKER
        with pytest.raises(InvalidInput, match="the command line local"):
            choose(UpOptions(state=state, engine=EngineKind.LOCAL))

    def test_an_engine_with_running_work_cannot_be_changed(
        self, state: StateFolder, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(supervisor_host, "running", lambda *_: frozenset({"l-1"}))
        with pytest.raises(Conflict, match="run on the engine 'local'"):
            choose(UpOptions(state=state, engine=EngineKind.DOCKER))


class SlowGround:
    """A host setup whose engine answers the second call."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def prepare(self, subnets: str) -> Addresses:
        self.asked.append(subnets)
        if len(self.asked) == 1:
            raise Unavailable("The Docker engine does not answer.")
        return Addresses(subnets=subnets or "10.200.16.0/20", internal_ip="10.200.16.1")


class TestTheAddress:
    @pytest.fixture
    def ground(self, monkeypatch: pytest.MonkeyPatch) -> SlowGround:
        made = SlowGround()
        monkeypatch.setattr("carrel.hub.plugins.load_host_setup", lambda *_: made)
        monkeypatch.setattr(supervisor_host, "RETRY_SECONDS", 0.0)
        return made

    def test_an_engine_of_an_earlier_start_is_waited_for(
        self, state: StateFolder, ground: SlowGround
    ) -> None:
        said: list[str] = []
        before = Settings(engine=EngineKind.DOCKER, docker_subnets="10.200.0.0/20", service_port=7)

        settings = supervisor_host.with_network(state, before, said.append)

        assert settings.internal_ip == "10.200.16.1"
        assert settings.docker_subnets == "10.200.0.0/20"
        assert settings.service_url == "http://10.200.16.1:7/services/carrel"
        assert said == ["The Docker engine does not answer. Waiting for it."]

    def test_a_missing_engine_is_reported_at_the_first_start(
        self, state: StateFolder, ground: SlowGround
    ) -> None:
        with pytest.raises(Unavailable):
            supervisor_host.with_network(state, Settings(engine=EngineKind.DOCKER), pytest.fail)

    def test_the_local_engine_needs_no_address(self, state: StateFolder) -> None:
        settings = supervisor_host.with_network(
            state, Settings(internal_ip="10.200.16.1"), pytest.fail
        )
        assert settings.internal_ip == "127.0.0.1"
