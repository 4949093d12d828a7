"""``carrel up`` and ``carrel down``: start, watch and stop the three processes.

`up` and `down` hold the commands; `supervisor` the loop over `child`, one process each.
"""

from __future__ import annotations
