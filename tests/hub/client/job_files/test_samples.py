"""The published job files of OpenPAI and FfDL, which are not part of this project."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from carrel.hub.client.job_files import reader
from carrel.hub.client.job_files.job_fields import job_fields
from carrel.hub.errors import InvalidInput
from carrel.hub.schemas import JobIn

from ....requirements import need
from ....shared_data import shared_path

REFUSED = {
    "FfDL__restapi__api_v1__swagger-ui__manifest.yml": (
        19, "This is not a job file of a known platform.",
    ),
    "openpaimarketplace__publish__items__protocols__cifar10-single-mul-DDP-nccl-Apex-mixed.yaml": (
        5, "This is not valid YAML: mapping values are not allowed in this context.",
    ),
    "openpaimarketplace__publish__items__protocols__covid_chestxray_dataset.yaml": (
        95, "Task role taskrole: $data.uri[0] has no value.",
    ),
    "pai__contrib__api-stress-test__roles__locust__config__files__job.yml": (
        2, "A key is not text.",
    ),
}  # fmt: skip  # line and reason
MOST_SECONDS = 5.0


@pytest.fixture(scope="module")
def samples() -> list[Path]:
    folder = shared_path("samples")
    need("samples", folder.is_dir(), "CARREL_SHARED names no folder with samples")
    return sorted(each for each in folder.rglob("*.y*ml"))


def test_all_are_imported_but_the_malformed_ones(samples: list[Path]) -> None:
    begin = time.monotonic()
    refused = {}
    for path in samples:
        try:
            job = reader.read(path.name, path.read_bytes())
        except InvalidInput as error:
            refused[path.name] = str(error)
            continue
        JobIn.model_validate({"group": "-", **job_fields(path.name, job)})
    seconds = time.monotonic() - begin
    assert len(samples) == 50
    assert refused.keys() == REFUSED.keys()
    for name, (line, reason) in REFUSED.items():
        assert refused[name].startswith(f"{name}, line {line}: {reason}")
    assert seconds < MOST_SECONDS
