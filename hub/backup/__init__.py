"""``carrel backup`` and ``carrel restore``: what a site cannot lose, as one folder of files.

A backup is a folder with ``manifest.json`` (what is in it, with a hash of each file) and
``state/``, laid out like the state folder. `making` writes one beside a running service,
`restoring` checks one and makes a state folder of it; both copy with `copying`.
"""

from __future__ import annotations
