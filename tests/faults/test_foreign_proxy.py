"""An installation below a path of another site's proxy: nginx with TLS, and Host without a port."""

from __future__ import annotations

import re
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from ..e2e.support import Installation, brought_up, eventually
from ..ports import free_port
from ..requirements import need

BASE = "/jupyter/"
SERVICE = f"{BASE}services/carrel/"
CONFIGURATION = """
daemon off;
pid {folder}/nginx.pid;
error_log stderr;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port} ssl;
        ssl_certificate {folder}/cert.pem;
        ssl_certificate_key {folder}/key.pem;
        location /jupyter/ {{
            proxy_pass http://127.0.0.1:{behind};
            proxy_http_version 1.1;
            proxy_set_header Host $host;
            proxy_set_header X-Forwarded-Proto $scheme;
            proxy_buffering off;
        }}
    }}
}}
"""


@contextmanager
def nginx(folder: Path, behind: int) -> Iterator[str]:
    """Yield the address of a proxy that passes /jupyter/ on."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/sbin:/bin")
    need("nginx", program and shutil.which("openssl"), "nginx or openssl is not installed")
    port = free_port()
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1",
         "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", f"{folder}/key.pem", "-out", f"{folder}/cert.pem"],
        check=True, capture_output=True,
    )  # fmt: skip  # an option with its value
    (folder / "nginx.conf").write_text(
        CONFIGURATION.format(folder=folder, port=port, behind=behind)
    )
    with (folder / "nginx.log").open("w") as log:
        process = subprocess.Popen(
            [str(program), "-p", str(folder), "-c", "nginx.conf"], stdout=log, stderr=log
        )
    try:
        yield f"https://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Installation, str, Path]]:
    folder = tmp_path_factory.mktemp("behind")
    made = Installation(
        state=folder / "state",
        port=free_port(),
        arguments=("--demo", "--base-url", BASE),
        base_url=BASE,
    )
    with nginx(folder, made.port) as address, brought_up(made):
        yield made, address, folder


def test_a_site_below_a_path_of_another_proxy_works(
    site: tuple[Installation, str, Path],
) -> None:
    made, address, folder = site
    assert made.ready["url"] == f"{made.url}{BASE}"
    trusted = ssl.create_default_context(cafile=folder / "cert.pem")
    with httpx.Client(
        base_url=address, verify=trusted, follow_redirects=True, timeout=60
    ) as browser:
        page = browser.get(SERVICE)
        assert page.url.path == f"{BASE}hub/login"
        form = dict(re.findall(r'name="(_xsrf)"\s+value="([^"]*)"', page.text))
        desk = browser.post(
            page.url,
            data={**form, "username": "student1", "password": made.passwords["student1"]},
            headers={"Origin": address},
        )
        assert (desk.status_code, desk.url.path) == (200, SERVICE)
        assert f'href="{BASE}hub/token"' in desk.text
        cookies = [each for each in browser.cookies.jar if each.name == "carrel-session"]
        assert [(each.path, each.secure) for each in cookies] == [(SERVICE, True)]

        links = set(re.findall(r'(?:href|src|action)="(/[^"]*)"', desk.text))
        assert links
        assert all(link.startswith(BASE) for link in links)
        for link in sorted(each for each in links if "logout" not in each):
            assert browser.get(link).status_code in {200, 405}, link

        with browser.stream("GET", f"{SERVICE}events") as stream:
            assert next(stream.iter_lines())

        (token,) = set(re.findall(r'name="csrf" value="([^"]+)"', desk.text))
        fields = {"csrf": token, "devices": "0", "hours": "1", "group": "cs101"}
        wait = browser.post(f"{SERVICE}sessions", data=fields, headers={"Origin": address})
        assert (wait.status_code, wait.url.path) == (200, f"{SERVICE}wait/-")
        (request,) = made.cli_json("session", "ls", user="student1")["requests"]
        made.wait_for(request["id"], "running", user="student1")
        lab = f"{BASE}user/student1/lab"
        eventually(lambda: browser.get(lab).url.path == lab, "JupyterLab opens")
    assert made.cli("run", "--workdir", ".", "--wait", "--", "true", user="student1").stdout


@pytest.mark.slow
def test_a_base_url_in_the_sites_own_file_is_refused_with_the_option(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    (state / "jupyterhub_config.py").write_text("c.JupyterHub.base_url = '/jupyter/'\n")
    made = Installation(state=state, port=free_port())
    with pytest.raises(AssertionError, match="carrel up --base-url /jupyter/"):
        made.up()
    assert made.process is not None
    assert made.process.wait(60) != 0
