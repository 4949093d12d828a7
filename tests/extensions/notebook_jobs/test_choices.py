"""What the form of Notebook Jobs offers, and what its parameters mean."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import JsonValue

from carrel.extensions.notebook_jobs.choices import job_environments, named
from carrel.extensions.notebook_jobs.job_labels import NotebookJobLabels
from carrel.extensions.notebook_jobs.job_options import GivenParameters, as_typed
from carrel.hub.errors import InvalidInput
from carrel.hub.schemas import DeviceOut, GroupOut
from carrel.hub.schemas.images import ImageOut, ImagesOut
from carrel.hub.schemas.schedules import ScheduledJobOut

NO_IMAGES = ImagesOut(choice=False, images=[], pins=[])


def group(name: str, most: int = 2, models: list[str] | None = None) -> GroupOut:
    return GroupOut(
        name=name, max_devices=most, max_devices_per_user=9, max_seconds=3600, models=models
    )


def devices(*models: str) -> list[DeviceOut]:
    return [
        DeviceOut(
            id=f"d{number}",
            node="local",
            index=number,
            model=model,
            memory_bytes=1,
            simulated=True,
            state="free",
        )
        for number, model in enumerate(models)
    ]


def image(name: str, **more: Any) -> ImageOut:
    known: dict[str, Any] = {"title": name.title(), "summary": "", "size_bytes": 1, "built_at": 1.0}
    return ImageOut(name=name, digest="d", reference="r", newest=True, **known, **more)


def test_an_environment_is_a_group_with_an_image_and_the_default_image_is_first() -> None:
    images = [image("base"), image("torch", default=True)]
    found = ImagesOut(choice=True, images=images, pins=[])
    alone = job_environments([group("cs101")], devices("A"), found)
    assert [each.name for each in alone] == ["torch", "base"]
    both = job_environments([group("cs101"), group("lab")], devices("A"), found)
    assert [(each.name, each.group, each.image) for each in both] == [
        ("torch (cs101)", "cs101", "torch"),
        ("base (cs101)", "cs101", "base"),
        ("torch (lab)", "lab", "torch"),
        ("base (lab)", "lab", "base"),
    ]
    without = job_environments([group("cs101"), group("lab")], devices("A"), NO_IMAGES)
    assert [(each.name, each.image) for each in without] == [("cs101", ""), ("lab", "")]
    assert named(both, "base (lab)") == both[-1]


@pytest.mark.parametrize(
    ("most", "models", "expected"),
    [
        (0, ["A"], ["no device"]),
        (2, ["A"] * 9, ["no device", "1 device", "2 devices"]),
        (9, ["A"] * 2, ["no device", "1 device", "2 devices"]),
        (1, ["A", "B"], ["no device", "1 device", "1 device (A)", "1 device (B)"]),
    ],
)
def test_compute_types_are_numbers_of_devices_that_the_group_and_the_pool_have(
    most: int, models: list[str], expected: list[str]
) -> None:
    (found,) = job_environments([group("cs101", most)], devices(*models), NO_IMAGES)
    assert [str(each) for each in found.compute_types] == expected


def test_many_devices_are_offered_in_powers_of_two() -> None:
    large = GroupOut(name="g", max_devices=99, max_devices_per_user=99, max_seconds=1)
    (found,) = job_environments([large], devices(*["A"] * 40), NO_IMAGES)
    assert [each.devices for each in found.compute_types] == [*range(9), 16, 32]


def test_models_that_the_group_may_not_use_are_not_offered() -> None:
    (found,) = job_environments([group("g", 9, ["A"])], devices("A", "B", "B"), NO_IMAGES)
    assert {str(each) for each in found.compute_types} == {
        "no device",
        "1 device",
        "1 device (A)",
    }


def test_what_is_not_offered_is_refused_with_the_choices() -> None:
    (found,) = job_environments([group("cs101")], devices("A"), NO_IMAGES)
    assert found.compute_type(None).devices == 0
    with pytest.raises(InvalidInput, match=r"Choose one of: no device, 1 device\."):
        found.compute_type("2 devices")
    with pytest.raises(InvalidInput, match=r"Choose one of: cs101\."):
        named([found], "other")
    with pytest.raises(InvalidInput, match="ask a teacher or administrator"):
        named([], "Carrel")


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("0.05", 0.05),
        ("true", True),
        ("text", "text"),
        ("'text'", "text"),
        ('"5"', "5"),
        ("[1, 'a']", [1, "a"]),
        ('{"a": [true]}', {"a": [True]}),
        ("[not a list", "[not a list"),
        ("{a}", "{a}"),
    ],
)
def test_parameters_are_parsed_and_shown_as_one_could_type_them(
    typed: str, value: JsonValue
) -> None:
    assert GivenParameters.parse({"x": typed}).parameters == {"x": value}
    job = ScheduledJobOut(group="g", devices=0, seconds=3600, parameters={"x": value})
    assert GivenParameters.parse(as_typed(job)).parameters == {"x": value}


def test_parameters_with_the_prefix_are_options_of_the_job() -> None:
    options = {
        "carrel.time": "90m",
        "carrel.memory": "8GiB",
        "carrel.retries": "2",
        "carrel.priority": "opportunistic",
    }
    given = GivenParameters.parse({"lr": "1", **options})
    assert (given.parameters, given.fields) == (
        {"lr": 1},
        {"seconds": 5400, "memory_bytes": 8 << 30, "retries": 2, "priority": "opportunistic"},
    )
    job = ScheduledJobOut.model_validate({"group": "g", "devices": 0, **given.fields})
    assert as_typed(job) == options | {"carrel.memory": "8192MiB"}
    assert GivenParameters.parse(None, {"time": "2h"}).fields == {"seconds": 7200}
    assert GivenParameters.parse(None).fields == {"seconds": 3600}
    with pytest.raises(InvalidInput, match=r"Options: carrel\.time, carrel\.memory"):
        GivenParameters.parse({"carrel.tme": "1h"})


def test_labels_keep_what_only_notebook_jobs_knows() -> None:
    given = NotebookJobLabels(name="n", formats=("html",), tags=("b", "", "a"), with_folder=True)
    found = NotebookJobLabels.of({"own": "x", **given.as_labels()})
    assert (found.name, list(found.formats), found.tags) == ("n", ["html"], ["b", "a"])
    assert found.with_folder
    with pytest.raises(InvalidInput, match=r"A tag has at most 128\."):
        NotebookJobLabels(tags=["t" * 129]).as_labels()
    of_another_program = NotebookJobLabels.of({"own": "x"})
    assert (of_another_program.name, list(of_another_program.formats)) == ("", ["ipynb", "html"])
