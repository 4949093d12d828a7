"""Write the receipt of an ended job once, sign it, and keep it beside the job's files."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from ..errors import CarrelError, Conflict, NotFound
from ..files.safe_fs import opened_file, write_into
from ..provenance.canonical_json import parse_object
from ..provenance.crate import Crate, is_signed_by, read_receipt, signed_crate
from ..provenance.notebook_hash import content_hash, with_receipt
from ..provenance.receipt import JobReceiptOut
from ..records.identity import Identity
from ..records.requests import RequestRecord
from ..requests.access import RequestAccess
from ..requests.sweeps import TrialService
from ..runtime.context import Context
from ..scheduling.model.states import TERMINAL
from .facts import JobFacts

STORED: Final = "receipt.json"
"""Beside the attempts of a job, where the service writes and jobs do not."""
_MOST_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class ReceiptService:
    """Returns the receipts of jobs.

    Attributes:
        site: address of this site, which its receipts name.
    """

    context: Context
    trials: TrialService
    site: str = field(kw_only=True)

    def crate(self, who: Identity | None, request_id: str) -> Crate:
        """Return the receipt of an ended job as a signed crate; None as the caller is the service.

        Raises:
            NotFound: there is no such job, or the caller may not see it; or it is a session.
            Conflict: the job has not ended.
        """
        record = RequestAccess(self.context.store).visible(who, request_id)
        if record.job is None:
            raise NotFound(f"{record.id} is a session: only jobs have receipts.")
        if record.state not in TERMINAL:
            raise Conflict(
                f"{record.id} has not ended: its receipt is written then.",
                accepted=f"Wait for it: carrel wait {record.id}",
            )
        stored = self._stored(record)
        if stored is not None:
            return stored
        key = self.context.signing_key
        facts = JobFacts(self.context, self.trials, record, record.job)
        crate = signed_crate(facts.receipt(self.site, key.public.id), key)
        if self.context.files.keeps(record.id):
            with suppress(OSError):  # its folder was just deleted, or the disk is full
                folder = self.context.files.input_path(record.id).parent
                write_into(folder, STORED, json.dumps(crate, ensure_ascii=False))
        return crate

    def receipt(self, who: Identity | None, request_id: str) -> JobReceiptOut:
        """Return the content of the receipt. Raises as ``crate`` does."""
        return read_receipt(self.crate(who, request_id))

    def signed_notebook(self, who: Identity, request_id: str, content: bytes) -> bytes:
        """Return an executed notebook with its receipt; without one that fits, return it as it is.

        Args:
            content: of the output notebook of the job.
        """
        try:
            crate = self.crate(who, request_id)
            signed = read_receipt(crate).output
            notebook = parse_object(content, "The notebook")
        except CarrelError:  # it has not ended, or its file is no notebook
            return content
        if signed is None or content_hash(notebook) != signed.content_sha256:
            return content
        text = json.dumps(with_receipt(notebook, crate), ensure_ascii=False, indent=1)
        return text.encode("utf-8", "surrogatepass") + b"\n"

    def _stored(self, record: RequestRecord) -> Crate | None:
        if not self.context.files.keeps(record.id):
            return None
        folder = self.context.files.input_path(record.id).parent
        with suppress(OSError, CarrelError), opened_file(folder, STORED) as file:
            crate = parse_object(file.read(_MOST_BYTES), "The stored receipt")
            # The local engine does not isolate jobs: what one wrote there is not answered.
            own = is_signed_by(crate, self.context.signing_key.public)
            if own and read_receipt(crate).job == record.id:
                return crate
        return None
