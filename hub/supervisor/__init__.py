"""``carrel up`` and ``carrel down``: start, supervise and stop the three processes.

`up` and `down` implement the commands; `supervisor` runs the loop over the processes of
`child_process`.
"""

from __future__ import annotations
