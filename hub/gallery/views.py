"""Items of the gallery as the REST API and the pages show them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from pydantic import JsonValue

from ..errors import Unavailable
from ..interfaces.gallery import GalleryItem, GalleryVersion
from ..interfaces.images import ImageSource
from ..messages import units
from ..records.images import Image, newest
from ..schemas.gallery import (
    GalleryForkOut,
    GalleryItemDetailOut,
    GalleryJobOut,
    GalleryParameterOut,
    GalleryVersionOut,
)
from .published_job import PublishedJob, read

_WHAT_LENGTH = 200


def kind_and_what(jobs: Sequence[PublishedJob]) -> tuple[str, str]:
    """Return the kind of an item, and what lists show of it."""
    if len(jobs) > 1:
        return "pipeline", units.count(len(jobs), "job")
    if jobs[0].notebook:
        return "notebook", jobs[0].notebook
    return "command", shlex.join(command_of(jobs[0]))[:_WHAT_LENGTH]


def command_of(job: PublishedJob) -> list[str]:
    """Return the command of a job, or that of its first role."""
    roles = job.fields.get("roles")
    words = job.fields.get("command")
    if not words and isinstance(roles, list) and roles and isinstance(roles[0], dict):
        words = roles[0].get("command")
    return [str(word) for word in words] if isinstance(words, list) else []


def item_fields(item: GalleryItem) -> dict[str, Any]:
    """Return the fields of ``GalleryItemOut``."""
    fork = (
        GalleryForkOut(id=item.forked_from, version=item.forked_version, owner=item.forked_owner)
        if item.forked_from
        else None
    )
    return {
        "id": item.id,
        "owner": item.owner,
        "audience": item.audience,
        "title": item.title,
        "kind": item.kind,
        "what": item.what,
        "version": item.version,
        "created_at": item.created_at,
        "updated_at": item.updated_at,
        "forked_from": fork,
    }


def detail(
    item: GalleryItem,
    shown: GalleryVersion,
    versions: Sequence[GalleryVersion],
    *,
    images: ImageSource,
    may_publish: bool,
    may_withdraw: bool,
) -> GalleryItemDetailOut:
    """Return an item with one of its versions.

    Args:
        images: the engines, whose images may have changed since.
    """
    jobs = read(shown.jobs)
    builds: Sequence[Image] | None = None
    with suppress(Unavailable):  # Admission reports it.
        builds = images.images()
    return GalleryItemDetailOut(
        **item_fields(item),
        shown=GalleryVersionOut(
            version=shown.version,
            published_at=shown.published_at,
            description=shown.description,
            request=shown.request,
            succeeded=shown.succeeded,
            jobs=[_job(job, jobs, builds) for job in jobs],
        ),
        versions={each.version: each.published_at for each in versions},
        may_publish=may_publish,
        may_withdraw=may_withdraw,
        runs_unchanged=len(jobs) == 1 and not jobs[0].fields.get("roles"),
    )


def missing_image(image: str, builds: Sequence[Image] | None) -> str:
    """Say that no engine has an image any more, and what is nearest; empty if one has it."""
    if not image or builds is None or any(each.reference == image for each in builds):
        return ""
    name = image.partition("@")[0]
    short = units.short_reference(image)
    nearest = newest(tuple(builds), name)
    if nearest is not None:
        return f"No engine has {short} any more; the newest build of {name} is {nearest.reference}."
    names = ", ".join(sorted({each.name for each in builds})) or "none"
    return f"No engine has {short} any more. Images of this site: {names}."


def _job(
    job: PublishedJob, jobs: Sequence[PublishedJob], builds: Sequence[Image] | None
) -> GalleryJobOut:
    fields = job.fields
    image = str(fields.get("image") or "")
    return GalleryJobOut(
        name=job.name,
        notebook=job.notebook,
        command=command_of(job),
        devices=int(str(fields.get("devices") or 0)),
        model=str(fields["model"]) if fields.get("model") else None,
        seconds=int(str(fields.get("seconds") or 0)),
        image=image,
        image_missing=missing_image(image, builds),
        after=[jobs[int(each.partition(":")[0])].name for each in job.after],
        parameters=list(_parameters(job)),
        sha256=job.sha256,
        output=job.output,
        left_out=job.left_out,
    )


def _parameters(job: PublishedJob) -> list[GalleryParameterOut]:
    found = job.fields.get("parameters")
    given: dict[str, JsonValue] = found if isinstance(found, dict) else {}
    known = [
        GalleryParameterOut(
            name=each.name,
            type=str(each.type),
            default=each.default,
            help=each.help,
            given=each.name in given,
            value=given.get(each.name),
        )
        for each in job.parameters or ()
    ]
    names = {each.name for each in known}
    # Those of a notebook whose parameters cannot be read.
    others = [
        GalleryParameterOut(name=name, type="JSON", default="", given=True, value=value)
        for name, value in given.items()
        if name not in names
    ]
    return known + others
