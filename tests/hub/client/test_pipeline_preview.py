"""Expected end, critical path and charge of a pipeline that is not submitted."""

from __future__ import annotations

from carrel.hub.client.pipeline_preview import JobPreview, Span, pipeline_preview


def job(
    name: str, seconds: float, *after: str, starts_in: float | None = 0.0, known: bool = True
) -> JobPreview:
    span = Span(low=seconds / 2, typical=seconds, high=2 * seconds)
    return JobPreview(
        name=name,
        after=after,
        seconds=span,
        known=known,
        starts_in=starts_in,
        charge=span,
        most=4 * seconds,
    )


def test_the_longest_path_decides() -> None:
    found = pipeline_preview(
        [
            job("prepare", 100),
            job("long", 300, "prepare"),
            job("short", 50, "prepare", known=False),
            job("report", 10, "long", "short"),
        ]
    )
    assert found.critical == ["prepare", "long", "report"]
    assert found.ends_in == Span(low=205, typical=410, high=820)
    assert (found.charge.typical, found.most, found.unknown) == (460, 1840, 1)


def test_a_job_that_waits_for_devices_begins_the_path() -> None:
    found = pipeline_preview([job("prepare", 100), job("train", 300, "prepare", starts_in=900)])
    assert found.critical == ["train"]
    assert found.ends_in == Span(low=1050, typical=1200, high=1500)


def test_without_a_known_start_there_is_no_end() -> None:
    found = pipeline_preview([job("prepare", 100), job("train", 300, "prepare", starts_in=None)])
    assert (found.ends_in, found.critical) == (None, ())
    assert found.charge.typical == 400
