"""The file form of a receipt: an RO-Crate 1.1 (https://w3id.org/ro/crate/1.1), with a signature.

The graph describes the run for other programs, as a ``CreateAction`` of the Process Run Crate
profile. The entity ``#receipt`` has the whole receipt as JSON, and ``#signature`` has the signature
over the canonical form of the crate without it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from pydantic import ValidationError

from ..errors import InvalidInput
from .canonical_json import canonical, parse_object
from .receipt import HashedFileOut, JobReceiptOut
from .signature import ALGORITHM, PublicKey, SigningKey

FILE_NAME = "ro-crate-metadata.json"
RECEIPT_ID, SIGNATURE_ID = "#receipt", "#signature"
_PROFILE = "https://w3id.org/ro/wfrun/process/0.5"
_TERMS = {"sha256": "https://schema.org/sha256"}
_NOT_A_RECEIPT = "A receipt is written by `carrel receipt JOB`, or in an executed notebook."

Crate = dict[str, Any]
"""A JSON object with ``@context`` and ``@graph``."""


def signed_crate(receipt: JobReceiptOut, key: SigningKey) -> Crate:
    """Return the crate of a receipt, signed by the site."""
    public = key.public
    crate = _crate(receipt)
    crate["@graph"].append(
        {
            "@id": SIGNATURE_ID,
            "@type": "PropertyValue",
            "name": f"{ALGORITHM} signature of {receipt.site}",
            "propertyID": "https://www.rfc-editor.org/rfc/rfc8032",
            "identifier": public.base64,
        }
    )
    signature = base64.b64encode(key.sign(canonical(crate))).decode()
    crate["@graph"][-1]["value"] = signature
    return crate


def read_receipt(crate: Mapping[str, Any]) -> JobReceiptOut:
    """Return the receipt in a crate, without checking the signature. Raises InvalidInput."""
    text = _entity(crate, RECEIPT_ID).get("text")
    found = parse_object(str(text).encode("utf-8", "surrogatepass"), "The receipt")
    try:
        return JobReceiptOut.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InvalidInput(
            f"The receipt is not valid: {'.'.join(map(str, first['loc']))}: {first['msg']}."
        ) from None


def named_key(crate: Mapping[str, Any]) -> PublicKey:
    """Return the public key that the signature says it was made with. Raises InvalidInput."""
    return PublicKey.from_base64(str(_entity(crate, SIGNATURE_ID).get("identifier", "")))


def is_signed_by(crate: Mapping[str, Any], key: PublicKey) -> bool:
    """Return whether a site has signed exactly this crate. Raises InvalidInput."""
    signature = _entity(crate, SIGNATURE_ID)
    unsigned = {name: value for name, value in signature.items() if name != "value"}
    graph = [unsigned if each is signature else each for each in crate["@graph"]]
    try:
        given = base64.b64decode(str(signature.get("value", "")), validate=True)
        content = canonical({**crate, "@graph": graph})
    except (binascii.Error, ValueError):
        return False
    return key.verifies(given, content)


def is_crate(value: Mapping[str, Any]) -> bool:
    return "@context" in value and "@graph" in value


def _entity(crate: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    graph = crate.get("@graph")
    entities = [each for each in graph if isinstance(each, dict)] if isinstance(graph, list) else []
    found = [each for each in entities if each.get("@id") == name]
    if len(found) != 1:
        raise InvalidInput(
            f"The crate has {len(found) or 'no'} {'entities' if found else 'entity'} {name}.",
            accepted=_NOT_A_RECEIPT,
        )
    return found[0]


def _crate(receipt: JobReceiptOut) -> Crate:
    # Imported at the first receipt: it takes a quarter of a second.
    # The library has no types.
    from rocrate.model.contextentity import (  # type: ignore[import-untyped]  # noqa: PLC0415
        ContextEntity,
    )
    from rocrate.rocrate import ROCrate  # type: ignore[import-untyped]  # noqa: PLC0415

    crate = ROCrate(version="1.1")
    crate.metadata.extra_terms.update(_TERMS)

    def add(at: str, kind: str, /, **values: object) -> Any:
        known = {key: value for key, value in values.items() if value not in ("", None, [])}
        about = {"@type": kind, **known}
        return crate.add(ContextEntity(crate, quote(at, safe="#:/"), properties=about))

    def add_file(path: str, file: HashedFileOut, *kinds: str) -> Any:
        about: dict[str, object] = {"@type": ["File", *kinds]} if kinds else {}
        about |= {"name": file.name, "contentSize": str(file.size), "sha256": file.sha256}
        about |= {"description": file.note} if file.note else {}
        return crate.add_file(dest_path=path, properties=about)

    add(_PROFILE, "CreativeWork", name="Process Run Crate", version="0.5")
    owner = add(f"#user-{receipt.owner}", "Person", name=receipt.owner)
    group = add(f"#group-{receipt.group}", "Organization", name=receipt.group)
    root = crate.root_dataset
    root["conformsTo"] = {"@id": _PROFILE}
    root["name"] = f"Receipt of {receipt.job}"
    root["description"] = f"What {receipt.site} recorded of {receipt.job}, with its signature."
    root["datePublished"] = _moment(receipt.ended_at or receipt.submitted_at)
    root["license"] = "No license is granted by this receipt."
    if receipt.notebook is not None:
        path = f"input/{receipt.notebook.name}"
        instrument = add_file(path, receipt.notebook, "SoftwareSourceCode")
    else:
        instrument = add("#command", "SoftwareApplication", name=" ".join(receipt.command)[:500])
    parts = [instrument]
    if receipt.image:
        name, _, digest = receipt.image.partition("@")
        image = add("#image", "SoftwareApplication", name=name, identifier=receipt.image)
        image["version"] = digest
        parts.append(image)
    objects = [
        add(f"#parameter-{name}", "PropertyValue", name=name, value=canonical(value).decode())
        for name, value in receipt.parameters.items()
    ]
    inputs = receipt.reported.inputs.files if receipt.reported is not None else []
    for read in inputs:
        note = "As reported by the job. " + read.note
        file = HashedFileOut(name=read.path, size=read.size, sha256=read.sha256, note=note.strip())
        objects.append(add_file(read.path, file))
    results = [add_file(f"files/{file.name}", file) for file in receipt.files]
    if receipt.output is not None:
        results.append(add_file(receipt.output.name, receipt.output))
    action = add(
        "#run",
        "CreateAction",
        name=f"Run of {receipt.job}",
        startTime=_moment(receipt.started_at),
        endTime=_moment(receipt.ended_at),
        actionStatus=f"http://schema.org/{_status(receipt)}",
        error=receipt.message if receipt.state != "succeeded" else "",
    )
    action["agent"], action["instrument"], action["participant"] = owner, parts, group
    for name, entities in (("object", objects), ("result", results)):
        if entities:
            action[name] = entities
    root["mentions"] = action
    add(
        RECEIPT_ID,
        "CreativeWork",
        name="The receipt as JSON",
        encodingFormat="application/json",
        text=canonical(receipt.model_dump(mode="json")).decode("utf-8", "surrogatepass"),
    )
    found: Crate = crate.metadata.generate()
    return found


def _status(receipt: JobReceiptOut) -> str:
    return "CompletedActionStatus" if receipt.state == "succeeded" else "FailedActionStatus"


def _moment(at: float | None) -> str:
    return "" if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
