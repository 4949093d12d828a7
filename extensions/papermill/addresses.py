"""Read the outputs of jobs by address: ``carrel://JOB/output.ipynb``, ``carrel://JOB/files/NAME``.

Papermill loads this module whenever it is imported: the client is imported on the first use.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from ...hub.client import Client

SCHEME: Final = "carrel://"
_OUTPUT = "output.ipynb"
_FILES = "files/"
_ACCEPTED = f"{SCHEME}JOB/{_OUTPUT}, or {SCHEME}JOB/{_FILES}NAME for a file that the job has saved."


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputAddress:
    """The address of an output of a job.

    Attributes:
        file: the name of the file; empty for the output notebook.
    """

    job: str
    file: str = ""

    @classmethod
    def parse(cls, address: str) -> Self:
        """Parse an address. Raises InvalidInput."""
        from ...hub.errors import InvalidInput  # noqa: PLC0415  # see the module's docstring

        job, _, name = address.removeprefix(SCHEME).partition("/")
        if job and name == _OUTPUT:
            return cls(job=job)
        file = name.removeprefix(_FILES)
        if job and file and name.startswith(_FILES):
            return cls(job=job, file=file)
        raise InvalidInput(f"{address[:200]} is not the address of an output.", accepted=_ACCEPTED)

    def read(self, client: Client) -> bytes:
        if self.file:
            return b"".join(client.file(self.job, self.file))
        return client.output(self.job).content


class OutputHandler:
    """The handler that papermill registers for the scheme: a class, as its own handlers are."""

    @classmethod
    def read(cls, path: str) -> str:
        """Return the text of an output.

        Raises:
            InvalidInput: not such an address, or not a text.
            NotFound: there is no such job or output.
        """
        from ...hub.client import Client  # noqa: PLC0415  # see the module's docstring
        from ...hub.errors import InvalidInput  # noqa: PLC0415

        address = OutputAddress.parse(path)
        with Client.from_environment() as client:
            content = address.read(client)
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InvalidInput(
                f"{path} is not a text in UTF-8.",
                accepted=f"Fetch it with: carrel output {address.job} --files",
            ) from None

    @classmethod
    def listdir(cls, path: str) -> list[str]:
        """Return the addresses of the outputs of a job, of ``carrel://JOB``."""
        from ...hub.client import Client  # noqa: PLC0415  # see the module's docstring

        job = path.removeprefix(SCHEME).strip("/")
        with Client.from_environment() as client:
            has_notebook = bool(client.request(job).output)
            files = client.files(job).files
        names = [_OUTPUT] * has_notebook + [_FILES + file.name for file in files]
        return [f"{SCHEME}{job}/{name}" for name in names]

    @classmethod
    def write(cls, buf: str, path: str) -> None:
        """Raise InvalidInput: only the job writes its outputs."""
        from ...hub.errors import InvalidInput  # noqa: PLC0415  # see the module's docstring

        raise InvalidInput(
            f"{path} cannot be written: only the job itself writes its outputs.",
            accepted="Name a file for the output; with --engine carrel, the job keeps the "
            f"executed notebook at {SCHEME}JOB/{_OUTPUT} as well.",
        )

    @classmethod
    def pretty_path(cls, path: str) -> str:
        return path
