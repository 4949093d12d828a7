"""Compare the outputs of one cell in two notebooks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from .alignment import Pair, aligned
from .images import UnreadableImage, compare_images, stable_svg
from .schemas import OutputDifferenceOut
from .sentences import image_sentence, table_sentence, text_sentence
from .tables import Row, compare_tables, html_table, printed_table, table_differs
from .text import compare_text, differs, one_sided
from .tolerance import Tolerance

_IMAGES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
_SVG: Final = "image/svg+xml"
_HTML: Final = "text/html"
_TEXT: Final = "text/plain"
_MOST_OUTPUTS: Final = 500
Form = Literal["text", "image", "table", "error", "data"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedOutput:
    """An output as it is compared.

    Attributes:
        number: index of the output in its notebook; of joined streams, the first one.
        name: name of the stream, ``error``, or the MIME type that is compared.
        text: its content; base64 for images in pixels.
        table: the rows, if it is a table.
    """

    number: int
    form: Form
    name: str
    text: str
    table: tuple[Row, ...] | None = None


def compare_outputs(a: object, b: object, tolerance: Tolerance) -> list[OutputDifferenceOut]:
    """Compare two lists of outputs of the format 4; anything else counts as an empty list.

    The parts of a stream are joined: how a program's text is divided differs in every run. Of a
    display, the richest form that both runs have is compared.
    """
    found = list[OutputDifferenceOut]()
    left, right = _outputs(a), _outputs(b)
    for one, other in _pairs(left, right):
        if one is None:
            assert other is not None
            only = right[other]
            found.append(_only(only, "added", b=only.number))
        elif other is None:
            only = left[one]
            found.append(_only(only, "removed", a=only.number))
        else:
            found.append(_compare(left[one], right[other], tolerance))
    return found


def _pairs(a: Sequence[ComparedOutput], b: Sequence[ComparedOutput]) -> list[Pair]:
    names_a, names_b = [each.name for each in a], [each.name for each in b]
    return list(aligned(names_a, names_b, lambda one, other: names_a[one] == names_b[other]))


def _only(
    output: ComparedOutput,
    state: Literal["removed", "added"],
    *,
    a: int | None = None,
    b: int | None = None,
) -> OutputDifferenceOut:
    run = "first" if state == "removed" else "second"
    text = None
    if output.form in {"text", "error"}:
        text = one_sided(output.text, state)
    return OutputDifferenceOut(
        state=state,
        form=output.form,
        name=output.name,
        a=a,
        b=b,
        message=f"Only the {run} run has this output.",
        text=text,
    )


def _compare(a: ComparedOutput, b: ComparedOutput, tolerance: Tolerance) -> OutputDifferenceOut:
    base = OutputDifferenceOut(state="changed", form=a.form, name=a.name, a=a.number, b=b.number)
    if a.name != b.name:
        message = f"The kinds of output differ: {a.name} and {b.name}."
        return base.model_copy(update={"message": message})
    if a.text == b.text:
        return base.model_copy(update={"state": "equal"})
    if a.form == "image":
        return _compare_images(base, a, b, tolerance)
    if a.table is not None and b.table is not None:
        table = compare_tables(a.table, b.table, tolerance)
        state = "changed" if table_differs(table) else "equal"
        return base.model_copy(
            update={"state": state, "table": table, "message": table_sentence(table)}
        )
    text = compare_text(a.text, b.text, tolerance)
    state = "changed" if differs(text) else "equal"
    return base.model_copy(update={"state": state, "text": text, "message": text_sentence(text)})


def _compare_images(
    base: OutputDifferenceOut, a: ComparedOutput, b: ComparedOutput, tolerance: Tolerance
) -> OutputDifferenceOut:
    try:
        image = compare_images(a.text, b.text, tolerance)
    except UnreadableImage as error:
        message = f"The images differ, and their pixels were not compared: {error}."
        return base.model_copy(update={"message": message})
    equal = image.size_a == image.size_b and not image.changed
    return base.model_copy(
        update={
            "state": "equal" if equal else "changed",
            "image": image,
            "message": image_sentence(image),
        }
    )


def _outputs(given: object) -> list[ComparedOutput]:
    found = list[ComparedOutput]()
    streams = dict[str, int]()
    outputs = given[:_MOST_OUTPUTS] if isinstance(given, list) else []
    for number, output in enumerate(outputs):
        if not isinstance(output, Mapping):
            continue
        match output.get("output_type"):
            case "stream":
                name = "stderr" if output.get("name") == "stderr" else "stdout"
                text = joined(output.get("text"))
                if name in streams:
                    before = found[streams[name]]
                    found[streams[name]] = ComparedOutput(
                        number=before.number, form="text", name=name, text=before.text + text
                    )
                else:
                    streams[name] = len(found)
                    found.append(ComparedOutput(number=number, form="text", name=name, text=text))
            case "error":
                # The lines of a traceback depend on versions of libraries.
                text = f"{joined(output.get('ename'))}: {joined(output.get('evalue'))}"
                found.append(ComparedOutput(number=number, form="error", name="error", text=text))
            case "display_data" | "execute_result":
                data = output.get("data")
                if isinstance(data, Mapping) and data:
                    found.append(_display(number, data))
    return found


def _display(number: int, data: Mapping[str, Any]) -> ComparedOutput:
    for mime in _IMAGES:
        if mime in data:
            # JupyterLab breaks the lines of base64 differently from kernels.
            text = "".join(joined(data[mime]).split())
            return ComparedOutput(number=number, form="image", name=mime, text=text)
    if _SVG in data:
        text = stable_svg(joined(data[_SVG]))
        return ComparedOutput(number=number, form="data", name=_SVG, text=text)
    if _HTML in data:
        text = joined(data[_HTML])
        return _table(number, _HTML, text, html_table(text))
    others = sorted(mime for mime in data if mime != _TEXT)
    if others:
        mime = others[0]
        return ComparedOutput(number=number, form="data", name=mime, text=_written(data[mime]))
    text = joined(data.get(_TEXT))
    return _table(number, _TEXT, text, printed_table(text))


def _table(number: int, mime: str, text: str, rows: Sequence[Row] | None) -> ComparedOutput:
    return ComparedOutput(
        number=number,
        form="table" if rows else "data" if mime == _HTML else "text",
        name=mime,
        text=text,
        table=tuple(rows) if rows else None,
    )


def _written(value: object) -> str:
    """Return the text of a value: JSON by lines, so that its numbers are compared."""
    if isinstance(value, Mapping) or (
        isinstance(value, list) and not all(isinstance(part, str) for part in value)
    ):
        return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False)
    return joined(value)


def joined(value: object) -> str:
    """Join text that nbformat stores as a list of lines."""
    if isinstance(value, list):
        return "".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else "" if value is None else str(value)
