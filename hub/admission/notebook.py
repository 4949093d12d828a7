"""Checks a notebook before it is accepted: format, kernel, parameters, names."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from nbformat import NotebookNode

from ..attempts.notebook_format import is_marimo, notebook_text, read_notebook, resolve_kernel
from ..errors import InvalidInput, TooLarge
from ..files.filenames import NAME_BYTES
from ..schemas import MAX_NOTEBOOK_BYTES
from ..schemas.names import described, hidden_in, is_mark
from .parameters import ParameterField

_FILE_NAME = re.compile(
    r"(?:\w|[(\[]|[^\x00-\x7f])(?:[\w .,;'!&#()\[\]+=@~-]|[^\x00-\x7f])*\.ipynb"
)
"""One path component: no slash, no brace (papermill formats braces), no leading dot or hyphen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedNotebook:
    """A notebook that can be executed.

    Attributes:
        content: text of the file to store: as it was sent, or as it was repaired.
        repairs: what was repaired, one sentence for each kind.
        kernel: name of its kernel spec; empty if it has none.
        fields: the variables of its ``parameters`` cell; None if the cell cannot be read
            (a language that papermill does not inspect, or a marimo notebook).
    """

    node: NotebookNode
    content: str
    repairs: tuple[str, ...]
    kernel: str
    fields: tuple[ParameterField, ...] | None

    @property
    def parameters(self) -> tuple[str, ...] | None:
        """The names of the parameters."""
        return None if self.fields is None else tuple(field.name for field in self.fields)


def check_name(name: str, what: str) -> str:
    """Return the name if it is a plain file name ending in .ipynb.

    Raises:
        InvalidInput: it is a path, a format string, or not the name of a notebook.
    """
    problem = ""
    if hidden := hidden_in(name):
        problem = f"has the hidden character {described(hidden)}"
    elif not _FILE_NAME.fullmatch(name) or is_mark(name[0]) or name[0].isspace():
        problem = "cannot be used"
    elif len(name.encode()) > NAME_BYTES:
        problem = f"has more than {NAME_BYTES} bytes"
    if problem:
        raise InvalidInput(
            f"The {what} {name[:80]!r} {problem}.",
            accepted="A plain file name such as 'train.ipynb': letters and digits of any script, "
            "spaces and common punctuation, no folder, no braces, and .ipynb at its end.",
            field=what.removesuffix(" name"),
        )
    return name


def check_notebook(name: str, content: str) -> CheckedNotebook:
    """Parse and validate an .ipynb file's text; old formats are upgraded, and errors repaired.

    Raises:
        TooLarge: more than ``MAX_NOTEBOOK_BYTES``.
        InvalidInput: not a notebook, or one that cannot be repaired.
    """
    try:
        size = len(content.encode())
    except UnicodeEncodeError:
        raise InvalidInput(
            f"{name} contains characters that are not valid Unicode.",
            accepted="A notebook saved as UTF-8, as JupyterLab does.",
        ) from None
    if size > MAX_NOTEBOOK_BYTES:
        raise TooLarge(
            f"{name} has {size / 2**20:.0f} MiB.",
            accepted=f"At most {MAX_NOTEBOOK_BYTES // 2**20} MiB: clear its outputs first, "
            "and read data from your home folder.",
        )
    read = read_notebook(name, content)
    kernelspec = read.node.metadata.get("kernelspec", {})
    return CheckedNotebook(
        node=read.node,
        content=notebook_text(read.node) if read.repairs else content,
        repairs=read.repairs,
        kernel=str(kernelspec.get("name", "")),
        fields=None if is_marimo(read.node) else _fields(read.node),
    )


def check_parameters(name: str, notebook: CheckedNotebook, given: Mapping[str, object]) -> None:
    """Check that the notebook has every given parameter.

    Raises:
        InvalidInput: a parameter is unknown; the message lists the known ones.
    """
    if not given or notebook.parameters is None:
        return
    unknown = [key for key in given if key not in notebook.parameters]
    if not unknown:
        return
    if not notebook.parameters:
        raise InvalidInput(
            f"{name} has no parameters, but {', '.join(unknown)} was given.",
            accepted="Tag a cell of the notebook 'parameters' and assign defaults in it.",
        )
    raise InvalidInput(
        f"{name} has no parameter {', '.join(unknown)}.",
        accepted=f"It has: {', '.join(notebook.parameters)}.",
    )


def check_kernel(wanted: str, installed: Collection[str]) -> str:
    """Return the name of the installed kernel. Raises InvalidInput, with those that are installed.

    The wanted name may differ in case, or be ``python``.
    """
    found = resolve_kernel(wanted, installed)
    if found is None:
        raise InvalidInput(
            f"The kernel {wanted[:80]!r} is not installed here."
            if wanted
            else "The notebook does not name a kernel.",
            accepted=f"Installed: {', '.join(sorted(installed)) or 'none'} (--kernel NAME).",
            field="kernel",
        )
    return found


def _fields(node: NotebookNode) -> tuple[ParameterField, ...] | None:
    # papermill takes a third of a second to import; only jobs need it.
    from papermill.exceptions import PapermillException  # noqa: PLC0415
    from papermill.translators import papermill_translators  # noqa: PLC0415
    from papermill.utils import nb_kernel_name, nb_language  # noqa: PLC0415

    tagged = [cell for cell in node.cells if "parameters" in cell.metadata.get("tags", ())]
    if not tagged:
        return ()
    try:
        kernel, language = nb_kernel_name(node), nb_language(node)
        translator = papermill_translators.find_translator(kernel, language)
        return tuple(
            ParameterField.of(
                found.name,
                annotation=found.inferred_type_name,
                default=found.default,
                help_text=found.help,
            )
            for found in translator.inspect(tagged[0])
        )
    except (NotImplementedError, ValueError, PapermillException):
        return None
