"""The process that compares two runs: notebooks are not trusted, so that it has limits.

It reads a ``ComparisonInput`` and writes a ``ComparisonOut``, or an error of Carrel with the exit
status 3, as JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ...attempts.notebook_format import INJECTED_TAG, read_notebook
from ...comparison.facts import RunFacts
from ...comparison.runs import Comparison
from ...comparison.schemas import ComparisonOut
from ...errors import CarrelError
from ...runtime.limited_process import limit_this_process
from .order import ComparisonInput

CPU_SECONDS: Final = 30
MEMORY_BYTES: Final = 3 << 30
"""Address space: Python and nbdime map about 300 MiB."""
REFUSED: Final = 3
_MOST_TEXT: Final = 200
_RUNNER: Final = "carrel: "


def main() -> int:
    """Compare what comes on the standard input. Returns the exit status."""
    limit_this_process(cpu_seconds=CPU_SECONDS, memory_bytes=MEMORY_BYTES)
    try:
        found = compared(ComparisonInput.read(sys.stdin.buffer.read()))
    except CarrelError as error:
        body = {"code": error.code, "message": error.message, "accepted": error.accepted}
        sys.stdout.write(json.dumps(_encodable(body)))
        return REFUSED
    sys.stdout.buffer.write(found.model_dump_json().encode())
    return 0


def compared(given: ComparisonInput) -> ComparisonOut:
    """Compare two runs.

    Raises:
        InvalidInput: one of them is not a notebook, or has too many cells.
    """
    order = given.order
    if order.form == "log":
        logs = [_without_end(content.decode(errors="replace")) for content in (given.a, given.b)]
        return _comparison(given, order.a, order.b).of_logs(*logs)
    a, b = (
        _encodable(read_notebook(facts.about.name, content).node)
        for facts, content in ((order.a, given.a), (order.b, given.b))
    )
    comparison = _comparison(given, _with_metadata(order.a, a), _with_metadata(order.b, b))
    return comparison.of_notebooks(compared_cells(a), compared_cells(b))


def compared_cells(notebook: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the cells without papermill's own: the parameters are compared by themselves."""
    return [
        cell
        for cell in notebook["cells"]
        if INJECTED_TAG not in (cell.get("metadata", {}).get("tags") or ())
    ]


def _encodable(value: Any) -> Any:
    """Return JSON without lone surrogates, which no answer can hold: ``?`` stands for each."""
    match value:
        case str():
            return value.encode(errors="replace").decode()
        case Mapping():
            return {_encodable(name): _encodable(each) for name, each in value.items()}
        case list():
            return [_encodable(each) for each in value]
        case _:
            return value


def _without_end(log: str) -> str:
    """Return a log without the runner's last line, which repeats the command and the result."""
    lines = log.removesuffix("\n").split("\n")
    return "\n".join(lines[:-1] if lines[-1].startswith(_RUNNER) else lines)


def _comparison(given: ComparisonInput, a: RunFacts, b: RunFacts) -> Comparison:
    order = given.order
    return Comparison(a, b, order.tolerance, ignored=order.ignored, notes=order.notes)


def _with_metadata(facts: RunFacts, notebook: Mapping[str, Any]) -> RunFacts:
    """Add what the metadata of an executed notebook says about its run."""
    metadata = notebook.get("metadata", {})
    carrel, papermill = _part(metadata, "carrel"), _part(metadata, "papermill")
    kernel, language = _part(metadata, "kernelspec"), _part(metadata, "language_info")
    environment = {
        "Image": carrel.get("image"),
        "Kernel": kernel.get("name"),
        "Language": " ".join(
            str(language[name]) for name in ("name", "version") if language.get(name)
        ),
    }
    found = {name: str(value)[:_MOST_TEXT] for name, value in environment.items() if value}
    return replace(
        facts,
        outcome=str(carrel.get("outcome", ""))[:_MOST_TEXT],
        parameters=facts.parameters or _part(papermill, "parameters"),
        environment=found | dict(facts.environment),
    )


def _part(metadata: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = metadata.get(name)
    return found if isinstance(found, Mapping) else {}


if __name__ == "__main__":
    sys.exit(main())
