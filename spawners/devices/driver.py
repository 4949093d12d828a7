"""Query one plug-in for devices and print its report as one line of JSON; any call may hang.

``python -m carrel.spawners.devices.driver MODULE:CLASS``. ``inventory`` runs it in a child process,
and its module explains why; a container of the service runs it on other machines.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict

from .plugin_target import load_plugin


def main(arguments: Sequence[str]) -> int:
    """Print the report of the plug-in."""
    try:
        report = load_plugin(arguments[0]).list_devices()
        text = json.dumps(
            {
                "reason": report.reason,
                "installed": report.installed,
                "units": [asdict(device) for device in report.devices],
            }
        )
    except Exception as error:  # the code of a plug-in may raise anything
        print(str(error) or type(error).__name__, file=sys.stderr)
        sys.stderr.flush()
        os._exit(1)
    print(text)
    sys.stdout.flush()
    # The library of the driver is not shut down and the interpreter does not exit normally: both
    # may hang in a driver that fails.
    os._exit(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
