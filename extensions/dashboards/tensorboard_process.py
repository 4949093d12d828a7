"""The process of a TensorBoard: ``python -m … FOLDER PREFIX SOCKET``.

It listens on a Unix socket in a private folder: a port would be open to all users of the machine.
It ends when its standard input does, that is, with the user's server, and removes that folder.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from pathlib import Path
from typing import Any


class _SocketServer:
    """What TensorBoard takes for a server; the path is that of the command line."""

    def __init__(self, application: Any, _flags: object) -> None:
        from werkzeug.serving import make_server  # noqa: PLC0415  # comes with TensorBoard

        self._server = make_server(f"unix://{sys.argv[3]}", 0, application, threaded=True)

    def serve_forever(self) -> None:
        self._server.serve_forever()

    def get_url(self) -> str:
        return "http://localhost:0/"  # TensorBoard reads a port from it, for a list of its own

    def print_serving_message(self) -> None:
        """Print nothing: its address is a socket."""


def end_with_the_server() -> None:
    """Wait, in a thread, for the end of the standard input; then end this process."""

    def wait() -> None:
        sys.stdin.read()
        shutil.rmtree(Path(sys.argv[3]).parent, ignore_errors=True)
        os._exit(0)

    threading.Thread(target=wait, daemon=True).start()


def main() -> int:
    """Serve the event files below a folder."""
    from tensorboard import default, program  # noqa: PLC0415  # not part of Carrel

    folder, prefix, _socket = sys.argv[1:4]
    end_with_the_server()
    board = program.TensorBoard(plugins=default.get_plugins(), server_class=_SocketServer)
    # The fast loader would be one more process, which listens on a port.
    board.configure(["", "--logdir", folder, "--path_prefix", prefix, "--load_fast", "false"])
    return int(board.main())


if __name__ == "__main__":
    sys.exit(main())
