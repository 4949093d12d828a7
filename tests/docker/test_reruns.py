"""Jobs run again in containers: one of another site without them, and one on its own image."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import docker
import nbformat
import pytest
from nbclient import NotebookClient

from ..e2e.support import Installation, eventually
from ..hub.doubles import STUDENT1
from ..hub.receipts.ended_jobs import ended
from ..hub.requests.samples import job, named
from ..hub.web.fakes import API
from ..hub.web.site import Site, site
from ..spawners.notebooks import notebook
from .lab import USER

__all__ = ["site"]
pytestmark = [pytest.mark.docker, pytest.mark.slow]
SOURCE = nbformat.writes(  # type: ignore[no-untyped-call]
    notebook("import random\nrandom.seed(7)", "print([random.gauss(0, 1) for _ in range(50)])")
)


def numbers(executed: str) -> Any:
    (output,) = json.loads(executed)["cells"][-1]["outputs"]
    return json.loads("".join(output["text"]))


def test_a_seeded_notebook_of_another_engine_gives_the_same_numbers(
    site: Site, lab: Installation, tmp_path: Path
) -> None:
    node = nbformat.reads(SOURCE, as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(node, kernel_name="python3").execute()
    written = nbformat.writes(node)  # type: ignore[no-untyped-call]
    old = ended(
        site,
        job(notebook=named("seeded.ipynb", SOURCE), parameters={}, devices=0),
        output_ipynb=written,
    )
    executed = site.api(STUDENT1).get(f"{API}/requests/{old}/output").text
    (tmp_path / "seeded.ipynb").write_text(executed)
    refused = lab.cli("rerun", str(tmp_path / "seeded.ipynb"), user=USER, check=False)
    assert "It ran without an image: it would run in " in refused.stderr
    made = lab.cli_json("rerun", str(tmp_path / "seeded.ipynb"), "--accept-changes", user=USER)
    name = made["request"]["id"]
    lab.wait_for(name, "succeeded", user=USER)
    again = lab.api("GET", f"/requests/{name}/output", user=USER).text
    assert numbers(again) == numbers(executed)
    receipt = json.loads(lab.cli("receipt", name, "--json", user=USER).stdout)
    assert receipt["rerun_of"] == old
    assert receipt["image"].startswith("base@sha256:")
    assert len(receipt["accepted_changes"]) == 2


@pytest.fixture
def second(client: docker.APIClient, base_image: str) -> Iterator[str]:
    """Yield the digest of an image with base's content and the name ``second``."""
    made = client.create_container(base_image, ["true"])["Id"]
    label = ["LABEL org.carrel.image=second"]
    image = client.commit(made, repository="carrel/second", tag="latest", changes=label)["Id"]
    client.remove_container(made)
    yield image
    eventually(lambda: remove(client, image), "the image is removed")


def remove(client: docker.APIClient, image: str) -> bool:
    """Remove an image with its warm containers; return whether it is gone."""
    for each in client.containers(all=True, filters={"ancestor": image}):
        with suppress(docker.errors.APIError):
            client.remove_container(each["Id"], force=True)
    try:
        client.remove_image(image, force=True)
    except docker.errors.ImageNotFound:
        return True
    except docker.errors.APIError:
        return False  # the site has just created another container
    return True


def test_a_job_runs_again_on_its_image_and_not_once_that_is_gone(
    lab: Installation, client: docker.APIClient, second: str, tmp_path: Path
) -> None:
    def images() -> str:
        return lab.api("GET", "/images", user=USER).text

    eventually(lambda: second in images(), "the image is offered")
    words = ("run", "--image", f"second@{second}", "--workdir", ".", "--json", "--", "echo", "42")
    first = json.loads(lab.cli(*words, user=USER).stdout)["id"]
    lab.wait_for(first, "succeeded", user=USER)
    written = lab.state / "outputs" / first / "receipt.json"
    eventually(written.exists, "the receipt is written at the end of the job")
    file = tmp_path / "r.json"
    lab.cli("receipt", first, "-o", str(file), user=USER)
    assert json.loads(file.read_text()) == json.loads(written.read_text())

    again = lab.cli_json("rerun", str(file), user=USER)["request"]["id"]
    lab.wait_for(again, "succeeded", user=USER)
    receipts = [
        json.loads(lab.cli("receipt", name, "--json", user=USER).stdout) for name in (first, again)
    ]
    assert [each["image"] for each in receipts] == [f"second@{second}"] * 2
    assert (receipts[1]["rerun_of"], receipts[1]["accepted_changes"]) == (first, [])

    edited = tmp_path / "edited.json"
    edited.write_text(file.read_text().replace("second@", "base@"))
    refused = lab.cli("rerun", str(edited), user=USER, check=False)
    assert "The receipt was edited" in refused.stderr

    eventually(lambda: remove(client, second), "the image is removed")
    eventually(lambda: second not in images(), "the image is no longer offered")
    refused = lab.cli("rerun", first, user=USER, check=False)
    assert refused.returncode != 0
    assert f"The image second@{second} is gone: it would run in base@" in refused.stderr
