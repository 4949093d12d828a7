"""A notebook that ran at another site, without containers, runs again in one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from ..e2e.support import Installation
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
