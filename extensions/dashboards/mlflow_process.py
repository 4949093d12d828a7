"""The process of an MLflow server: ``python -m … FOLDER PREFIX SOCKET``, as that of TensorBoard."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from .job_logs import database_of
from .tensorboard_process import end_with_the_server


def main() -> int:
    """Serve the database in a folder; artifacts are files of the job, and not copied."""
    folder, prefix, socket = sys.argv[1:4]
    end_with_the_server()
    # What `mlflow server` tells its workers; it itself would listen on a port.
    os.environ |= {
        "_MLFLOW_SERVER_FILE_STORE": f"sqlite:///{database_of(Path(folder))}",
        "_MLFLOW_SERVER_ARTIFACT_ROOT": str(Path(folder) / "artifacts"),
        "_MLFLOW_STATIC_PREFIX": prefix,
        # No calls to other hosts.
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    import uvicorn  # noqa: PLC0415  # comes with MLflow, which is not part of Carrel

    uvicorn.run("mlflow.server.fastapi_app:app", uds=socket, log_level="warning")
    return 0


if __name__ == "__main__":
    sys.exit(main())
