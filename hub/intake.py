"""From what a person sent to a request that may be stored; nothing is written here."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from .admission import Admission, Ask, seconds_of
from .notebooks import check_kernel, check_name, check_notebook, check_parameters
from .ports.backend import Backend
from .ports.records import JobSpec, NewRequest
from .ports.world import Files
from .scheduling.model import Kind
from .wire import JobIn, SessionIn

_ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
_ID_LENGTH = 8


@dataclass(frozen=True, slots=True)
class Intake:
    """Every check of a request that does not depend on what is running now."""

    admission: Admission
    backend: Backend
    files: Files

    def job(self, owner: str, body: JobIn) -> NewRequest:
        """Raises a ``Refused`` that says what would be accepted."""
        notebook_name = check_name(body.notebook.name, "notebook name")
        output_name = check_name(body.output or notebook_name, "output name")
        notebook = check_notebook(notebook_name, body.notebook.content)
        check_parameters(notebook_name, notebook, body.parameters)
        kernel = body.kernel or notebook.kernel
        check_kernel(kernel, self.backend.kernels(self.files.home(owner)))
        group = self.admission.choose_group(owner, body.group)
        self.admission.admit(
            Ask(owner=owner, group=group, devices=body.devices, seconds=body.seconds)
        )
        request_id = new_id("j")
        return NewRequest(
            id=request_id,
            kind=Kind.JOB,
            owner=owner,
            group=group,
            devices=body.devices,
            seconds=body.seconds,
            idempotency_key=body.idempotency_key or request_id,
            job=JobSpec(
                notebook_name=notebook_name,
                parameters=body.parameters,
                kernel=kernel,
                output_name=output_name,
            ),
            labels=body.labels,
        )

    def session(self, owner: str, server_name: str, options: SessionIn) -> NewRequest:
        """Raises a ``Refused`` that says what would be accepted."""
        seconds = seconds_of(options.hours)
        group = self.admission.choose_group(owner, options.group)
        self.admission.admit(
            Ask(owner=owner, group=group, devices=options.devices, seconds=seconds)
        )
        number = self.admission.store.session_count(owner, server_name) + 1
        return NewRequest(
            id=new_id("s"),
            kind=Kind.SESSION,
            owner=owner,
            group=group,
            devices=options.devices,
            seconds=seconds,
            idempotency_key=f"session/{server_name}/{number}",
            server_name=server_name,
        )


def new_id(prefix: str) -> str:
    """Short enough to be typed, without letters that look alike."""
    return prefix + "-" + "".join(secrets.choice(_ALPHABET) for _ in range(_ID_LENGTH))
