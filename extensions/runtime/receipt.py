"""``carrel.receipt()``: what ran in this notebook, on which devices, and its cost so far.

Use it in the last cell. Outside Carrel it says that nothing was charged.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata

from ...hub.client import Client, current_credentials
from ...hub.errors import CarrelError
from ...hub.messages import units
from ...hub.schemas import RequestOut

_PATIENCE_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """A receipt; printed, or as a cell's last line, it is a text of a few lines.

    Attributes:
        at: when it was written, in seconds since the epoch.
        cpu_seconds: CPU time of the notebook's process.
        versions: of Python and of the requested packages.
        devices: names of the leased devices; simulated ones are marked.
        request_id: of the session or job; empty outside Carrel.
        request: the request at the site; None outside, or if the site was not reached.
        problem: why it was not reached.
    """

    at: float
    cpu_seconds: float
    versions: dict[str, str]
    devices: str
    request_id: str
    request: RequestOut | None = None
    problem: str = ""

    @property
    def device_seconds(self) -> float | None:
        """Device-seconds charged so far; None if unknown."""
        if not self.request_id:
            return 0.0
        return None if self.request is None else self.request.device_seconds

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _lines(self) -> list[str]:
        when = f"{datetime.fromtimestamp(self.at, UTC):%Y-%m-%d %H:%M} UTC"
        lines = [
            f"Receipt, {when}",
            f"  ran      {self._where()}",
            f"  with     {', '.join(f'{name} {each}' for name, each in self.versions.items())}",
            f"  devices  {self.devices or 'none: it ran on the CPU'}",
        ]
        if self.request is not None and self.request.image:
            lines.append(f"  image    {self.request.image}")
        lines += [f"  input    {each}" for each in self._results()]
        lines.append(f"  time     {self._time()}")
        lines.append(f"  cost     {self._cost()}")
        return lines

    def _results(self) -> Iterator[str]:
        """Yield the parameters that have values of other jobs."""
        if self.request is None:
            return
        for each in self.request.results:
            value = json.dumps(self.request.parameters.get(each.name))
            yield f"{each.name} = {value}, {each.value} of job {each.source}"

    def _where(self) -> str:
        if not self.request_id:
            return "outside Carrel"
        if self.request is None:
            return f"in {self.request_id}"
        return f"in {self.request.kind} {self.request_id} of group {self.request.group}"

    def _time(self) -> str:
        computed = f"{self.cpu_seconds:.1f} s on the CPU"
        if self.request is None or self.request.started_at is None:
            return computed
        whole = units.duration(self.at - self.request.started_at)
        return f"{computed}, {whole} since the start of the {self.request.kind}"

    def _cost(self) -> str:
        if not self.request_id:
            return "nothing: it did not run on Carrel"
        show = f"carrel show {self.request_id}"
        if self.device_seconds is None:
            return f"unknown ({self.problem}) See {show}."
        if not self.device_seconds and not self.devices:
            return "nothing: only devices are charged"
        return f"{units.device_hours(self.device_seconds)} so far; for the total see {show}"


def receipt(packages: Sequence[str] = ()) -> Receipt:
    """Return a receipt of what ran here and of its cost so far.

    >>> print(carrel.receipt(packages=["numpy", "torch"]))

    Args:
        packages: names of installed packages whose versions to show.
    """
    request_id = os.environ.get("CARREL_REQUEST", "")
    request, problem = _fetch(request_id) if request_id else (None, "")
    return Receipt(
        at=time.time(),
        cpu_seconds=time.process_time(),
        versions={"Python": platform.python_version()}
        | {name: _version(name) for name in packages},
        devices=os.environ.get("CARREL_DEVICES", ""),
        request_id=request_id,
        request=request,
        problem=problem,
    )


def _fetch(request_id: str) -> tuple[RequestOut | None, str]:
    """Return the request, or the message that says why it is unknown."""
    try:
        found = current_credentials()
        with Client(found.url, found.token, timeout=_PATIENCE_SECONDS) as client:
            return client.request(request_id), ""
    except CarrelError as error:
        return None, error.message


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "(not installed)"
