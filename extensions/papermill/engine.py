"""Papermill's engine ``carrel``: runs the notebook as a job, and streams it back cell by cell.

Papermill has injected the parameters when it calls an engine, so the job has none of its own. The
engine fetches the output notebook of the job when an event says that it has changed, and gives its
cells to papermill's manager, which saves the output and draws the progress bar.

Papermill loads this module while it is itself being imported: nothing of it is imported before the
first use, and neither is the client.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nbformat import NotebookNode


class JobEngine:
    """The engine that papermill finds as ``carrel``, with the methods of its ``Engine``."""

    @classmethod
    def execute_notebook(
        cls,
        nb: NotebookNode,
        kernel_name: str,
        *,
        output_path: str | None = None,
        progress_bar: bool | dict[str, Any] = True,
        log_output: bool = False,
        autosave_cell_every: int = 30,
        **options: Any,
    ) -> NotebookNode:
        """Execute the notebook as a job; papermill raises the error of a failed cell itself.

        Raises:
            CarrelError: the job was not accepted, or the service does not respond.
            PapermillException: the job ended for another reason than an error in a cell.
        """
        from .job_notebook import JobNotebook  # noqa: PLC0415  # see the module's docstring
        from .job_run import JobRun  # noqa: PLC0415

        run = JobRun.of(nb, kernel_name, options)
        manager = JobNotebook(
            nb,
            output_path=output_path,
            progress_bar=progress_bar,
            log_output=log_output,
            autosave_cell_every=autosave_cell_every,
            stdout_file=options.get("stdout_file"),
            stderr_file=options.get("stderr_file"),
        )
        manager.notebook_start()
        try:
            run.execute(manager)
        finally:
            manager.cleanup_pbar()
            manager.notebook_complete()
        return manager.nb

    @classmethod
    def nb_kernel_name(cls, nb: NotebookNode, name: str | None = None) -> str:
        from papermill.utils import nb_kernel_name  # noqa: PLC0415  # see the module's docstring

        return str(nb_kernel_name(nb, name))

    @classmethod
    def nb_language(cls, nb: NotebookNode, language: str | None = None) -> str:
        from papermill.utils import nb_language  # noqa: PLC0415  # see the module's docstring

        return str(nb_language(nb, language))
