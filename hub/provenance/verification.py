"""Verify a receipt, or an executed notebook with its receipt, without the service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import InvalidInput
from .canonical_json import parse_object
from .crate import Crate, is_crate, is_signed_by, named_key, read_receipt
from .notebook_hash import content_hash, receipt_of
from .receipt import JobReceiptOut
from .signature import PublicKey


class NotVerified(InvalidInput):
    """A receipt or a notebook that is not what a site has signed."""

    code = "not_verified"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedReceipt:
    """A receipt with a valid signature.

    Attributes:
        crate: its file form.
        key: the key that signed it.
        known: whether the caller gave that key; otherwise the receipt is only unchanged since it
            was signed with the key that it names itself.
        notebook: the executed notebook that contained it; None for a receipt in a file.
    """

    receipt: JobReceiptOut
    crate: Crate
    key: PublicKey
    known: bool
    notebook: dict[str, Any] | None = None


def verify(content: bytes, key: PublicKey | None = None) -> VerifiedReceipt:
    """Check the signature of a receipt, and the content of the notebook that contains it.

    Args:
        content: of the file: a crate, or an executed notebook.
        key: of the site that must have signed it; None accepts the key that the receipt names.

    Raises:
        InvalidInput: the file contains no receipt.
        NotVerified: it is not what that site has signed; the message says what differs.
    """
    found = parse_object(content, "The file")
    notebook = None if is_crate(found) else found
    crate = found if notebook is None else receipt_of(found)
    if crate is None:
        raise InvalidInput(
            "The file contains no receipt.",
            accepted="A receipt from `carrel receipt JOB`, or a notebook from `carrel output JOB`.",
        )
    receipt, named = read_receipt(crate), named_key(crate)
    if key is not None and named != key:
        raise NotVerified(
            f"The receipt was signed with the key {named.id}, which is not that of the expected "
            f"site ({key.id}).",
            accepted=f"It names the site {receipt.site}: use --key with a key of that site.",
        )
    if not is_signed_by(crate, named):
        raise NotVerified("The receipt was edited: its signature does not match its content.")
    if notebook is not None:
        _check_notebook(notebook, receipt)
    return VerifiedReceipt(
        receipt=receipt, crate=crate, key=named, known=key is not None, notebook=notebook
    )


def _check_notebook(notebook: dict[str, Any], receipt: JobReceiptOut) -> None:
    signed = receipt.output.content_sha256 if receipt.output is not None else ""
    if not signed:
        raise NotVerified(f"The receipt of {receipt.job} is of no executed notebook.")
    if content_hash(notebook) != signed:
        raise NotVerified(
            f"The notebook was changed after {receipt.job} had ended: its content is not the one "
            "that the receipt was signed for."
        )
