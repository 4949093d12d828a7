"""Run a job again by its receipt, on the same image and inputs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from ..errors import Conflict, InvalidInput, NotFound
from ..files.filenames import safe_name
from ..groups.membership import Membership
from ..inventory.images import ImageCatalogue
from ..messages import units
from ..provenance.notebook_hash import cells, source_hash, without_receipt
from ..provenance.receipt import JobReceiptOut
from ..provenance.rerun import RerunIn, RerunOut
from ..provenance.verification import NotVerified, VerifiedReceipt, verify
from ..records.identity import Identity
from ..requests.access import RequestAccess
from ..requests.jobs import JobService, same_job
from ..runtime.context import Context
from ..schemas import JobIn, NotebookIn
from .inputs import InputFolders
from .service import ReceiptService

_MOST_CHANGES: Final = 20
_MOST_NAMED: Final = 5
_REQUESTED: Final = ("devices", "model", "seconds", "memory_bytes", "internet")
"""What a receipt of another site requests."""


class ChangedSince(Conflict):
    """The image or an input of a job is gone or has changed since its receipt."""

    code = "changed_since"


@dataclass(frozen=True, slots=True)
class Reruns:
    """Runs jobs again.

    Attributes:
        courses: the folder of all courses; None where there is none.
    """

    context: Context
    receipts: ReceiptService
    courses: Path | None = field(default=None, kw_only=True)

    def rerun(self, who: Identity, body: RerunIn) -> RerunOut:
        """Queue a job that repeats another one; with ``dry_run`` only say what has changed.

        Raises:
            InvalidInput: neither or both of ``job`` and ``file`` are given, or the file has no
                receipt.
            NotVerified: the receipt or its notebook was edited.
            NotFound: the job does not exist here, or its files were deleted.
            ChangedSince: image or inputs are gone or have changed; the message names them.
            NotAMember: the caller is not in the group, also for ``dry_run``.
            Refused: the job is not admitted.
        """
        if bool(body.job) == bool(body.file):
            raise InvalidInput("A rerun needs a job or a file.", accepted="One of them.")
        if body.file:
            found = verify(body.file.encode("utf-8", "surrogatepass"))
            if found.key == self.context.signing_key.public:
                job, receipt, changes = self._own(who, found.receipt.job, found.receipt)
            else:
                job, receipt, changes = self._foreign(found)
        else:
            job, receipt, changes = self._own(who, body.job, None)
        # What is compared below tells of files of the group.
        group = Membership.of(self.context).choose_group(who.name, body.group or job.group)
        update = {"group": group, "idempotency_key": body.idempotency_key}
        job = job.model_copy(update=update)
        job, of_image = self._with_image(job, receipt)
        folders = InputFolders(home=self.context.files.home(who.name), course=self._course(job))
        compared = folders.compared(receipt)
        changes += [*of_image, *compared.changes]
        made = None
        if not body.dry_run:
            if changes and not body.accept_changes:
                raise _refusal(receipt, changes)
            made = JobService(self.context).submit(
                who, job, rerun_of=receipt.job, accepted_changes=changes[:_MOST_CHANGES]
            )
        return RerunOut(
            request=made, rerun_of=receipt.job, changes=changes, unchecked=compared.unchecked
        )

    def _own(
        self, who: Identity, job: str, given: JobReceiptOut | None
    ) -> tuple[JobIn, JobReceiptOut, list[str]]:
        """Return body, receipt and changes of a job of this site."""
        record = RequestAccess(self.context.store).visible(who, job)
        receipt = given or self.receipts.receipt(who, job)
        body = same_job(record, self.context.files, owner=who.name)
        changes = []
        if record.owner != who.name and record.job is not None and record.job.secrets:
            named = ", ".join(record.job.secrets)
            changes.append(f"Its secrets of {record.owner} are left out: {named}.")
        if body.notebook is not None and receipt.notebook is not None:
            stored = hashlib.sha256(self.context.files.input_path(job).read_bytes()).hexdigest()
            if stored != receipt.notebook.sha256:
                changes.append(f"The submitted notebook {receipt.notebook.name} has changed.")
        if receipt.archive_sha256:
            with self.context.files.archive_path(job).open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != receipt.archive_sha256:
                    changes.append("The files that were uploaded with the job have changed.")
        return body.model_copy(update={"after": []}), receipt, changes

    def _foreign(self, found: VerifiedReceipt) -> tuple[JobIn, JobReceiptOut, list[str]]:
        """Return body, receipt and changes of a job of another site, from an executed notebook."""
        receipt = found.receipt
        if receipt.what != "notebook" or receipt.archive_sha256:
            raise InvalidInput(
                f"{receipt.job} is a job of {receipt.site}, whose files are there.",
                accepted="Of jobs of other sites, notebooks without uploaded files run here.",
            )
        if found.notebook is None or receipt.notebook is None:
            raise InvalidInput(
                f"{receipt.job} is a job of {receipt.site}: its notebook is not here.",
                accepted="The executed notebook from there, which contains its receipt.",
            )
        if source_hash(found.notebook) != receipt.notebook.source_sha256:
            raise NotVerified(
                f"The cells of the notebook are not those that {receipt.job} was submitted with."
            )
        # A receipt may name any field, such as secrets of the caller.
        requested = {name: receipt.requested.get(name) for name in _REQUESTED}
        fields = {name: value for name, value in requested.items() if value is not None}
        name, content = receipt.notebook.name, json.dumps(submitted(found.notebook))
        try:
            job = JobIn.model_validate(
                {
                    **fields,
                    "group": receipt.group,
                    "notebook": NotebookIn(name=name, content=content),
                    "kernel": receipt.kernel,
                    "parameters": receipt.parameters,
                    "workdir": receipt.workdir,
                    "image": receipt.image,
                }
            )
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise InvalidInput(
                f"The receipt of {receipt.job} describes a job that cannot run here: "
                f"{'.'.join(map(str, first['loc']))}: {first['msg']}."
            ) from None
        changes = [f"The receipt was signed by {receipt.site} (key {found.key.id})."]
        if receipt.secrets:
            left_out = units.count(len(receipt.secrets), "secret")
            changes.append(f"It used {left_out} there, which it does not get here.")
        return job, receipt, changes

    def _with_image(self, job: JobIn, receipt: JobReceiptOut) -> tuple[JobIn, list[str]]:
        """Return the job with an image that is here, and how this differs from the receipt."""
        if job.roles:
            return job, []
        catalogue, wanted = ImageCatalogue.of(self.context), receipt.image
        has_images = self.context.backend.images() is not None
        if not has_images and not wanted:
            return job, []
        if not has_images:
            change = f"The image {wanted} is gone: jobs of this site run without images."
            return job.model_copy(update={"image": ""}), [change]
        if wanted:
            with suppress(InvalidInput):
                catalogue.choose(job.group, wanted, job.devices)
                return job, []
        for name in dict.fromkeys((wanted.partition("@")[0], "")):
            with suppress(InvalidInput):
                chosen = catalogue.choose(job.group, name, job.devices)
                if chosen is not None:
                    was = f"The image {wanted} is gone" if wanted else "It ran without an image"
                    change = f"{was}: it would run in {chosen.reference}."
                    return job.model_copy(update={"image": chosen.reference}), [change]
        raise NotFound(f"The image {wanted} is gone, and there is no other one.")

    def _course(self, job: JobIn) -> Path | None:
        return None if self.courses is None else self.courses / safe_name(job.group) / "data"


def submitted(notebook: dict[str, Any]) -> dict[str, Any]:
    """Return an executed notebook as it was before, without added cells and outputs.

    Raises:
        InvalidInput: it is no notebook.
    """
    bare = without_receipt(notebook)
    metadata = {k: v for k, v in bare.get("metadata", {}).items() if k not in _EXECUTION}
    return bare | {"metadata": metadata, "cells": list(_bare_cells(bare))}


_EXECUTION: Final = frozenset({"papermill", "carrel"})


def _bare_cells(notebook: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for kind, _, cell in cells(notebook):
        given = cell.get("metadata", {})
        if not isinstance(given, dict):
            raise InvalidInput("The notebook has a cell whose metadata is not a JSON object.")
        metadata = {k: v for k, v in given.items() if k not in _EXECUTION}
        code: dict[str, object] = {"outputs": [], "execution_count": None} if kind == "code" else {}
        yield cell | {"metadata": metadata} | code


def _refusal(receipt: JobReceiptOut, changes: list[str]) -> ChangedSince:
    more = len(changes) - _MOST_NAMED
    shown = " ".join(changes[:_MOST_NAMED]) + (f" And {more} more." if more > 0 else "")
    return ChangedSince(
        f"{receipt.job} cannot run again as it was. {shown}",
        accepted="Accept the changes (--accept-changes): the receipt of the new job names them.",
    )
